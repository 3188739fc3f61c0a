"""What all tests of hostile inputs share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

SECONDS = 30
"""How much processor time is allowed; only what does not end takes so much."""


@pytest.fixture
def hang() -> Iterator[None]:
    """Fails a test that takes far more processor time than what it tries can need."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it was given up after {SECONDS} seconds")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
