"""The garbage collector is paused and enabled again."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest

from tffc.cli.collector import collector_paused
from tffc.language import wire
from tffc.language.nodes import Reference, StructNode
from tffc.language.types import TensorType


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    """Enable the collector, as in most processes."""
    gc.enable()
    yield
    gc.enable()


def test_the_collector_is_paused_meanwhile_and_comes_back_after_an_error() -> None:
    @collector_paused()
    def fail() -> None:
        assert not gc.isenabled()
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled()


def test_it_stays_away_where_the_user_keeps_it_away() -> None:
    gc.disable()
    with collector_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_one_pause_within_another_does_not_end_it() -> None:
    with collector_paused():
        with collector_paused():
            pass
        assert not gc.isenabled()


@pytest.mark.slow
def test_reading_and_writing_leave_no_garbage_to_collect() -> None:
    reference = Reference("x", TensorType(np.int32))
    program = StructNode(tuple(StructNode((reference,)) for _ in range(100)))
    wire.from_bytes(wire.to_bytes(program))
    gc.collect()
    wire.from_bytes(wire.to_bytes(program))
    assert gc.collect() == 0
