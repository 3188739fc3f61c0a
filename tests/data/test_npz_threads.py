"""Arrays read by several threads at once."""

from __future__ import annotations

import ast
import concurrent.futures
import pathlib
import threading
import time
from typing import Any

import numpy as np
import pytest

from tffc.data.arrays import Layout
from tffc.data.npz import encode_npz, read_arrays
from tffc.ir.types import TensorType


def test_one_thread_at_a_time_parses(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout(TensorType(np.float32, [3]))
    path = tmp_path / "client.npz"
    path.write_bytes(encode_npz(layout.encode(np.ones(3, np.float32), "it"), {}))
    parse, busy, alone = ast.parse, threading.Lock(), []

    def watched(*arguments: Any, **options: Any) -> Any:
        alone.append(busy.acquire(blocking=False))
        time.sleep(0.001)  # so that another thread comes in, if one can
        try:
            return parse(*arguments, **options)
        finally:
            if busy.locked():
                busy.release()

    monkeypatch.setattr(ast, "parse", watched)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: read_arrays(path, layout), range(20)))
    assert alone
    assert all(alone)
