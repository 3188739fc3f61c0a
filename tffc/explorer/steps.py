"""The steps of aggregations: a client's contribution, zero, accumulate, merge, report."""

from __future__ import annotations

from typing import Any

from tffc.backends.forms.component import ComponentBuilder
from tffc.backends.forms.stages import StagedCall, StagedRound
from tffc.explorer.graphs import Graphs
from tffc.language.calls import uri_of
from tffc.language.nodes import Compiled
from tffc.language.types import Type
from tffc.linking.aggregations import PLAIN, Aggregation
from tffc.support.errors import TffcError

WORDS = {
    "zero": "the total of no clients",
    "accumulate": "adds one client to a total",
    "merge": "combines two totals",
    "report": "the result of the aggregation",
}

RULES = {
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
"""Descriptions of the four steps of an operator; those of `federated_aggregate` are the user's."""


def steps_of(program: StagedRound, staged: StagedCall, graphs: Graphs) -> list[dict[str, Any]]:
    """Return the four steps of an aggregation as plain data.

    Empty for a secure sum, which the system computes.
    """
    kind = None if staged.operator is None else PLAIN.get(staged.operator.uri)
    if kind is None:
        return []
    aggregation = kind(staged.call)
    total, update = aggregation.accumulator, aggregation.update
    types: dict[str, tuple[tuple[Type, ...], Type]] = {
        "zero": ((), aggregation.zero_type),
        "accumulate": ((total, update), total),
        "merge": ((total, total), total),
        "report": ((total,), aggregation.report_type),
    }
    rules = RULES.get(uri_of(staged.call), ("the function of your program",) * 4)
    found: list[dict[str, Any]] = []
    for rule, (name, (taken, result)) in zip(rules, types.items(), strict=True):
        section = _section(program, aggregation, name, taken, result)
        found.append(
            {
                "name": name,
                "means": WORDS[name],
                "rule": rule,
                "type": f"({', '.join(map(str, taken))}) -> {result}",
                "graph": None if section is None else graphs.number(section),
            }
        )
    return found


def _section(
    program: StagedRound, aggregation: Aggregation, step: str, taken: tuple[Type, ...], result: Type
) -> Compiled | None:
    """Return the graph of a single step; None if there is none, for example for an unknown
    shape."""
    try:
        component = ComponentBuilder(program, step, taken, None)
        component.run(aggregation.operands_of(step))
        made = getattr(aggregation, step)(component.emitter, *component.arguments)
        return component.finish(made, result)
    except (TffcError, KeyError):
        return None
