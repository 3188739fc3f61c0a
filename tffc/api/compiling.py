"""Compiling a program to a bundle."""

from __future__ import annotations

import dataclasses

from tffc.api.programs import Program
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.compiler import compile_bundle
from tffc.backends.forms.kinds import form_for
from tffc.passes import Pipeline, parse_passes
from tffc.passes.table import all_passes, default_pipeline
from tffc.support.errors import LanguageTypeError


def compiled(
    program: Program,
    form: str | None = None,
    pipeline: Pipeline | None = None,
    *,
    allow_impure_duplicates: bool = False,
) -> Bundle:
    """Return the bundle of a program, by default in the form that fits its output.

    Raises:
      TffcError: as `compile_bundle` does.
    """
    return compile_bundle(
        program.computation,
        form or form_for(program.computation),
        pipeline,
        initialize=program.initialize,
        discount=program.discount,
        versions=program.versions,
        allow_impure_duplicates=allow_impure_duplicates,
    )


def flattened(bundle: Bundle, steps: Pipeline | None) -> Bundle:
    """Return a bundle with the program after the passes: it is written where no message can hold
    the program before them."""
    program = (steps or default_pipeline()).run(bundle.computation)
    return dataclasses.replace(bundle, computation=program, prover=None)


def pipeline_of(passes: object) -> Pipeline | None:
    """Return the pipeline that a text describes.

    Raises:
      PipelineError: the text is none.
      LanguageTypeError: it is neither a text nor a pipeline.
    """
    if isinstance(passes, str):
        return parse_passes(passes, all_passes())
    if passes is None or isinstance(passes, Pipeline):
        return passes
    raise LanguageTypeError(
        "E714",
        f"passes cannot be an object of class {type(passes).__name__!r}",
        help="give a pipeline, or a text such as 'call-dominant,desugar-means'",
    )
