"""A round in groups of clients: the shards of all groups at once, and a tree of their results.

When the accumulators of a group are merged, an actor makes its result of them.  The results of
neighbours are merged by actors, in a tree whose shape depends on the number of groups alone; None
stands for a group that is left out.
"""

from __future__ import annotations

import collections
import heapq
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from tffc.backends.forms.steps import RoundSteps
from tffc.deploy.ray.api import Actor, Ref
from tffc.deploy.ray.work import Attempts, Job, RoundWork, Tree
from tffc.deploy.ray.worker import RoundRefs
from tffc.runtime.engines.encoding import decode, encode
from tffc.runtime.engines.shards import ShardResult
from tffc.runtime.engines.speed import RemoteSpeed
from tffc.support.errors import TffcError

NOTHING = encode(None)


class ClientsJob(NamedTuple):
    """A job of the clients of a group."""

    group: int
    job: Job


class Conclusion(NamedTuple):
    """The result of a group, to be made of its accumulators."""

    group: int
    totals: bytes


class Merger(NamedTuple):
    """The results of neighbouring groups, to be merged."""

    job: Job


GroupJob: TypeAlias = ClientsJob | Conclusion | Merger


class GroupsWork:
    """The work of a round in groups, by their numbers; see `Jobs`.

    `errors` has those of groups that failed.  Unless bad groups are skipped, groups after the first
    one that failed are not done.
    """

    def __init__(
        self,
        works: Mapping[int, RoundWork],
        errors: Mapping[int, TffcError],
        steps: RoundSteps,
        refs: RoundRefs,
        fanout: int,
        speed: RemoteSpeed,
        *,
        skip_bad: bool,
    ) -> None:
        self._works = works
        self._steps, self._refs = steps, refs
        self.speed = speed
        self._skip_bad = skip_bad
        self._end = len(works) + len(errors)
        self._tree = Tree(self._end, fanout)
        self._jobs: collections.deque[Conclusion | Merger] = collections.deque()
        self._waiting: dict[int, int] = {}
        """How many jobs of its clients each group has."""
        self._count = 0
        """How many these are in all."""
        self._active: list[int] = []
        """A heap of the groups that have any, and of some that have none any more."""
        self._settled: set[int] = set()
        self._attempts = Attempts()
        self.errors: dict[int, TffcError] = {}
        self.failure: TffcError | None = None
        for group, error in errors.items():
            self._lose(group, error)
        for group in works:
            self._settle(group)

    @property
    def partial(self) -> object:
        """The merged results of all groups; None if all are left out."""
        total = self._tree.total
        return None if total is None else decode(total)

    def count(self) -> int:
        """See `Jobs`."""
        return len(self._jobs) + self._count

    def take(self) -> GroupJob:
        """See `Jobs`."""
        if self._jobs:
            return self._jobs.popleft()
        while not self._waiting[self._active[0]]:
            heapq.heappop(self._active)
        group = self._active[0]
        job = self._works[group].take()
        self._note(group)
        return ClientsJob(group, job)

    def _note(self, group: int) -> None:
        """Note how many jobs a group's clients have, which may have changed."""
        before = self._waiting.get(group, 0)
        now = self._waiting[group] = self._works[group].count() if group < self._end else 0
        self._count += now - before
        if now and not before:
            heapq.heappush(self._active, group)

    def _end_at(self, group: int) -> None:
        """Do no more for the groups from this one on."""
        if group < self._end:
            self._end = group
            for later in self._works:
                if later >= group:
                    self._note(later)

    def start(self, actor: Actor, job: GroupJob) -> Ref:
        """See `Jobs`."""
        match job:
            case ClientsJob():
                return self._works[job.group].start(actor, job.job)
            case Conclusion():
                return actor.conclude.remote(self._refs, job.totals)
            case Merger():
                return actor.join.remote(self._refs, list(job.job.parts))

    def repeat(self, job: GroupJob, reason: str) -> None:
        """See `Jobs`."""
        if isinstance(job, ClientsJob):
            self._works[job.group].repeat(job.job, reason)
            self._settle(job.group)
            return
        error = self._attempts.lose(job, "a merge", reason)
        if error is None:
            self._jobs.appendleft(job)
        else:
            self.fail(job, error)

    def record(self, job: GroupJob, content: bytes) -> None:
        """See `Jobs`."""
        if isinstance(job, ClientsJob):
            self._works[job.group].record(job.job, content)
            self._settle(job.group)
            return
        result = ShardResult.from_bytes(content)
        self.speed.take(result.times, result.decisions)
        if result.error is not None:
            self.fail(job, result.error)
        elif isinstance(job, Conclusion):
            self._add(0, job.group, result.totals)
        else:
            self._add(job.job.height, job.job.number, result.totals)

    def fail(self, job: GroupJob, error: TffcError) -> None:
        """See `Jobs`."""
        match job:
            case ClientsJob():
                self._works[job.group].fail(job.job, error)
                self._settle(job.group)
            case Conclusion():
                self._lose(job.group, error)
            case Merger():
                self.failure = self.failure or error
                self._end_at(0)
                self._jobs.clear()

    def _settle(self, group: int) -> None:
        """Let the result of a group be made once its clients are done, or its error counted."""
        self._note(group)
        work = self._works[group]
        if group in self._settled or not work.is_over:
            return
        self._settled.add(group)
        if work.failure is not None:
            self._lose(group, work.failure)
            return
        try:
            work.cohort.check_enough(self._steps, len(work.skipped))
        except TffcError as error:
            self._lose(group, error)
            return
        if group < self._end:
            self._jobs.append(Conclusion(group, work.total or NOTHING))

    def _lose(self, group: int, error: TffcError) -> None:
        self.errors[group] = error
        if self._skip_bad:
            self._add(0, group, NOTHING)
        else:
            self._end_at(group)

    def _add(self, height: int, number: int, partial: bytes) -> None:
        job = self._tree.add(height, number, partial)
        if job is not None and self.failure is None:
            self._jobs.append(Merger(job))
