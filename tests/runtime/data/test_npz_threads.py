"""Arrays read by several threads at once."""

from __future__ import annotations

import ast
import concurrent.futures
import io
import pathlib
import threading
import time
import zipfile
from typing import Any

import numpy as np
import pytest

from tffc.language.types import TensorType
from tffc.runtime.data.arrays import ArrayLayout
from tffc.runtime.data.npz import read_arrays


def write_unusual(path: pathlib.Path, array: Any) -> None:
    """Writes an array with a head that only a parser of Python understands."""
    content = io.BytesIO()
    np.save(content, array)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("0.npy", content.getvalue().replace(b": False, ", b" :False, "))


def test_one_thread_at_a_time_parses(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = ArrayLayout(TensorType(np.float32, [3]))
    path = tmp_path / "client.npz"
    write_unusual(path, layout.encode(np.ones(3, np.float32), "it")["0"])
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
