"""The audit states the bound of a secure sum, also for a struct, if the program determines it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.assurance.audit.audit import audit

PAIR = tff.StructType([("a", np.int32), ("b", np.int32)])


def bound_of(maximum: Any) -> str | None:
    """Return the audited bound of a sum of pairs with this maximum."""

    @tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(PAIR))
    def total(state: Any, data: Any) -> Any:
        return state, tff.federated_secure_sum(data, maximum)

    (channel,) = audit(total.node, "mapreduce").channels
    return channel.bound


@pytest.mark.parametrize(
    ("maximum", "expected"),
    [
        (1000, "1000"),
        ({"a": 5, "b": 7}, "5, 7"),
        ({"a": 7, "b": 5}, "7, 5"),
    ],
)
def test_bounds_that_are_constants_are_named(maximum: Any, expected: str) -> None:
    assert bound_of(maximum) == expected
