"""The table of rules: how each operation computes a batch of which only the first rows count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.masking.values import Masks, Outcome

Rule: TypeAlias = Callable[[Masks, NodeView, Sequence[Any]], Outcome]
"""A function of a node and its inputs, of which one at least is padded or sizes."""


def rules(table: dict[str, Rule]) -> Callable[..., Callable[[Rule], Rule]]:
    """Return a decorator that puts a rule into a table under names of operations."""

    def named(*names: str) -> Callable[[Rule], Rule]:
        def define(rule: Rule) -> Rule:
            table.update(dict.fromkeys(names, rule))
            return rule

        return define

    return named
