"""The plain aggregations of a MapReduceForm, each on its own where its graphs allow it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tffc.backends.forms.form import MapReduceForm, pair, signature
from tffc.backends.forms.part import elements
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


def channels(form: MapReduceForm) -> list[Channel]:
    """The aggregations of a form, one an element of its update.

    Element `i` stands alone if the accumulator, the merged accumulator and the report at `i` depend
    on nothing but the elements `i` of what they are made from.  Otherwise all stay together.
    """
    accumulator, update = pair(signature(form.accumulate).parameter, "accumulate", "parameter")
    report = signature(form.report).result
    if not (
        isinstance(accumulator, StructType)
        and isinstance(update, StructType)
        and isinstance(report, StructType)
        and len(accumulator) == len(update) == len(report)
        and _keeps_apart(form.accumulate, (accumulator, update))
        and _keeps_apart(form.merge, (accumulator, accumulator))
        and _keeps_apart(form.report, (accumulator,))
    ):
        return [Channel((), form.zero, form.accumulate, form.merge, form.report)]
    return [_channel(form, accumulator, update, index) for index in range(len(update))]


def _keeps_apart(section: Compiled, sides: tuple[StructType, ...]) -> bool:
    """Whether every element of the result depends on the elements of its own position alone."""
    owners = [i for side in sides for i, t in enumerate(side) for _ in leaves(t)]
    result = signature(section).result
    assert isinstance(result, StructType)
    results = [index for index, t in enumerate(result) for _ in leaves(t)]
    pairs = zip(results, result_dependencies(section), strict=True)
    return all(owners[used] == own for own, uses in pairs for used in uses)


def _channel(
    form: MapReduceForm, accumulator: StructType, update: StructType, index: int
) -> Channel:
    one = StructType([accumulator.types[index], update.types[index]])
    two = StructType([accumulator.types[index], accumulator.types[index]])

    def beside(filler: Operand, operand: Operand) -> Operand:
        return (*elements(filler)[:index], operand, *elements(filler)[index + 1 :])

    def both(filler: Operand, operand: Operand) -> Operand:
        pairs = zip(elements(filler), elements(operand), strict=True)
        return tuple(beside(side, inner) for side, inner in pairs)

    return Channel(
        (index,),
        _narrow(form.zero, None, index, lambda filler, _: filler),
        _narrow(form.accumulate, one, index, both),
        _narrow(form.merge, two, index, both),
        _narrow(form.report, accumulator.types[index], index, beside),
    )


def _narrow(
    section: Compiled,
    parameter: Type | None,
    index: int,
    argument: Callable[[Operand, Operand], Operand],
) -> Compiled:
    """Element `index` of a section as a section of its own.

    What the element does not need is fed by a filler, and pruned with it.
    """
    builder = GraphBuilder()
    whole = signature(section)
    given: Operand = () if parameter is None else builder.parameter(parameter)
    full = None
    if whole.parameter is not None:
        full = argument(_filler(builder.constant(to_array(0)), whole.parameter), given)
    result = elements(builder.call(section, full))
    assert isinstance(whole.result, StructType)
    return builder.finish(result[index], whole.result.types[index])


def _filler(tensor: Operand, wanted: Type) -> Operand:
    assert isinstance(tensor, Tensor)
    if isinstance(wanted, StructType):
        return tuple(_filler(tensor, inner) for inner in wanted)
    return dataclasses.replace(tensor, type=wanted)
