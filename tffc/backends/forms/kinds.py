"""The table of forms: everything that is done with a form, whichever it is."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from tffc.errors import FormError
from tffc.near import did_you_mean

if TYPE_CHECKING:
    from tffc.backends.forms.form import Form
    from tffc.backends.forms.steps import RoundSteps, Runtime
    from tffc.ir.nodes import Lambda, Node
    from tffc.ir.types import Placement, Type


class FormModule(Protocol):
    """What the module of a form has: its class, and what is done with it.

    `OUTPUT` is where the rounds leave what they put out, and `STEPS` makes the steps of a round of
    a form, whose components a runtime runs.
    """

    FORM: type[Form]
    OUTPUT: Placement
    STEPS: Callable[[Any, Runtime], RoundSteps]

    def check_signature(self, program: Node) -> None: ...

    def build(self, program: Node, *, allow_impure_duplicates: bool = False) -> Form: ...

    def decompile(self, form: Any) -> Lambda: ...


class FormKind(NamedTuple):
    """A form: its name in commands and bundles, and the name of its module.

    The module is loaded when something is done with the form, so that its name costs nothing.
    """

    name: str
    module: str

    def load(self) -> FormModule:
        """Return the module of the form."""
        return cast(FormModule, importlib.import_module(self.module))


FORMS = {
    kind.name: kind
    for kind in (
        FormKind("mapreduce", "tffc.backends.forms.map_reduce"),
        FormKind("broadcast", "tffc.backends.forms.broadcast"),
        FormKind("distribute-aggregate", "tffc.backends.forms.distribute_aggregate"),
    )
}
"""The forms by the names that commands and bundles know them by."""


def _module_of(form: Form) -> FormModule:
    """Return the module that the class of a form is defined in."""
    return cast(FormModule, importlib.import_module(type(form).__module__))


def is_round(program: Node, name: str | None = None) -> bool:
    """Return whether a program has the type that a form needs; one of the forms if none is named.

    That is not all that a form asks for.
    """
    kinds = FORMS.values() if name is None else (FORMS[name],)
    return any(_has_signature(program, kind) for kind in kinds)


def _has_signature(program: Node, kind: FormKind) -> bool:
    try:
        kind.load().check_signature(program)
    except FormError:
        return False
    return True


def computation_of(form: Form) -> Lambda:
    """Return the round that a form was, or could have been, compiled from."""
    return _module_of(form).decompile(form)


def steps_of(form: Form, runtime: Runtime) -> RoundSteps:
    """Return the steps of a round of a form, whose components the runtime runs."""
    return _module_of(form).STEPS(form, runtime)


def assemble(name: str, type_signature: Type, components: Mapping[str, Any]) -> Form:
    """Return the form of this name that has these components.

    Raises:
      FormError: there is no such form, a component is missing or none of the form's, or the
        components do not fit each other.
    """
    if name not in FORMS:
        raise FormError(
            "E508",
            f"there is no form {name!r}",
            notes=(f"there are {', '.join(FORMS)}",),
            help=did_you_mean(name, FORMS) or "give one of these names",
        )
    form = FORMS[name].load().FORM
    wanted = list(form.component_fields())
    if sorted(wanted) != sorted(components):
        raise FormError(
            "E509",
            f"the form {name} has the components {', '.join(wanted)}; "
            f"found {', '.join(components) or 'none'}",
            help=_component_fix(wanted, list(components)),
        )
    from tffc.ir.types import FunctionType

    if not isinstance(type_signature, FunctionType):
        raise FormError(
            "E653",
            f"a round is a function, found one of type `{type_signature}`",
            help="give the type of the whole round, which is written with an arrow",
        )
    return form(type_signature, **components)


def _component_fix(wanted: list[str], found: list[str]) -> str:
    """Return which components to add and which to leave out."""
    missing = [name for name in wanted if name not in found]
    extra = [name for name in found if name not in wanted]
    parts = [f"add {', '.join(missing)}"] if missing else []
    return "; ".join([*parts, f"leave out {', '.join(extra)}"] if extra else parts)
