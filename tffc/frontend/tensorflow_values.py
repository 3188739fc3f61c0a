"""Values entering and leaving a TensorFlow graph that is being traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tffc.frontend.conversion import open_container
from tffc.frontend.hints import instead_of
from tffc.frontend.tensorflow_trace import made_outside
from tffc.language.traverse import find
from tffc.language.types import (
    FederatedType,
    FunctionType,
    PlacementType,
    SequenceType,
    StructType,
    StructWithPythonType,
    TensorType,
    Type,
)
from tffc.language.values.access import AccessPath, access_text
from tffc.language.values.containers import build_container, container_class
from tffc.language.wire import SectionBinding, SequenceBinding, StructBinding, TensorBinding
from tffc.runtime.frameworks.tensorflow.datasets import open_dataset, seal_dataset
from tffc.runtime.frameworks.tensorflow.load import Tensor
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.trampoline import Task

if TYPE_CHECKING:
    from tffc.runtime.frameworks.tensorflow.load import TensorFlow


DATASET_DEVICE = "/device:CPU:0"


class Captured(NamedTuple):
    """A value in a graph: the Python object that a function sees, its type, and its binding."""

    value: Any
    type: Type
    binding: SectionBinding


def check_parameter(parameter: Type) -> None:
    """Raise LanguageTypeError unless the type is made of tensors, structs and sequences."""
    banned = find(parameter, (FederatedType, FunctionType, PlacementType))
    if banned is not None:
        raise LanguageTypeError(
            "E419",
            f"a TensorFlow computation cannot take an argument of type `{parameter}`",
            notes=(f"`{banned}` is not made of tensors, structs and sequences",),
            help=instead_of(banned),
        )


def placeholders(tf: TensorFlow, type: Type, name: str) -> Task[Captured]:
    """Return placeholders for a parameter of the type; `name` is that of a single tensor."""
    match type:
        case TensorType():
            tensor = tf.compat.v1.placeholder(type.element_type.number, type.shape, name)
            return Captured(tensor, type, TensorBinding(tensor.name))
        case SequenceType():
            with tf.device(DATASET_DEVICE):
                variant = tf.compat.v1.placeholder(tf.variant, [])
            dataset = open_dataset(tf, variant, type)
            return Captured(dataset, type, SequenceBinding(variant.name))
        case StructType():
            if not type.types:
                tf.no_op()
            elements: list[Captured] = []
            for element, inner in type.items():
                elements.append((yield placeholders(tf, inner, _join(name, element))))
            value = build_container(type, [element.value for element in elements])
            binding = StructBinding(tuple(element.binding for element in elements))
            return Captured(value, type, binding)
        case _:
            pass
    raise AssertionError(f"unexpected type {type!r}")


def _join(parent: str, name: str | None) -> str:
    if name is not None and not all(c.isascii() and (c.isalnum() or c in "_.\\/>-") for c in name):
        raise LanguageValueError(
            "E419",
            f"TensorFlow cannot name a tensor after the element {name!r} of the parameter",
            help="name elements with letters, digits and underscores",
        )
    return f"{parent}_{name}"


class Capture:
    """Converts what a function returned, or an argument of a call, to tensors of the graph."""

    def __init__(self, tf: TensorFlow) -> None:
        self.tf = tf

    def take(self, value: Any, place: AccessPath = None) -> Task[Captured]:
        """Return the tensors of a Python object that is at `place` in the whole."""
        tf = self.tf
        match value:
            case bool() | int() | float() | str() | bytes():
                return self._tensor(tf.constant(value))
            case tf.Tensor():
                return self._tensor(value)
            case tf.data.Dataset():
                return self._dataset(value)
            case tf.SparseTensor():
                parts = (value.indices, value.values, value.dense_shape)
                names = ("indices", "values", "dense_shape")
                return (yield self._struct(names, parts, tf.SparseTensor, place))
            case tf.RaggedTensor():
                parts = (value.flat_values, tuple(value.nested_row_splits))
                names = ("flat_values", "nested_row_splits")
                return (yield self._struct(names, parts, tf.RaggedTensor, place))
            case _:
                pass
        if _is_numpy(value):
            return self._tensor(tf.constant(value))
        if isinstance(value, tf.IndexedSlices) and value.dense_shape is not None:
            return self._tensor(tf.convert_to_tensor(value))
        if self._is_variable(value):
            with tf.name_scope("Read"):
                tensor = tf.convert_to_tensor(value)
            return self._tensor(tensor)
        opened = open_container(value)
        if opened is not None:
            container = container_class(value)
            return (yield self._struct(opened.names, opened.members, container, place))
        raise LanguageTypeError(
            "E454",
            f"{_described(value)} cannot be part of a TensorFlow computation's values"
            + (f", found at {access_text(place)}" if place is not None else ""),
            help="give tensors, Python constants other than complex numbers, NumPy values, "
            "datasets, and lists, tuples and mappings of these",
        )

    def _is_variable(self, value: Any) -> bool:
        """Return whether a value is a variable of TensorFlow, or one of Keras, which is a tensor
        too."""
        tf = self.tf
        if isinstance(value, tf.Variable):
            return True
        return tf.is_tensor(value) and not isinstance(value, tf.__internal__.CompositeTensor)

    def _tensor(self, tensor: Tensor) -> Captured:
        type = TensorType(tensor.dtype, tensor.shape)
        tensor = self.tf.identity(tensor)
        if tensor.graph is not self.tf.compat.v1.get_default_graph():
            raise made_outside()
        return Captured(tensor, type, TensorBinding(tensor.name))

    def _dataset(self, dataset: Any) -> Captured:
        variant, type = seal_dataset(self.tf, dataset)
        with self.tf.device(DATASET_DEVICE):
            variant = self.tf.identity(variant)
        return Captured(variant, type, SequenceBinding(variant.name))

    def _struct(
        self,
        names: tuple[str | None, ...],
        parts: tuple[Any, ...],
        container: type | None,
        place: AccessPath,
    ) -> Task[Captured]:
        elements: list[Captured] = []
        for index, (name, part) in enumerate(zip(names, parts, strict=True)):
            step = index if name is None else name
            elements.append((yield self.take(part, (place, step))))
        types = tuple(element.type for element in elements)
        type = StructWithPythonType.with_container(names, types, container)
        binding = StructBinding(tuple(element.binding for element in elements))
        return Captured(elements, type, binding)


def _is_numpy(value: Any) -> bool:
    import numpy as np

    return isinstance(value, (np.ndarray, np.generic))


def _described(value: Any) -> str:
    if value is None:
        return "None"
    return f"a value of the Python class {type(value).__name__!r}"


def tensor_names(binding: SectionBinding) -> list[str]:
    """Return the names of the tensors in a binding, in order."""
    names: list[str] = []
    stack = [binding]
    while stack:
        match stack.pop():
            case StructBinding(elements):
                stack.extend(reversed(elements))
            case SequenceBinding(name) | TensorBinding(str() as name):
                names.append(name)
            case _:
                pass
    return names


def captured_tensors(captured: Captured) -> list[Any]:
    """Return the tensors of a captured value, in order."""
    tensors: list[Any] = []
    stack = [captured]
    while stack:
        part = stack.pop()
        if isinstance(part.type, StructType):
            stack.extend(reversed(part.value))
        else:
            tensors.append(part.value)
    return tensors
