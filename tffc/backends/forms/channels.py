"""The plain aggregations of a MapReduceForm, each on its own where its graphs allow it."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from tffc.backends.forms.component import elements, parameters
from tffc.backends.forms.form import signature, struct
from tffc.language.array import Array
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.type_parts import leaves
from tffc.language.types import StructType
from tffc.linking.builder import GraphBuilder
from tffc.linking.inspect import result_dependencies
from tffc.linking.operand import Operand, Tensor, rebuild


class Channel(NamedTuple):
    """One aggregation: where its value stands in the update of `work`, and its four functions.

    The path is empty where all aggregations have to stay together.
    """

    path: tuple[int, ...]
    zero: Compiled
    accumulate: Compiled
    merge: Compiled
    report: Compiled


def channels(whole: Channel) -> list[Channel]:
    """Return the aggregations that a form carries out together, one for each element of its update.

    Element `i` stands alone if the accumulator, the merged accumulator and the report at `i` depend
    on nothing but the elements `i` of what they are made from.  Otherwise all stay together.
    """
    accumulator, update = struct(signature(whole.accumulate).parameter)
    report = signature(whole.report).result
    if not (
        isinstance(accumulator, StructType)
        and isinstance(update, StructType)
        and isinstance(report, StructType)
        and len(accumulator) == len(update) == len(report)
        and _keeps_apart(whole.accumulate, accumulator, update)
        and _keeps_apart(whole.merge, accumulator, accumulator)
        and _keeps_apart(whole.report, accumulator)
    ):
        return [whole]
    return [
        Channel(
            (index,),
            _narrow(whole.zero, index),
            _narrow(whole.accumulate, index, accumulator, update),
            _narrow(whole.merge, index, accumulator, accumulator),
            _narrow(whole.report, index, accumulator),
        )
        for index in range(len(update))
    ]


def _keeps_apart(section: Compiled, *sides: StructType) -> bool:
    """Return whether elements of the result depend on elements of their own position alone."""
    owners = [i for side in sides for i, t in enumerate(side) for _ in leaves(t)]
    result = struct(signature(section).result)
    results = [index for index, t in enumerate(result) for _ in leaves(t)]
    pairs = zip(results, result_dependencies(section), strict=True)
    return all(owners[used] == own for own, uses in pairs for used in uses)


def _narrow(section: Compiled, index: int, *sides: StructType) -> Compiled:
    """Return the section that computes element `index` of the result of a section from the elements
    at the same position of its parameters.

    A filler stands for the other elements, which this one does not need; it is pruned in the end.
    """
    builder = GraphBuilder()
    operands = parameters(builder, [side.types[index] for side in sides])
    pairs = zip(sides, operands, strict=True)
    values = tuple(_beside(builder, side, index, operand) for side, operand in pairs)
    argument = values if len(values) > 1 else next(iter(values), None)
    result = elements(builder.call(section, argument))
    return builder.finish(result[index], struct(signature(section).result).types[index])


def _beside(builder: GraphBuilder, side: StructType, index: int, operand: Operand) -> Operand:
    """Return a value of the type `side` with an operand in one position and fillers elsewhere."""
    filler = builder.constant(Array(DType.INT32, (), bytes(4)))
    assert isinstance(filler, Tensor)
    # One constant stands for tensors of all types; it is pruned before anything could read it.
    others = rebuild(side, lambda leaf: dataclasses.replace(filler, type=leaf))
    return (*others[:index], operand, *others[index + 1 :])
