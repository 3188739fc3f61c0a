"""The work of `tffc verify`."""

from __future__ import annotations

import pathlib
from typing import Any

import click

from tffc.api.programs import Program
from tffc.api.verification import verified
from tffc.assurance.validation import Report
from tffc.assurance.validation.coverage import Coverage, NothingCompared
from tffc.assurance.validation.sources import gives_state, takes_state
from tffc.backends.compiler import check_first_state
from tffc.cli.consent import check_consent
from tffc.cli.diagnostics import show_error
from tffc.cli.flags import facts_of, place_of
from tffc.cli.options import refuse_without_effect
from tffc.cli.output import say, show_json, show_line
from tffc.cli.pipeline_choice import for_program, read_passes, read_pipeline
from tffc.cli.progress import start_tensorflow, step
from tffc.cli.sources import read_computation, read_program, read_round
from tffc.language.types import FunctionType
from tffc.passes import Pipeline
from tffc.passes.table import default_pipeline
from tffc.support.errors import TffcError
from tffc.support.printable import counted


def verify(
    source: str,
    form: str | None,
    pipeline: pathlib.Path | None,
    passes: str | None,
    initialize: pathlib.Path | None,
    trials: int | None,
    seed: int,
    data: str | None,
    allow_impure_duplicates: bool,
    allow_effects: frozenset[str],
    as_json: bool,
) -> None:
    """Compare what a program computes with what the passes' results and the form compute."""
    if form is None:
        refuse_without_effect("without --form, nothing is compiled", "allow_impure_duplicates")
        steps = read_passes(pipeline, passes)
    else:
        steps = read_pipeline(pipeline, passes) or default_pipeline()
    is_any = form is None and data is None
    read = read_program(source) if is_any else read_round(source, form)
    program = read.computation
    if not isinstance(program.type, FunctionType) or program.type.parameter is None:
        names = ("data", "trials", "seed", "initialize")
        refuse_without_effect("the program takes no argument", *names)
    read = with_first_state(read, initialize, allow_effects)
    if form is None:
        steps = for_program(steps, program)
    start_tensorflow()
    try:
        report = verified(
            read,
            steps,
            form,
            trials=trials,
            seed=seed,
            data=data,
            allow_impure_duplicates=allow_impure_duplicates,
            progress=step(f"verifying {source}", "runs"),
        )
    except TffcError as error:
        if not as_json:
            raise
        show_json(_facts(error))
        raise click.exceptions.Exit(error.exit_code) from None
    if as_json:
        show_json(_finding(report))
        return
    _warn(report)
    _show(source, report)


def _show(source: str, report: Report) -> None:
    coverage = report.coverage
    tried = counted(coverage.tried, "argument")
    if coverage.compared < coverage.tried:
        tried += f", {coverage.compared} of them with results to compare"
    if not report.compared:
        show_line(f"{source}: nothing changed the program; it ran on {tried}")
    else:
        show_line(f"{source}: {tried}, and the same results from")
    for stage in report.compared:
        show_line(f"  {stage}")
    if coverage.unknown:
        show_line(f"{counted(coverage.unknown, 'argument')} with results that differ in each run")
    for note in coverage.notes():
        show_line(note)


def ask_to_run(program: Program, allowed: frozenset[str]) -> None:
    """Check that a program may be run; one of the user's own module may.

    Raises:
      ConsentError: it has side effects that nobody has consented to.
    """
    if program.allow_effects is not None:
        check_consent(program.parts(), program.allow_effects | allowed)


def with_first_state(
    program: Program, initialize: pathlib.Path | None, allowed: frozenset[str]
) -> Program:
    """Return a program that may be run, with the computation of its first state from a file, if one
    is given.

    Raises:
      ConsentError: one of them has side effects that nobody has consented to.
      FormError: the round does not take the state.
      click.UsageError: the program is not a round, or the other does not give a state.
    """
    ask_to_run(program, allowed)
    if initialize is None:
        return program
    first = read_computation(initialize)
    check_consent({"initialize": first}, allowed)
    if not takes_state(program.computation) or not gives_state(first):
        raise click.UsageError(
            f"--initialize is for a round, which takes a state and data, and names a computation "
            f"that takes nothing; found `{program.computation.type}` and `{first.type}`"
        )
    check_first_state(first.type, program.computation.type)
    return program._replace(initialize=first)


def try_program(
    program: Program, steps: Pipeline, form: str, *, allow_impure_duplicates: bool
) -> None:
    """Validate a program on the usual arguments and show the warnings.

    Raises as `tffc.verify` does.
    """
    start_tensorflow()
    report = verified(
        program,
        steps,
        form,
        allow_impure_duplicates=allow_impure_duplicates,
        progress=step("verifying", "runs"),
    )
    _warn(report)
    if report.coverage.compared < report.coverage.tried:
        say(f"verified: {report.coverage}")


def _warn(report: Report) -> None:
    for warning in report.warnings:
        show_error(warning, "warning")


def _finding(report: Report) -> dict[str, Any]:
    return {
        "agrees": True,
        **_counts(report.coverage),
        "stages": list(report.compared),
        "warnings": [_facts(warning) for warning in report.warnings],
    }


def _counts(coverage: Coverage) -> dict[str, Any]:
    return {
        "trials": coverage.tried,
        "compared": coverage.compared,
        "compared_with_data": coverage.with_data,
        "failed": coverage.failed,
        "unknown": coverage.unknown,
        "failures": [{"message": text, "trials": n} for text, n in coverage.failures],
    }


def _facts(error: TffcError) -> dict[str, Any]:
    if isinstance(error, NothingCompared):
        # Neither verified nor refuted.
        return {"agrees": None, **_counts(error.coverage), **facts_of(error), **place_of(None)}
    return {"agrees": False, **facts_of(error), **place_of(error.span)}
