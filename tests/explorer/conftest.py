"""Fixtures of the tests of the explorer: descriptions of rounds that need no TensorFlow."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from tffc.cli.sources import read_round
from tffc.explorer.description import Description, describe

ROUND = """\
import collections
import numpy as np
import tffc as tff

DATA = collections.OrderedDict(
    size=np.int32, score=tff.TensorType(np.float32, [3]), weight=np.float32
)


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(DATA))
def count(state, data):
    sent = tff.federated_broadcast(state)
    size = tff.federated_secure_sum_bitwidth(data.size, bitwidth=10)
    score = tff.federated_mean(data.score, weight=data.weight)
    return size, (score, tff.federated_max(sent))
"""

LATE = """\
import numpy as np
import tffc as tff


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def count(state, data):
    total = tff.federated_sum(data)
    sent = tff.federated_broadcast(total)
    return state, tff.federated_max(sent)
"""
"""A round whose broadcast comes too late."""

Describe = Callable[..., Description]


@pytest.fixture
def described(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Describe:
    """Describes a program that is written to the file `round.py` of the test's own folder."""
    monkeypatch.chdir(tmp_path)

    def run(text: str = ROUND, form: str = "mapreduce", **more: Any) -> Description:
        path = tmp_path / "round.py"
        path.write_text(text, encoding="utf-8")
        return describe(read_round(str(path), form).computation, form, "round.py:count", **more)

    return run
