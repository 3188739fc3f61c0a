"""The tests of PyTorch computations are collected where what they need is installed."""

from __future__ import annotations

import importlib.util

NEEDED = ("torch", "torchax", "jax")

collect_ignore_glob = (
    [] if all(importlib.util.find_spec(name) for name in NEEDED) else ["test_*.py"]
)
