"""Computations that a program awaits."""

from __future__ import annotations

import asyncio

import numpy as np

import tffc as tff
from tffc.frontend.execution import AsyncExecutionContext


def test_results_are_awaited() -> None:
    @tff.federated_computation(tff.types.at_clients(np.int32))
    def total(x: tff.Value) -> tff.Value:
        return tff.federated_sum(x)

    async def both() -> list[int]:
        context = AsyncExecutionContext()
        sums = [context.invoke(total, [1, 2]), context.invoke(total, [3, 4])]
        return list(await asyncio.gather(*sums))

    assert asyncio.run(both()) == [3, 7]
