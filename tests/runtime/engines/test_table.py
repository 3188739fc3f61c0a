"""What is decided for all engines."""

from __future__ import annotations

import os

import pytest

from tffc.runtime.engines.cores import share_cores

THREADS = "TF_NUM_INTRAOP_THREADS"


@pytest.mark.parametrize(("clients", "threads"), [(1, 8), (3, 2), (8, 1), (1000, 1), (0, 8)])
def test_clients_share_the_cores(
    clients: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    monkeypatch.setenv(THREADS, "")
    monkeypatch.delenv(THREADS)
    share_cores(clients)
    assert os.environ[THREADS] == str(threads)


def test_the_environment_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, "5")
    share_cores(1000)
    assert os.environ[THREADS] == "5"
