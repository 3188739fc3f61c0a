"""`tffc prove`: prove that a bundle computes what a program does."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import click

from tffc.api.programs import TEXTS, Program
from tffc.api.proofs import BundleProof, proof_of
from tffc.assurance.proof.prove import VERSION, Proof, refusal
from tffc.backends.bundle.bundle import Bundle, read_bundle
from tffc.backends.compiler import has_discount
from tffc.backends.forms.kinds import assemble
from tffc.cli.collector import collector_paused
from tffc.cli.completion import complete_program
from tffc.cli.flags import help_of, place_of
from tffc.cli.options import (
    json_option,
    size_option,
    tff_source_option,
)
from tffc.cli.output import show_json, show_line
from tffc.cli.progress import step
from tffc.cli.sources import read_round


@click.command("prove")
@click.argument(
    "sources", metavar="[PROGRAM] BUNDLE", nargs=-1, required=True, shell_complete=complete_program
)
@json_option
@size_option
@tff_source_option
@collector_paused()
def prove_command(sources: tuple[str, ...], as_json: bool) -> None:
    """Prove that a bundle computes what a program does, for all arguments.

    PROGRAM is a module, a .pb file or a typed text; by default, it is the program in the bundle.
    The first state and the discount of buffered rounds are proved too if PROGRAM names the process
    in its module. Runs nothing, and does not load TensorFlow, unless a module is traced.

    Exits with 0 if it is proved, with 1 if the two differ, and with 3 if it is undecided, because
    no rule of the prover covers something in the program.

    \b
    Examples:
      tffc prove build/mean
      tffc prove examples/temperature/temperature.py:mean_temperature build/mean
      tffc prove round.pb build/mean --json
    """
    if len(sources) > 2:
        raise click.UsageError("expected at most two arguments, a program and a bundle")
    *programs, path = list(sources)
    bundle, program = _read(path, programs)
    step(f"proving {path}")
    proof = proof_of(program, bundle)
    if as_json:
        show_json(_finding(proof, bundle))
    elif proof.is_proved:
        show_line(f"{path}: proved, {proof.round.operations} operations")
        for line in _unproved(program, bundle, path, programs):
            show_line(f"  except {line}")
    if as_json and proof.error is not None:
        raise click.exceptions.Exit(proof.error.exit_code)
    proof.check()


def _unproved(
    program: Program, bundle: Bundle, path: str, programs: Sequence[str]
) -> Iterator[str]:
    """Yield what is not part of the proof, with why, and with what would prove it."""
    of_module = bool(programs) and not programs[0].endswith((".pb", *TEXTS))
    if program.initialize is None and bundle.initialize is not None:
        if of_module:
            yield (
                f"the first state: {programs[0]} is only the round; to prove it too, name the "
                "iterative process"
            )
        else:
            yield f"the first state: {_without_program('process', path, programs)}"
    if program.initialize is not None and bundle.initialize is None:
        yield "the first state: the bundle does not make it"
    if program.discount is None and bundle.discount is not None:
        if of_module:
            yield f"the discount: {programs[0]} does not say that its rounds may be buffered"
        else:
            yield f"the discount: {_without_program('round', path, programs)}"
    if has_discount(bundle.form, program.discount) and bundle.discount is None:
        yield "the discount: the bundle does not have it"


def _without_program(what: str, path: str, programs: Sequence[str]) -> str:
    """Return why something beside the round is not proved, and that its module would prove it."""
    command = f"tffc prove MODULE.py:NAME {path}"
    if not programs:
        return (
            f"the bundle does not hold the program of it; to prove it too, name the {what}: "
            f"{command}"
        )
    return (
        f"{programs[0]} holds only the round; to prove it too, name the module of the {what}: "
        f"{command}"
    )


def _read(path: str, programs: Sequence[str]) -> tuple[Bundle, Program]:
    step(f"reading {path}")
    bundle = read_bundle(pathlib.Path(path))
    program = Program(bundle.computation)
    for source in programs:
        program = read_round(source, bundle.form)
    assemble(bundle.form, program.computation.type, bundle.components)
    return bundle, program


def _finding(proof: BundleProof, bundle: Bundle) -> dict[str, Any]:
    first, discount = proof.first_state, proof.discount
    return {
        "prover": VERSION,
        "form": bundle.form,
        **_answer(proof.round),
        "initialize": None if first is None else _answer(first),
        "discount": None if discount is None else _answer(discount),
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
