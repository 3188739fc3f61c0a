"""The work of `tffc prove`."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import click

from tffc.backends.bundle.bundle import Bundle, read_bundle
from tffc.backends.forms.kinds import assemble
from tffc.cli.flags import help_of, place_of
from tffc.cli.output import show_json, show_line
from tffc.cli.progress import step
from tffc.cli.sources import Program, read_round
from tffc.errors import BundleError, TffcError
from tffc.proof.prove import VERSION, Proof, prove, prove_first_state, refusal


def prove_bundle(sources: tuple[str, ...], as_json: bool) -> None:
    """Report whether a bundle is proved to compute what a program does."""
    if len(sources) > 2:
        raise click.UsageError("expected at most two arguments, a program and a bundle")
    *given, path = list(sources)
    bundle, program = _read(path, given)
    step(f"proving {path}")
    proof, first, error = _prove(program, bundle)
    if as_json:
        show_json(_finding(proof, bundle.form, first, bundle))
    elif error is None:
        show_line(f"{path}: proved, {proof.operations} operations")
        if first is None and bundle.initialize is not None:
            show_line("  except the first state: the program does not say how it is made")
    if error is not None:
        if as_json:
            raise click.exceptions.Exit(error.exit_code)
        raise error


def proved(bundle: Bundle, program: Program) -> Bundle:
    """Return the bundle of a program with the record of a proof.

    Raises:
      ValidationError: the proof fails.
    """
    step("proving")
    _, _, error = _prove(program, bundle)
    if error is not None:
        raise error
    return dataclasses.replace(bundle, prover=VERSION)


def check_proof(source: str, bundle: Bundle) -> None:
    """Check that a bundle has the record of a proof by the current rules.

    Raises:
      BundleError: it has not.
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


def _read(path: str, given: list[str]) -> tuple[Bundle, Program]:
    step(f"reading {path}")
    bundle = read_bundle(pathlib.Path(path))
    program = Program(bundle.computation)
    for source in given:
        program = read_round(source, bundle.form)
    assemble(bundle.form, program.computation.type, bundle.components)
    return bundle, program


def _prove(program: Program, bundle: Bundle) -> tuple[Proof, Proof | None, TffcError | None]:
    """Return the proofs of the round and, if both make one, of the first state; and the refusal."""
    proof = prove(program.computation, bundle.form, bundle.components)
    first = None
    if program.initialize is not None and bundle.initialize is not None:
        first = prove_first_state(program.initialize, bundle.initialize)
    error = refusal(proof, bundle.form) or (first and refusal(first, "first state"))
    return proof, first, error


def _finding(proof: Proof, form: str, first: Proof | None, bundle: Bundle) -> dict[str, Any]:
    return {
        "prover": VERSION,
        "form": form,
        **_answer(proof),
        "initialize": None if first is None else _answer(first),
        "digests": bundle.digests(),
    }


def _answer(proof: Proof) -> dict[str, Any]:
    error = refusal(proof, "form")
    found: dict[str, Any] = {"answer": proof.answer.value, "operations": proof.operations}
    if proof.difference is not None:
        shown = proof.difference
        found["difference"] = {
            "leaf": shown.leaf,
            "reason": shown.reason,
            "program": shown.program,
            "form": shown.form,
            **place_of(shown.span),
        }
    if proof.construct:
        found["construct"], found["detail"] = proof.construct, proof.detail
    if error is not None:
        found["code"], found["help"] = error.code, help_of(error)
    return found
