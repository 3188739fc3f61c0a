"""`tffc opt`: run passes over a program."""

from __future__ import annotations

import pathlib
from typing import Any

import click

from tffc.api.programs import TEXTS, sections_beside
from tffc.cli.collector import collector_paused
from tffc.cli.completion import complete_program
from tffc.cli.options import (
    instrumentation_options,
    path_option,
    pipeline_options,
    refuse_without_effect,
    size_option,
    tff_source_option,
)
from tffc.cli.output import show_text, write_output, write_section_folder
from tffc.cli.pass_instrumentation import PassInstrumentation
from tffc.cli.pipeline_choice import for_program, read_passes
from tffc.cli.reproducer import decode_reproducer
from tffc.cli.sources import read_program, read_text, read_typed
from tffc.language import wire
from tffc.language.nodes import Node
from tffc.language.notation import typed
from tffc.language.verify import verify
from tffc.passes import Pipeline, parse_passes
from tffc.passes.table import all_passes


@click.command("opt")
@click.argument(
    "source",
    metavar="FILE.sexpr|FILE.pb|MODULE[:NAME]",
    required=False,
    shell_complete=complete_program,
)
@pipeline_options(instead="")
@path_option(
    "--sections",
    metavar="DIR",
    help="The folder of the compiled sections of a typed text; new ones are written there.  "
    "[default: sections next to the text]",
)
@path_option("-o", "--out", metavar="FILE", help="Write to this file: text, or a .pb message.")
@path_option("--reproduce", metavar="FILE", help="Replay a failed pass from this file.")
@instrumentation_options(verify_each=True)
@size_option
@tff_source_option
@collector_paused()
def opt_command(
    source: str | None,
    pipeline: pathlib.Path | None,
    passes: str | None,
    sections: pathlib.Path | None,
    out: pathlib.Path | None,
    reproduce: pathlib.Path | None,
    **options: Any,
) -> None:
    """Run passes over a program and print the result in the typed notation.

    Reads typed text from FILE.sexpr, FILE.txt or, with -, from stdin; a message from FILE.pb; and
    traces a module. A pass may require invariants, such as call-dominant form, that the program
    already satisfies or that an earlier pass ensures.

    \b
    Examples:
      tffc opt round.pb --passes 'call-dominant,unique-names{stem=v}'
      tffc opt round.sexpr --sections build/sections \\
          --pipeline mine.yaml --print-after change
      tffc opt examples/slides.py:simple --passes call-dominant --time-passes
      # Replay a failed pass on the program that it failed on.
      tffc opt --reproduce tffc-reproducer-0123abcd.txt
    """
    if (source is None) == (reproduce is None):
        raise click.UsageError("give a program, or --reproduce with a file")
    is_text = source is not None and _is_text(source)
    if not is_text and out is not None and out.suffix == ".pb":
        refuse_without_effect("sections are read and written with typed texts only", "sections")
    if reproduce is not None:
        if pipeline is not None or passes is not None:
            raise click.UsageError("a reproducer has its own passes")
        names = ("verify_each", "verify_roundtrip", "reproducer")
        refuse_without_effect("a reproducer has its own checks, and is not written again", *names)
        program, steps, options = _read_reproducer(reproduce, options)
    else:
        assert source is not None
        # Read first, so that an error in the passes is reported before a module is traced.
        steps = read_passes(pipeline, passes)
        program = _read(source, sections)
        steps = for_program(steps, program)
    instrumentation = PassInstrumentation(**options)
    part = instrumentation.part(steps)
    with instrumentation.watch(program) as observers:
        program = part.run(program, observers, instrumentation.on_failure)
    _write(program, sections, out)


def _read(source: str, sections: pathlib.Path | None) -> Node:
    if _is_text(source):
        return read_typed(source, sections)
    return read_program(source).computation


def _is_text(source: str) -> bool:
    return source == "-" or source.endswith(TEXTS)


def _read_reproducer(
    path: pathlib.Path, options: dict[str, Any]
) -> tuple[Node, Pipeline, dict[str, Any]]:
    found = decode_reproducer(read_text(str(path)), str(path))
    # The file says which invariants the program has, and passes rely on them.
    verify(found.program, found.given)
    checks = {"verify_each": found.verify_each, "verify_roundtrip": found.verify_roundtrip}
    pipeline = parse_passes(found.passes, all_passes(), found.given, "--passes")
    return found.program, pipeline, {**options, **checks, "is_replay": True}


def _write(program: Node, sections: pathlib.Path | None, out: pathlib.Path | None) -> None:
    if out is not None and out.suffix == ".pb":
        write_output(out, wire.to_bytes(program))
        return
    if sections is None and out is not None and out.suffix in TEXTS:
        sections = sections_beside(out)
    if sections is not None:
        write_section_folder([program], sections)
    if out is None:
        show_text(typed(program))
    else:
        write_output(out, (typed(program) + "\n").encode())
