"""The whole of compiling: a traced program in, a form out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tffc.backends.forms.broadcast import build_broadcast_form
from tffc.backends.forms.distribute_aggregate import build_distribute_aggregate_form
from tffc.backends.forms.form import Form
from tffc.backends.forms.map_reduce import build_map_reduce_form
from tffc.backends.forms.signatures import (
    check_broadcast_signature,
    check_distribute_aggregate_signature,
    check_round_signature,
)
from tffc.errors import FormError, PipelineError
from tffc.ir.invariants import NO_SELECT, check_no_select
from tffc.ir.nodes import Node
from tffc.ir.verify import CALL_DOMINANT, verify
from tffc.passes import Pipeline
from tffc.passes.pipeline import Observer, OnFailure, nearest
from tffc.passes.table import default_pipeline

FORMS = {
    "mapreduce": (check_round_signature, build_map_reduce_form),
    "broadcast": (check_broadcast_signature, build_broadcast_form),
    "distribute-aggregate": (check_distribute_aggregate_signature, build_distribute_aggregate_form),
}
"""What checks the type of a program for each form, and what builds the form."""


def is_round(program: Node, form: str | None = None) -> bool:
    """Return whether a program has the type that a form needs; one of the forms if none is named.

    That is not all that a form asks for.
    """
    kinds = FORMS if form is None else (form,)
    return any(_has_signature(program, FORMS[kind][0]) for kind in kinds)


def _has_signature(program: Node, check: Callable[[Node], None]) -> bool:
    try:
        check(program)
    except FormError:
        return False
    return True


def compile_form(
    program: Node,
    form: str,
    pipeline: Pipeline | None = None,
    *,
    observers: Iterable[Observer] = (),
    on_failure: OnFailure = lambda rest, program, error: None,
    allow_impure_duplicates: bool = False,
) -> Form:
    """Compiles a program of one round to a form.

    The program is verified, brought to call-dominant form without selections by the pipeline (the
    form's own unless one is given), and read as the parts of the form.  For `observers` and
    `on_failure` see `Pipeline.run`.

    Raises:
      FormError: the program cannot be expressed in the form, or there is no such form.
      VerificationError: the program is not sound, or a selection of server slices is left.
      PipelineError: the pipeline does not lead to call-dominant form.
    """
    if form not in FORMS:
        raise FormError("E500", f"there is no form {form!r}", help=nearest(form, FORMS))
    pipeline = pipeline or default_pipeline(form)
    if not pipeline.ensures(CALL_DOMINANT):
        raise PipelineError(
            "E369",
            f"the pipeline {pipeline.name!r} does not lead to {CALL_DOMINANT} form",
            help=f"add the pass {CALL_DOMINANT}",
        )
    check_signature, build = FORMS[form]
    check_signature(program)
    verify(program, pipeline.given)
    flat = pipeline.run(program, observers, on_failure)
    selection = None if pipeline.ensures(NO_SELECT) else check_no_select(flat)
    if selection is not None:
        raise selection.error()
    return build(flat, allow_impure_duplicates=allow_impure_duplicates)
