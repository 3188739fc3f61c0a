"""Every pass there is: those of programs, those that forms need, and those of other packages."""

from __future__ import annotations

import functools
import pathlib

from tffc import passes
from tffc.errors import PipelineError, near_file
from tffc.files.reading import read_named
from tffc.ir.invariants import CALL_DOMINANT, CLOSED, NO_SELECT
from tffc.passes import Pass, Pipeline, load_pipeline, parse_pipeline
from tffc.passes.lower_select import lower_select
from tffc.passes.pipeline import GIVEN

OWN_PASSES = {
    **passes.PASSES,
    "lower-select": Pass(
        "lower-select", lower_select, requires=(CLOSED, CALL_DOMINANT), ensures=(NO_SELECT,)
    ),
}
"""Every pass of tffc by its name; some are built with what the forms are built with."""


def all_passes() -> dict[str, Pass]:
    """Every pass by its name.

    Raises:
      PipelineError: an installed package offers something that is no pass.
    """
    return passes.with_plugins(OWN_PASSES)


@functools.lru_cache(maxsize=8)
def default_pipeline(form: str) -> Pipeline:
    """The pipeline that compiling to a form runs unless another is given.

    Raises:
      PipelineError: there is no such form.
    """
    return load_pipeline(form, OWN_PASSES)


def read_pipeline(path: pathlib.Path, given: tuple[str, ...] = GIVEN) -> Pipeline:
    """The pipeline in a YAML file, for programs of which `given` holds.

    Raises:
      PipelineError: the file can not be read, or what it says is no pipeline.
    """
    from tffc.passes.yaml_file import MAX_BYTES

    try:
        content = read_named(path, MAX_BYTES).decode(errors="replace")
    except OSError as error:
        raise PipelineError(
            "E852", f"can not read the pipeline {path}: {error.strerror}", help=near_file(path)
        ) from None
    return parse_pipeline(content, str(path), all_passes(), given)
