"""Proving that a bundle computes what a program does."""

from __future__ import annotations

import dataclasses
import os
import pathlib

from tffc.api.programs import Program, Source, round_of
from tffc.assurance.proof.prove import Proof, prove_first_state, refusal
from tffc.assurance.proof.prove import prove as prove_round
from tffc.backends.bundle.bundle import Bundle, read_bundle
from tffc.backends.forms.kinds import assemble
from tffc.support.errors import LanguageTypeError, TffcError
from tffc.support.guards import is_path


@dataclasses.dataclass(frozen=True, slots=True)
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

    def check(self) -> None:
        """Check that the bundle is proved.

        Raises:
          ValidationError: it is not: the two differ, or the prover cannot decide.
        """
        if self.error is not None:
            raise self.error


def prove(bundle: Bundle | str | os.PathLike[str], program: Source | None = None) -> BundleProof:
    """Attempt to prove that a bundle computes what a program does, by default the one in it.

    Nothing runs.

    Raises:
      TffcError: the bundle or the program cannot be read, or does not fit the form.
      LanguageTypeError: `bundle` is neither a bundle nor a path.
    """
    if not isinstance(bundle, Bundle) and not is_path(bundle):
        raise LanguageTypeError(
            "E714",
            f"a bundle cannot be an object of class {type(bundle).__name__!r}",
            help="compile the program first: tffc.compile(program)",
        )
    compiled_bundle = bundle if isinstance(bundle, Bundle) else read_bundle(pathlib.Path(bundle))
    if program is None:
        proved = Program(compiled_bundle.computation)
    else:
        proved = round_of(program, compiled_bundle.form)
    components = compiled_bundle.components
    assemble(compiled_bundle.form, proved.computation.type, components)
    return proof_of(proved, compiled_bundle)


def proof_of(program: Program, bundle: Bundle) -> BundleProof:
    """Return the proof of a bundle whose components are those of its form."""
    proof = prove_round(program.computation, bundle.form, bundle.components)
    first = None
    if program.initialize is not None and bundle.initialize is not None:
        first = prove_first_state(program.initialize, bundle.initialize)
    error = refusal(proof, f"form {bundle.form}") or (first and refusal(first, "first state"))
    return BundleProof(proof, first, error)
