"""Operators of older releases of TFF, expressed by today's."""

from __future__ import annotations

from collections.abc import Callable

from tffc.frontend.aggregations import federated_aggregate
from tffc.frontend.computation import Computation, federated_computation, tf_computation
from tffc.frontend.conversion import to_value
from tffc.frontend.operators import federated_map
from tffc.frontend.sequences import sequence_reduce
from tffc.frontend.type_analysis import is_structure_of_tensors
from tffc.frontend.type_conversions import structure_from_tensor_type_tree
from tffc.frontend.value import Value
from tffc.language.traverse import rewrite, walk
from tffc.language.types import CLIENTS, FederatedType, TensorType, Type
from tffc.runtime.frameworks.tensorflow.load import Tensor, load_tensorflow
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError


@entry_point
def federated_collect(value: object) -> Value:
    """Return the clients' values as a sequence at the server, in order of arrival.

    Raises:
      LanguageTypeError: they are not at the clients, or not tensors of known shape or structs of
        such.
    """
    collected = to_value(value)
    member = _member(collected.type_signature)
    rows = rewrite(member, _rows)
    tf = load_tensorflow()

    def none_yet() -> Tensor:
        def no_rows(type: TensorType) -> Tensor:
            empty = tf.zeros([0, *(type.shape or ())], type.element_type.number)
            return tf.compat.v1.placeholder_with_default(empty, [None, *(type.shape or ())])

        return structure_from_tensor_type_tree(no_rows, member)

    def added(all: Tensor, one: Tensor) -> Tensor:
        def appended(rows: Tensor, row: Tensor) -> Tensor:
            return tf.concat([rows, row[None]], 0)

        return tf.nest.map_structure(appended, all, one)

    def joined(first: Tensor, second: Tensor) -> Tensor:
        def concatenated(rows: Tensor, more: Tensor) -> Tensor:
            return tf.concat([rows, more], 0)

        return tf.nest.map_structure(concatenated, first, second)

    report: Callable[[Callable[[Tensor], Tensor], Type], Computation] = tf_computation
    return federated_aggregate(
        collected,
        tf_computation(none_yet)(),
        tf_computation(added, rows, member),
        tf_computation(joined, rows, rows),
        report(lambda all: tf.data.Dataset.from_tensor_slices(all), rows),
    )


@entry_point
def federated_reduce(value: object, zero: object, op: object) -> Value:
    """Return the result of folding the clients' values into `zero` with `op`, one after another.

    Raises:
      LanguageTypeError: the values are not tensors of known shape, or structs of such.
    """
    collected = federated_collect(value)
    sequence = collected.type_signature
    assert isinstance(sequence, FederatedType)
    computation: Callable[[Callable[[Value], Value], Type], Computation] = federated_computation
    reduce = computation(lambda rows: sequence_reduce(rows, zero, op), sequence.member)
    return federated_map(reduce, collected)


def _member(type: Type) -> Type:
    """Return the type of each client's value."""
    if isinstance(type, FederatedType) and type.placement is CLIENTS:
        tensors = (part for part in walk(type.member) if isinstance(part, TensorType))
        if is_structure_of_tensors(type.member) and all(map(TensorType.is_fully_defined, tensors)):
            return type.member
    raise LanguageTypeError(
        "E739",
        f"only tensors of known shape can be collected from the clients, not `{type}`",
        help="aggregate them: tff.federated_aggregate(value, zero, accumulate, merge, report)",
    )


def _rows(part: Type) -> Type | None:
    """Return the type of any number of stacked tensors of one type."""
    if not isinstance(part, TensorType):
        return None
    return TensorType(part.element_type, (None, *(part.shape or ())))
