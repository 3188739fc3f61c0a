"""Rounds whose clients come in groups, on any engine.

Each group is one `up_to_merge` of a MergeableForm, run as the engine runs a round.  The results of
neighbours are merged pairwise, then these, until one is left.  So the result depends only on the
clients, on the number of groups, and on how the engine adds within a group.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tffc.backends.forms.mergeable import MergeableSteps
from tffc.backends.forms.steps import RoundSteps
from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.engine import Cohort, ExplainsSpeed, RoundResult
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.shards import merge_pairwise
from tffc.runtime.engines.showing import showing
from tffc.support.errors import ExecutionError, TffcError


class _GroupProcess(Process):
    """A process whose rounds are those of one group: their output is the group's result."""

    def __init__(self, process: Process) -> None:
        self.__dict__.update(process.__dict__)
        self.steps = _steps_of(process).group

    def masked_steps(self, clients: Sequence[str]) -> RoundSteps:
        masked = super().masked_steps(clients)
        assert isinstance(masked, MergeableSteps)
        return masked.group


def _steps_of(process: Process) -> MergeableSteps:
    assert isinstance(process.steps, MergeableSteps)
    return process.steps


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
        self._steps = _steps_of(process)
        self._engine = make(_GroupProcess(process))

    def run_round(self, state: Any, cohort: Cohort) -> RoundResult:
        """See `Engine`.  The clients of groups that are left out count as left out.

        Raises:
          ExecutionError: all groups are left out.
        """
        outcomes: list[RoundResult] = []
        skipped: set[str] = set()
        lost: list[str] = []
        failure: TffcError | None = None
        groups = self._groups.divide(cohort.clients)
        for number, (group, part) in enumerate(zip(groups, _cohorts(cohort, groups), strict=True)):
            try:
                outcomes.append(self._engine.run_round(state, part))
                skipped.update(outcomes[-1].skipped)
            except TffcError as error:
                if not self._groups.skip_bad:
                    error.notes += (f"it is of group {number + 1} of {len(groups)}",)
                    raise
                failure = error
                skipped.update(group)
                lost.append(
                    f"group {number + 1} of {len(groups)}, of {len(group)} clients, is left out: "
                    f"{error.message} [{error.code}]"
                )
        if not outcomes and failure is not None:
            raise _nothing_left(cohort, lost) from failure
        with showing():
            partial = merge_pairwise((outcome.output for outcome in outcomes), self._join)
            new_state, output = self._steps.conclude(state, partial)
        parts: dict[str, float] = {}
        known: dict[str, bool] = {}
        for outcome in outcomes:
            known.update(outcome.known)
            for name, seconds in outcome.parts.items():
                parts[name] = parts.get(name, 0.0) + seconds
        return RoundResult(
            new_state,
            output,
            tuple(client for client in cohort.clients if client in skipped),
            outcomes[-1].workers,
            parts,
            known,
            tuple(lost),
        )

    def _join(self, first: Any, second: Any) -> Any:
        return first if second is None else self._steps.join(first, second)

    def explain_speed(self) -> list[str]:
        """See `ExplainsSpeed`; each group counts as a round."""
        return self._engine.explain_speed()


def _cohorts(cohort: Cohort, groups: Sequence[tuple[str, ...]]) -> Iterator[Cohort]:
    """Yield the cohort of each group, whose progress is that of the round."""
    before = 0
    for group in groups:

        def progress(done: int, total: int, before: int = before) -> None:
            cohort.progress(before + done, len(cohort.clients))

        yield dataclasses.replace(cohort, clients=group, progress=progress)
        before += len(group)


def _nothing_left(cohort: Cohort, lost: Sequence[str]) -> ExecutionError:
    return ExecutionError(
        "E746",
        f"round {cohort.round} is not released: all groups of its clients are left out",
        notes=tuple(lost),
        help="mend what the notes say, or see the whole error without skipping bad groups",
    )
