"""Keras models with the weights of a trained state.

The user's function makes the model, because a program does not contain its layers.  If the name of
every tensor of the state matches exactly one weight, as `hidden_kernel` matches
`sequential/hidden/kernel`, weights are assigned by name; otherwise in the order of `model.weights`.
"""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np

from tffc.deploy.export.kind import Exported
from tffc.deploy.export.trained import StatePart, named, parts
from tffc.frontend.computation import Computation, PolymorphicComputation
from tffc.language.types import StructType
from tffc.language.values.concrete import flatten
from tffc.language.values.misfits import describe
from tffc.runtime.data.arrays import ArrayLayout, header_text
from tffc.runtime.frameworks.tensorflow.quiet import quiet
from tffc.runtime.user_code.modules import find_attribute, import_source, split_target
from tffc.runtime.user_code.source import keep_users_frames
from tffc.support.errors import ExportError, TffcError
from tffc.support.guards import Array

SUFFIX = ".keras"

MOST_SHOWN = 20
"""The most weights that an error shows."""


class Weight(Protocol):
    """What is read of a weight of a Keras model; Keras 3 also gives it a `path`."""

    name: str
    dtype: Any
    shape: Iterable[int]


class Saveable(Protocol):
    """What Keras can save, such as a model."""

    def save(self, path: pathlib.Path) -> None: ...


class BuiltModel(Saveable, Protocol):
    """What is used of a Keras model."""

    name: str
    weights: Sequence[Weight]

    def set_weights(self, weights: Sequence[Array]) -> None: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Placed:
    """The names of tensors of the state and of the weights that they became, in pairs."""

    pairs: Sequence[tuple[str, str]]
    by_name: bool


def make_model(target: str | Callable[[], object]) -> BuiltModel:
    """Return the Keras model that a function makes, given itself or as `MODULE:NAME`.

    Raises:
      ExportError: there is no such function, or it does not return a model with weights.
      LoadError: the module cannot be imported.
    """
    function, name = target, getattr(target, "__name__", "the source")
    if isinstance(target, str):
        function, name = _function_at(target), target
    if isinstance(function, (Computation, PolymorphicComputation)):
        raise _no_model(name, "it is a computation, which is exported as a SavedModel")
    if not callable(function):
        raise _no_model(name, "there is no such function")
    try:
        model = function()
    except TffcError:
        raise
    except Exception as error:
        keep_users_frames(error)
        raise _no_model(name, f"it raised {type(error).__name__}: {error}") from error
    if not _is_model(model):
        raise _no_model(name, f"it returns {describe(model)}")
    if not model.weights:
        raise _no_model(name, "its model has no weights yet")
    return model


def _function_at(target: str) -> object:
    """Return what `MODULE:NAME` names; None if there is nothing of that name."""
    source, name = split_target(target)
    try:
        return find_attribute(import_source(source), name or "")
    except AttributeError:
        return None


def _is_model(value: object) -> TypeGuard[BuiltModel]:
    return all(hasattr(value, name) for name in ("name", "weights", "set_weights", "save"))


