"""`tffc compile`: from a program to a bundle."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import click

from tffc.errors import FormError, PipelineError
from tffc.version import VERSION

if TYPE_CHECKING:
    from tffc.ir.types import Type
    from tffc.passes import Pipeline

FORMS = ("mapreduce", "broadcast", "distribute-aggregate")


@click.command("compile", short_help="Compile a program to a form and write a bundle.")
@click.argument("source", metavar="MODULE[:NAME]|FILE.pb")
@click.option("--form", required=True, type=click.Choice(FORMS), help="The form to compile to.")
@click.option(
    "--out",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=pathlib.Path),
    help="The folder to write the bundle to.",
)
@click.option(
    "--pipeline",
    metavar="FILE.yaml",
    type=click.Path(path_type=pathlib.Path),
    help="Passes to run in place of the form's own.",
)
@click.option(
    "--initialize",
    metavar="FILE.pb",
    type=click.Path(path_type=pathlib.Path),
    help="The computation of the first state, for a program from a .pb file.",
)
@click.option(
    "--allow-impure-duplicates",
    is_flag=True,
    help="Run what is random or has effects in several parts where the form has no other way.",
)
@click.option("--force", is_flag=True, help="Replace a bundle that is there already.")
def compile_command(
    source: str,
    form: str,
    out: pathlib.Path,
    pipeline: pathlib.Path | None,
    initialize: pathlib.Path | None,
    allow_impure_duplicates: bool,
    force: bool,
) -> None:
    """Compiles one round, from a module or from a serialized computation, and writes a bundle.

    \b
      tffc compile examples/digits/federated_averaging.py:training \\
          --form mapreduce --out build/training
    """
    from tffc.backends import compile_form, compile_initialize
    from tffc.backends.bundle import Bundle, check_target, write_bundle
    from tffc.cli.sources import read_computation, read_program

    check_target(out, replace=force)
    passes = None if pipeline is None else _read_pipeline(pipeline)
    program = read_program(source)
    compiled = compile_form(
        program.computation, form, passes, allow_impure_duplicates=allow_impure_duplicates
    )
    first = program.initialize if initialize is None else read_computation(initialize)
    section = None if first is None else compile_initialize(first)
    if section is not None:
        _check_first_state(section.type, program.computation.type)
    bundle = Bundle(
        form=form,
        computation=program.computation,
        components=compiled.components(),
        initialize=section,
        versions={"tffc": VERSION, **program.versions},
    )
    write_bundle(bundle, out, replace=force)
    click.echo(f"wrote {out}: {form}, {len(bundle.components)} components", err=True)


def _check_first_state(initialize: Type, round_type: Type) -> None:
    """Checks that a round takes the state which `( -> S)` makes."""
    from tffc.backends.forms import local_type
    from tffc.ir.types import FunctionType, StructType

    assert isinstance(initialize, FunctionType)
    assert isinstance(round_type, FunctionType)
    assert isinstance(round_type.parameter, StructType)
    state = local_type(round_type.parameter[0])
    if not state.is_assignable_from(initialize.result):
        raise FormError(
            "E853",
            f"the first state is of type `{initialize.result}`, but the round takes one of type "
            f"`{state}`",
        )


def _read_pipeline(path: pathlib.Path) -> Pipeline:
    from tffc.passes import PASSES, parse_pipeline

    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise PipelineError("E852", f"can not read the pipeline {path}: {error.strerror}") from None
    return parse_pipeline(text, str(path), PASSES)
