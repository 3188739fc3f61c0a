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
from tffc.ir.nodes import Compiled, Lambda, Node
from tffc.ir.types import StructType, Type


class AggregationSteps(Protocol):
    """One aggregation of all clients' updates."""

    def zero(self, kept: Any) -> Any:
        """Return the accumulator of no client."""
        ...

    def accumulate(self, accumulator: Any, update: Any, kept: Any, client: str) -> Any:
        """Return an accumulator that has taken in what one client contributes.

        Raises:
          ExecutionError: a value is above the bound of its secure sum.
        """
        ...

    def merge(self, first: Any, second: Any, kept: Any) -> Any:
        """Return the accumulator of the clients of two."""
        ...

    def report(self, accumulator: Any, kept: Any) -> Any:
        """Return what the aggregation gives in the end."""
        ...


class RoundSteps(Protocol):
    """The steps of the rounds of one form; see the picture at the top of this module."""

    @property
    def state_type(self) -> Type: ...

    @property
    def data_type(self) -> Type:
        """Return the type of what each client holds."""
        ...

    @property
    def output_type(self) -> Type:
        """Return the type of the server output."""
        ...

    @property
    def client_output_type(self) -> Type | None:
        """Return the type of what each client has in the end, or None if the round aggregates.

        If it is a type, an engine delivers updates instead of accumulating them.
        """
        ...

    def prepare(self, state: Any) -> tuple[Any, Any]:
        """Return what the server keeps for the end of the round, and what it sends to every
        client."""
        ...

    def work(self, data: Any, sent: Any) -> Any:
        """Return what one client contributes."""
        ...

    def work_and_accumulate(
        self, totals: list[Any], data: Any, sent: Any, kept: Any, client: str
    ) -> list[Any]:
        """Return the accumulators of all aggregations with what `work` gives taken in.

        One call of both may take less time than two, for engines that run both in one place.

        Raises:
          ExecutionError: a value is above the bound of a secure sum.
        """
        ...

    @property
    def aggregations(self) -> Sequence[AggregationSteps]:
        """Return the aggregations of all updates, each of which may be carried out by itself."""
        ...

    def finish(self, kept: Any, reports: Sequence[Any]) -> tuple[Any, Any]:
        """Return the new state and the server output, from what each aggregation reports."""
        ...


class Runtime(Protocol):
    """Runs single components for steps, which say in which order and on what."""

    def run(self, section: Compiled, argument: Any) -> Any:
        """Return the result of a graph; its argument is None where it takes none."""
        ...

    def evaluate(self, program: Lambda, argument: Any, clients: int) -> Any:
        """Return the result of a program whose values are placed, where there are so many
        clients."""
        ...

    def aggregations(self, program: Lambda) -> Sequence[AggregationSteps]:
        """Return the operators of a component that holds aggregations only, which takes what the
        server keeps and the clients' updates."""
        ...


class TupleAggregation:
    """Several aggregations as one: its accumulators and reports are lists with one of each."""

    def __init__(self, aggregations: Sequence[AggregationSteps]) -> None:
        self._aggregations = aggregations

    def zero(self, kept: Any) -> list[Any]:
        """See `AggregationSteps`."""
        return [each.zero(kept) for each in self._aggregations]

    def accumulate(self, accumulator: Any, update: Any, kept: Any, client: str) -> list[Any]:
        """See `AggregationSteps`."""
        pairs = zip(self._aggregations, accumulator, strict=True)
        return [each.accumulate(part, update, kept, client) for each, part in pairs]

    def merge(self, first: Any, second: Any, kept: Any) -> list[Any]:
        """See `AggregationSteps`."""
        triples = zip(self._aggregations, first, second, strict=True)
        return [each.merge(one, other, kept) for each, one, other in triples]

    def report(self, accumulator: Any, kept: Any) -> list[Any]:
        """See `AggregationSteps`."""
        pairs = zip(self._aggregations, accumulator, strict=True)
        return [each.report(part, kept) for each, part in pairs]


def parameter(section: Node) -> Type:
    """Return the parameter type of a section that the form promises to have one."""
    found = signature(section).parameter
    assert found is not None
    return found


def struct(type: Type | None) -> StructType:
    """Return a type that the form promises to be a struct."""
    assert isinstance(type, StructType)
    return type