def _no_model(target: str, reason: str) -> ExportError:
    return ExportError(
        "E873",
        f"{target} is not a function that makes a Keras model: {reason}",
        help="name a function without parameters, such as averaging.py:make_model, that returns a "
        "built model: one that begins with keras.Input, or after model.build(shape)",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Tensor:
    """A weight of a model or a tensor of a state: its name, and its type as text."""

    name: str
    type: str

    @classmethod
    def of(cls, name: str, dtype: Any, shape: Iterable[int]) -> _Tensor:
        return cls(name, header_text((np.dtype(dtype), tuple(shape))))

    def __str__(self) -> str:
        return f"{self.name} {self.type}"


def set_weights(model: BuiltModel, part: StatePart) -> Placed:
    """Set the weights of a Keras model from a part of a state.

    Raises:
      ExportError: the number, shapes or types of the tensors are not those of the model.
    """
    paths = [_path(weight) for weight in model.weights]
    # All paths begin with the model's name, which may be generated and have a number.
    shown = [path.removeprefix(f"{model.name}/") for path in paths]
    weights = [
        _Tensor.of(name, _dtype(weight), weight.shape)
        for name, weight in zip(shown, model.weights, strict=True)
    ]
    fields = ArrayLayout(part.type).fields
    names = [field.name for field in fields]
    if len(names) != len(weights):
        reason = f"the model has {len(weights)}, and {part} has {len(names)}"
        raise _other_weights(part, reason, weights)
    sequences = [field.name for field in fields if field.sequence is not None]
    if sequences:
        raise _other_weights(part, f"{sequences[0]} is in a sequence", weights)
    values = [np.asarray(value) for value in flatten(part.value, part.type)]
    held = [_Tensor.of(n, v.dtype, v.shape) for n, v in zip(names, values, strict=True)]
    order = _order_by_name(names, paths)
    by_name = order is not None
    order = order or list(range(len(weights)))
    for index, weight in zip(order, weights, strict=True):
        if held[index].type != weight.type:
            raise _other_weights(part, f"{weight} would be {held[index]}", weights)
    model.set_weights([values[index] for index in order])
    pairs = [(held[i].name, weight.name) for i, weight in zip(order, weights, strict=True)]
    return Placed(pairs, by_name)


def _path(weight: Weight) -> str:
    """Return the name of a weight, preceded by those of its layers."""
    return getattr(weight, "path", None) or weight.name.removesuffix(":0")


def _dtype(weight: Weight) -> Any:
    """Return the element type of a weight, given as a name or as TensorFlow's object."""
    return getattr(weight.dtype, "as_numpy_dtype", weight.dtype)


def _order_by_name(names: Sequence[str], paths: Sequence[str]) -> list[int] | None:
    """Return for each path the index of its name; None unless they match one to one.

    A name matches a path that ends in it, with underscores for slashes.
    """
    ends: dict[str, set[int]] = collections.defaultdict(set)
    for index, path in enumerate(paths):
        steps = path.split("/")
        for start in range(len(steps)):
            ends["_".join(steps[start:])].add(index)
    order: dict[int, int] = {}
    for index, name in enumerate(names):
        meant = ends.get(name.replace("/", "_"), set())
        if len(meant) != 1:
            return None
        order[meant.pop()] = index
    return [order[i] for i in range(len(paths))] if len(order) == len(paths) else None


def _other_weights(part: StatePart, reason: str, weights: Sequence[_Tensor]) -> ExportError:
    structs = [inner for inner in parts(part) if isinstance(inner.type, StructType)]
    more = f" and {len(weights) - MOST_SHOWN} more" if len(weights) > MOST_SHOWN else ""
    return ExportError(
        "E853",
        f"{part} does not hold the model's weights: {reason}",
        notes=(f"the model's are {', '.join(map(str, weights[:MOST_SHOWN]))}{more}",),
        help="name the part of the state that holds them"
        + (f": {named(structs[1:])}" if structs[1:] else "")
        + "; or load the state in Python, and call model.set_weights",
    )


def save_model(model: Saveable) -> bytes:
    """Return the content of a model's `.keras` file.

    Raises:
      ExportError: Keras cannot save it.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"model{SUFFIX}"
        try:
            with quiet(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.save(path)
        except Exception as error:
            keep_users_frames(error)
            raise ExportError(
                "E875",
                f"Keras cannot save the model: {type(error).__name__}: {error}",
                help="use only layers that Keras can save, which have get_config",
            ) from error
        return path.read_bytes()


def export_keras(target: str | Callable[[], object], part: StatePart) -> Exported:
    """Return the Keras model that a function makes, with the weights of a part of a state.

    Raises:
      ExportError: the function, the state or the model is refused.
    """
    model = make_model(target)
    placed = set_weights(model, part)
    how = "by name" if placed.by_name else "in their order"
    return Exported(
        {"": save_model(model)},
        f"a Keras model with {len(placed.pairs)} weights, given {how}",
        [f"{weight} <- {name}" for name, weight in placed.pairs],
    )
