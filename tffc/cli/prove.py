"""Proofs of bundles: recording one, and requiring it."""

from __future__ import annotations

import dataclasses

from tffc.api.programs import Program
from tffc.api.proofs import proof_of
from tffc.assurance.proof.prove import VERSION
from tffc.backends.bundle.bundle import Bundle
from tffc.cli.progress import step
from tffc.support.errors import BundleError


def proved(bundle: Bundle, program: Program) -> Bundle:
    """Return the bundle of a program with the record of a proof.

    Raises:
      ValidationError: the proof fails.
    """
    step("proving")
    proof_of(program, bundle).check()
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
