"""What is told of the time of rounds."""

from __future__ import annotations

import pytest

from tffc.runtime.engines import speed
from tffc.runtime.engines.speed import ROUND, Stopwatch


def test_calls_at_the_same_time_occupy_devices_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([10.0, 14.0, 20.0, 21.0])
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(now))
    stopwatch = Stopwatch()
    with stopwatch.occupying(), stopwatch.occupying():
        pass
    with pytest.raises(ValueError, match="x"), stopwatch.occupying():
        raise ValueError("x")
    stopwatch.add(ROUND, 20.0, 5)
    assert stopwatch.occupied == 5.0
    assert stopwatch.table(1, 2)[1:] == [
        "  waiting, and Python between: 40000.0 ms a round, 100%",
        "  devices were busy with batches for 25% of the time",
        "  0.25 clients a second",
    ]


def test_devices_that_were_not_used_are_not_told_of() -> None:
    stopwatch = Stopwatch()
    stopwatch.add(ROUND, 1.0, 5)
    assert not any("devices" in line for line in stopwatch.table(1, 2))
