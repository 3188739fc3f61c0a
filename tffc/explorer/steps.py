"""The steps of aggregations: a client's contribution, zero, accumulate, merge, report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tffc.backends.forms.component import ComponentBuilder
from tffc.backends.forms.stages import StagedCall, StagedRound
from tffc.explorer.graphs import Graphs
from tffc.language.calls import uri_of
from tffc.language.nodes import Compiled
from tffc.language.types import Type
from tffc.linking.aggregations import PLAIN, Aggregation, Part
from tffc.linking.operand import Operand
from tffc.support.errors import TffcError

WORDS = {
    "zero": "the total of no clients",
    "accumulate": "adds one client to a total",
    "merge": "combines two totals",
    "report": "the result of the aggregation",
}

RULES = {
    "federated_aggregate": ("the function of your program",) * 4,
    "federated_sum": ("zeros", "total + value", "total + total", "the total"),
    "federated_mean": (
        "two totals of zeros",
        "adds value and 1 to the totals",
        "adds the totals",
        "both totals; the server divides them",
    ),
    "federated_weighted_mean": (
        "two totals of zeros",
        "adds value · weight and weight to the totals",
        "adds the totals",
        "both totals; the server divides them",
    ),
    "federated_min": (
        "the largest number of the type",
        "the smaller of total and value",
        "the smaller of two totals",
        "the smallest value",
    ),
    "federated_max": (
        "the smallest number of the type",
        "the larger of total and value",
        "the larger of two totals",
        "the largest value",
    ),
}
"""Descriptions of the four steps of an operator."""


def steps_of(program: StagedRound, staged: StagedCall, graphs: Graphs) -> list[dict[str, Any]]:
    """Return the four steps of an aggregation as plain data.

    Empty for a secure sum, which the system computes.
    """
    kind = None if staged.operator is None else PLAIN.get(staged.operator.uri)
    if kind is None:
        return []
    aggregation = kind(staged.call)
    total, update = aggregation.accumulator, aggregation.update
    steps = (
        _Step("zero", aggregation.zero, (), aggregation.zero_type),
        _Step("accumulate", aggregation.accumulate, (total, update), total),
        _Step("merge", aggregation.merge, (total, total), total),
        _Step("report", aggregation.report, (total,), aggregation.report_type),
    )
    rules = RULES.get(uri_of(staged.call), ("as the operator defines it",) * 4)
    descriptions: list[dict[str, Any]] = []
    for rule, step in zip(rules, steps, strict=True):
        section = _section(program, aggregation, step)
        descriptions.append(
            {
                "name": step.part,
                "means": WORDS[step.part],
                "rule": rule,
                "type": f"({', '.join(map(str, step.taken))}) -> {step.result}",
                "graph": None if section is None else graphs.number(section),
            }
        )
    return descriptions


class _Step(NamedTuple):
    """A part of an aggregation: what computes it, and its types."""

    part: Part
    compute: Callable[..., Operand]
    taken: tuple[Type, ...]
    result: Type


def _section(program: StagedRound, aggregation: Aggregation, step: _Step) -> Compiled | None:
    """Return the graph of a single step; None if there is none, for example for an unknown
    shape."""
    try:
        component = ComponentBuilder(program, step.part, step.taken, None)
        component.run(aggregation.operands_of(step.part))
        value = step.compute(component.emitter, *component.arguments)
        return component.finish(value, step.result)
    except (TffcError, KeyError):
        return None
