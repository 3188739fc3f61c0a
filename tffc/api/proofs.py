"""Proving that a bundle computes what a program does."""

from __future__ import annotations

import dataclasses

from tffc.api.boundary import public
from tffc.api.compiling import compiled
from tffc.api.opened_bundles import opened, or_missing_bundle, origin_of
from tffc.api.programs import Program, Source, round_of
from tffc.assurance.proof.prove import Answer, Proof, prove_section, refusal
from tffc.assurance.proof.prove import prove as prove_round
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.kinds import assemble
from tffc.language.nodes import Node
from tffc.support.cell import verdict_cell
from tffc.support.errors import TffcError


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class BundleProof:
    """The proof of a bundle: that of its round, and those of its first state and its discount if
    both the program and the bundle have one.  `error` says why it is not proved; it is None if all
    of it is."""

    round: Proof
    first_state: Proof | None
    discount: Proof | None
    error: TffcError | None

    @property
    def is_proved(self) -> bool:
        """Whether the bundle computes what the program does, for all arguments."""
        return self.error is None

    def sentence(self) -> str:
        """Return the answer as a sentence."""
        if self.error is not None:
            return self.error.message
        proved = "proved: the bundle computes what the program does, for all arguments"
        discount = "" if self.discount is None else ", and its discount"
        if self.first_state is None:
            return f"{proved}{discount}; its first state is not part of the proof"
        return f"{proved}, and its first state{discount}"

    def __repr__(self) -> str:
        return f"<proof: {self.sentence()}>"

    def __str__(self) -> str:
        return self.sentence() if self.error is None else str(self.error)

    def _repr_html_(self) -> str:
        kinds = {Answer.PROVED: "good", Answer.DIFFERENT: "bad", Answer.UNDECIDED: "doubtful"}
        proofs = (self.round, self.first_state, self.discount)
        answers = [proof.answer for proof in proofs if proof is not None]
        answer = next((answer for answer in answers if answer is not Answer.PROVED), Answer.PROVED)
        return verdict_cell("Proof", answer.value, kinds[answer], str(self))

    def check(self) -> None:
        """Check that the bundle is proved.

        Raises:
          ValidationError: it is not: the two differ, or the prover cannot decide.
        """
        if self.error is not None:
            raise self.error


@public
def prove(
    source: Source | Bundle, program: Source | None = None, form: str | None = None
) -> BundleProof:
    """Attempt to prove that a bundle computes what a program does, by default the one that it was
    compiled from, or that is in it.

    A program, given as `source`, is compiled first, and its own bundle is proved.  Nothing runs.
    The first state, and the discount of buffered rounds, are part of the proof if the program has
    them; see `BundleProof`.

    Raises:
      TffcError: the bundle or the program cannot be read, or does not fit the form.
    """
    source = opened(source, form)
    if not isinstance(source, Bundle):
        with or_missing_bundle(source):
            compiled_from = round_of(source, form)
        bundle = compiled(compiled_from, form)
        return proof_of(compiled_from if program is None else round_of(program, form), bundle)
    proved = origin_of(source) if program is None else round_of(program, source.form)
    assemble(source.form, proved.computation.type, source.components)
    return proof_of(proved, source)


def proof_of(program: Program, bundle: Bundle) -> BundleProof:
    """Return the proof of a bundle whose components are those of its form."""
    proof = prove_round(program.computation, bundle.form, bundle.components)
    first = _proof_beside(program.initialize, bundle.initialize)
    discount = _proof_beside(program.discount, bundle.discount)
    parts = {f"form {bundle.form}": proof, "first state": first, "discount": discount}
    errors = [refusal(part, name) for name, part in parts.items() if part is not None]
    return BundleProof(proof, first, discount, next(filter(None, errors), None))


def _proof_beside(program: Node | None, section: Node | None) -> Proof | None:
    """Return the proof of what a bundle has beside its round, if the program has it too."""
    return None if program is None or section is None else prove_section(program, section)
