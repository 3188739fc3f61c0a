"""The budget of privacy of a run: what has to be shown before the run begins, and its ledger."""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
from collections.abc import Iterator, Sequence

from tffc.api.plan import RunPlan
from tffc.assurance.audit.bundles import audit_bundle, read_for_audit
from tffc.assurance.privacy.answer import Privacy, privacy_of_program
from tffc.assurance.privacy.ledger import (
    Ledger,
    kept_mechanisms,
    obstacles,
    rounds_done,
    spent_sentence,
)
from tffc.assurance.privacy.question import NEIGHBOURS, Neighbours, PrivacyQuestion
from tffc.backends.bundle.bundle import Bundle
from tffc.runtime.data.identity import SourceIdentity
from tffc.runtime.engines.process import Process
from tffc.runtime.runs.privacy_record import EarlierRounds, PrivacyRecord
from tffc.runtime.runs.report import RunReport, read_report
from tffc.runtime.runs.run_folder import STATE, find_state
from tffc.runtime.runs.run_identity import RunIdentity
from tffc.runtime.runs.run_record import RUN, digest_of, read_record
from tffc.support.errors import LanguageValueError, MissingExtraError, PolicyError
from tffc.support.near import did_you_mean


@dataclasses.dataclass(frozen=True, slots=True)
class PrivacyBudget:
    """The ε that the rounds of a run may spend at a δ, for a relation of neighbours, of all outputs
    but those `withheld`.

    Raises:
      LanguageValueError: a number is out of range, or there is no such relation.
    """

    epsilon: float
    delta: float = 1e-6
    neighbours: str = "add-or-remove"
    withheld: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the numbers and the relation."""
        for name, value, most in (("budget", self.epsilon, math.inf), ("delta", self.delta, 1.0)):
            if not _is_number(value) or not 0 < value < most:
                least = "a number above 0" + ("" if most == math.inf else f", below {most:g}")
                raise LanguageValueError(
                    "E706", f"a privacy {name} cannot be {value!r}", help=f"give {least}"
                )
        if self.neighbours not in NEIGHBOURS:
            raise LanguageValueError(
                "E706",
                f"neighbours cannot be {self.neighbours!r}",
                help=did_you_mean(str(self.neighbours), NEIGHBOURS)
                or f"they are {', '.join(NEIGHBOURS)}",
            )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def record_of(
    budget: PrivacyBudget,
    plan: RunPlan,
    *,
    first_state: pathlib.Path | None = None,
    resumed: pathlib.Path | None = None,
) -> PrivacyRecord:
    """Return what the record of a run says of its budget, after showing what its rounds spend.

    The run begins with the state at `first_state`, goes on with the run in the folder `resumed` if
    there is one, or else begins with the program's first state.

    Raises:
      PolicyError: the privacy of a round is not shown, or the run does something that it does not
        cover, or it is not known what was spent before.
      MissingExtraError: `dp-accounting` is not installed.
      DataError: the folder of an earlier run cannot be read.
    """
    begun = None if resumed is None else read_record(resumed)
    begun_privacy = None if begun is None else begun.identity.privacy
    before: _Before = _Before() if begun_privacy is None else _Before.resumed(begun_privacy)
    if first_state is not None:
        before = _Before.of(first_state, budget, plan.process)
    privacy = _shown(budget, plan, is_from_first=before.is_from_first)
    reasons = [*_steps(privacy), *obstacles(_identity(plan), NEIGHBOURS[budget.neighbours])]
    reasons += _number_of_clients(plan, privacy)
    if plan.engine.shows_clients:
        reasons.append("what clients' code shows is no part of what is counted")
    if reasons:
        raise _refused("the privacy of this run is not shown, so it can keep no budget", reasons)
    mechanisms = kept_mechanisms(privacy.derivation.parts)
    earlier = before.earlier
    if before.report is not None:
        if privacy.derivation.counts_clients:
            reasons = [
                "the number of clients counts, and nothing says how many there were at least"
            ]
            raise _refused(UNKNOWN, reasons)
        earlier += rounds_done(before.report, mechanisms, NEIGHBOURS[budget.neighbours])
    return PrivacyRecord(
        float(budget.epsilon),
        float(budget.delta),
        budget.neighbours,
        plan.least_clients,
        budget.withheld,
        mechanisms,
        earlier,
        before.is_from_first,
    )


UNKNOWN = "it is not known what was spent before the state that the run begins with"


@dataclasses.dataclass(frozen=True, slots=True)
class _Before:
    """What was done before a run: the `earlier` rounds, and those of a run of the same program
    without a budget, by its `report`."""

    earlier: tuple[EarlierRounds, ...] = ()
    is_from_first: bool = True
    report: RunReport | None = None

    @classmethod
    def resumed(cls, record: PrivacyRecord) -> _Before:
        """Return what was done before a run that goes on."""
        return cls(record.earlier, record.is_from_first)

    @classmethod
    def of(cls, path: pathlib.Path, budget: PrivacyBudget, process: Process) -> _Before:
        """Return what was done before the state at a path.

        Raises:
          PolicyError: that is not known.
        """
        folder = path.parent if path.name == STATE else path
        if not os.path.lexists(folder / RUN):
            raise _refused(UNKNOWN, [f"{path} is not the state of a run, which would say it"])
        report = read_report(folder)
        record = report.record
        if record.state is None or digest_of(find_state(path)) != record.state:
            raise _refused(UNKNOWN, [f"{find_state(path)} is not the last state of the run"])
        programs, identity = process.digests, record.identity
        is_same = all(
            programs.get(name) == identity.programs.get(name)
            for name in ("computation", "initialize")
        )
        earlier = identity.privacy
        if earlier is not None:
            is_narrower = {*earlier.withheld} <= {*budget.withheld}
            if earlier.neighbours != budget.neighbours or not is_narrower:
                raise _refused(UNKNOWN, [f"the run in {folder} has {earlier}"])
            done = rounds_done(report, earlier.mechanisms, NEIGHBOURS[earlier.neighbours])
            return cls(earlier.earlier + done, is_same and earlier.is_from_first)
        reasons = list(obstacles(identity, NEIGHBOURS[budget.neighbours]))
        if record.origin is not None:
            reasons.append(f"the run in {folder} began with the state of another one")
        if not is_same:
            reasons.append(f"the run in {folder} is of another program, and had no budget")
        if reasons:
            raise _refused(UNKNOWN, reasons)
        return cls(report=report)


def privacy_by_bundle(report: RunReport, bundle: Bundle, delta: float) -> str:
    """Return the ε of the rounds that a run of a bundle has done without a budget as a sentence, or
    why it is not known.

    That is for a client added or removed, or for a number of clients drawn for each round, for a
    client's data replaced.
    """
    identity = report.record.identity
    is_fixed = identity.sampling.kind == "fixed"
    neighbours = Neighbours.REPLACE if is_fixed else Neighbours.ADD_OR_REMOVE
    reasons = list(obstacles(identity, neighbours))
    if report.record.origin is not None:
        reasons.append("the run began with a state of which it is not known what was spent for it")
    if bundle.digests() != identity.programs:
        reasons.append("the run is one of another bundle")
    if reasons:
        return f"not known: {'; '.join(reasons)}"
    question = PrivacyQuestion(delta=delta, neighbours=neighbours)
    try:
        privacy = _answer(bundle, question, is_from_first=True)
    except MissingExtraError as error:
        return f"not known: {error.message}"
    reasons = list(_steps(privacy))
    if privacy.derivation.counts_clients:
        reasons.append("the number of clients counts, and nothing demands one")
    if reasons:
        return f"not shown: {'; '.join(reasons)}"
    (name,) = (name for name, each in NEIGHBOURS.items() if each is neighbours)
    mechanisms = kept_mechanisms(privacy.derivation.parts)
    record = PrivacyRecord(math.inf, delta, name, 0, (), mechanisms)
    return spent_sentence(report, Ledger(record, identity))


def ledger_of(plan: RunPlan) -> Ledger | None:
    """Return the ledger of a run; None if it has no budget."""
    return None if plan.privacy is None else Ledger(plan.privacy, _identity(plan))


def _identity(plan: RunPlan) -> RunIdentity:
    """Return the identity of a run, as far as it counts here: what is in its data does not."""
    return plan.identity(SourceIdentity("", {}, plan.source.clients, {}))


def _shown(budget: PrivacyBudget, plan: RunPlan, *, is_from_first: bool) -> Privacy:
    """Return what is shown of a round; unless the run is from the first state of its program, of
    one that begins with any state."""
    question = PrivacyQuestion(
        delta=budget.delta,
        neighbours=NEIGHBOURS[budget.neighbours],
        least_clients=max(1, plan.least_clients),
        withheld=budget.withheld,
    )
    return _answer(plan.process.bundle, question, is_from_first=is_from_first)


def _answer(bundle: Bundle, question: PrivacyQuestion, *, is_from_first: bool) -> Privacy:
    reading = read_for_audit(bundle)
    audited = audit_bundle(bundle, reading)
    first = bundle.initialize if is_from_first else None
    return privacy_of_program(reading.program, audited.form, audited, first, question)


def _steps(privacy: Privacy) -> Iterator[str]:
    for step in privacy.steps:
        at = f" ({step.line})" if step.line else ""
        yield f"{step.subject}: {step.step} is not shown: {step.reason}{at}"
    if privacy.derivation.once:
        yield "its noise is correlated between rounds, and what runs spend is counted by the round"


def _number_of_clients(plan: RunPlan, privacy: Privacy) -> Iterator[str]:
    """Yield what the number of a round's clients has against a budget."""
    is_drawn = plan.sampling.rate is not None
    counts = privacy.derivation.counts_clients
    if is_drawn and plan.least_clients:
        yield "that a round has too few clients, which ends the run, shows how many were drawn"
    elif is_drawn and counts:
        yield "the number of clients counts, and with a sampling rate a round may have none"
    elif counts and not plan.least_clients:
        yield "the number of clients counts, and no least number of them is demanded"


def _refused(message: str, reasons: Sequence[str]) -> PolicyError:
    return PolicyError(
        "E541",
        message,
        notes=tuple(reasons),
        help="tffc explain E541 says what a run with a privacy budget needs",
    )
