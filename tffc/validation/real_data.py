"""Test arguments with real clients' data; the server state is generated from its type."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tffc.data.location import open_source
from tffc.data.source import check_all
from tffc.errors import ValidationError
from tffc.ir.type_parts import local_type
from tffc.ir.types import CLIENTS, FederatedType, FunctionType, StructType, Type
from tffc.validation.arguments import FIRST, MAX_CLIENTS, ArgumentCase, Numbers, case


def cases_of_clients(
    type: FunctionType, location: str, count: int, seed: int
) -> Iterator[ArgumentCase]:
    """Yield `count` cases of up to `MAX_CLIENTS` clients drawn from a data set by a seed.

    Raises:
      ValidationError: the program does not take a state and clients' data.
      DataError: the clients' data cannot be read, or does not fit its type.
    """
    state, data = _parts(type)
    source = open_source(location, local_type(data))
    check_all(source)
    for index in range(count):
        chance = random.Random(f"{seed}/{index}")
        known = FIRST[index][1] if index < len(FIRST) else Numbers.SMALL
        numbers = known if known in (Numbers.ZERO, Numbers.ONE) else Numbers.SMALL
        sampled = chance.sample(source.clients, min(len(source.clients), index % MAX_CLIENTS + 1))
        server = case(state, 0, numbers, chance)
        yield ArgumentCase(
            (server.argument, [source.read(name) for name in sampled]), may_reorder=True
        )


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
    )
