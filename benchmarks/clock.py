"""Timing one function inside a process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any


def seconds(function: Callable[[], Any]) -> float:
    """Return the wall-clock seconds of one call, after collecting garbage."""
    gc.collect()
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
