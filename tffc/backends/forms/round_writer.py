"""Writing a round as a program again, from the components of a form.

A form and the round written from it agree on every value, and the types do not grow: compiled
again, its components have the types of the form's.
"""

from __future__ import annotations

from tffc.ir.calls import apply, broadcast, element, members, zip_placed
from tffc.ir.nodes import Binding, Block, Lambda, Node, Reference, Selection
from tffc.ir.types import CLIENTS, SERVER, FederatedType, FunctionType, Placement


class RoundWriter:
    """A round being written: its parameter and the bindings so far."""

    def __init__(self, round_type: FunctionType) -> None:
        assert round_type.parameter is not None
        self.argument = Reference("round_arg", round_type.parameter)
        self.bindings: list[Binding] = []

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

    def broadcast_each(self, component: Node, state: Node) -> list[Node]:
        """Broadcast every element of what a component gives for the state."""
        context = self.bind("context", apply(component, state))
        return [
            self.bind(f"broadcast_{index}", broadcast(element(context, index)))
            for index in range(len(members(context)))
        ]

    def close(self, result: Node) -> Lambda:
        """Return the round that gives `result`."""
        body = Block(tuple(self.bindings), result)
        return Lambda(self.argument.name, self.argument.type, body)
