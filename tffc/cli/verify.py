"""The work of `tffc verify`."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import click

from tffc.cli.consent import check_consent
from tffc.cli.diagnostics import show_error
from tffc.cli.flags import facts_of, place_of
from tffc.cli.options import refuse_without_effect
from tffc.cli.output import counted, show_json, show_line
from tffc.cli.pipeline_choice import for_program, read_passes, read_pipeline
from tffc.cli.progress import start_tensorflow, step
from tffc.cli.sources import Program, read_program, read_round
from tffc.errors import TffcError
from tffc.ir.nodes import Node
from tffc.ir.types import FunctionType
from tffc.passes import Pipeline
from tffc.passes.table import default_pipeline
from tffc.validation import Report, validate
from tffc.validation.arguments import ArgumentCase, cases, usual_trials
from tffc.validation.real_data import cases_of_clients


def verify(
    source: str,
    form: str | None,
    pipeline: pathlib.Path | None,
    passes: str | None,
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
    read = read_program(source) if form is None else read_round(source, form)
    ask_to_run(read, allow_effects)
    program = read.computation
    if not isinstance(program.type, FunctionType) or program.type.parameter is None:
        refuse_without_effect("the program takes no argument", "data", "trials", "seed")
    if form is None:
        steps = for_program(steps, program)
    arguments = _arguments(program, trials, seed, data)
    start_tensorflow()
    try:
        report = validate(
            program,
            arguments,
            steps,
            form,
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
    tried = counted(report.trials, "argument")
    if not report.stages:
        show_line(f"{source}: nothing changed the program; it ran on {tried}")
        return
    show_line(f"{source}: {tried}, and the same results from")
    for stage in report.stages:
        show_line(f"  {stage}")


def ask_to_run(program: Program, allowed: frozenset[str]) -> None:
    """Check that a program may be run; one of the user's own module may.

    Raises:
      ConsentError: it has side effects that nobody has consented to.
    """
    if program.allow_effects is not None:
        check_consent({"computation": program.computation}, program.allow_effects | allowed)


def try_program(
    program: Node, steps: Pipeline, form: str, *, allow_impure_duplicates: bool
) -> None:
    """Validate a program on the usual arguments and show the warnings.

    Raises as `tffc.validation.validate` does.
    """
    start_tensorflow()
    report = validate(
        program,
        _arguments(program, None, 0, None),
        steps,
        form,
        allow_impure_duplicates=allow_impure_duplicates,
        progress=step("verifying", "runs"),
    )
    _warn(report)


def _warn(report: Report) -> None:
    for warning in report.warnings:
        show_error(warning, "warning")


def _arguments(
    program: Node, trials: int | None, seed: int, data: str | None
) -> Iterator[ArgumentCase]:
    type = program.type
    parameter = type.parameter if isinstance(type, FunctionType) else None
    count = usual_trials(program) if trials is None else trials
    if data is None or not isinstance(type, FunctionType):
        return cases(parameter, count, seed)
    return cases_of_clients(type, data, count, seed)


def _finding(report: Report) -> dict[str, Any]:
    return {
        "agrees": True,
        "trials": report.trials,
        "stages": list(report.stages),
        "warnings": [_facts(warning) for warning in report.warnings],
    }


def _facts(error: TffcError) -> dict[str, Any]:
    return {"agrees": False, **facts_of(error), **place_of(error.span)}
