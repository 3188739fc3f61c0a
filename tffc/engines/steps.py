"""The steps of a round, the same for every form.

    kept, sent = prepare(state)                      once, at the server
    update     = work(data, sent)                    for each client
    a          = accumulate(a, update, kept, client) from zero(kept), in any number of shards
    a          = merge(a, b, kept)                   joins the accumulators of two shards
    state, output = finish(kept, a)                  once, at the server

Values are as `tffc.execution.values` describes them.  Updates and accumulators are opaque to
engines, but made of tuples, lists, NumPy values, bytes, None and `Federated` alone, so that they
can be sent without pickling.  Steps hold no state: calls of different clients may run in different
threads or processes, and a call may be repeated.
"""

from __future__ import annotations

from typing import Any, Protocol

from tffc.backends.forms import signature
from tffc.ir.nodes import Node
from tffc.ir.types import StructType, Type


class Steps(Protocol):
    """The parts of one form; see the picture at the top of this module."""

    @property
    def state_type(self) -> Type: ...

    @property
    def data_type(self) -> Type:
        """The type of what each client holds."""
        ...

    @property
    def output_type(self) -> Type:
        """The type of the server output."""
        ...

    @property
    def client_output_type(self) -> Type | None:
        """The type of what each client has in the end, or None if the round aggregates.

        If it is a type, an engine delivers updates instead of accumulating them.
        """
        ...

    def prepare(self, state: Any) -> tuple[Any, Any]:
        """What the server keeps for the end of the round, and what it sends to every client."""
        ...

    def work(self, data: Any, sent: Any) -> Any:
        """What one client contributes."""
        ...

    def zero(self, kept: Any) -> Any:
        """The accumulator of no client."""
        ...

    def accumulate(self, accumulator: Any, update: Any, kept: Any, client: str) -> Any:
        """An accumulator that has taken in what one client contributes.

        Raises:
          ExecutionError: a value is above the bound of its secure sum.
        """
        ...

    def merge(self, first: Any, second: Any, kept: Any) -> Any:
        """The accumulator of the clients of two."""
        ...

    def finish(self, kept: Any, accumulator: Any) -> tuple[Any, Any]:
        """The new state and the server output."""
        ...


def parameter(section: Node) -> Type:
    """The parameter type of a section that the form promises to have one."""
    found = signature(section).parameter
    assert found is not None
    return found


def struct(type: Type | None) -> StructType:
    """A type that the form promises to be a struct."""
    assert isinstance(type, StructType)
    return type
