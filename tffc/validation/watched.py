"""The reference interpreter with two things left to choose: how sections run, and in how many
shards aggregations accumulate."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tffc.execution.values import Federated
from tffc.ir.nodes import Compiled, Intrinsic
from tffc.ir.trampoline import Task
from tffc.validation.bounded import Bounded

AGGREGATE = "federated_aggregate"

RunSection = Callable[[Compiled, Any], Any]

T = TypeVar("T")


class Watched(Bounded):
    """An interpreter that runs sections by `run`, and merges so many partial aggregates."""

    def __init__(self, clients: int, run: RunSection, shards: int = 1) -> None:
        super().__init__(clients)
        self._run = run
        self._shards = shards

    def run_section(self, section: Compiled, argument: Any) -> Any:
        return self._run(section, argument)

    def apply_operator(self, operator: Intrinsic, argument: Any) -> Task[Any]:
        if operator.uri == AGGREGATE and self._shards > 1:
            return (yield self._aggregate(argument))
        return (yield super().apply_operator(operator, argument))

    def _aggregate(self, argument: Any) -> Task[Any]:
        value, zero, accumulate, merge, report = argument
        merged: Any = None
        for index, shard in enumerate(split(value.at_each(self.clients), self._shards)):
            total = zero
            for member in shard:
                total = yield self.apply(accumulate, (total, member))
            merged = total if index == 0 else (yield self.apply(merge, (merged, total)))
        return Federated.everywhere((yield self.apply(report, merged)))


def split(members: Sequence[T], shards: int) -> list[Sequence[T]]:
    """Members in so many shards of about one size, some of them empty where members are few."""
    bounds = [len(members) * shard // shards for shard in range(shards + 1)]
    return [members[start:end] for start, end in itertools.pairwise(bounds)]
