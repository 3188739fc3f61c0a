"""The table of passes: rewritings of a program that keep its type and what it computes."""

from __future__ import annotations

import functools
import pathlib

from tffc.language.invariants import (
    CALL_DOMINANT,
    CLOSED,
    NO_CONTAINERS,
    NO_IDENTITY_MAPS,
    NO_MEANS,
    NO_SELECT,
    NO_UNUSED_BINDINGS,
    UNIQUE_NAMES,
)
from tffc.passes.call_dominant import call_dominant
from tffc.passes.desugar_means import desugar_means
from tffc.passes.drop_identity_maps import drop_identity_maps
from tffc.passes.drop_unused_bindings import drop_unused_bindings
from tffc.passes.lower_select import lower_select
from tffc.passes.normalize_all_equal import normalize_all_equal
from tffc.passes.pipeline import GIVEN, Pass, PassStep, Pipeline
from tffc.passes.plugins import with_plugins
from tffc.passes.share_equal_calls import share_equal_calls
from tffc.passes.strip_containers import strip_containers
from tffc.passes.unique_names import unique_names
from tffc.support.errors import PipelineError, reader
from tffc.support.files.reading import read_named
from tffc.support.near import near_file

PASSES = {
    each.name: each
    for each in (
        Pass("unique-names", unique_names, ensures=(UNIQUE_NAMES,)),
        Pass(
            "strip-containers",
            strip_containers,
            ensures=(NO_CONTAINERS,),
            breaks=(NO_IDENTITY_MAPS,),
        ),
        Pass(
            "drop-identity-maps",
            drop_identity_maps,
            ensures=(NO_IDENTITY_MAPS,),
            breaks=(CALL_DOMINANT,),
        ),
        Pass(
            "drop-unused-bindings",
            drop_unused_bindings,
            ensures=(NO_UNUSED_BINDINGS,),
            breaks=(NO_IDENTITY_MAPS,),
        ),
        Pass(
            "call-dominant",
            call_dominant,
            requires=(CLOSED,),
            ensures=(CALL_DOMINANT, UNIQUE_NAMES, NO_UNUSED_BINDINGS),
            breaks=(NO_IDENTITY_MAPS,),
        ),
        Pass("share-equal-calls", share_equal_calls, requires=(CALL_DOMINANT,)),
        Pass(
            "normalize-all-equal",
            normalize_all_equal,
            requires=(CALL_DOMINANT,),
            breaks=(NO_IDENTITY_MAPS,),
        ),
        Pass("desugar-means", desugar_means, requires=(CALL_DOMINANT,), ensures=(NO_MEANS,)),
        Pass("lower-select", lower_select, requires=(CLOSED, CALL_DOMINANT), ensures=(NO_SELECT,)),
    )
}
"""The passes of tffc by name."""


def all_passes() -> dict[str, Pass]:
    """Return every pass by its name.

    Raises:
      PipelineError: an installed package offers something that is not a pass.
    """
    return with_plugins(PASSES)


DEFAULT = ("drop-identity-maps", "call-dominant", "lower-select")
"""The passes of `pipelines/default.yaml`, which is shown to users: compiling loads no YAML."""


@functools.cache
def default_pipeline() -> Pipeline:
    """Return the pipeline that compiling to a form runs unless another is given."""
    return Pipeline("default", tuple(PassStep(PASSES[name]) for name in DEFAULT))


@reader("a pipeline", PipelineError)
def read_pipeline(path: pathlib.Path, given: tuple[str, ...] = GIVEN) -> Pipeline:
    """Return the pipeline in a YAML file, for programs of which `given` holds.

    Raises:
      PipelineError: the file cannot be read, or what it says is not a pipeline.
    """
    # They and PyYAML, which they load, are needed by files alone.
    from tffc.passes.pipeline_text import parse_pipeline
    from tffc.support.files.yaml_file import MAX_BYTES

    try:
        content = read_named(path, MAX_BYTES).decode(errors="replace")
    except OSError as error:
        raise PipelineError(
            "E850", f"cannot read the pipeline {path}: {error.strerror}", help=near_file(path)
        ) from None
    return parse_pipeline(content, str(path), all_passes(), given)
