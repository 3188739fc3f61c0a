"""`tffc prove`: whether a bundle computes what a program does, for all arguments."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import TYPE_CHECKING, Any

import click

from tffc.cli.flags import help_of
from tffc.cli.options import json_option, size_option
from tffc.cli.output import show_line
from tffc.cli.progress import step
from tffc.errors import BundleError
from tffc.printable import json_text

if TYPE_CHECKING:
    from tffc.backends.bundle.bundle import Bundle
    from tffc.cli.sources import Program
    from tffc.proof.prove import Proof


@click.command("prove")
@click.argument("sources", metavar="[PROGRAM] BUNDLE", nargs=-1, required=True)
@json_option
@size_option
def prove_command(sources: tuple[str, ...], as_json: bool) -> None:
    """Prove that a bundle computes what a program does, for all arguments.

    PROGRAM is a module, a .pb file or a typed text; without it, it is the program that the bundle
    says it was compiled from.  Nothing is run, and TensorFlow is not loaded.

    Exits with 0 if it is proved, with 1 if the two differ, and with 3 if it is not decided: then
    the program has something in it that no rule of the prover is about.

    \b
    Examples:
      tffc prove build/mean
      tffc prove examples/temperature/temperature.py:mean_temperature build/mean
      tffc prove round.pb build/mean --json
    """
    from tffc.proof.prove import Answer, prove, refusal

    if len(sources) > 2:
        raise click.UsageError("a program and a bundle are two arguments; more were given")
    *given, path = list(sources)
    bundle, program = _read(path, given)
    step(f"proving {path}")
    proof = prove(program.computation, bundle.form, bundle.components)
    first = _prove_first_state(program, bundle)
    worst = proof if first is None or proof.answer is not Answer.PROVED else first
    error = refusal(worst, bundle.form if worst is proof else "first state")
    if as_json:
        click.echo(json_text(_finding(proof, bundle.form, first, bundle), indent=2))
    elif error is None:
        show_line(f"{path}: proved, {proof.operations} operations")
        if first is None and bundle.initialize is not None:
            show_line("  except the first state: the program does not say how it is made")
    if error is not None:
        if as_json:
            raise click.exceptions.Exit(error.exit_code)
        raise error


def proved(bundle: Bundle, program: Program) -> Bundle:
    """Return the bundle of a program with the record that it is proved.

    Raises:
      ValidationError: it is not.
    """
    from tffc.proof.prove import VERSION, prove, refusal

    step("proving")
    proof = prove(program.computation, bundle.form, bundle.components)
    first = _prove_first_state(program, bundle)
    error = refusal(proof, bundle.form) or (first and refusal(first, "first state"))
    if error is not None:
        raise error
    return dataclasses.replace(bundle, prover=VERSION)


def check_proof(source: str, bundle: Bundle) -> None:
    """Check that a bundle says that it was proved, by the rules that hold now.

    Raises:
      BundleError: it does not.
    """
    from tffc.proof.prove import VERSION

    if bundle.prover != VERSION:
        found = "does not say so"
        if bundle.prover is not None:
            found = f"was proved by version {bundle.prover}"
        raise BundleError(
            "E962",
            f"{source} has to be proved by version {VERSION} of the prover; it {found}",
            help="compile it with tffc compile --prove, and run the bundle",
        )


def _read(path: str, given: list[str]) -> tuple[Bundle, Program]:
    from tffc.backends.bundle.bundle import read_bundle
    from tffc.backends.forms.kinds import assemble
    from tffc.cli.sources import Program, read_round

    step(f"reading {path}")
    bundle = read_bundle(pathlib.Path(path))
    program = Program(bundle.computation)
    for source in given:
        program = read_round(source, bundle.form)
    assemble(bundle.form, program.computation.type, bundle.components)
    return bundle, program


def _prove_first_state(program: Program, bundle: Bundle) -> Proof | None:
    """Return whether the bundle makes the first state as the program does, if both make one."""
    from tffc.proof.prove import prove_first_state

    if program.initialize is None or bundle.initialize is None:
        return None
    return prove_first_state(program.initialize, bundle.initialize)


def _finding(proof: Proof, form: str, first: Proof | None, bundle: Bundle) -> dict[str, Any]:
    from tffc.proof.prove import VERSION

    return {
        "prover": VERSION,
        "form": form,
        **_answer(proof),
        "initialize": None if first is None else _answer(first),
        "digests": bundle.digests(),
    }


def _answer(proof: Proof) -> dict[str, Any]:
    from tffc.proof.prove import refusal

    error = refusal(proof, "form")
    found: dict[str, Any] = {"answer": proof.answer.value, "operations": proof.operations}
    if proof.difference is not None:
        shown = proof.difference
        found["difference"] = {
            "leaf": shown.leaf,
            "reason": shown.reason,
            "program": shown.program,
            "form": shown.form,
            "file": None if shown.span is None else shown.span.file,
            "line": None if shown.span is None else shown.span.line,
        }
    if proof.construct:
        found["construct"], found["detail"] = proof.construct, proof.detail
    if error is not None:
        found["code"], found["help"] = error.code, help_of(error)
    return found
