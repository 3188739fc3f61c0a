"""The plain aggregations of a MapReduceForm, each on its own where its graphs allow it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tffc.backends.forms.component import elements
from tffc.backends.forms.form import pair, signature
from tffc.ir.array import to_array
from tffc.ir.nodes import Compiled
from tffc.ir.type_parts import leaves
from tffc.ir.types import StructType, Type
from tffc.linking.builder import GraphBuilder
from tffc.linking.inspect import result_dependencies
from tffc.linking.operand import Operand, Tensor


@dataclasses.dataclass(frozen=True, slots=True)
class Channel:
    """One aggregation: where its value stands in the update of `work`, and its four functions.

    The path is empty where all aggregations have to stay together.
    """

    path: tuple[int, ...]
    zero: Compiled
    accumulate: Compiled
    merge: Compiled
    report: Compiled


def channels(whole: Channel) -> list[Channel]:
    """Return the aggregations that a form carries out together, one an element of its update.

    Element `i` stands alone if the accumulator, the merged accumulator and the report at `i` depend
    on nothing but the elements `i` of what they are made from.  Otherwise all stay together.
    """
    accumulator, update = pair(signature(whole.accumulate).parameter, "accumulate", "parameter")
    report = signature(whole.report).result
    if not (
        isinstance(accumulator, StructType)
        and isinstance(update, StructType)
        and isinstance(report, StructType)
        and len(accumulator) == len(update) == len(report)
        and _keeps_apart(whole.accumulate, (accumulator, update))
        and _keeps_apart(whole.merge, (accumulator, accumulator))
        and _keeps_apart(whole.report, (accumulator,))
    ):
        return [whole]
    return [_channel(whole, accumulator, update, index) for index in range(len(update))]


def _keeps_apart(section: Compiled, sides: tuple[StructType, ...]) -> bool:
    """Return whether elements of the result depend on elements of their own position alone."""
    owners = [i for side in sides for i, t in enumerate(side) for _ in leaves(t)]
    result = signature(section).result
    assert isinstance(result, StructType)
    results = [index for index, t in enumerate(result) for _ in leaves(t)]
    pairs = zip(results, result_dependencies(section), strict=True)
    return all(owners[used] == own for own, uses in pairs for used in uses)


def _channel(whole: Channel, accumulator: StructType, update: StructType, index: int) -> Channel:
    one = StructType([accumulator.types[index], update.types[index]])
    two = StructType([accumulator.types[index], accumulator.types[index]])

    def beside(filler: Operand, operand: Operand) -> Operand:
        return (*elements(filler)[:index], operand, *elements(filler)[index + 1 :])

    def both(filler: Operand, operand: Operand) -> Operand:
        pairs = zip(elements(filler), elements(operand), strict=True)
        return tuple(beside(side, inner) for side, inner in pairs)

    return Channel(
        (index,),
        _narrow(whole.zero, None, index, lambda filler, _: filler),
        _narrow(whole.accumulate, one, index, both),
        _narrow(whole.merge, two, index, both),
        _narrow(whole.report, accumulator.types[index], index, beside),
    )


def _narrow(
    section: Compiled,
    parameter: Type | None,
    index: int,
    argument: Callable[[Operand, Operand], Operand],
) -> Compiled:
    """Return element `index` of a section as a section of its own.

    What the element does not need is fed by a filler, and pruned with it.
    """
    builder = GraphBuilder()
    type_ = signature(section)
    given: Operand = () if parameter is None else builder.parameter(parameter)
    full = None
    if type_.parameter is not None:
        full = argument(_filler(builder.constant(to_array(0)), type_.parameter), given)
    result = elements(builder.call(section, full))
    assert isinstance(type_.result, StructType)
    return builder.finish(result[index], type_.result.types[index])


def _filler(tensor: Operand, wanted: Type) -> Operand:
    assert isinstance(tensor, Tensor)
    if isinstance(wanted, StructType):
        return tuple(_filler(tensor, inner) for inner in wanted)
    return dataclasses.replace(tensor, type=wanted)
