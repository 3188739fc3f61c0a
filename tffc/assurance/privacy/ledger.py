"""What the rounds of a run spend of a privacy budget.

It is counted what was done, as the run's folder has it, and not what was planned.  Where it is not
known that nobody could tell who took part, nothing is gained by how clients were drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from tffc.assurance.privacy.accounting import (
    DiscreteGaussian,
    Gaussian,
    Laplacian,
    NoBoundError,
    Part,
    Skellam,
    Spending,
    Stretch,
    least_spending,
)
from tffc.assurance.privacy.question import ANY_COHORTS, NEIGHBOURS, CohortKind, Cohorts, Neighbours
from tffc.runtime.runs.kept_states import FEDERATIONS
from tffc.runtime.runs.metrics import MetricsRow
from tffc.runtime.runs.privacy_record import EarlierRounds, KeptMechanism, PrivacyRecord
from tffc.runtime.runs.report import RunReport
from tffc.runtime.runs.round_sampling import RoundSampling
from tffc.runtime.runs.run_identity import RunIdentity
from tffc.support.errors import DataError, MissingExtraError, PolicyError
from tffc.support.printable import counted

KINDS: Mapping[str, tuple[Callable[..., Part], int]] = {
    "gaussian": (Gaussian, 1),
    "laplace": (Laplacian, 1),
    "skellam": (Skellam, 3),
    "discrete gaussian": (DiscreteGaussian, 2),
}
"""The mechanisms that records name, and how many numbers they have."""


class BudgetSpentError(PolicyError):
    """The next round would spend more than the budget of a run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ledger:
    """The budget of a run with an identity, and what its rounds spend.

    Raises:
      DataError: the record of the run has mechanisms or neighbours that there are not.
    """

    record: PrivacyRecord
    identity: RunIdentity

    def __post_init__(self) -> None:
        """Check that the record can be accounted for."""
        if self.record.neighbours not in NEIGHBOURS:
            raise _unknown(f"neighbours {self.record.neighbours!r}")
        for each in (self.record, *self.record.earlier):
            parts_of(each.mechanisms)

    @property
    def neighbours(self) -> Neighbours:
        """The relation that the ε is for."""
        return NEIGHBOURS[self.record.neighbours]

    def spending(self, rows: Sequence[MetricsRow], more: int = 0) -> Spending:
        """Return the ε of the earlier rounds, of finished ones and of some `more`.

        Raises:
          MissingExtraError: `dp-accounting` is not installed.
          NoBoundError: no accountant has a bound.
        """
        stretches = [_stretch(each) for each in self.record.earlier]
        done = [RoundSampling.of(self.identity, row) for row in rows]
        done += [RoundSampling.of(self.identity, MetricsRow(0, 0, 0, {}))] * more
        parts = parts_of(self.record.mechanisms)
        stretches += _stretches(done, parts, self.neighbours)
        return least_spending(stretches, self.record.delta, self.neighbours)

    def most_rounds(self, rows: Sequence[MetricsRow], wanted: int) -> int:
        """Return how many of the `wanted` rounds the budget has after those that are finished.

        Raises:
          MissingExtraError: `dp-accounting` is not installed.
          NoBoundError: no accountant has a bound.
        """

        def fits(more: int) -> bool:
            return self.spending(rows, more).epsilon <= self.record.epsilon

        if fits(wanted):
            return wanted
        fitting, exceeding = 0, wanted
        while exceeding - fitting > 1:
            middle = (fitting + exceeding) // 2
            if fits(middle):
                fitting = middle
            else:
                exceeding = middle
        return fitting

    def refusal(self, rows: Sequence[MetricsRow], number: int) -> BudgetSpentError:
        """Return the refusal of round `number` after those that are finished."""
        spent, then = self.spending(rows), self.spending(rows, 1)
        done = "no round was done"
        if spent.rounds:
            done = f"{_rounds(spent.rounds)} have ε = {spent.epsilon:.6g}"
        return BudgetSpentError(
            "E542",
            f"round {number} would exceed the privacy budget, ε = {self.record.epsilon:g} at "
            f"δ = {self.record.delta:g}",
            notes=(f"{done}; with this one it would be {then.epsilon:.6g}",),
            help="begin another run with more noise, a lower sampling rate, or a larger budget",
        )


def _rounds(count: int) -> str:
    return "the round that was done" if count == 1 else f"the {count:,} rounds that were done"


def spent_sentence(report: RunReport, ledger: Ledger) -> str:
    """Return the ε of the rounds that a run has done as a sentence, or why it is not known."""
    try:
        spent = ledger.spending(report.rows)
    except (MissingExtraError, NoBoundError) as error:
        return f"not known: {error.message}"
    text = (
        f"ε = {spent.epsilon:.6g} at δ = {spent.delta:g} for {_rounds(spent.rounds)}, for "
        f"{ledger.neighbours.value}; {spent.accountant}"
    )
    if not spent.is_amplified:
        text += ", without amplification by sampling"
    if any(row.evaluation for row in report.rows):
        text += "; evaluations are not in it, for they release something of their own data"
    return text


