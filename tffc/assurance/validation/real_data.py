"""Test arguments with real clients' data.

The server state is the program's own where it has one, and is generated from its type otherwise.
Clients that keep states have in turn their first ones and generated ones.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tffc.assurance.validation.arguments import (
    FIRST,
    MAX_CLIENTS,
    ArgumentCase,
    Maker,
    Numbers,
    Plainness,
    plain_case,
)
from tffc.assurance.validation.sources import Arguments
from tffc.language.type_parts import local_type
from tffc.language.types import CLIENTS, FederatedType, FunctionType, StructType, Type
from tffc.runtime.data.clients import Data, source_of
from tffc.runtime.engines.client_states import first_client_state
from tffc.support.errors import ValidationError


class RealData(Arguments):
    """Arguments of up to `MAX_CLIENTS` clients drawn from a data set by a seed, for a round.

    Raises:
      ValidationError: the program does not take a state and clients' data.
      DataError: the clients' data cannot be read, or does not fit its type.
    """

    def __init__(self, type: FunctionType, held: Data, count: int, seed: int) -> None:
        super().__init__(type.parameter, count, seed)
        self._state, data = _parts(type)
        # Several values of the clients are a struct; each client has one of each.
        self._parts = len(data) if isinstance(data, StructType) else None
        taken = local_type(data)
        self._state_type: Type | None = None
        if _keeps_states(type, taken) and isinstance(taken, StructType):
            taken, self._state_type = taken.types
        self._source = source_of(held, taken)

    def __iter__(self) -> Iterator[ArgumentCase]:
        for index in range(self.count):
            chance = random.Random(f"{self.seed}/{index}")
            known = FIRST[index][1] if index < len(FIRST) else Numbers.SMALL
            numbers = known if known in (Numbers.ZERO, Numbers.ONE) else Numbers.SMALL
            size = min(len(self._source.clients), index % MAX_CLIENTS + 1)
            sampled = chance.sample(self._source.clients, size)
            yield self._of(Maker(0, numbers, chance).case(self._state), sampled, chance)

    def plain(self, way: Plainness, source: random.Random) -> ArgumentCase:
        size = min(len(self._source.clients), source.randint(1, MAX_CLIENTS))
        sampled = source.sample(self._source.clients, size)
        return self._of(plain_case(self._state, way, source), sampled, source)

    def _of(self, state: ArgumentCase, clients: list[str], chance: random.Random) -> ArgumentCase:
        data: Any = [self._source.read(name) for name in clients]
        if self._state_type is not None:
            first, maker = first_client_state(self._state_type), Maker(0, Numbers.SMALL, chance)
            is_first = chance.random() < 0.5
            states = [first if is_first else maker.case(self._state_type).argument for _ in data]
            data = list(zip(data, states, strict=True))
        if self._parts is not None:
            data = tuple([value[part] for value in data] for part in range(self._parts))
        return ArgumentCase((state.argument, data), may_reorder=True)


def _keeps_states(type: FunctionType, taken: Type) -> bool:
    """Return whether a round gives each client a state, which is the second thing that it takes."""
    result = type.result
    if not isinstance(result, StructType) or len(result) != 3:
        return False
    if not isinstance(taken, StructType) or len(taken) != 2:
        return False
    state = result[1]
    is_placed = isinstance(state, FederatedType) and state.placement is CLIENTS
    return is_placed and taken[1].is_assignable_from(local_type(state))


def _parts(type: FunctionType) -> tuple[Type, Type]:
    parameter = type.parameter
    if isinstance(parameter, StructType) and len(parameter) == 2:
        state, data = parameter.types
        parts = data.types if isinstance(data, StructType) else (data,)
        if parts and all(isinstance(p, FederatedType) and p.placement is CLIENTS for p in parts):
            return state, data
    raise ValidationError(
        "E903",
        f"real data is for a round, which takes a state and clients' data; found `{type}`",
        help="try arguments that are made up",
        remedy="generated arguments",
    )
