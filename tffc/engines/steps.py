"""The steps of a round, the same for every form.

    kept, sent = prepare(state)                         once, at the server
    update     = work(data, sent)                       for each client
        a      = accumulate(a, update, kept, client)    from zero(kept), in any number of shards
        a      = merge(a, b, kept)                      joins the accumulators of two shards
        r      = report(a, kept)                        for each of the aggregations
    state, output = finish(kept, reports)               once, at the server

Values are as `tffc.values.concrete` describes them.  What is sent, updates, accumulators and
reports are opaque to engines, but made of tuples, lists, NumPy values, bytes, None and `Federated`
alone, so that they can be sent without pickling.  Steps hold no state: calls of different clients
may run in different threads or processes, and a call may be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tffc.backends.forms.form import signature
from tffc.ir.nodes import Node
from tffc.ir.types import StructType, Type


class Aggregation(Protocol):
    """One aggregation of all clients' updates."""

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

    def report(self, accumulator: Any, kept: Any) -> Any:
        """What the aggregation gives in the end."""
        ...


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

    def absorb(self, totals: list[Any], data: Any, sent: Any, kept: Any, client: str) -> list[Any]:
        """The accumulators of all aggregations once they have taken in what `work` gives.

        For engines that do both in one place, where it may be faster than by itself.

        Raises:
          ExecutionError: a value is above the bound of a secure sum.
        """
        ...

    @property
    def aggregations(self) -> Sequence[Aggregation]:
        """The aggregations of all updates, each of which may be carried out by itself."""
        ...

    def finish(self, kept: Any, reports: Sequence[Any]) -> tuple[Any, Any]:
        """The new state and the server output, from what each aggregation reports."""
        ...


class Together:
    """Several aggregations as one: its accumulators and reports are lists with one of each."""

    def __init__(self, aggregations: Sequence[Aggregation]) -> None:
        self._aggregations = aggregations

    def zero(self, kept: Any) -> list[Any]:
        """See `Aggregation`."""
        return [each.zero(kept) for each in self._aggregations]

    def accumulate(self, accumulator: Any, update: Any, kept: Any, client: str) -> list[Any]:
        """See `Aggregation`."""
        pairs = zip(self._aggregations, accumulator, strict=True)
        return [each.accumulate(part, update, kept, client) for each, part in pairs]

    def merge(self, first: Any, second: Any, kept: Any) -> list[Any]:
        """See `Aggregation`."""
        triples = zip(self._aggregations, first, second, strict=True)
        return [each.merge(one, other, kept) for each, one, other in triples]

    def report(self, accumulator: Any, kept: Any) -> list[Any]:
        """See `Aggregation`."""
        pairs = zip(self._aggregations, accumulator, strict=True)
        return [each.report(part, kept) for each, part in pairs]


def parameter(section: Node) -> Type:
    """The parameter type of a section that the form promises to have one."""
    found = signature(section).parameter
    assert found is not None
    return found


def struct(type: Type | None) -> StructType:
    """A type that the form promises to be a struct."""
    assert isinstance(type, StructType)
    return type
