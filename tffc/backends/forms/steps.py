"""The steps of a round, the same for every form.

    carried, sent = prepare(state)                      once, at the server
    update     = work(data, sent)                       for each client
        a      = accumulate(a, update, carried, client) from zero(carried), in any number of shards
        a      = merge(a, b, carried)                   joins the accumulators of two shards
        r      = report(a, carried)                     for each of the aggregations
    state, output = finish(carried, reports)            once, at the server

Values are as `tffc.language.values.concrete` describes them.  What is sent, updates, accumulators
and reports are opaque to engines, but made of tuples, lists, NumPy values, bytes, None and
`Federated` alone, so that they can be sent without pickling.  Steps hold no state: calls of
different clients may run in different threads or processes, and a call may be repeated.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from tffc.language.nodes import Compiled, Lambda
from tffc.language.types import Type

Value: TypeAlias = Any
"""A value that only the runtime of components can read."""


class SecureSumSteps(Protocol):
    """A secure sum of values of a `type`; `limits` are the bounds of its leaves."""

    type: Type
    limits: list[Value]

    def contribution(self, value: Value, client: str) -> Value:
        """Return the addend for a client's value.

        Raises:
          ExecutionError: it is negative, or above the bound.
        """
        ...

    def merge(self, first: Value, second: Value) -> Value:
        """Return the sum of two sums or contributions."""
        ...

    def report(self, total: Value) -> Value:
        """Return the sum of the values from the sum of all contributions."""
        ...

    def modulus(self, leaf: Value, limit: Value) -> int:
        """Return the modulus of sums of a leaf under a limit."""
        ...


class AggregationSteps(Protocol):
    """One aggregation of all clients' updates."""

    @property
    def accumulator_type(self) -> Type:
        """The type of its accumulators."""
        ...

    def zero(self, carried: Value) -> Value:
        """Return the accumulator of no client."""
        ...

    def accumulate(self, accumulator: Value, update: Value, carried: Value, client: str) -> Value:
        """Return the accumulator with what one more client contributes.

        Raises:
          ExecutionError: a value is beyond the bounds of its secure sum.
        """
        ...

    def merge(self, first: Value, second: Value, carried: Value) -> Value:
        """Return the accumulator of two groups of clients."""
        ...

    def report(self, accumulator: Value, carried: Value) -> Value:
        """Return the result of the aggregation."""
        ...

    def secure_sum(self, carried: Value) -> SecureSumSteps | None:
        """Return the secure sum whose values the accumulators are, or None for other
        aggregations."""
        ...


class CannotBatchError(Exception):
    """Clients of a program cannot be computed in batches, and why, in words for an engineer."""


class ClientGraphs(NamedTuple):
    """The clients' part of a round as graphs, for engines that compute many clients at once.

    `take` is a section `(<A,<D,C>> -> <A,S...>)`.  It takes the accumulator of some clients, the
    data of one more client and what the server sends.  It gives the accumulator of all these
    clients, and what that client adds to secure sums or keeps.  `merge` is a section `(<A,A> ->
    A)`.  `A` has an element for each aggregation that is not a secure sum.
    """

    take: Compiled
    merge: Compiled


class BatchSteps:
    """The clients' part of a round in terms of its `graphs`.

    Linking the graphs raises:
      CannotBatchError: the components are not made of graphs alone.
      TffcError: no graph can hold them.
    """

    def __init__(
        self, aggregations: Sequence[AggregationSteps], link: Callable[[], ClientGraphs]
    ) -> None:
        self.graphs = functools.cache(link)
        self._aggregations = aggregations

    def graph_accumulator(self, totals: Sequence[Value], carried: Value) -> Value:
        """Return the accumulator that the graphs take, from the accumulators of all
        aggregations."""
        pairs = zip(self._aggregations, totals, strict=True)
        return tuple(total for member, total in pairs if member.secure_sum(carried) is None)

    def totals(
        self,
        before: Sequence[Value],
        accumulator: Value,
        contributions: Sequence[Value],
        clients: Sequence[str],
        carried: Value,
    ) -> list[Value]:
        """Return the accumulators of all aggregations after some more clients.  `before` has those
        before these clients, `accumulator` the one that the graphs gave, and `contributions` what
        each client adds to secure sums.

        Raises:
          ExecutionError: a value is beyond the bounds of a secure sum.
        """
        plain = iter(accumulator)
        secure = [each for each in self._aggregations if each.secure_sum(carried) is not None]
        contributed = zip(*contributions, strict=True) if secure else iter(())
        totals: list[Value] = []
        for aggregation, total in zip(self._aggregations, before, strict=True):
            sum = aggregation.secure_sum(carried)
            if sum is None:
                totals.append(next(plain))
                continue
            for value, client in zip(next(contributed), clients, strict=True):
                total = sum.merge(total, sum.contribution(value, client))
            totals.append(total)
        return totals


