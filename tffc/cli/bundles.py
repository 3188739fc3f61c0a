"""The bundle of a compiled program."""

from __future__ import annotations

from tffc.backends import compile_initialize
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.form import Form
from tffc.cli.sources import Program
from tffc.language.assignability import difference_notes
from tffc.language.type_parts import local_type
from tffc.language.types import FunctionType, StructType, Type
from tffc.support.errors import FormError
from tffc.support.version import VERSION


def bundle_of(program: Program, kind: str, form: Form) -> Bundle:
    """Return the bundle of a program that was compiled to a form of this kind.

    Raises:
      FormError: the round does not take the program's first state.
      TffcError: the computation of the first state cannot be compiled.
    """
    first = program.initialize
    section = None if first is None else compile_initialize(first)
    if section is not None:
        check_first_state(section.type, program.computation.type)
    return Bundle(
        form=kind,
        computation=program.computation,
        components=form.components(),
        initialize=section,
        versions={"tffc": VERSION, **program.versions},
    )


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
