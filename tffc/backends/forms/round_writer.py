"""Writing a round as a program again, from the components of a form.

A form and the round written from it agree on every value, and the types do not grow: compiled
again, its components have the types of the form's.
"""

from __future__ import annotations

from tffc.language.calls import apply, element, federated_broadcast, members, pack, zip_placed
from tffc.language.nodes import Binding, Block, Lambda, Node, Reference, Selection, StructNode
from tffc.language.type_parts import local_type
from tffc.language.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    Placement,
    StructType,
    Type,
)
from tffc.support.trampoline import Task, run


class RoundWriter:
    """A round being written: its parameter and the bindings so far."""

    def __init__(self, round_type: FunctionType) -> None:
        assert round_type.parameter is not None
        self.argument = Reference("round_arg", round_type.parameter)
        self.bindings: list[Binding] = []
        self._result_type = round_type.result

    def bind(self, name: str, value: Node) -> Reference:
        """Bind a value to a name of its own."""
        self.bindings.append(Binding(name, value))
        return Reference(name, value.type)

    def state(self) -> Node:
        """Return the server state as one value."""
        return self._parameter("state", 0, SERVER)

    def data(self) -> Node:
        """Return the clients' data as one value."""
        return self._parameter("data", 1, CLIENTS)

    def _parameter(self, name: str, index: int, placement: Placement) -> Node:
        value = Selection(self.argument, index)
        if isinstance(value.type, FederatedType):
            return value
        return self.bind(name, zip_placed(value, placement))

    def broadcast_each(self, component: Node, state: Node) -> Node:
        """Broadcast every element of what a component gives for the state, or the whole where that
        is not a struct."""
        context = self.bind("context", apply(component, state))
        if not isinstance(local_type(context.type), StructType):
            return self.bind("broadcast", federated_broadcast(context))
        return pack(
            self.bind(f"broadcast_{index}", federated_broadcast(element(context, index)))
            for index in range(len(members(context)))
        )

    def results(self, updated: Node, kept: Node | None = None) -> Node:
        """Return the results of the round as its type has them: the new state and the output, from
        one server value that holds both, and between them what clients keep, if they do."""
        if kept is None:
            return run(_placed_as(updated, self._result_type, ()))
        assert isinstance(self._result_type, StructType)
        state, _, output = self._result_type.types
        first, last = (run(_placed_as(updated, t, (i,))) for i, t in enumerate((state, output)))
        return StructNode((first, kept, last), self._result_type.names)

    def close(self, result: Node) -> Lambda:
        """Return the round that gives `result`."""
        body = Block(tuple(self.bindings), result)
        return Lambda(self.argument.name, self.argument.type, body)


def _placed_as(updated: Node, wanted: Type, path: tuple[int, ...]) -> Task[Node]:
    """Return the element at a path, in the structure of a type whose leaves are placed."""
    if isinstance(wanted, FederatedType):
        return element(updated, *path)
    assert isinstance(wanted, StructType)
    parts: list[Node] = []
    for index, type in enumerate(wanted.types):
        parts.append((yield _placed_as(updated, type, (*path, index))))
    return StructNode(tuple(parts), wanted.names)
