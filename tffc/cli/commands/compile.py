"""`tffc compile`: compile a program to a bundle."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

import click

from tffc.backends import compile_bundle
from tffc.backends.bundle.bundle import MANIFEST, Bundle, check_target, write_bundle
from tffc.cli.collector import collector_paused
from tffc.cli.completion import complete_program
from tffc.cli.consent import tell_effects
from tffc.cli.options import (
    compilation_options,
    consent_option,
    form_option,
    instrumentation_options,
    path_option,
    pipeline_options,
    refuse_without_effect,
    size_option,
    tff_source_option,
)
from tffc.cli.output import say, show_text
from tffc.cli.pass_instrumentation import PassInstrumentation
from tffc.cli.pipeline_choice import read_pipeline
from tffc.cli.progress import step
from tffc.cli.sources import read_computation, read_round
from tffc.language.nodes import Node
from tffc.language.notation import typed
from tffc.passes import Pipeline
from tffc.passes.table import default_pipeline
from tffc.runtime.effects.consent import check_can_run
from tffc.support.errors import OversizeError
from tffc.support.files.inputs import check_no_input
from tffc.support.printable import counted

if TYPE_CHECKING:
    from tffc.api.kernels import BatchShape


@click.command("compile")
@click.argument(
    "source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr", shell_complete=complete_program
)
@form_option("The form to compile to.", required=True)
@path_option(
    "-o",
    "--out",
    metavar="DIR",
    help="The folder to write the bundle to; required without --stop-after.",
)
@pipeline_options(instead=" instead of the default passes")
@compilation_options
@click.option(
    "--verify",
    is_flag=True,
    help="Before writing, test that the passes and the form keep what the program computes, as "
    "with `tffc verify`.",
)
@click.option(
    "--prove",
    is_flag=True,
    help="Write the bundle only if it is proved to compute what the program does, as with `tffc "
    "prove`, and record the proof in it.",
)
@click.option(
    "--kernels",
    metavar="CLIENTSxELEMENTS",
    help="Also make what runs batches of so many clients, with sequences of up to so many "
    "elements, and keep it in tffc's cache; see docs/running.md.",
)
@consent_option("With --verify, as for tffc verify.")
@click.option("--force", is_flag=True, help="Replace an existing bundle.")
@instrumentation_options(verify_each=False)
@size_option
@tff_source_option
def compile_command(
    source: str,
    form: str,
    out: pathlib.Path | None,
    pipeline: pathlib.Path | None,
    passes: str | None,
    initialize: pathlib.Path | None,
    allow_impure_duplicates: bool,
    verify: bool,
    prove: bool,
    kernels: str | None,
    allow_effects: frozenset[str],
    force: bool,
    **options: Any,
) -> None:
    """Compile a round, from a module or a serialized computation, and write a bundle.

    With --stop-after, prints the program after that pass to stdout, in the typed notation, instead
    of writing a bundle. Options about bundles are then refused.

    \b
    Examples:
      tffc compile examples/digits/federated_averaging.py:training \\
          --form mapreduce --out build/training
      # The program before it is brought into call-dominant form.
      tffc compile round.pb --form mapreduce --stop-after drop-identity-maps
      # From a message, without TensorFlow; show and check what passes change.
      tffc compile round.pb --form mapreduce --out build/round \\
          --print-after change --verify-each
      # Test on generated data that the bundle computes what the program does.
      tffc compile round.pb --form mapreduce --out build/round --verify --force
      # Make ahead of time what runs 32 clients of up to 64 examples a call.
      tffc compile round.pb --form mapreduce --out build/round \\
          --kernels 32x64 --force
    """
    _check_options(instrumentation := PassInstrumentation(**options), verify=verify)
    steps = instrumentation.part(read_pipeline(pipeline, passes) or default_pipeline())
    if instrumentation.stop_after is not None:
        _print_stopped(read_round(source, form).computation, steps, instrumentation)
        return
    if out is None:
        raise click.UsageError("Missing option '-o' / '--out'.")
    check_target(out, replace=force)
    shape = _shape(kernels)
    with collector_paused():
        program = read_round(source, form)
    if program.allow_effects is not None:
        check_can_run(program.parts())
    if verify:
        from tffc.cli.verify import with_first_state

        program = with_first_state(program, initialize, allow_effects)
    elif initialize is not None:
        first = read_computation(initialize)
        check_can_run({"initialize": first})
        program = program._replace(initialize=first)
    step(f"compiling {source} to {form}")
    with collector_paused(), instrumentation.watch(program.computation) as observers:
        bundle = compile_bundle(
            program.computation,
            form,
            steps,
            initialize=program.initialize,
            discount=program.discount,
            versions=program.versions,
            observers=observers,
            on_failure=instrumentation.on_failure,
            allow_impure_duplicates=allow_impure_duplicates,
        )
    if verify:
        from tffc.cli.verify import try_program

        try_program(program, steps, form, allow_impure_duplicates=allow_impure_duplicates)
    for file in out.iterdir() if out.is_dir() else ():
        if file.name != MANIFEST:  # which was read to check that a bundle is replaced
            check_no_input(file)
    if prove:
        from tffc.cli.prove import proved

        bundle = proved(bundle, program)
    if shape is not None:
        _make_kernels(bundle, shape)
    with collector_paused():
        _write(bundle, out, steps, replace=force)
    proof = ", proved" if bundle.prover is not None else ""
    say(f"wrote {out}: {form}, {counted(len(bundle.components), 'component')}{proof}")
    tell_effects(bundle.run_by_rounds())


def _shape(kernels: str | None) -> BatchShape | None:
    """Return the shape of batches that kernels are to be made for, if any are."""
    if kernels is None:
        return None
    # It loads what runs rounds.
    from tffc.api.kernels import BatchShape

    return BatchShape.parse(kernels)


def _make_kernels(bundle: Bundle, shape: BatchShape) -> None:
    from tffc.api.kernels import make_kernels
    from tffc.runtime.batching.kernel_cache import cache_folder

    step("making kernels")
    kernels = make_kernels(bundle, shape)
    say(f"made {counted(len(kernels), 'kernel')}, in {cache_folder()}")
    for kernel in kernels:
        say(f"  up to {kernel.size} clients a call, {kernel.mode.value}: {kernel.key}")


def _check_options(instrumentation: PassInstrumentation, *, verify: bool) -> None:
    """Refuse options without effect."""
    if instrumentation.stop_after is not None:
        names = ("out", "force", "initialize", "verify", "prove", "kernels")
        refuse_without_effect(
            "with --stop-after, no bundle is written", *names, "allow_impure_duplicates"
        )
    if not verify:
        refuse_without_effect("without --verify, nothing is run", "allow_effects")


def _write(bundle: Bundle, out: pathlib.Path, steps: Pipeline, *, replace: bool) -> None:
    """Write a bundle; if no message can hold the program, write the result of the passes."""
    step(f"writing {out}")
    try:
        write_bundle(bundle, out, replace=replace)
    except OversizeError as error:
        from tffc.api.compiling import flattened  # which few programs need

        write_bundle(flattened(bundle, steps), out, replace=replace)
        say(
            "computation.pb holds the program after the passes, because before them "
            f"{error.message}"
        )


def _print_stopped(program: Node, steps: Pipeline, instrumentation: PassInstrumentation) -> None:
    tell_effects({"computation": program})
    with instrumentation.watch(program) as observers:
        show_text(typed(steps.run(program, observers, instrumentation.on_failure)))
