"""The answer to how private a run of rounds is: a derivation, and the ε that follows from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from tffc.assurance.audit.audit import Audit
from tffc.assurance.privacy.accounting import NoBoundError, Spending, spending
from tffc.assurance.privacy.derivation import SAME_STATE, Derivation, Missing, derive, monomial_text
from tffc.assurance.privacy.question import PrivacyQuestion
from tffc.backends.compiler import normalized
from tffc.backends.forms.stages import StagedRound, assign_stages
from tffc.language.nodes import Node

NORMS = {0: "the magnitude of each element", 1: "the L1 norm", 2: "the L2 norm"}
"""The norms of bounds, described."""


@dataclasses.dataclass(frozen=True, slots=True)
class Privacy:
    """The answer: `spending` is None if a step is missing, or no accountant has a bound."""

    question: PrivacyQuestion
    derivation: Derivation
    spending: Spending | None
    no_bound: str | None = None

    @property
    def steps(self) -> list[Missing]:
        """All steps that are missing, the accountant's bound among them."""
        steps = list(self.derivation.missing)
        if self.no_bound is not None:
            steps.append(Missing("the rounds", "accounting", self.no_bound))
        return steps

    def unseen(self) -> Iterator[str]:
        """Yield what the answer rests on and a node of a federation cannot see."""
        if SAME_STATE in self.derivation.assumptions:
            yield f"epsilon: the rounds: a node cannot see that {SAME_STATE}"

    def sentence(self) -> str:
        """Return the answer as a sentence."""
        if self.spending is None:
            count = len(self.steps)
            return f"not shown: {count} step{'' if count == 1 else 's'} missing"
        spent = self.spending
        rounds = "1 round" if spent.rounds == 1 else f"{spent.rounds:,} rounds"
        return (
            f"ε = {spent.epsilon:.6g} at δ = {spent.delta:g} for {rounds}, for "
            f"{self.derivation.neighbours.value}"
        )

    def lines(self) -> Iterator[str]:
        """Yield the answer as lines."""
        return privacy_lines(self)

    def document(self) -> dict[str, Any]:
        """Return the answer as plain data."""
        return privacy_document(self)


def privacy_of(
    program: StagedRound, audit: Audit, initialize: Node | None, question: PrivacyQuestion
) -> Privacy:
    """Return how private rounds of a program are.

    Raises:
      MissingExtraError: `dp-accounting` is not installed, and an ε follows.
      TffcError: a section, or the computation of the first state, is malformed.
    """
    derivation = derive(
        program,
        audit,
        initialize,
        question.neighbours,
        least_clients=question.least_clients,
        withheld=question.withheld,
        has_secret_seeds=question.has_secret_seeds,
        rounds=question.rounds,
        participations=question.participations,
    )
    if not derivation.is_shown:
        return Privacy(question, derivation, None)
    try:
        spent = spending(
            derivation.parts,
            question.rounds,
            question.delta,
            question.cohorts,
            question.neighbours,
            derivation.once,
            question.participations,
        )
    except NoBoundError as error:
        return Privacy(question, derivation, None, error.message)
    return Privacy(question, derivation, spent)


def privacy_of_program(
    program: Node, form: str, audit: Audit, initialize: Node | None, question: PrivacyQuestion
) -> Privacy:
    """Return how private rounds of a program in a form are; raises as `privacy_of` does, and

    Raises:
      FormError: the form cannot express the program.
    """
    staged = assign_stages(normalized(program, form))
    return privacy_of(staged, audit, initialize, question)


def privacy_lines(privacy: Privacy) -> Iterator[str]:
    """Yield an answer as lines."""
    derivation = privacy.derivation
    yield f"privacy: {privacy.sentence()}"
    yield f"  neighbours: {derivation.neighbours.value}"
    yield f"  clients' data: {', '.join(derivation.data) or 'none'}"
    yield f"  chosen: {privacy.question.cohorts}"
    if privacy.spending is not None:
        yield f"  accountant: {privacy.spending.accountant}"
    for part in derivation.parts:
        yield f"  each round: {part}"
    for part in derivation.once:
        yield f"  all rounds together: {part}"
    for step in privacy.steps:
        yield ""
        yield f"  not shown: {step.step}"
        yield f"    of: {step.subject}"
        if step.line:
            yield f"    at: {step.line}"
        yield f"    because: {step.reason}"
    for number, mechanism in enumerate(derivation.sums):
        yield ""
        yield f"  mechanism {number + 1}: {mechanism.distribution} noise"
        yield f"    of: {', '.join(mechanism.leaves)}"
        yield f"    combined: {mechanism.combination}"
        yield f"    scale: {mechanism.scale}"
        yield f"    drawn: {mechanism.drawn}"
        yield f"    added: {mechanism.added}"
    for bound in derivation.bounds:
        yield ""
        most = monomial_text(bound.number)
        yield f"  bound of each client: {NORMS[bound.norm]} is at most {most}"
        yield f"    of: {', '.join(bound.leaves)}"
        yield from (f"    by: {operation}" for operation in bound.by if operation)
    yield ""
    yield "  releases"
    numbers = {number: at + 1 for at, number in enumerate(derivation.numbers)}
    for release in derivation.disclosures:
        parts = [f"mechanism {numbers[number]}" for number in release.mechanisms]
        parts += ["mechanisms of earlier rounds"] * release.is_of_earlier
        parts += ["a sum without noise"] * release.is_exposed
        yield f"    {release.kind} {release.name}: {', '.join(parts) or 'nothing of clients'}"
    yield "  rests on"
    yield from (f"    {assumption}" for assumption in derivation.assumptions)


def privacy_document(privacy: Privacy) -> dict[str, Any]:
    """Return an answer as plain data."""
    derivation, question, spent = privacy.derivation, privacy.question, privacy.spending
    numbers = {number: at for at, number in enumerate(derivation.numbers)}
    return {
        "shown": spent is not None,
        "text": privacy.sentence(),
        "neighbours": derivation.neighbours.value,
        "rounds": question.rounds,
        "delta": repr(question.delta),
        "sampling": str(question.cohorts),
        "epsilon": None if spent is None else repr(spent.epsilon),
        "accountant": None if spent is None else spent.accountant,
        "data": list(derivation.data),
        "round": [str(part) for part in derivation.parts],
        "all_rounds": [str(part) for part in derivation.once],
        "releases": [
            {
                "name": each.name,
                "kind": each.kind,
                "mechanisms": [numbers[number] for number in each.mechanisms],
                "of_earlier_rounds": each.is_of_earlier,
                "without_noise": each.is_exposed,
            }
            for each in derivation.disclosures
        ],
        "mechanisms": [dataclasses.asdict(each) for each in derivation.sums],
        "bounds": [
            {
                "leaves": list(each.leaves),
                "norm": NORMS[each.norm],
                "at_most": monomial_text(each.number),
                "by": list(each.by),
            }
            for each in derivation.bounds
        ],
        "missing": [
            {"subject": e.subject, "step": e.step, "reason": e.reason, "at": e.line or None}
            for e in privacy.steps
        ],
        "rests_on": list(derivation.assumptions),
    }
