"""Compiling a program to a bundle."""

from __future__ import annotations

import dataclasses

from tffc.api.programs import Program, Source, program_of, round_of
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.compiler import compile_bundle
from tffc.backends.forms.kinds import form_for
from tffc.passes import Pipeline, parse_passes
from tffc.passes.table import all_passes
from tffc.runtime.effects.consent import check_can_run
from tffc.support.errors import LanguageTypeError


def compile(  # the name of the command, and of `tffc.compile`
    source: Source,
    form: str | None = None,
    *,
    passes: str | Pipeline | None = None,
    initialize: Source | None = None,
    allow_impure_duplicates: bool = False,
) -> Bundle:
    """Compile a round to a bundle; `Bundle.save` writes it as a folder.

    `source` is a computation, an iterative process, a module `MODULE.py:NAME`, or a file with a
    serialized computation.  `form` is `mapreduce`, `broadcast`, `distribute-aggregate` or that of
    an installed package; by default, the output's placement decides.  `passes` are those to run
    instead of the default ones, as a pipeline or in a text as for `tffc compile --passes`.
    `initialize` computes the first state, which an iterative process has itself.  With
    `allow_impure_duplicates`, random or effectful work may run in several components where the form
    requires it.

    Raises:
      FormError: the form cannot express the round.
      TffcError: there is no such program, or it is not sound; see `tffc.support.errors`.
    """
    program = round_of(source, form)
    if initialize is not None:
        first = program_of(initialize)
        if first.allow_effects is not None:
            check_can_run(first.parts())
        program = dataclasses.replace(program, initialize=first.computation)
    if program.allow_effects is not None:
        check_can_run(program.parts())
    return compiled(
        program, form, pipeline_of(passes), allow_impure_duplicates=allow_impure_duplicates
    )


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
        versions=program.versions,
        allow_impure_duplicates=allow_impure_duplicates,
    )


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
