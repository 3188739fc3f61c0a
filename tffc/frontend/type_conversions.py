"""Converting types to structures of Python and TensorFlow, and comparing types."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from tffc.language.containers.struct import Struct
from tffc.language.type_base import mismatch
from tffc.language.types import FederatedType, SequenceType, StructType, TensorType, Type, to_type
from tffc.language.values.containers import build_container, default_container
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.guards import is_list
from tffc.support.trampoline import Task, run


class TypeRelation(enum.Enum):
    """A relation between two types."""

    EQUIVALENT = "equivalent"
    IDENTICAL = "identical"
    ASSIGNABLE = "assignable"


def type_mismatch_error_message(
    first: Type, second: Type, relation: TypeRelation, second_is_expected: bool = False
) -> str:
    """Return the message for two types that are not in a relation."""
    return mismatch(first, second, relation.value, is_expected=second_is_expected, as_of_tff=True)


class UnexpectedTypeError(LanguageTypeError):
    """A type is not of the expected kind."""

    def __init__(self, expected: type[Type], actual: Type) -> None:
        name = getattr(expected, "__name__", expected)
        super().__init__("E168", f"expected a {name}, found the type `{actual}`")
        self.expected, self.actual = expected, actual


def structure_from_tensor_type_tree(fn: Callable[[TensorType], Any], type_spec: object) -> Any:
    """Return the results of `fn` for each tensor type, in the containers of the structs around
    them.

    Raises:
      LanguageValueError: a type is neither a tensor nor a struct, or only some elements of a struct
        have names.
    """

    def leaf(part: Type) -> Any:
        if isinstance(part, TensorType):
            return fn(part)
        raise LanguageValueError(
            "E168",
            f"expected tensors and structs of them only, found the type `{part}`",
            help="give the type of what a sequence or federated type has inside",
        )

    return fill(to_type(type_spec), leaf, _contained)


def fill(
    type: Type,
    leaf: Callable[[Type], Any],
    build: Callable[[StructType, list[Any]], Any] = build_container,
) -> Any:
    """Return a value of a type: what `build` makes of the elements of each struct.

    `leaf` makes each part that is not a struct; it is called with their types, in order.
    """

    def filled(part: Type) -> Task[Any]:
        if not isinstance(part, StructType):
            return leaf(part)
        elements: list[Any] = []
        for element in part:
            elements.append((yield filled(element)))
        return build(part, elements)

    return run(filled(type))


def _contained(type: StructType, elements: list[Any]) -> Any:
    if 0 < len(type.fields()) < len(type):
        raise LanguageValueError(
            "E161",
            f"Python has no container for `{type}`, which names some of its elements only",
            help="name all elements, or none",
        )
    return default_container(type, elements)


def type_to_tf_tensor_specs(type_spec: object) -> Any:
    """Return a `tf.TensorSpec` for each tensor type, in the containers of the structs around them.

    Raises:
      LanguageValueError: as `structure_from_tensor_type_tree` does.
    """
    tf = load_tensorflow()
    return structure_from_tensor_type_tree(
        lambda type: tf.TensorSpec(type.shape, tf.as_dtype(type.element_type.number)), type_spec
    )


def type_to_tf_structure(type_spec: object) -> Any:
    """Return the specs of a type's parts, of tensors and of datasets for sequences, in the
    containers of the structs around them.

    Raises:
      LanguageValueError: a part is neither, or only some elements of a struct have names.
    """
    tf = load_tensorflow()

    def spec(part: Type) -> Any:
        if isinstance(part, SequenceType):
            return tf.data.DatasetSpec(type_to_tf_structure(part.element))
        return type_to_tf_tensor_specs(part)

    return fill(to_type(type_spec), spec, _contained)


def type_to_py_container(value: object, type_spec: Type) -> Any:
    """Convert each `Struct` in a value to the container that its type names.

    If it names none, to an OrderedDict if all elements have names, and a tuple if none has one.

    Raises:
      LanguageValueError: only some elements of a struct have names.
    """
    return run(_opened(value, type_spec))


def _opened(value: object, type: Type) -> Task[Any]:
    match type:
        case FederatedType(all_equal=True):
            return (yield _opened(value, type.member))
        case FederatedType() | SequenceType() if is_list(value):
            inner = type.children()[0]
            elements: list[Any] = []
            for element in value:
                elements.append((yield _opened(element, inner)))
            return elements
        case StructType() if isinstance(value, Struct):
            elements = []
            for element, inner in zip(value, type, strict=True):
                elements.append((yield _opened(element, inner)))
            named = StructType.of(tuple(name for name, _ in value.items()), type.types)
            if type.container is None:
                return _contained(named, elements)
            _check_names(named, type)
            return _contained(type, elements)
        case _:
            pass
    return value


def _check_names(own: StructType, type: StructType) -> None:
    """Raise LanguageValueError unless a container type has names where the value has."""
    has_none = type.container in (list, tuple)
    if own.names != type.names and any(own.names) and any(type.names):
        reason = f"the names of `{own}` are others"
    elif has_none and (any(own.names) or any(type.names)):
        reason = "a list or tuple has no names"
    elif not has_none and not all(type.names):
        reason = "not all elements have names"
    else:
        return
    raise LanguageValueError(
        "E161", f"a value cannot be put into the containers of the type `{type}`: {reason}"
    )
