"""`tffc rebuild`: compile a program again, and compare the bytes with a bundle."""

from __future__ import annotations

import pathlib

import click

from tffc.cli.completion import complete_program
from tffc.cli.options import compilation_options, pipeline_options, size_option, tff_source_option
from tffc.cli.output import show_line
from tffc.cli.pipeline_choice import read_pipeline
from tffc.cli.progress import step
from tffc.support.printable import counted


@click.command("rebuild")
@click.argument(
    "source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr", shell_complete=complete_program
)
@click.argument("bundle", metavar="BUNDLE", type=click.Path(path_type=pathlib.Path))
@pipeline_options(instead=" that made the bundle, instead of the default passes")
@compilation_options
@size_option
@tff_source_option
def rebuild_command(
    source: str,
    bundle: pathlib.Path,
    pipeline: pathlib.Path | None,
    passes: str | None,
    initialize: pathlib.Path | None,
    allow_impure_duplicates: bool,
) -> None:
    """Compile a program again, and check that it gives the bundle, byte for byte.

    So whoever has the source can check that a bundle was made from it, without trust in the machine
    that made it. Takes the form from the bundle, and proves it again if it has the record of a
    proof. Give the options that the bundle was compiled with.

    Exits with 1 if a file differs; says which, and which versions do.

    \b
    Examples:
      tffc rebuild examples/digits/federated_averaging.py:training build/training
    """
    # Imported late: help needs none of it.
    from tffc.api.rebuilding import rebuild

    step(f"compiling {source} again")
    rebuilding = rebuild(
        source,
        bundle,
        read_pipeline(pipeline, passes),
        initialize=None if initialize is None else str(initialize),
        allow_impure_duplicates=allow_impure_duplicates,
    )
    rebuilding.check()
    show_line(f"{bundle}: {source} compiles to it, {counted(rebuilding.count, 'file')}")
