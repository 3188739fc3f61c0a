"""The pipeline selected by `--pipeline` or `--passes`."""

from __future__ import annotations

import dataclasses
import pathlib

import click

from tffc.language.invariants import CLOSED, INVARIANTS
from tffc.language.nodes import Node
from tffc.language.verify import holding, verify
from tffc.passes import Pipeline, table
from tffc.passes.pipeline import GIVEN


def read_pipeline(file: pathlib.Path | None, text: str | None) -> Pipeline | None:
    """Return the pipeline that the two options select for any sound program, or None.

    Raises:
      PipelineError: the file cannot be read, or the file or text is not a valid pipeline.
    """
    return _read(file, text, GIVEN)


def read_passes(file: pathlib.Path | None, text: str | None) -> Pipeline:
    """Return the pipeline that the two options select, empty if neither is given.

    The requirements of the passes are not checked; `for_program` does that.

    Raises:
      PipelineError: as `read_pipeline` does.
    """
    return _read(file, text, tuple(INVARIANTS)) or Pipeline("none", ())


def for_program(pipeline: Pipeline, program: Node) -> Pipeline:
    """Return the pipeline for one program, with the invariants of the program as given.

    Raises:
      VerificationError: the program is not sound, or not closed although a pass requires that.
      PipelineError: a pass requires an invariant that neither the program has nor an earlier pass
        ensures.
    """
    needed = {name for step in pipeline.steps for name in step.each.requires}
    # No pass closes a program, so check that now; the error gives the unbound name.
    verify(program, needed & {CLOSED})
    # Invariants that no pass needs may hold by chance, and passes need not keep them.
    given = tuple(name for name in holding(program) if name in {CLOSED, *needed})
    return dataclasses.replace(pipeline, given=given)


def _read(file: pathlib.Path | None, text: str | None, given: tuple[str, ...]) -> Pipeline | None:
    if file is not None and text is not None:
        raise click.UsageError("--pipeline and --passes exclude each other")
    if text is not None:
        from tffc.passes.pipeline_text import parse_passes

        return parse_passes(text, table.all_passes(), given, "--passes")
    return None if file is None else table.read_pipeline(file, given)
