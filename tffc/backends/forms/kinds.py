"""The table of forms, by their names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tffc.support.errors import FormError
from tffc.support.plugins import PluginGroup, PluginTable

if TYPE_CHECKING:
    from tffc.backends.forms.form import Form
    from tffc.language.nodes import Node
    from tffc.language.types import Type


class FormKind(NamedTuple):
    """A form: the name by which commands and bundles know it, and how its class is loaded.

    It is loaded when something is done with the form, so that its name costs nothing.  Packages
    offer forms as entry points of the group `tffc.forms`.
    """

    name: str
    load: Callable[[], type[Form]]


def _map_reduce() -> type[Form]:
    from tffc.backends.forms.map_reduce import MapReduceForm

    return MapReduceForm


def _broadcast() -> type[Form]:
    from tffc.backends.forms.broadcast import BroadcastForm

    return BroadcastForm


def _client_state() -> type[Form]:
    from tffc.backends.forms.client_state import ClientStateForm

    return ClientStateForm


def _distribute_aggregate() -> type[Form]:
    from tffc.backends.forms.distribute_aggregate import DistributeAggregateForm

    return DistributeAggregateForm


def _mergeable() -> type[Form]:
    from tffc.backends.forms.mergeable import MergeableForm

    return MergeableForm


FORMS = PluginTable(
    PluginGroup("tffc.forms", "form", FormKind, FormError),
    (
        FormKind("mapreduce", _map_reduce),
        FormKind("broadcast", _broadcast),
        FormKind("distribute-aggregate", _distribute_aggregate),
        FormKind("client-state", _client_state),
        FormKind("mergeable", _mergeable),
    ),
)
"""The forms by name."""


def load_form(name: str) -> type[Form]:
    """Return the class of the form of a name.

    Raises:
      FormError: there is no such form.
    """
    return FORMS.find(name, "E500").load()


def is_round(program: Node, name: str | None = None) -> bool:
    """Return whether a program has the type that a form needs, or that any of tffc's own forms
    needs if none is named.

    A program of this type can still be refused by the form.
    """
    for form in FORMS.own if name is None else (name,):
        with contextlib.suppress(FormError):
            load_form(form).check_signature(program)
            return True
    return False


def form_for(program: Node) -> str:
    """Return the default form of a round, which depends on what of its result is at the clients:
    all of it, one of several values, or nothing."""
    from tffc.language.types import CLIENTS, FederatedType, FunctionType, StructType

    def is_kept(type: Type | None) -> bool:
        return isinstance(type, FederatedType) and type.placement is CLIENTS

    result = program.type.result if isinstance(program.type, FunctionType) else None
    if is_kept(result):
        return "broadcast"
    if isinstance(result, StructType) and any(map(is_kept, result.types)):
        return "client-state"
    return "mapreduce"


def assemble(name: str, type_signature: Type, components: Mapping[str, Node]) -> Form:
    """Return the form of this name that has these components.

    Raises:
      FormError: there is no such form, a component is missing or none of the form's, or the
        components do not fit each other.
    """
    form = load_form(name)
    wanted = list(form.component_fields())
    if sorted(wanted) != sorted(components):
        changes = {
            "add": [component for component in wanted if component not in components],
            "leave out": [component for component in components if component not in wanted],
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
