"""Every pass there is: those of programs, those that forms need, and those of other packages."""

from __future__ import annotations

import pathlib

from tffc import passes
from tffc.backends.select import lower_select
from tffc.errors import PipelineError
from tffc.ir.invariants import CALL_DOMINANT, NO_SELECT
from tffc.passes import Pass, Pipeline, parse_pipeline
from tffc.passes.pipeline import GIVEN

FORM_PASSES = {
    each.name: each
    for each in (
        Pass(
            "lower-select",
            lower_select,
            requires=(CALL_DOMINANT,),
            ensures=(NO_SELECT,),
            breaks=(CALL_DOMINANT,),
        ),
    )
}
"""Rewritings that the forms are built with, by name."""


def all_passes() -> dict[str, Pass]:
    """Every pass by its name.

    Raises:
      PipelineError: an installed package offers something that is no pass.
    """
    return passes.with_plugins({**passes.PASSES, **FORM_PASSES})


def read_pipeline(path: pathlib.Path, given: tuple[str, ...] = GIVEN) -> Pipeline:
    """The pipeline in a YAML file, for programs of which `given` holds.

    Raises:
      PipelineError: the file can not be read, or what it says is no pipeline.
    """
    try:
        content = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise PipelineError("E852", f"can not read the pipeline {path}: {error.strerror}") from None
    return parse_pipeline(content, str(path), all_passes(), given)
