"""Layers of Keras 3 that hold tensors or tables, which were made outside of any computation.

Preprocessing layers do: `Normalization` holds a mean, `StringLookup` and `TextVectorization` the
table of a vocabulary.  A computation takes none of them.  Inside of one, a tensor is replaced by an
array, which becomes a constant, and a table by a new one with the same content.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import LanguageValueError

_LOCK = threading.RLock()
"""Held while layers have their replacements: several threads may trace one model."""


class Replacement(NamedTuple):
    """What stands for an attribute of a layer inside of a computation, made there."""

    layer: Any
    attribute: str
    make: Callable[[], Any]


def replacements_of(network: Any) -> list[Replacement]:
    """Return the replacements for what the layers of a model hold; the model has to be built."""
    return [each for layer in layers_of(network) for each in _replacements(layer)]


@contextlib.contextmanager
def replaced(replacements: list[Replacement]) -> Generator[None]:
    """Let layers have their replacements in a block."""
    with _LOCK, contextlib.ExitStack() as undo:
        for layer, attribute, make in replacements:
            # Past Keras, which tracks what is assigned.
            attributes = vars(layer)
            undo.callback(attributes.__setitem__, attribute, attributes[attribute])
            attributes[attribute] = make()
        yield


def layers_of(network: Any) -> list[Any]:
    """Return a model and all layers in it."""
    flatten = getattr(network, "_flatten_layers", None)
    return [network] if flatten is None else list(flatten())


def check_layers(network: Any) -> None:
    """Check that no layer assigns weights that gradients move: Keras tells nobody of that.

    Raises:
      LanguageValueError: one does.
    """
    for layer in layers_of(network):
        if type(layer).__name__ == "SpectralNormalization":
            raise LanguageValueError(
                "E706",
                f"the layer {layer.name!r} assigns weights while the model is called, which a "
                "federated training would lose",
                help="take another layer, or write the model with Model.from_functions",
            )


def _replacements(layer: Any) -> Iterator[Replacement]:
    tf = load_tensorflow()
    for attribute, value in list(vars(layer).items()):
        if isinstance(value, tf.Tensor) and hasattr(value, "numpy"):
            array = value.numpy()
            yield Replacement(layer, attribute, lambda array=array: array)
        elif isinstance(value, tf.lookup.StaticHashTable):
            yield Replacement(layer, attribute, _table_like(tf, value))


def _table_like(tf: Any, table: Any) -> Callable[[], Any]:
    """Return a function that makes a table of the same content."""
    keys, values = (tensor.numpy() for tensor in table.export())
    default = table.default_value.numpy()

    def make() -> Any:
        content = tf.lookup.KeyValueTensorInitializer(
            keys, values, table.key_dtype, table.value_dtype
        )
        return tf.lookup.StaticHashTable(content, default)

    return make
