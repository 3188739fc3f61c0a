"""The reference interpreter with given random draws and a given number of shards."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from tffc.assurance.validation.bounded import Bounded
from tffc.assurance.validation.compare import unit_of, wide
from tffc.assurance.validation.draws import Draws, Who
from tffc.language.nodes import Compiled, Intrinsic
from tffc.language.types import FunctionType, Type
from tffc.language.values.concrete import Federated, flatten, unflatten
from tffc.runtime.interpreter.operators import CALLING_OPERATORS, SUMS, Machine, add_in_shards
from tffc.support.trampoline import Task

AGGREGATE = "federated_aggregate"

AT_EACH_CLIENT = frozenset(
    {"federated_eval_at_clients", "federated_map", "federated_secure_select", "federated_select"}
)
FOR_EACH_ELEMENT = frozenset(
    {"federated_secure_select", "federated_select", "sequence_map", "sequence_reduce"}
)
"""The operators that apply a function repeatedly, for each client or each element."""

T = TypeVar("T")

Seen: TypeAlias = Callable[[Compiled, Any, Any], None]
"""What is done with a section, its argument and its result."""


class Watched(Bounded):
    """An interpreter with random numbers from `draws` that merges partial aggregates of `shards`.

    Sums of clients' values are shifted by `shift` times the bound of their rounding error.  `first`
    is the number of the first client, which identifies its draws.  `seen` is called with each
    section, its argument and its result.
    """

    def __init__(
        self,
        clients: int,
        draws: Draws,
        shards: int = 1,
        shift: int = 0,
        first: int = 0,
        seen: Seen | None = None,
    ) -> None:
        super().__init__(clients)
        self.draws = draws
        self._seen = seen
        self._shards = shards
        self._shift = shift
        self._first = first

    def run_section(self, section: Compiled, argument: Any) -> Any:
        result = self.draws.run(section, argument)
        if self._seen is not None:
            self._seen(section, argument, result)
        return result

    def apply_operator(self, operator: Intrinsic, argument: Any) -> Task[Any]:
        uri = operator.uri
        if uri == AGGREGATE:
            return (yield self._aggregate(argument))
        if uri in SUMS:
            assert isinstance(operator.type, FunctionType)
            return SUMS[uri](self._add, self.clients, operator.type, argument)
        if uri in AT_EACH_CLIENT:
            return (yield self._at_each_client(uri, argument))
        if uri in FOR_EACH_ELEMENT:
            return (yield CALLING_OPERATORS[uri](_ForEachElement(self), argument))
        return (yield super().apply_operator(operator, argument))

    def _add(self, values: Sequence[Any], type: Type) -> Any:
        total = add_in_shards(split(values, self._shards), type)
        if not self._shift:
            return total
        parts = zip(*(flatten(value, type) for value in (total, *values)), strict=True)
        return unflatten((shifted(part, self._shift) for part in parts), type)

    def _aggregate(self, argument: Any) -> Task[Any]:
        value, zero, accumulate, merge, report = argument
        merged: Any = None
        values: Sequence[Any] = value.at_each(self.clients)
        members = list(enumerate(values))
        for index, shard in enumerate(split(members, self._shards)):
            total = zero
            for client, member in shard:
                with self.draws.by(Who("client", client)):
                    total = yield self.apply(accumulate, (total, member))
            with self.draws.by(Who("merge", index)):
                merged = total if index == 0 else (yield self.apply(merge, (merged, total)))
        return Federated.everywhere((yield self.apply(report, merged)))

    def _at_each_client(self, uri: str, argument: Any) -> Task[Any]:
        members: list[Any] = []
        for client in range(self.clients):
            with self.draws.by(Who("client", self._first + client)):
                machine = _OneClient(self) if uri not in FOR_EACH_ELEMENT else _ForEachElement(self)
                own = yield CALLING_OPERATORS[uri](machine, _of_client(argument, client))
            members.extend(own.members)
        return Federated(tuple(members), all_equal=False)


class _OneClient(Machine):
    """A machine that calls functions through the interpreter, for a single client."""

    def __init__(self, interpreter: Watched) -> None:
        self.clients = 1
        self._interpreter = interpreter

    def apply(self, function: Any, argument: Any) -> Task[Any]:
        return self._interpreter.apply(function, argument)


class _ForEachElement(_OneClient):
    """A machine that makes the draws for all elements as steps of one position."""

    def __init__(self, interpreter: Watched) -> None:
        super().__init__(interpreter)
        self._draws = interpreter.draws
        self._position = self._draws.position()

    def apply(self, function: Any, argument: Any) -> Task[Any]:
        self._draws.repeat_from(self._position)
        return (yield super().apply(function, argument))


def _of_client(argument: Any, client: int) -> Any:
    """Return the operands of an operator with the values of a single client."""
    match argument:
        case Federated(all_equal=False):
            return Federated(argument.members[client : client + 1], all_equal=False)
        case tuple():
            operands = cast("tuple[Any, ...]", argument)
            return tuple(_of_client(operand, client) for operand in operands)
        case _:
            return argument


def shifted(sum_and_addends: Sequence[Any], times: int) -> Any:
    """Return the sum shifted by `times` the bound of its rounding error, if it is floating-point.

    The bound is one unit of rounding of the sum of absolute values, for each addition.
    """
    total, *addends = map(np.asarray, sum_and_addends)
    if total.dtype.kind in "biu":
        return total[()]
    bound = unit_of(total.dtype) * len(addends) * sum(np.abs(wide(one)) for one in addends)
    return (wide(total) + times * bound).astype(total.dtype)[()]


def split(members: Sequence[T], shards: int) -> list[Sequence[T]]:
    """Return members in shards of about equal size, some of them empty if there are few members."""
    bounds = [len(members) * shard // shards for shard in range(shards + 1)]
    return [members[start:end] for start, end in itertools.pairwise(bounds)]
