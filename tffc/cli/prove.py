"""Proofs of bundles: making one, recording it, and requiring it."""

from __future__ import annotations

import dataclasses

from tffc.assurance.proof.prove import VERSION, Proof, prove, prove_first_state, refusal
from tffc.backends.bundle.bundle import Bundle
from tffc.cli.progress import step
from tffc.cli.sources import Program
from tffc.support.errors import BundleError, TffcError


def proved(bundle: Bundle, program: Program) -> Bundle:
    """Return the bundle of a program with the record of a proof.

    Raises:
      ValidationError: the proof fails.
    """
    step("proving")
    _, _, error = prove_both(program, bundle)
    if error is not None:
        raise error
    return dataclasses.replace(bundle, prover=VERSION)


def check_proof(source: str, bundle: Bundle) -> None:
    """Check that a bundle has the record of a proof by the current rules.

    Raises:
      BundleError: it has none.
    """
    if bundle.prover != VERSION:
        found = "does not say so"
        if bundle.prover is not None:
            found = f"was proved by version {bundle.prover}"
        raise BundleError(
            "E962",
            f"{source} must be proved by version {VERSION} of the prover; it {found}",
            help="compile it with tffc compile --prove, and run the bundle",
        )


def prove_both(program: Program, bundle: Bundle) -> tuple[Proof, Proof | None, TffcError | None]:
    """Return the proof of the round; that of the first state, if both sides have one; and the error
    if a proof failed."""
    proof = prove(program.computation, bundle.form, bundle.components)
    first = None
    if program.initialize is not None and bundle.initialize is not None:
        first = prove_first_state(program.initialize, bundle.initialize)
    error = refusal(proof, f"form {bundle.form}") or (first and refusal(first, "first state"))
    return proof, first, error
