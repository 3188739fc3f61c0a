"""Layers of Keras 3 that hold tensors or tables, which were made outside of any computation.

Preprocessing layers do: `Normalization` holds a mean, `StringLookup` and `TextVectorization` the
table of a vocabulary.  A computation takes none of them.  Inside of one, tensors are replaced by
arrays, which become constants, and a layer with a table by a new one of the same configuration.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

from tffc.runtime.frameworks.tensorflow.load import load_tensorflow


class Replacement(NamedTuple):
    """What stands for an attribute of a layer inside of a computation."""

    layer: Any
    attribute: str
    value: Any


def replacements_of(network: Any) -> list[Replacement]:
    """Return the replacements for what the layers of a model hold; the model has to be built."""
    return [each for layer in layers_of(network) for each in _replacements(layer)]


@contextlib.contextmanager
def replaced(replacements: list[Replacement]) -> Generator[None]:
    """Let layers have their replacements in a block."""
    with contextlib.ExitStack() as undo:
        for layer, attribute, value in replacements:
            # Past Keras, which tracks what is assigned.
            attributes = vars(layer)
            if attribute in attributes:
                undo.callback(attributes.__setitem__, attribute, attributes[attribute])
            else:
                undo.callback(attributes.__delitem__, attribute)
            attributes[attribute] = value
        yield


def layers_of(network: Any) -> list[Any]:
    """Return a model and all layers in it."""
    flatten = getattr(network, "_flatten_layers", None)
    return [network] if flatten is None else list(flatten())


def tables_of(network: Any) -> list[str]:
    """Return the names of layers that hold a table and have no replacement."""
    layers = layers_of(network)
    # A layer for texts has one for its words inside.
    inner = [getattr(layer, "_lookup_layer", None) for layer in layers]
    return [
        layer.name
        for layer in layers
        if hasattr(layer, "get_vocabulary") and not _has_table(layer) and layer not in inner
    ]


def _replacements(layer: Any) -> Iterator[Replacement]:
    tf = load_tensorflow()
    if _has_table(layer):
        yield Replacement(layer, "call", _made_anew(layer))
        return
    for attribute, value in list(vars(layer).items()):
        if isinstance(value, tf.Tensor) and hasattr(value, "numpy"):
            yield Replacement(layer, attribute, value.numpy())


def _has_table(layer: Any) -> bool:
    """Return whether a layer has a vocabulary, and nothing else that `adapt` has learned."""
    if not hasattr(layer, "get_vocabulary"):
        return False
    return layer.get_config().get("output_mode") != "tf_idf"


def _made_anew(layer: Any) -> Callable[..., Any]:
    """Return the `call` of a layer of the same configuration, which is made where it is called."""
    config = layer.get_config()
    # What was learned with `adapt` is not in the configuration.
    config["vocabulary"] = layer.get_vocabulary(include_special_tokens=False)

    def call(*arguments: Any, **options: Any) -> Any:
        return type(layer).from_config(config).call(*arguments, **options)

    return call
