"""The trackers of a run, whose failures end no round."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Generator, Iterable, Sequence

from tffc.runtime.engines.process import Process
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.runs.metrics import MetricsRow
from tffc.runtime.runs.run_identity import RunIdentity, seed_text
from tffc.runtime.runs.tracked import Tracked, add_tracked, read_tracked
from tffc.runtime.tracking.kind import Ending, RunFacts, Tracker, TrackerKind
from tffc.support.errors import TffcError
from tffc.support.printable import counted
from tffc.support.version import VERSION

LONGEST = 300
"""How much is told of why a tracker fails."""

GOES_ON = "the rounds go on without it, and it is tried again after the last"


def parameters(
    name: str, identity: RunIdentity, process: Process, command: str | None
) -> dict[str, str]:
    """Return the parameters of a run: what ran, in which form, with which sample and data.

    `sha256/...` are the digests of the bundle's programs.
    """
    fields = {
        "program": name,
        "command": command,
        "form": identity.form,
        **_sampling(identity.sampling),
        "skip_bad_clients": str(identity.skip_bad_clients).lower(),
        "data": f"{identity.source.kind}, {counted(len(identity.source.clients), 'client')}",
        "tffc": VERSION,
        **{f"sha256/{path}": digest for path, digest in process.digests.items()},
    }
    return {key: text for key, text in fields.items() if text is not None}


def _sampling(sampling: Sampling) -> dict[str, str]:
    seed = {"seed": seed_text(sampling)}
    if sampling.rate is not None:
        return {"sampling_rate": str(sampling.rate), **seed}
    return {
        "clients_per_round": "all" if sampling.clients is None else str(sampling.clients),
        **seed,
    }


def numbers_of(row: MetricsRow) -> dict[str, float]:
    """Return the numbers of a row, as trackers name them."""
    numbers = {"round/clients": float(row.clients), "round/skipped": float(row.skipped)}
    for group, values in (("metrics", row.metrics), ("evaluation", row.evaluation)):
        for name, value in values.items():
            if isinstance(value, (int, float)):
                numbers[f"{group}/{name}"] = float(value)
    return numbers


@dataclasses.dataclass(slots=True)
class _Followed:
    """A tracker of a run: what it has, and the rounds that it has not got yet."""

    kind: TrackerKind
    tracker: Tracker | None = None
    run: str | None = None
    last: int = 0
    waiting: list[tuple[int, dict[str, float]]] = dataclasses.field(default_factory=list)
    is_failing: bool = False


class Tracking:
    """The trackers of a run in a folder, if it has one; `tell` is called with what goes wrong.

    A tracker that fails is left alone until the run ends, and then tried once more.  What it has
    not got by then, it gets when the run is resumed.
    """

    def __init__(
        self,
        kinds: Iterable[TrackerKind],
        folder: pathlib.Path | None,
        tell: Callable[[str], None],
    ) -> None:
        self._followed = [_Followed(kind) for kind in kinds]
        self._folder, self._tell = folder, tell
        self._facts: RunFacts | None = None

    def __bool__(self) -> bool:
        return bool(self._followed)

    def begin(self, facts: RunFacts, rows: Sequence[MetricsRow]) -> None:
        """Begin the run at each tracker, or continue it there with the rows that it lacks."""
        self._facts = facts
        known = self._known()
        for each in self._followed:
            tracked = known.get(each.kind.name)
            if each.run is None and tracked is not None:
                each.run, each.last = tracked.run, tracked.round
            each.is_failing = False
            each.waiting = [(row.round, numbers_of(row)) for row in rows if row.round > each.last]
            self._send(each, GOES_ON)

    def add(self, row: MetricsRow) -> None:
        """Add a finished round."""
        for each in self._followed:
            each.waiting.append((row.round, numbers_of(row)))
            if not each.is_failing:
                self._send(each, GOES_ON)

    def end(self, ending: Ending, report: Callable[[], str | None]) -> None:
        """End the run at each tracker, with a report."""
        if self._facts is None:
            return
        self._facts, facts = None, self._facts
        for each in self._followed:
            lacks = "it lacks what came after" if each.last else "it has no round"
            resumes = "" if facts.folder is None else "; resuming the run sends the rest"
            if self._send(each, f"{lacks}{resumes}", facts):
                assert each.tracker is not None
                with self._failing(each, "it has the rounds, but not their end"):
                    each.tracker.end(ending, report())
            each.tracker = None

    def places(self) -> list[str]:
        """Return lines about where people find the run."""
        return [
            f"{each.kind.title} has this run: {each.tracker.place}"
            for each in self._followed
            if each.tracker is not None
        ]

    def _known(self) -> dict[str, Tracked]:
        if self._folder is None:
            return {}
        try:
            return read_tracked(self._folder)
        except TffcError as error:
            self._tell(f"{error.message}; trackers get the run as a new one")
            return {}

    def _send(self, each: _Followed, otherwise: str, facts: RunFacts | None = None) -> bool:
        """Send the waiting rounds to a tracker; return whether it has all."""
        facts = facts or self._facts
        assert facts is not None
        with self._failing(each, otherwise):
            if each.tracker is None:
                each.tracker = each.kind.load()(facts, each.run)
                each.run = each.tracker.run
                self._remember(each)
            while each.waiting:
                each.tracker.add(*each.waiting[0])
                each.last = each.waiting.pop(0)[0]
                self._remember(each)
            each.is_failing = False
            return True
        return False

    @contextlib.contextmanager
    def _failing(self, each: _Followed, otherwise: str) -> Generator[None]:
        try:
            yield
        # Whatever goes wrong there, the rounds are worth more.
        except Exception as error:  # noqa: BLE001  (trackers raise what they like)
            each.is_failing = True
            lines = str(error).strip().splitlines() or [""]
            reason = f"{type(error).__name__}: {lines[0]}"[:LONGEST]
            self._tell(f"{each.kind.title} fails: {reason}; {otherwise}")

    def _remember(self, each: _Followed) -> None:
        if self._folder is not None and each.run is not None:
            with contextlib.suppress(OSError):
                add_tracked(self._folder, Tracked(each.kind.name, each.run, each.last))
