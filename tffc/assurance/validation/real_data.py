"""Test arguments with real clients' data.

The server state is the program's own where it has one, and is generated from its type otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

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
from tffc.support.errors import ValidationError


class RealData(Arguments):
    """Arguments of up to `MAX_CLIENTS` clients drawn from a data set by a seed.

    Raises:
      ValidationError: the program does not take a state and clients' data.
      DataError: the clients' data cannot be read, or does not fit its type.
    """

    def __init__(self, type: FunctionType, held: Data, count: int, seed: int) -> None:
        super().__init__(type.parameter, count, seed)
        self._state, data = _parts(type)
        self._source = source_of(held, local_type(data))

    def __iter__(self) -> Iterator[ArgumentCase]:
        for index in range(self.count):
            chance = random.Random(f"{self.seed}/{index}")
            known = FIRST[index][1] if index < len(FIRST) else Numbers.SMALL
            numbers = known if known in (Numbers.ZERO, Numbers.ONE) else Numbers.SMALL
            size = min(len(self._source.clients), index % MAX_CLIENTS + 1)
            sampled = chance.sample(self._source.clients, size)
            yield self._of(Maker(0, numbers, chance).case(self._state), sampled)

    def plain(self, way: Plainness, source: random.Random) -> ArgumentCase:
        size = min(len(self._source.clients), source.randint(1, MAX_CLIENTS))
        sampled = source.sample(self._source.clients, size)
        return self._of(plain_case(self._state, way, source), sampled)

    def _of(self, state: ArgumentCase, clients: list[str]) -> ArgumentCase:
        data = [self._source.read(name) for name in clients]
        return ArgumentCase((state.argument, data), may_reorder=True)


def _parts(type: FunctionType) -> tuple[Type, FederatedType]:
    parameter = type.parameter
    if isinstance(parameter, StructType) and len(parameter) == 2:
        state, data = parameter.types
        if isinstance(data, FederatedType) and data.placement is CLIENTS:
            return state, data
    raise ValidationError(
        "E903",
        f"real data is for a round, which takes a state and clients' data; found `{type}`",
        help="try arguments that are made up",
        remedy="generated arguments",
    )