class RoundSteps(abc.ABC):
    """The steps of the rounds of one form; see the picture at the top of this module.

    Types: `data_type` of what each client holds, `sent_type` of what it is sent, `output_type` of
    the server output, and `client_output_type` of what each client has in the end, or None if that
    is nothing.  If that is the state of the client, with which its next round begins, its type is
    `client_state_type` too, and `data_type` is the struct of a client's data and its state.

    The `aggregations` are independent of each other.  `batches` is None where clients cannot be
    computed many at a time.
    """

    state_type: Type
    data_type: Type
    sent_type: Type
    output_type: Type
    client_output_type: Type | None = None
    client_state_type: Type | None = None
    aggregations: Sequence[AggregationSteps] = ()
    batches: BatchSteps | None = None

    @abc.abstractmethod
    def prepare(self, state: Value) -> tuple[Value, Value]:
        """Return what the server keeps for the end of the round, and what it sends to every
        client."""

    def shared(self, carried: Value) -> Value:
        """Return `carried` with only the parts that aggregations need, None if they need nothing,
        for engines that aggregate outside the server."""
        return None

    def parameters(self) -> Value:
        """Return what `shared` returns in every round, computed without the server's state.

        Raises:
          ExecutionError: the components do not tell it.
        """
        return None

    @abc.abstractmethod
    def work(self, data: Value, sent: Value) -> Value:
        """Return what one client contributes."""

    @property
    def aggregates(self) -> bool:
        """Whether clients contribute to anything."""
        return self.client_output_type is None or bool(self.aggregations)

    def client_output(self, update: Sequence[Value]) -> Value:
        """Return what a client has in the end, the last element of what it computes; None if it
        has nothing."""
        return None if self.client_output_type is None else update[-1]

    def work_and_accumulate(
        self, totals: list[Value], data: Value, sent: Value, carried: Value, client: str
    ) -> tuple[list[Value], Value]:
        """Return the accumulators of all aggregations after the work of one client, and what the
        client has in the end, or None.

        A form can do this faster than `work` and `accumulate` one after the other, for engines that
        run both in one place.

        Raises:
          ExecutionError: a value is beyond the bounds of a secure sum.
        """
        update = self.work(data, sent)
        after = TupleAggregation(self.aggregations).accumulate(totals, update, carried, client)
        return after, self.client_output(update)

    @abc.abstractmethod
    def finish(self, carried: Value, reports: Sequence[Value]) -> tuple[Value, Value]:
        """Return the new state and the server output, from what each aggregation reports."""


class Runtime(Protocol):
    """Runs single components; the steps decide the order and the arguments."""

    def run(self, section: Compiled, argument: Value) -> Value:
        """Return the result of a graph; its argument is None where it takes none."""
        ...

    def evaluate(self, program: Lambda, argument: Value, clients: int) -> Value:
        """Return the result of a program of placed values for this number of clients."""
        ...

    def placed(self, value: Value, type: Type) -> Value:
        """Return a value of one client or of the server, as the program's types place it."""
        ...

    def unplaced(self, value: Value, type: Type) -> Value:
        """Return what one holder of a placed value has; parts without a placement stay."""
        ...

    def no_sum(self, type: Type) -> Value:
        """Return the sum of no values of a type."""
        ...

    def secure_sum(
        self, place: Hashable, uri: str, type: Type, bound: Value, bound_type: Type
    ) -> SecureSumSteps:
        """Return the secure sum at a place of the program, which is the same in all calls of a
        round."""
        ...

    def aggregations(self, program: Lambda) -> Sequence[AggregationSteps]:
        """Return the aggregations of a component that holds nothing else; it takes what the server
        keeps and the clients' updates."""
        ...

    def link(self, work: Lambda, aggregation: Lambda) -> ClientGraphs:
        """Return the graphs of a component that works and of one that holds aggregations only.

        Raises:
          CannotBatchError: what they call is not sections alone.
          TffcError: no graph can hold them.
        """
        ...


class TupleAggregation:
    """Several aggregations as one: its accumulators and reports are lists with one of each."""

    def __init__(self, aggregations: Sequence[AggregationSteps]) -> None:
        self._aggregations = aggregations

    def zero(self, carried: Value) -> list[Value]:
        """See `AggregationSteps`."""
        return [member.zero(carried) for member in self._aggregations]

    def accumulate(
        self, accumulator: Value, update: Value, carried: Value, client: str
    ) -> list[Value]:
        """See `AggregationSteps`."""
        pairs = zip(self._aggregations, accumulator, strict=True)
        return [member.accumulate(part, update, carried, client) for member, part in pairs]

    def merge(self, first: Value, second: Value, carried: Value) -> list[Value]:
        """See `AggregationSteps`."""
        triples = zip(self._aggregations, first, second, strict=True)
        return [member.merge(one, other, carried) for member, one, other in triples]

    def report(self, accumulator: Value, carried: Value) -> list[Value]:
        """See `AggregationSteps`."""
        pairs = zip(self._aggregations, accumulator, strict=True)
        return [member.report(part, carried) for member, part in pairs]
