"""Proofs that a form computes what a program does, for all arguments."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping

from tffc.assurance.proof.carried import check_carried
from tffc.assurance.proof.compare import Comparison, Mismatch
from tffc.assurance.proof.forms import FORMS, Components
from tffc.assurance.proof.machine import ONCE, Machine
from tffc.assurance.proof.sections import Sections
from tffc.assurance.proof.terms import Terms
from tffc.assurance.proof.text import Difference, described, expression
from tffc.assurance.proof.undecided import Undecided
from tffc.assurance.proof.unneeded import Unneeded, surplus
from tffc.assurance.proof.values import Value, from_leaves, leaf_terms, leaves_of
from tffc.language.nodes import Node
from tffc.language.types import FunctionType, StructType, Type
from tffc.support.errors import ValidationError
from tffc.support.trampoline import run

VERSION = 6
"""The version of the rules, raised when a change makes more or less provable."""


class Answer(enum.Enum):
    """The result of a proof attempt."""

    PROVED = "proved"
    DIFFERENT = "different"
    UNDECIDED = "not decided"


@dataclasses.dataclass(frozen=True, slots=True)
class Proof:
    """The answer, how many operations were examined, and why it is not PROVED.

    `difference` is set if the answer is DIFFERENT.  `construct` and `detail` are set if it is
    UNDECIDED: the construct that no rule covers, and the instance that was met.
    """

    answer: Answer
    operations: int
    difference: Difference | None = None
    construct: str = ""
    detail: str = ""


class UndecidedError(ValidationError):
    """The error if the prover cannot decide whether a form computes what the program does."""

    exit_code = 3


def refusal(proof: Proof, what: str) -> ValidationError | None:
    """Return the error for a proof that failed, or None; `what` names the compiled side in
    messages."""
    if proof.answer is Answer.UNDECIDED:
        return UndecidedError(
            "E961",
            f"it is not decided whether the {what} computes what the program does: no rule is "
            f"about {proof.construct}",
            notes=(f"found: {proof.detail}",) if proof.detail else (),
            help="tffc verify tries it on arguments",
        )
    difference = proof.difference
    if difference is None:
        return None
    return ValidationError(
        "E902",
        f"the {what} computes something else than the program: {difference.leaf} differs, "
        f"{difference.reason}",
        notes=(f"the program has {difference.program}", f"the {what} has {difference.form}"),
        help="compile the program again",
        span=difference.span,
    )


def prove_section(program: Node, section: Node) -> Proof:
    """Prove that a section computes what a program of one place does, such as that of the first
    state, or of a discount."""

    def check(attempt: _Attempt) -> None:
        argument = attempt.argument(program.type)
        expected = run(attempt.machine.program(program, argument))
        attempt.compare(expected, run(attempt.machine.component(section, ONCE, argument)))

    return _tried(check, program.type)


def prove(program: Node, form: str, components: Mapping[str, Node]) -> Proof:
    """Prove that the components of a form compute what a program of one round does.

    The components must be those of the form, with matching types.
    """

    def check(attempt: _Attempt) -> None:
        if form not in FORMS:
            raise Undecided("a form of this name", form)
        state, data = attempt.parameters(program.type)
        expected = run(attempt.machine.program(program, (state, data)))
        parts = Components(attempt.machine, components)
        result = run(FORMS[form](parts, state, data))
        attempt.compare(expected, result, parts.law)

    return _tried(check, program.type)


def _tried(check: Callable[[_Attempt], None], kind: Type) -> Proof:
    """Run a check, which raises as `Comparison.check` does, and return the proof."""
    attempt = _Attempt()
    terms = attempt.terms
    try:
        check(attempt)
    except Undecided as error:
        return Proof(
            Answer.UNDECIDED, len(terms.labels), construct=error.construct, detail=error.detail
        )
    except Mismatch as mismatch:
        compared = ("the result", kind) if attempt.law is None else ("merge's result", attempt.law)
        return Proof(Answer.DIFFERENT, len(terms.labels), described(terms, mismatch, *compared))
    return Proof(Answer.PROVED, len(terms.labels))


class _Attempt:
    """Both sides of one proof, evaluated by one machine."""

    def __init__(self) -> None:
        self.terms = Terms()
        self.machine = Machine(self.terms, Sections(self.terms))
        self.law: Type | None = None
        """The type of the values of a form's law while they are compared."""

    def parameters(self, kind: Type) -> tuple[Value, Value]:
        """Return symbols for the state and the clients' data of a round of this type."""
        parameter = kind.parameter if isinstance(kind, FunctionType) else None
        if not isinstance(parameter, StructType) or len(parameter) != 2:
            raise Undecided("a program that is not a round")
        state, data = parameter.types
        return self._symbols("state", state), self._symbols("data", data)

    def argument(self, kind: Type) -> Value | None:
        """Return symbols for the argument of a program of this type; None if it takes none."""
        parameter = kind.parameter if isinstance(kind, FunctionType) else None
        return None if parameter is None else self._symbols("argument", parameter)

    def _symbols(self, which: str, kind: Type) -> Value:
        leaves = leaves_of(kind)
        symbols = [self.terms.value((which, i), fails=False) for i in range(len(leaves))]
        self.machine.sections.declare(leaves, symbols)
        return from_leaves(kind, symbols)

    def compare(
        self, program: Value, form: Value, law: tuple[Value, Value, Type] | None = None
    ) -> None:
        """Check that two values are the same, and those of a form's law; raises as
        `Comparison.check` does."""
        comparison = Comparison(self.terms, self.machine.sections.iterations)
        comparison.check(program, form)
        ours, theirs = leaf_terms(program), leaf_terms(form)
        if law is not None:
            wanted, given, self.law = law
            comparison.check(wanted, given)
            ours, theirs, self.law = ours + leaf_terms(wanted), theirs + leaf_terms(given), None
        sections = self.machine.sections
        Unneeded(comparison, self.terms).check(ours, theirs, sections.owed, sections.of_form)
        other = surplus(self.terms)
        if other is not None:
            raise Undecided(
                "an operation that the program does not have", expression(self.terms, other)
            )
        other = sections.declared.of_form_alone
        if other is not None:
            raise Undecided("a type that the program does not declare", str(other))
        machine = self.machine
        check_carried(comparison, self.terms, machine.carried_by_program, machine.carried)
