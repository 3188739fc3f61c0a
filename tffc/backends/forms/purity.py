"""The check that calls which do not always give the same run once.

A call that draws random numbers, reads a clock or keeps state outside itself has to run once in a
round, or once at every client if that is where it was placed.  Where components are graphs, this is
checked for each operation that is left in them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tffc.backends.forms.form import Form, Side
from tffc.backends.forms.stages import Stage, StagedCall
from tffc.language.calls import describe
from tffc.language.nodes import Compiled
from tffc.language.traverse import walk
from tffc.language.type_parts import is_all_equal
from tffc.linking.inspect import is_pure
from tffc.support.errors import FormError

Left: TypeAlias = Callable[[], frozenset[int]]
"""Gives the impure operations of a call that are left in a component.

A call makes the same nodes in every graph, in the same order, and those that no result of the
component needs are left out in the end.  So an operation is known by its place in that order.
"""

WHOLE = frozenset([0])
"""What is left of a call in a component that is a program: one operation."""


def left_among(impure: Callable[[], frozenset[str]], nodes: Sequence[str]) -> frozenset[int]:
    """Return the impure operations that are left of a call that made these nodes, in a graph whose
    impure nodes are these."""
    impure_nodes = impure()
    return frozenset(place for place, node in enumerate(nodes) if node in impure_nodes)


class Purity:
    """A record of the components that run operations of each impure call.

    None of it may run in two components, or again at every client unless it was placed there.
    """

    def __init__(self, form: type[Form]) -> None:
        self._fields = form.component_fields()
        self._ran: dict[str, list[tuple[str, Left]]] = {}

    def record(self, component: str, call: StagedCall, left: Left = lambda: WHOLE) -> None:
        """Note that a component runs a call; `left` gives the operations of it that are left there.

        `left` is called only for a call that runs several times.

        Raises:
          FormError: an impure operation of it is left in another component too, or would run again
            at every client.
        """
        before = self._ran.setdefault(call.name, [])
        refusal = self._runs_again(component, call)
        sections = (node for node in walk(call.call) if isinstance(node, Compiled))
        if (before or refusal is not None) and not all(map(is_pure, sections)):
            if left() and refusal is not None:
                raise refusal
            for other, left_there in before:
                if not left().isdisjoint(left_there()):
                    raise _refusal(
                        call,
                        f"both {other} and {component} need it",
                        "the form has no channel that carries one result to all that need it",
                        "compile to distribute-aggregate, or allow impure duplicates",
                    )
        before.append((component, left))

    def _runs_again(self, component: str, call: StagedCall) -> FormError | None:
        """Return the refusal of an impure call where its component runs several times in a round,
        and it was not placed there."""
        field = self._fields[component]
        if field["again_for"] is not None:
            return _refusal(
                call,
                f"{field['again_for']} would run it again",
                f"it is made outside of the aggregation whose {component} needs it",
                "compile to distribute-aggregate, draw it within the aggregation, or allow impure "
                "duplicates",
            )
        if field["side"] is Side.GROUP and (
            call.stage is not Stage.WORK or is_all_equal(call.call.type)
        ):
            return _refusal(
                call,
                "every group of clients would run it again",
                f"it is made outside of each client's work, and {component} runs for every group",
                "compile to distribute-aggregate, let each client make its own with "
                "tff.federated_eval(f, tff.CLIENTS), or allow impure duplicates",
            )
        note = None
        if field["side"] is Side.CLIENTS and call.stage is Stage.ANYWHERE:
            note = "it has no placement, and what is at the clients needs it"
        elif field["side"] is Side.CLIENTS and is_all_equal(call.call.type):
            note = "it gives one value, the same for all clients"
        if note is not None:
            return _refusal(
                call,
                "every client would run it again",
                note,
                "make the value at the server with tff.federated_eval and broadcast it, let each "
                "client make its own with tff.federated_eval(f, tff.CLIENTS), or allow impure "
                "duplicates",
            )
        return None


def _refusal(call: StagedCall, reason: str, note: str, help: str) -> FormError:
    return FormError(
        "E532",
        f"`{describe(call.binding)}` does not always give the same, and {reason}",
        notes=(note,),
        help=help,
        span=call.binding.span,
        remedy="impure duplicates",
    )
