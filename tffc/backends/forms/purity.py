"""Which steps of a round always give the same, and where the others may run.

A step that draws random numbers, reads a clock or keeps state outside itself has to run once in a
round, or once at every client if that is where it was placed.  Where parts are graphs, this is
judged of the single operations that are left in each.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from tffc.backends.forms.stages import Stage, Step
from tffc.errors import FormError
from tffc.ir.calls import describe
from tffc.ir.nodes import Compiled, Node
from tffc.ir.traverse import walk
from tffc.ir.types import CLIENTS, FederatedType, Type
from tffc.linking.inspect import impure_nodes, is_pure

AT_EVERY_CLIENT = frozenset({"work", "client_work", "client_processing"})
"""The parts that run once a client."""

IN_AGGREGATIONS = {
    "zero": "every group of clients",
    "accumulate": "every client",
    "merge": "every two groups of clients",
}
"""The parts that run several times while values are aggregated, and for what."""


def is_pure_node(root: Node) -> bool:
    """Whether every compiled section in `root` is pure."""
    return all(is_pure(node) for node in walk(root) if isinstance(node, Compiled))


class Component:
    """A part of a form as far as purity is judged of it: whole, or as the graph that was linked.

    A step makes the same nodes in every graph, in the same order, and those that no result of the
    part needs are left out in the end.  So an operation is known by its place in that order.
    """

    def __init__(self, name: str, section: Compiled | None = None) -> None:
        self.name = name
        self._section = section

    @functools.cached_property
    def _impure(self) -> frozenset[str]:
        return frozenset() if self._section is None else impure_nodes(self._section)

    def left(self, made: Sequence[str]) -> frozenset[int]:
        """The impure operations that are left of an impure step that made these nodes."""
        if self._section is None:
            return frozenset([0])
        return frozenset(place for place, node in enumerate(made) if node in self._impure)


class Purity:
    """Which part runs what of each impure step: none of it may run in two, or at every client
    unasked."""

    def __init__(self) -> None:
        self._ran: dict[str, list[tuple[Component, Sequence[str]]]] = {}

    def record(self, part: Component, step: Step, made: Sequence[str] = ()) -> None:
        """Notes that `part` runs a step, which made these nodes in its graph.

        Graphs are looked into only for a step that runs several times.

        Raises:
          FormError: an impure operation of it is left in another part too, or would run anew at
            every client.
        """
        ran = self._ran.setdefault(step.name, [])
        ran.append((part, made))
        anew = _runs_anew(part.name, step)
        if (len(ran) == 1 and anew is None) or is_pure_node(step.call):
            return
        left = part.left(made)
        if left and anew is not None:
            raise anew
        for other, nodes in ran[:-1]:
            if not left.isdisjoint(other.left(nodes)):
                raise _needed_twice(step, other.name, part.name)


def _runs_anew(part: str, step: Step) -> FormError | None:
    """The refusal of an impure step in a part that runs several times in a round, unasked."""
    if part in IN_AGGREGATIONS:
        return _drawn_while_aggregating(step, part)
    if part in AT_EVERY_CLIENT:
        if step.stage is Stage.ANYWHERE:
            note = "it has no placement, and what is at the clients needs it"
            return _drawn_for_each_client(step, note)
        if is_all_equal(step.call.type):
            return _drawn_for_each_client(step, "it gives one value, the same for all clients")
    return None


def _needed_twice(step: Step, *parts: str) -> FormError:
    return _refusal(
        step,
        f"both {' and '.join(parts)} need it",
        "the form has no channel that carries one result to all that need it",
        "compile to distribute-aggregate, or pass --allow-impure-duplicates",
    )


def is_all_equal(type: Type) -> bool:
    """Return whether a type is of values at the clients that are the same for all of them."""
    return isinstance(type, FederatedType) and type.placement is CLIENTS and type.all_equal


def _drawn_for_each_client(step: Step, note: str) -> FormError:
    return _refusal(
        step,
        "every client would run it anew",
        note,
        "make the value at the server with tff.federated_eval and broadcast it, let each client "
        "make its own with tff.federated_eval(f, tff.CLIENTS), or pass --allow-impure-duplicates",
    )


def _drawn_while_aggregating(step: Step, part: str) -> FormError:
    return _refusal(
        step,
        f"{IN_AGGREGATIONS[part]} would run it anew",
        f"it is made outside of the aggregation whose {part} needs it",
        "compile to distribute-aggregate, draw it within the aggregation, or pass "
        "--allow-impure-duplicates",
    )


def _refusal(step: Step, reason: str, note: str, help: str) -> FormError:
    return FormError(
        "E532",
        f"`{describe(step.binding)}` does not always give the same, and {reason}",
        notes=(note,),
        help=help,
        span=step.binding.span,
    )
