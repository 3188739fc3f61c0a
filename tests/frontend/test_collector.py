"""The collector is paused while a federated computation is traced, and misses nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tffc as tff

INTS = tff.types.at_clients(np.int32)


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    """The collector as it is in most processes."""
    gc.enable()
    yield
    gc.enable()


def traced() -> None:
    @tff.federated_computation(INTS)
    def sums(data: Any) -> Any:
        assert not gc.isenabled()
        return tuple(tff.federated_sum(data) for _ in range(100))


def test_the_collector_is_paused_while_a_computation_is_traced() -> None:
    traced()
    assert gc.isenabled()


def test_it_comes_back_where_tracing_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        tff.federated_computation(lambda data: 1 // 0, INTS)
    assert gc.isenabled()


def test_tracing_leaves_hardly_anything_to_collect() -> None:
    traced()
    gc.collect()
    traced()
    assert gc.collect() < 100
