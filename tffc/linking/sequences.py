"""Sequences: datasets of slices, and nodes that apply a function to the elements of a dataset.

A dataset hands over the tensors of an element one after another; where an element is a struct with
names, TensorFlow takes these in alphabetical order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tffc.graphs.proto import AttrValue, NameAttrList
from tffc.language.types import SequenceType, StructType, TensorType, Type
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.attributes import shapes_attribute, types_attribute
from tffc.linking.builder import GraphBuilder
from tffc.linking.function_builder import FunctionBuilder
from tffc.linking.operand import (
    Operand,
    Tensor,
    check_structure,
    from_leaves,
    in_component_order,
    leaf_types,
    tensors,
)
from tffc.support.errors import GraphError

ElementFunction: TypeAlias = Callable[[FunctionBuilder, Operand], Operand]
"""Builds a function's result from its argument, and may use operands of the graph around it through
`FunctionBuilder.capture`."""


def sequence_map(
    builder: GraphBuilder, function: ElementFunction, sequence: Operand, element: Type
) -> Operand:
    """Return the sequence of the function's results, which are of type `element`.

    Raises:
      GraphError: the results do not fit the type, or have no tensors at all.
    """
    source, before = _opened(sequence)
    inner = FunctionBuilder(builder)
    argument = inner.parameter(before)
    result = check_structure(function(inner, argument), element, "the mapped element")
    leaves = leaf_types(element)
    if not leaves:
        raise GraphError(
            "E319",
            f"there are no sequences of `{element}`, which has no tensors",
            help="put at least one tensor into the elements",
        )
    body = inner.define(
        in_component_order(before, tensors(argument)),
        in_component_order(element, result),
    )
    attributes = _attributes(body.name, inner.captured, in_component_order(element, leaves))
    attributes["preserve_cardinality"] = AttrValue(b=True)
    inputs = [source, *inner.captured]
    return builder.add("MapDataset", inputs, attributes, [SequenceType(element)], [body])[0]


def sequence_reduce(
    builder: GraphBuilder,
    function: ElementFunction,
    sequence: Operand,
    zero: Operand,
    accumulator: Type,
) -> Operand:
    """Return the reduction of the sequence by the function `(<accumulator,element> ->
    accumulator)`, from `zero` on.

    Raises:
      GraphError: zero or the function's results do not fit the type.
    """
    source, element = _opened(sequence)
    initial = check_structure(zero, accumulator, "the zero of a reduction")
    leaves = leaf_types(accumulator)
    if not leaves:
        return zero
    inner = FunctionBuilder(builder)
    argument = inner.parameter(StructType([accumulator, element]))
    assert isinstance(argument, tuple)
    running, current = argument
    outcome = function(inner, argument)
    body = inner.define(
        [*tensors(running), *in_component_order(element, tensors(current))],
        check_structure(outcome, accumulator, "the accumulator"),
    )
    attributes = _attributes(body.name, inner.captured, leaves)
    attributes["Tstate"] = types_attribute(leaves)
    inputs = [source, *initial, *inner.captured]
    return from_leaves(
        accumulator, builder.add("ReduceDataset", inputs, attributes, leaves, [body])
    )


def sequence_sum(builder: GraphBuilder, sequence: Operand) -> Operand:
    """Return the sum of the elements, leaf by leaf.

    Raises:
      LanguageTypeError: a leaf of the elements is not numeric.
      GraphError: the shape of a leaf is not fully defined.
    """
    _, element = _opened(sequence)

    def add(inner: FunctionBuilder, argument: Operand) -> Operand:
        assert isinstance(argument, tuple)
        return GraphArithmetic(inner).plus(*argument)

    return sequence_reduce(builder, add, sequence, GraphArithmetic(builder).zeros(element), element)


def sequence_of_slices(builder: GraphBuilder, operand: Operand) -> Tensor:
    """Return the sequence of the slices of a tensor along its first dimension, whose rank is
    known."""
    assert isinstance(operand, Tensor)
    whole = operand.type
    assert isinstance(whole, TensorType)
    assert whole.shape
    slice_type = TensorType(whole.element_type, whole.shape[1:])
    attributes = {
        "Toutput_types": types_attribute([slice_type]),
        "output_shapes": shapes_attribute([slice_type]),
        "is_files": AttrValue(b=False),
        "metadata": AttrValue(s=b""),
        "replicate_on_split": AttrValue(b=False),
    }
    kind = SequenceType(slice_type)
    (dataset,) = builder.add("TensorSliceDataset", [operand], attributes, [kind])
    return dataset


def _opened(sequence: Operand) -> tuple[Tensor, Type]:
    """Return the one tensor of a sequence, and the type of its elements."""
    assert isinstance(sequence, Tensor)
    assert isinstance(sequence.type, SequenceType)
    return sequence, sequence.type.element


def _attributes(
    function: str, captured: list[Tensor], outputs: list[TensorType | SequenceType]
) -> dict[str, AttrValue]:
    return {
        "Targuments": types_attribute(tensor.type for tensor in captured),
        "f": AttrValue(func=NameAttrList(name=function)),
        "output_shapes": shapes_attribute(outputs),
        "output_types": types_attribute(outputs),
        "use_inter_op_parallelism": AttrValue(b=True),
    }
