"""Proving that a bundle computes what a program does."""

from __future__ import annotations

import dataclasses

from tffc.api.boundary import public
from tffc.api.compiling import compiled
from tffc.api.programs import Program, Source, opened, or_missing_bundle, origin_of, round_of
from tffc.assurance.proof.prove import Answer, Proof, prove_first_state, refusal
from tffc.assurance.proof.prove import prove as prove_round
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.kinds import assemble
from tffc.support.cell import verdict_cell
from tffc.support.errors import TffcError


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class BundleProof:
    """The proof of a bundle: that of its round, and that of its first state if both the program and
    the bundle have one.  `error` says why it is not proved; it is None if all of it is."""

    round: Proof
    first_state: Proof | None
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
        if self.first_state is None:
            return f"{proved}; its first state is not part of the proof"
        return f"{proved}, and its first state"

    def __repr__(self) -> str:
        return f"<proof: {self.sentence()}>"

    def __str__(self) -> str:
        return self.sentence() if self.error is None else str(self.error)

    def _repr_html_(self) -> str:
        kinds = {Answer.PROVED: "good", Answer.DIFFERENT: "bad", Answer.UNDECIDED: "doubtful"}
        answers = [proof.answer for proof in (self.round, self.first_state) if proof is not None]
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
    The first state is part of the proof if the program has one; see `BundleProof`.

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
    first = None
    if program.initialize is not None and bundle.initialize is not None:
        first = prove_first_state(program.initialize, bundle.initialize)
    error = refusal(proof, f"form {bundle.form}") or (first and refusal(first, "first state"))
    return BundleProof(proof, first, error)
