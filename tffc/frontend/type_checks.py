"""Type checks under TFF's names: predicates, and functions that raise if a check fails."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import NoReturn

from tffc.frontend.conversion import infer_type
from tffc.frontend.type_analysis import (
    check_is_type,
    is_averageable,
    is_ordered,
    is_structure_of_floats,
    is_structure_of_integers,
    is_structure_of_tensors,
    why_not_summable,
)
from tffc.frontend.type_queries import is_tensorflow_compatible_type, num_elements_in_shape
from tffc.language.containers.struct import Struct
from tffc.language.traverse import walk
from tffc.language.types import (
    CLIENTS,
    FederatedType,
    Placement,
    StructType,
    StructWithPythonType,
    TensorType,
    Type,
)
from tffc.support.errors import LanguageTypeError

is_average_compatible = is_averageable
is_generic_op_compatible_type = is_structure_of_tensors
is_min_max_compatible = is_ordered


def preorder_types(type_signature: Type) -> Iterator[Type]:
    """Yield every type in a type, outer ones first; a type that occurs twice is yielded twice."""
    waiting = [type_signature]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(part.children()))


class SumIncompatibleError(LanguageTypeError):
    """Values of a type cannot be summed."""


def is_sum_compatible(type_spec: Type) -> bool:
    """Return whether values of this type can be summed: numeric tensors of known shape."""
    return why_not_summable(type_spec) is None


def check_is_sum_compatible(type_spec: Type) -> None:
    """Raise SumIncompatibleError unless values of this type can be summed."""
    reason = why_not_summable(type_spec)
    if reason is not None:
        raise SumIncompatibleError(
            "E482",
            f"values of type `{type_spec}` cannot be summed",
            notes=(reason,),
            help="sum numbers of known shape: cast booleans with tf.cast, declare every size, sum "
            "a sequence at each client with tff.sequence_sum",
        )


def check_is_structure_of_floats(type_spec: Type) -> None:
    """Raise LanguageTypeError unless the type is made of floating tensors."""
    if not is_structure_of_floats(type_spec):
        _refuse(type_spec, "floating tensors, in structs or not")


def check_is_structure_of_integers(type_spec: Type) -> None:
    """Raise LanguageTypeError unless the type is made of integer tensors."""
    if not is_structure_of_integers(type_spec):
        _refuse(type_spec, "integer tensors, in structs or not")


def check_tensorflow_compatible_type(type_spec: Type | None) -> None:
    """Raise LanguageTypeError unless a TensorFlow computation can take or return such values."""
    if not is_tensorflow_compatible_type(type_spec):
        _refuse(type_spec, "tensors, sequences and structs of them")


def check_type(value: object, type_spec: Type) -> None:
    """Raise TypeNotAssignableError unless a Python value is of the type."""
    check_is_type(type_spec).check_assignable_from(infer_type(value))


def check_federated_type(
    type_spec: Type,
    member: Type | None = None,
    placement: Placement | None = None,
    all_equal: bool | None = None,
) -> None:
    """Raise LanguageTypeError unless the type is federated, with the given parts."""
    if not isinstance(type_spec, FederatedType):
        _refuse(type_spec, "a federated type")
    if member is not None:
        check_is_type(member).check_assignable_from(type_spec.member)
    if placement is not None and type_spec.placement is not placement:
        _refuse(type_spec, f"a type placed at {placement}")
    if all_equal is not None and type_spec.all_equal is not all_equal:
        _refuse(type_spec, "all equal" if all_equal else "not all equal")


def check_valid_federated_weighted_mean_argument_tuple_type(type_spec: Type) -> None:
    """Raise LanguageTypeError unless the type is a pair of a value and a weight that have a
    mean."""
    if not isinstance(type_spec, StructType) or len(type_spec) != 2:
        _refuse(type_spec, "a pair of a value and a weight")
    for part in type_spec.types:
        check_federated_type(part, placement=CLIENTS)
        if not is_averageable(part):
            _refuse(part, "floating or complex numbers, which have a mean")


def _refuse(type: Type | None, wanted: str) -> NoReturn:
    raise LanguageTypeError("E168", f"expected {wanted}, but found the type `{type}`")


def is_single_integer_or_matches_structure(type_sig: Type, shape_type: Type) -> bool:
    """Return whether a type is a single integer, or has one for every element of `shape_type`."""
    pairs: list[tuple[Type, Type]] = [(type_sig, shape_type)]
    while pairs:
        type, wanted = pairs.pop()
        if isinstance(type, TensorType):
            if not (type.element_type.is_integer and num_elements_in_shape(type.shape) == 1):
                return False
        elif (
            isinstance(type, StructType)
            and isinstance(wanted, StructType)
            and type.names == wanted.names
        ):
            pairs += zip(type.types, wanted.types, strict=True)
        else:
            return False
    return True


def is_binary_op_with_upcast_compatible_pair(
    possibly_nested_type: Type | None, type_to_upcast: Type | None
) -> bool:
    """Return whether an operator can combine the two types elementwise, or each tensor of the first
    with the second as a scalar."""
    first, second = possibly_nested_type, type_to_upcast
    if first is None or second is None or not is_structure_of_tensors(first):
        return False
    if first.is_equivalent_to(second):
        return True
    return (
        isinstance(second, TensorType)
        and second.is_scalar()
        and all(t.dtype == second.dtype for t in walk(first) if isinstance(t, TensorType))
    )


def is_struct_with_py_container(value: object, type_spec: Type) -> bool:
    """Return whether a value is a Struct although its type names another container."""
    return isinstance(value, Struct) and isinstance(type_spec, StructWithPythonType)


def count_tensors_in_type(
    type_spec: Type, tensor_filter: Callable[[TensorType], bool] | None = None
) -> collections.OrderedDict[str, int]:
    """Count the tensors in a type, the numbers in those of known shape, and those of unknown
    shape."""
    tensors = [
        part
        for part in preorder_types(type_spec)
        if isinstance(part, TensorType) and (tensor_filter is None or tensor_filter(part))
    ]
    sizes = [num_elements_in_shape(tensor.shape) for tensor in tensors]
    return collections.OrderedDict(
        num_tensors=len(tensors),
        parameters=sum(size for size in sizes if size is not None),
        num_unspecified_tensors=sizes.count(None),
    )
