"""Compilation of a traced program to a form, of its first state to a section, and to a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.discount import check_discount, check_discountable
from tffc.backends.forms.form import Form
from tffc.backends.forms.kinds import load_form
from tffc.backends.forms.queries import as_round
from tffc.backends.forms.signatures import is_placed
from tffc.backends.forms.stages import assign_stages
from tffc.language.assignability import difference_notes
from tffc.language.invariants import CALL_DOMINANT, NO_SELECT, check_no_select
from tffc.language.nodes import Compiled, Lambda, Node
from tffc.language.type_parts import local_type
from tffc.language.types import SERVER, FunctionType, StructType, Type
from tffc.language.verify import verify
from tffc.linking.inspect import is_pure
from tffc.passes import Pipeline
from tffc.passes.local_processing import extract_local_processing
from tffc.passes.pipeline import Observer, OnFailure
from tffc.passes.table import default_pipeline
from tffc.support.errors import FormError, PipelineError
from tffc.support.version import VERSION

NO_VERSIONS: Mapping[str, str] = MappingProxyType({})


def compile_bundle(
    program: Node,
    form: str,
    pipeline: Pipeline | None = None,
    *,
    initialize: Node | None = None,
    discount: Node | None = None,
    versions: Mapping[str, str] = NO_VERSIONS,
    observers: Iterable[Observer] = (),
    on_failure: OnFailure = lambda rest, program, error: None,
    allow_impure_duplicates: bool = False,
) -> Bundle:
    """Compile a program of one round, and the computation of its first state, to a bundle.

    A program that means a round becomes one first; see `tffc.backends.forms.queries`.

    `versions` are those of the packages that traced the program.  `discount` says that rounds may
    be buffered, which only the form mergeable keeps.  Other arguments are those of `compile_form`.

    Raises:
      FormError: the program cannot be expressed in the form, there is no such form, or the round
        does not take its first state.
      TffcError: as `compile_form` and `compile_initialize` do.
    """
    program = as_round(program, form)
    compiled = compile_form(
        program,
        form,
        pipeline,
        observers=observers,
        on_failure=on_failure,
        allow_impure_duplicates=allow_impure_duplicates,
    )
    section = None if initialize is None else compile_initialize(initialize)
    if section is not None:
        check_first_state(section.type, program.type)
    weight = None
    if discount is not None and has_discount(form, discount):
        check_discountable(program)
        weight = compile_discount(discount)
    return Bundle(
        form=form,
        computation=program,
        components=compiled.components(),
        initialize=section,
        versions={"tffc": VERSION, **versions},
        discount=weight,
    )


def has_discount(form: str, discount: Node | None) -> bool:
    """Return whether the bundle of a program with a discount keeps it."""
    return discount is not None and load_form(form).has_groups()


def check_first_state(initialize: Type, round_type: Type) -> None:
    """Check that a round takes the first state; `initialize` is the type of its computation.

    Raises:
      FormError: it does not.
    """
    assert isinstance(initialize, FunctionType)
    assert isinstance(round_type, FunctionType)
    assert isinstance(round_type.parameter, StructType)
    state = local_type(round_type.parameter[0])
    if not state.is_assignable_from(local_type(initialize.result)):
        raise FormError(
            "E853",
            f"the first state is of type `{initialize.result}`, but the round takes one of type "
            f"`{state}`",
            notes=difference_notes(state, initialize.result),
        )


def compile_form(
    program: Node,
    form: str,
    pipeline: Pipeline | None = None,
    *,
    observers: Iterable[Observer] = (),
    on_failure: OnFailure = lambda rest, program, error: None,
    allow_impure_duplicates: bool = False,
) -> Form:
    """Compile a program of one round to the form of a name.

    The program is verified, brought to call-dominant form without selections of server slices by
    the pipeline, and split into the components of the form.  See `Pipeline.run` for `observers` and
    `on_failure`.

    Raises:
      FormError: the program cannot be expressed in the form, or there is no such form.
      VerificationError: the program is malformed, or a selection of server slices is left.
      PipelineError: the pipeline does not end in call-dominant form.
    """
    flat = normalized(program, form, pipeline, observers=observers, on_failure=on_failure)
    staged = assign_stages(flat)
    return load_form(form).build(staged, allow_impure_duplicates=allow_impure_duplicates)


def normalized(
    program: Node,
    form: str,
    pipeline: Pipeline | None = None,
    *,
    observers: Iterable[Observer] = (),
    on_failure: OnFailure = lambda rest, program, error: None,
) -> Node:
    """Return a program of one round as the flat list of calls from which a form is built.

    Arguments and errors are those of `compile_form`.
    """
    target = load_form(form)
    pipeline = pipeline or default_pipeline()
    if not pipeline.ensures(CALL_DOMINANT):
        raise PipelineError(
            "E369",
            f"the pipeline {pipeline.name!r} does not lead to {CALL_DOMINANT} form",
            help=f"add the pass {CALL_DOMINANT}",
        )
    target.check_signature(program)
    verify(program, pipeline.given)
    flat = pipeline.run(program, observers, on_failure)
    selection = None if pipeline.ensures(NO_SELECT) else check_no_select(flat)
    if selection is not None:
        raise selection.error()
    return flat


def compile_initialize(program: Node) -> Compiled:
    """Return the TensorFlow section `( -> S)` of a computation `( -> S@SERVER)`.

    A TensorFlow computation `( -> S)` is accepted too.

    Raises:
      FormError: the computation takes an argument, does not return a server value, or does more
        than local work at the server.
    """
    signature = program.type
    if not isinstance(signature, FunctionType) or signature.parameter is not None:
        raise _first_state_refusal("takes no argument", program)
    is_section = isinstance(program, Compiled) and not signature.result.has_placement
    if not is_section and not is_placed(signature.result, SERVER):
        raise _first_state_refusal("returns a value placed at the server", program)
    return extract_local_processing(program)


def compile_discount(program: Node) -> Compiled:
    """Return the section `(int32 -> float32)` of a discount.

    Raises:
      FormError: it is of another type, or does not always give the same for an age.
    """
    section = program if isinstance(program, Compiled) else extract_local_processing(program)
    check_discount(section)
    if not is_pure(section):
        raise FormError(
            "E532",
            "the discount of a buffered round does not always give the same for an age",
            help="compute it from the age alone, without random draws, clocks or files",
        )
    return section


def _first_state_refusal(rule: str, program: Node) -> FormError:
    return FormError(
        "E510",
        f"the computation of the first state {rule}; found one of type `{program.type}`",
        notes=("expected `( -> S@SERVER)`",),
        span=program.span if isinstance(program, Lambda) else None,
    )
