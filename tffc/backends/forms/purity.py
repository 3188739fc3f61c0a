"""The check that calls which do not always give the same run once.

A call that draws random numbers, reads a clock or keeps state outside itself has to run once in a
round, or once at every client if that is where it was placed.  Where components are graphs, this is
judged of the single operations that are left in each.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from tffc.backends.forms.form import Form, Side
from tffc.backends.forms.stages import Stage, StagedCall
from tffc.errors import FormError
from tffc.ir.calls import describe
from tffc.ir.nodes import Compiled, Node
from tffc.ir.traverse import walk
from tffc.ir.type_parts import is_all_equal
from tffc.linking.inspect import impure_nodes, is_pure


def is_pure_node(root: Node) -> bool:
    """Return whether every compiled section in `root` is pure."""
    return all(is_pure(node) for node in walk(root) if isinstance(node, Compiled))


class ComponentEffects:
    """The impure operations of a component: all, or those left in the graph that was linked.

    A call makes the same nodes in every graph, in the same order, and those that no result of the
    component needs are left out in the end.  So an operation is known by its place in that order.
    """

    def __init__(self, name: str, section: Compiled | None = None) -> None:
        self.name = name
        self._section = section

    @functools.cached_property
    def _impure(self) -> frozenset[str]:
        return frozenset() if self._section is None else impure_nodes(self._section)

    def left(self, made: Sequence[str]) -> frozenset[int]:
        """Return the impure operations that are left of an impure call that made these nodes."""
        if self._section is None:
            return frozenset([0])
        return frozenset(place for place, node in enumerate(made) if node in self._impure)


class Purity:
    """A record of the components that run operations of each impure call.

    None of it may run in two components, or anew at every client unless it was placed there.
    """

    def __init__(self, form: type[Form]) -> None:
        self._fields = form.component_fields()
        self._ran: dict[str, list[tuple[ComponentEffects, Sequence[str]]]] = {}

    def record(
        self, component: ComponentEffects, call: StagedCall, made: Sequence[str] = ()
    ) -> None:
        """Note that a component runs a call, which made these nodes in its graph.

        Graphs are looked into only for a call that runs several times.

        Raises:
          FormError: an impure operation of it is left in another component too, or would run anew
            at every client.
        """
        ran = self._ran.setdefault(call.name, [])
        ran.append((component, made))
        anew = self._runs_anew(component.name, call)
        if (len(ran) == 1 and anew is None) or is_pure_node(call.call):
            return
        left = component.left(made)
        if left and anew is not None:
            raise anew
        for other, nodes in ran[:-1]:
            if not left.isdisjoint(other.left(nodes)):
                raise _needed_twice(call, other.name, component.name)

    def _runs_anew(self, component: str, call: StagedCall) -> FormError | None:
        """Return the refusal of an impure call where its component runs several times in a round,
        and it was not placed there."""
        field = self._fields[component]
        if field["anew_for"] is not None:
            return _drawn_while_aggregating(call, component, field["anew_for"])
        if field["side"] is Side.CLIENTS:
            if call.stage is Stage.ANYWHERE:
                note = "it has no placement, and what is at the clients needs it"
                return _drawn_for_each_client(call, note)
            if is_all_equal(call.call.type):
                return _drawn_for_each_client(call, "it gives one value, the same for all clients")
        return None


def _needed_twice(call: StagedCall, *components: str) -> FormError:
    return _refusal(
        call,
        f"both {' and '.join(components)} need it",
        "the form has no channel that carries one result to all that need it",
        "compile to distribute-aggregate, or allow impure duplicates",
    )


def _drawn_for_each_client(call: StagedCall, note: str) -> FormError:
    return _refusal(
        call,
        "every client would run it anew",
        note,
        "make the value at the server with tff.federated_eval and broadcast it, let each client "
        "make its own with tff.federated_eval(f, tff.CLIENTS), or allow impure duplicates",
    )


def _drawn_while_aggregating(call: StagedCall, component: str, anew_for: str) -> FormError:
    return _refusal(
        call,
        f"{anew_for} would run it anew",
        f"it is made outside of the aggregation whose {component} needs it",
        "compile to distribute-aggregate, draw it within the aggregation, or allow impure "
        "duplicates",
    )


def _refusal(call: StagedCall, reason: str, note: str, help: str) -> FormError:
    return FormError(
        "E532",
        f"`{describe(call.binding)}` does not always give the same, and {reason}",
        notes=(note,),
        help=help,
        span=call.binding.span,
    )
