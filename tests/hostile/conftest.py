"""What all tests of hostile inputs share."""

from __future__ import annotations

import platform
import signal
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from tffc.support.files.reading import this_machine

SECONDS = 30
"""How much processor time is allowed; only what does not end takes so much."""


@pytest.fixture
def move(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Has all go on as on another machine once it is called."""

    def go_on() -> None:
        monkeypatch.setattr(platform, "node", lambda: "another")
        this_machine.cache_clear()

    yield go_on
    this_machine.cache_clear()


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