def privacy_of_run(report: RunReport) -> str | None:
    """Return the ε of a run with a budget as a sentence, or why it is not known; None for a run
    without one."""
    identity = report.record.identity
    if identity.privacy is None:
        return None
    return spent_sentence(report, Ledger(identity.privacy, identity))


def with_spending(report: RunReport) -> RunReport:
    """Return a report that has the ε of its run, if that has a budget."""
    return dataclasses.replace(report, privacy=privacy_of_run(report))


# What is counted.


def obstacles(identity: RunIdentity, neighbours: Neighbours) -> Iterator[str]:
    """Yield why the ε of a round's program is none of rounds as a run has them."""
    source, sampling = identity.source, identity.sampling
    if source.kind in FEDERATIONS:
        yield (
            f"on {FEDERATIONS[source.kind]}, a node that is left out takes all of its clients along"
        )
    if identity.timing is not None:
        yield "buffered rounds and delays tell who took part, and when"
    if identity.groups is not None:
        yield "to add a client moves others to another group"
    if sampling.kind == "fixed" and neighbours is Neighbours.ADD_OR_REMOVE:
        yield (
            "with a fixed number of clients in a round, one that is added takes the place of "
            "another; a sampling rate does not do so, and a client's data replaced is covered"
        )
    if identity.skip_bad_clients and neighbours is not Neighbours.ADD_OR_REMOVE:
        yield "a client whose data cannot be read is left out, which is not to have other data"


def cohorts_of(sampling: RoundSampling, neighbours: Neighbours) -> Cohorts:
    """Return how the clients of a round were chosen, as far as it hides who they were."""
    if not sampling.seed_is_secret:
        return ANY_COHORTS
    if sampling.rate is not None and neighbours is not Neighbours.REPLACE:
        return Cohorts(CohortKind.POISSON, rate=sampling.rate)
    size, population = sampling.size, sampling.population
    if sampling.kind == "fixed" and size and population and neighbours is Neighbours.REPLACE:
        return Cohorts(CohortKind.FIXED, size=size, population=population)
    return ANY_COHORTS


def _stretches(
    done: Sequence[RoundSampling], parts: tuple[Part, ...], neighbours: Neighbours
) -> Iterator[Stretch]:
    """Yield rounds with the same choice of clients together."""
    counts: dict[Cohorts, int] = {}
    for each in done:
        cohorts = cohorts_of(each, neighbours)
        counts[cohorts] = counts.get(cohorts, 0) + 1
    for cohorts, rounds in counts.items():
        yield Stretch(rounds, parts, cohorts)


def _stretch(earlier: EarlierRounds) -> Stretch:
    cohorts = ANY_COHORTS
    if earlier.rate is not None:
        cohorts = Cohorts(CohortKind.POISSON, rate=earlier.rate)
    elif earlier.size is not None and earlier.population is not None:
        cohorts = Cohorts(CohortKind.FIXED, size=earlier.size, population=earlier.population)
    return Stretch(earlier.rounds, parts_of(earlier.mechanisms), cohorts)


def rounds_done(
    report: RunReport, mechanisms: tuple[KeptMechanism, ...], neighbours: Neighbours
) -> tuple[EarlierRounds, ...]:
    """Return the finished rounds of a run as those of one that goes on with its state has them."""
    done = [RoundSampling.of(report.record.identity, row) for row in report.rows]
    return tuple(
        EarlierRounds(
            each.rounds,
            mechanisms,
            each.cohorts.rate if each.cohorts.kind is CohortKind.POISSON else None,
            each.cohorts.size or None,
            each.cohorts.population or None,
        )
        for each in _stretches(done, parts_of(mechanisms), neighbours)
    )


def kept_mechanisms(parts: Sequence[Part]) -> tuple[KeptMechanism, ...]:
    """Return the mechanisms of a round as a record has them."""
    names: dict[object, str] = {kind: name for name, (kind, _) in KINDS.items()}
    return tuple(KeptMechanism(names[type(p)], tuple(dataclasses.astuple(p))) for p in parts)


def parts_of(mechanisms: Sequence[KeptMechanism]) -> tuple[Part, ...]:
    """Return the mechanisms of a round from its record.

    Raises:
      DataError: the record has a mechanism that there is not.
    """
    for each in mechanisms:
        _, count = KINDS.get(each.name, (None, 0))
        if not count or len(each.numbers) != count or min(each.numbers) <= 0:
            raise _unknown(
                f"the mechanism {each.name!r} with {counted(len(each.numbers), 'number')}"
            )
    return tuple(KINDS[each.name][0](*each.numbers) for each in mechanisms)


def _unknown(what: str) -> DataError:
    return DataError(
        "E938",
        f"the record of the run has {what}, of which this tffc knows nothing",
        help="put run.json back as it was, or use the version of tffc that began the run",
    )
