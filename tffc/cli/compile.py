"""The work of `tffc compile`: from a program to a bundle."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import click

from tffc.backends import compile_form, compile_initialize
from tffc.backends.bundle.bundle import Bundle, check_target, write_bundle
from tffc.backends.forms.form import Form
from tffc.cli.collector import collector_paused
from tffc.cli.consent import tell_effects
from tffc.cli.options import refuse_without_effect
from tffc.cli.output import say, show_text
from tffc.cli.pass_instrumentation import PassInstrumentation
from tffc.cli.pipeline_choice import read_pipeline
from tffc.cli.progress import step
from tffc.cli.sources import Program, read_computation, read_round
from tffc.errors import FormError, OversizeError
from tffc.ir.assignability import difference_notes
from tffc.ir.nodes import Node
from tffc.ir.notation import typed
from tffc.ir.type_parts import local_type
from tffc.ir.types import FunctionType, StructType, Type
from tffc.passes import Pipeline
from tffc.passes.table import default_pipeline
from tffc.version import VERSION


def compile_program(
    source: str,
    form: str,
    out: pathlib.Path | None,
    pipeline: pathlib.Path | None,
    passes: str | None,
    initialize: pathlib.Path | None,
    allow_impure_duplicates: bool,
    verify: bool,
    prove: bool,
    allow_effects: frozenset[str],
    force: bool,
    **options: Any,
) -> None:
    """Compile a program and write its bundle, or print the result of the passes."""
    _check_options(instrumentation := PassInstrumentation(**options), verify=verify)
    steps = instrumentation.part(read_pipeline(pipeline, passes) or default_pipeline())
    if instrumentation.stop_after is not None:
        _print_stopped(read_round(source, form).computation, steps, instrumentation)
        return
    if out is None:
        raise click.UsageError("Missing option '-o' / '--out'.")
    check_target(out, replace=force)
    with collector_paused():
        program = read_round(source, form)
    step(f"compiling {source} to {form}")
    with collector_paused(), instrumentation.watch(program.computation) as observers:
        compiled = compile_form(
            program.computation,
            form,
            steps,
            observers=observers,
            on_failure=instrumentation.on_failure,
            allow_impure_duplicates=allow_impure_duplicates,
        )
    if verify:
        from tffc.cli.verify import ask_to_run, try_program

        ask_to_run(program, allow_effects)
        try_program(
            program.computation, steps, form, allow_impure_duplicates=allow_impure_duplicates
        )
    if initialize is not None:
        program = dataclasses.replace(program, initialize=read_computation(initialize))
    bundle = bundle_of(program, form, compiled)
    if prove:
        from tffc.cli.prove import proved

        bundle = proved(bundle, program)
    _write(bundle, out, steps, replace=force)
    say(f"wrote {out}: {form}, {len(bundle.components)} components")
    tell_effects(bundle.run_by_rounds())


def _check_options(instrumentation: PassInstrumentation, *, verify: bool) -> None:
    """Check that no option is given that would have no effect."""
    if instrumentation.stop_after is not None:
        names = ("out", "force", "initialize", "verify", "prove", "allow_impure_duplicates")
        refuse_without_effect("with --stop-after, no bundle is written", *names)
    if not verify:
        refuse_without_effect("without --verify, nothing is run", "allow_effects")


def _write(bundle: Bundle, out: pathlib.Path, steps: Pipeline, *, replace: bool) -> None:
    """Write a bundle; if no message can hold the program, keep it as the passes leave it."""
    step(f"writing {out}")
    try:
        write_bundle(bundle, out, replace=replace)
    except OversizeError as error:
        flat = dataclasses.replace(bundle, computation=steps.run(bundle.computation), prover=None)
        write_bundle(flat, out, replace=replace)
        say(
            "computation.pb holds the program after the passes, because before them "
            f"{error.message}"
        )


def bundle_of(program: Program, kind: str, form: Form) -> Bundle:
    """Return the bundle of a program that was compiled to a form of this kind.

    Raises:
      FormError: the round does not take the state that the program makes first.
      TffcError: the computation of the first state cannot be compiled.
    """
    first = program.initialize
    section = None if first is None else compile_initialize(first)
    if section is not None:
        _check_first_state(section.type, program.computation.type)
    return Bundle(
        form=kind,
        computation=program.computation,
        components=form.components(),
        initialize=section,
        versions={"tffc": VERSION, **program.versions},
    )


def _print_stopped(program: Node, steps: Pipeline, instrumentation: PassInstrumentation) -> None:
    tell_effects({"computation": program})
    with instrumentation.watch(program) as observers:
        show_text(typed(steps.run(program, observers, instrumentation.on_failure)))


def _check_first_state(initialize: Type, round_type: Type) -> None:
    """Check that a round takes the state that `( -> S)` returns."""
    assert isinstance(initialize, FunctionType)
    assert isinstance(round_type, FunctionType)
    assert isinstance(round_type.parameter, StructType)
    state = local_type(round_type.parameter[0])
    if not state.is_assignable_from(initialize.result):
        raise FormError(
            "E853",
            f"the first state is of type `{initialize.result}`, but the round takes one of type "
            f"`{state}`",
            notes=difference_notes(state, initialize.result),
        )
