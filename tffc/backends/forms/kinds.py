"""The table of forms: everything that is done with a form, whichever it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from tffc.backends.forms import broadcast, distribute_aggregate, map_reduce
from tffc.backends.forms.form import Form
from tffc.backends.forms.steps import RoundSteps, Runtime
from tffc.errors import FormError
from tffc.ir.nodes import Lambda, Node
from tffc.ir.types import CLIENTS, SERVER, FunctionType, Placement, Type
from tffc.near import did_you_mean


@dataclasses.dataclass(frozen=True, slots=True)
class FormKind:
    """A form: its name in commands and bundles, its class, and what is done with it.

    `output` is where the rounds leave what they put out.
    """

    name: str
    form: type[Form]
    output: Placement
    check_signature: Callable[[Node], None]
    build: Callable[..., Form]
    decompile: Callable[[Any], Lambda]
    steps: Callable[[Any, Runtime], RoundSteps]


FORMS: dict[str, FormKind] = {
    kind.name: kind
    for kind in (
        FormKind(
            "mapreduce",
            map_reduce.MapReduceForm,
            SERVER,
            map_reduce.check_signature,
            map_reduce.build,
            map_reduce.decompile,
            map_reduce.MapReduceSteps,
        ),
        FormKind(
            "broadcast",
            broadcast.BroadcastForm,
            CLIENTS,
            broadcast.check_signature,
            broadcast.build,
            broadcast.decompile,
            broadcast.BroadcastSteps,
        ),
        FormKind(
            "distribute-aggregate",
            distribute_aggregate.DistributeAggregateForm,
            SERVER,
            distribute_aggregate.check_signature,
            distribute_aggregate.build,
            distribute_aggregate.decompile,
            distribute_aggregate.DistributeAggregateSteps,
        ),
    )
}
"""The forms by the names that commands and bundles know them by."""


def kind_of_form(form: Form) -> FormKind:
    """Return the row of a form in the table."""
    return next(kind for kind in FORMS.values() if kind.form is type(form))


def is_round(program: Node, name: str | None = None) -> bool:
    """Return whether a program has the type that a form needs; one of the forms if none is named.

    That is not all that a form asks for.
    """
    kinds = FORMS.values() if name is None else (FORMS[name],)
    return any(_has_signature(program, kind) for kind in kinds)


def _has_signature(program: Node, kind: FormKind) -> bool:
    try:
        kind.check_signature(program)
    except FormError:
        return False
    return True


def computation_of(form: Form) -> Lambda:
    """Return the round that a form was, or could have been, compiled from."""
    return kind_of_form(form).decompile(form)


def steps_of(form: Form, runtime: Runtime) -> RoundSteps:
    """Return the steps of a round of a form, whose components the runtime runs."""
    return kind_of_form(form).steps(form, runtime)


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
    form = FORMS[name].form
    wanted = list(form.component_fields())
    if sorted(wanted) != sorted(components):
        raise FormError(
            "E509",
            f"the form {name} has the components {', '.join(wanted)}; "
            f"found {', '.join(components) or 'none'}",
            help=_component_fix(wanted, list(components)),
        )
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
