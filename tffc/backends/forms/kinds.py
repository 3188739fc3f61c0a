"""The table of forms, by their names."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tffc.support.errors import FormError
from tffc.support.near import did_you_mean

if TYPE_CHECKING:
    from tffc.backends.forms.form import Form
    from tffc.language.nodes import Node
    from tffc.language.types import Type


FORMS = {
    "mapreduce": ("map_reduce", "MapReduceForm"),
    "broadcast": ("broadcast", "BroadcastForm"),
    "distribute-aggregate": ("distribute_aggregate", "DistributeAggregateForm"),
}
"""The forms by the names that commands and bundles know them by: the module beside this one and the
class in it.  The module is loaded when something is done with the form, so that its name costs
nothing."""


def load_form(name: str) -> type[Form]:
    """Return the class of the form of a name."""
    module, form = FORMS[name]
    return getattr(importlib.import_module(f"tffc.backends.forms.{module}"), form)


def is_round(program: Node, name: str | None = None) -> bool:
    """Return whether a program has the type that a form needs, or that any form needs if none is
    named.

    A program of this type can still be refused by the form.
    """
    for each in FORMS if name is None else (name,):
        with contextlib.suppress(FormError):
            load_form(each).check_signature(program)
            return True
    return False


def form_for(program: Node) -> str:
    """Return the default form of a round, which depends on the placement of its output."""
    from tffc.language.types import CLIENTS, SERVER, FederatedType, FunctionType

    result = program.type.result if isinstance(program.type, FunctionType) else None
    at_clients = isinstance(result, FederatedType) and result.placement is CLIENTS
    output = CLIENTS if at_clients else SERVER
    return next(name for name in FORMS if load_form(name).output is output)


def assemble(name: str, type_signature: Type, components: Mapping[str, Any]) -> Form:
    """Return the form of this name that has these components.

    Raises:
      FormError: there is no such form, a component is missing or none of the form's, or the
        components do not fit each other.
    """
    if name not in FORMS:
        raise FormError(
            "E500",
            f"there is no form {name!r}",
            notes=(f"there are {', '.join(FORMS)}",),
            help=did_you_mean(name, FORMS) or "give one of these names",
        )
    form = load_form(name)
    wanted = list(form.component_fields())
    if sorted(wanted) != sorted(components):
        changes = {
            "add": [each for each in wanted if each not in components],
            "leave out": [each for each in components if each not in wanted],
        }
        raise FormError(
            "E501",
            f"the form {name} has the components {', '.join(wanted)}; "
            f"found {', '.join(components) or 'none'}",
            help="; ".join(f"{do} {', '.join(names)}" for do, names in changes.items() if names),
        )
    from tffc.language.types import FunctionType

    if not isinstance(type_signature, FunctionType):
        raise FormError(
            "E501",
            f"a round is a function, found one of type `{type_signature}`",
            help="give the type of the whole round, which is written with an arrow",
        )
    return form(type_signature, **components)
