"""Rounds whose clients come in groups, on any engine.

Each group is one `up_to_merge` of a MergeableForm, run as the engine runs a round: one group after
another, or side by side if the engine can (`RunsGroups`).  The results of neighbours are merged
pairwise, then these, until one is left; a group that is left out keeps its place in this tree.  So
the result depends only on the clients, on the number of groups, and on how the engine adds within a
group.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from tffc.backends.forms.mergeable import MergeableSteps
from tffc.backends.forms.steps import RoundSteps, TupleAggregation
from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.engine import Cohort, ExplainsSpeed, RoundResult
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.shards import Merge, merge_pairwise
from tffc.runtime.engines.showing import showing
from tffc.support.errors import ExecutionError, TffcError


class GroupsResult(NamedTuple):
    """What comes of the groups of a round: the result or the error of each, up to the first error
    unless bad groups are skipped; their merged results, None without any; and the seconds that
    workers spent in each part."""

    results: Sequence[RoundResult | TffcError]
    partial: Any
    parts: Mapping[str, float]


@runtime_checkable
class RunsGroups(Protocol):
    """An engine that runs the groups of a round side by side, and merges their results itself."""

    def run_groups(self, state: Any, cohorts: Sequence[Cohort], *, skip_bad: bool) -> GroupsResult:
        """Run the groups of a round, at least one.

        Raises:
          TffcError: it is of no group.
        """
        ...


class _GroupProcess(Process):
    """A process whose rounds are those of one group: their output is the group's result."""

    def __init__(self, process: Process) -> None:
        self.__dict__.update(process.__dict__)
        self.steps = group_steps(process.steps)

    def masked_steps(self, clients: Sequence[str]) -> RoundSteps:
        masked = super().masked_steps(clients)
        assert isinstance(masked, MergeableSteps)
        return masked.group


def _mergeable(steps: RoundSteps) -> MergeableSteps:
    assert isinstance(steps, MergeableSteps)
    return steps


def group_steps(steps: RoundSteps) -> RoundSteps:
    """Return the steps of one group of clients, from those of rounds that may come in groups."""
    return _mergeable(steps).group


def group_result(group: RoundSteps, carried: Any, totals: Any) -> Any:
    """Return the result of a group from the accumulators of its clients, None for no clients."""
    aggregation = TupleAggregation(group.aggregations)
    totals = aggregation.zero(carried) if totals is None else totals
    _, partial = group.finish(carried, aggregation.report(totals, carried))
    return partial


def joining(steps: RoundSteps) -> Merge:
    """Return a function that merges the results of two groups, where None stands for no group."""
    join = _mergeable(steps).join

    def joined(first: Any, second: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        return join(first, second)

    return joined


class GroupedEngine:
    """Runs rounds of a process in groups of clients, each on an engine that `make` returns.

    Raises:
      LanguageValueError: the form of the process has no groups.
    """

    def __init__(
        self, process: Process, groups: ClientGroups, make: Callable[[Process], ExplainsSpeed]
    ) -> None:
        groups.check(process.bundle.form)
        self.process = process
        self._groups = groups
        self._steps = _mergeable(process.steps)
        self._join = joining(process.steps)
        self._engine = make(_GroupProcess(process))

    def run_round(self, state: Any, cohort: Cohort) -> RoundResult:
        """See `Engine`.  The clients of groups that are left out count as left out.

        Raises:
          ExecutionError: all groups are left out.
        """
        groups = self._groups.divide(cohort.clients)
        cohorts = _cohorts(cohort, groups)
        if isinstance(self._engine, RunsGroups):
            ran = self._engine.run_groups(state, cohorts, skip_bad=self._groups.skip_bad)
        else:
            ran = self._one_after_another(state, cohorts)
        outcomes: list[RoundResult] = []
        skipped: set[str] = set()
        lost: list[str] = []
        failure: TffcError | None = None
        for number, (part, result) in enumerate(zip(cohorts, ran.results, strict=False)):
            if isinstance(result, RoundResult):
                outcomes.append(result)
                skipped.update(result.skipped)
                continue
            if not self._groups.skip_bad:
                result.notes += (f"it is of group {number + 1} of {len(groups)}",)
                raise result
            failure = result
            skipped.update(part.clients)
            part.progress(len(part.clients), len(part.clients))
            lost.append(
                f"group {number + 1} of {len(groups)}, of {len(part.clients)} clients, is left "
                f"out: {result.message} [{result.code}]"
            )
        if not outcomes and failure is not None:
            raise _nothing_left(cohort, lost) from failure
        with showing():
            new_state, output = self._steps.conclude(state, ran.partial)
        known: dict[str, bool] = {}
        for outcome in outcomes:
            known.update(outcome.known)
        return RoundResult(
            new_state,
            output,
            tuple(client for client in cohort.clients if client in skipped),
            outcomes[-1].workers,
            ran.parts,
            known,
            tuple(lost),
        )

    def _one_after_another(self, state: Any, cohorts: Sequence[Cohort]) -> GroupsResult:
        results: list[RoundResult | TffcError] = []
        parts: dict[str, float] = {}
        for part in cohorts:
            try:
                result = self._engine.run_round(state, part)
            except TffcError as error:
                results.append(error)
                if not self._groups.skip_bad:
                    return GroupsResult(results, None, parts)
                continue
            results.append(result)
            for name, seconds in result.parts.items():
                parts[name] = parts.get(name, 0.0) + seconds
        with showing():
            outputs = (one.output if isinstance(one, RoundResult) else None for one in results)
            return GroupsResult(results, merge_pairwise(outputs, self._join), parts)

    def explain_speed(self) -> list[str]:
        """See `ExplainsSpeed`; each group that runs by itself counts as a round."""
        return self._engine.explain_speed()


def _cohorts(cohort: Cohort, groups: Sequence[tuple[str, ...]]) -> list[Cohort]:
    """Return the cohort of each group, whose progress is that of the round."""
    done = [0] * len(groups)

    def part(number: int, group: tuple[str, ...]) -> Cohort:
        def progress(count: int, total: int) -> None:
            done[number] = count
            cohort.progress(sum(done), len(cohort.clients))

        return dataclasses.replace(cohort, clients=group, progress=progress)

    return [part(number, group) for number, group in enumerate(groups)]


def _nothing_left(cohort: Cohort, lost: Sequence[str]) -> ExecutionError:
    return ExecutionError(
        "E746",
        f"round {cohort.round} is not released: all groups of its clients are left out",
        notes=tuple(lost),
        help="mend what the notes say, or see the whole error without skipping bad groups",
    )
