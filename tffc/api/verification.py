"""Testing that passes and forms keep what a program computes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tffc.api.boundary import public
from tffc.api.compiling import pipeline_of
from tffc.api.opened_bundles import check_admitted_here, opened, origin_of
from tffc.api.programs import Program, Source, program_of, round_of
from tffc.api.progress import progress_of
from tffc.assurance.validation.arguments import usual_trials
from tffc.assurance.validation.real_data import RealData
from tffc.assurance.validation.sources import Arguments, OwnStates, begins_with, text_constants
from tffc.assurance.validation.validate import Report as Verification
from tffc.assurance.validation.validate import validate
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.compiler import compile_form
from tffc.backends.forms.form import Form
from tffc.language.types import FunctionType
from tffc.passes import Pipeline
from tffc.passes.table import default_pipeline
from tffc.runtime.data.clients import Data
from tffc.runtime.data.source import Progress, no_progress
from tffc.runtime.effects.consent import check_consent, read_kinds
from tffc.support.errors import LanguageValueError


@public
def verify(
    source: Source | Bundle,
    form: str | None = None,
    *,
    passes: str | Pipeline | None = None,
    trials: int | None = None,
    seed: int = 0,
    data: Data | None = None,
    allow_impure_duplicates: bool = False,
    allow_effects: Collection[str] = (),
    progress: Progress | None = None,
) -> Verification:
    """Test that passes, and the form if one is named, keep what a program computes, or that the
    components of a bundle compute its program.

    It runs the program, the output of each pass and the form on the same arguments, which are
    generated from its type, or begin with the clients of `data`, which is given as to `tffc.run`.
    `trials` is the number of arguments.  A program that does not come from this process's own code
    needs `allow_effects` for its side effects.

    Raises:
      ValidationError: results differ, or nothing could be compared.
      TffcError: the program cannot be read, compiled or run.
    """
    source = opened(source, form)
    components = None
    if isinstance(source, Bundle):
        check_admitted_here(source)
        if passes is not None:
            raise LanguageValueError(
                "E706", "passes do not run on a bundle", help="leave them out, or give the program"
            )
        program, form, components = origin_of(source), source.form, source.read_form()
        if program.initialize is None:
            program = program._replace(initialize=source.initialize)
    else:
        is_any = form is None and data is None
        program = program_of(source) if is_any else round_of(source, form)
    if program.allow_effects is not None:
        allowed = program.allow_effects | read_kinds(allow_effects)
        check_consent(program.parts(), allowed)
        if isinstance(source, Bundle):
            check_consent(source.run_by_rounds(), allowed)
    with progress_of("verifying") as shown:
        return verified(
            program,
            pipeline_of(passes) or default_pipeline(),
            form,
            trials=trials,
            seed=seed,
            data=data,
            allow_impure_duplicates=allow_impure_duplicates,
            progress=progress or shown,
            components=components,
        )


def verified(
    program: Program,
    pipeline: Pipeline,
    form: str | None,
    *,
    trials: int | None = None,
    seed: int = 0,
    data: Data | None = None,
    allow_impure_duplicates: bool = False,
    progress: Progress = no_progress,
    components: Form | None = None,
) -> Verification:
    """Return how a program was verified; it must be one that may be run.

    `components` are those of the form, if they are not to be compiled from the program.

    Raises:
      TffcError: as `verify` does.
    """

    def compile(*args: Any, **options: Any) -> Form:
        return components or compile_form(*args, **options)

    return validate(
        program.computation,
        _arguments(program, trials, seed, data),
        pipeline,
        form,
        allow_impure_duplicates=allow_impure_duplicates,
        progress=progress,
        compile=compile,
    )


def _arguments(program: Program, trials: int | None, seed: int, data: Data | None) -> Arguments:
    round_, type = program.computation, program.computation.type
    count = usual_trials(round_) if trials is None else trials
    if data is not None and isinstance(type, FunctionType):
        arguments: Arguments = RealData(type, data, count, seed)
    else:
        parameter = type.parameter if isinstance(type, FunctionType) else None
        arguments = Arguments(parameter, count, seed)
    arguments.constants = text_constants(round_)
    if program.initialize is None or not begins_with(round_, program.initialize):
        return arguments
    return OwnStates(round_, program.initialize, arguments)
