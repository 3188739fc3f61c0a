"""Settings for all frameworks, which they read when they first look for devices."""

from __future__ import annotations

import os

FAST_MIN_MAX = "xla_cpu_enable_fast_min_max"
"""XLA's setting that loses a NaN in minima and maxima on processors; JAX sets it to false for what
it compiles itself."""


def prepare_environment() -> None:
    """Let several processes use one accelerator, and XLA keep each NaN in minima and maxima, unless
    the environment says otherwise.

    TensorFlow and JAX would each take all or most of an accelerator's memory at once.  Loads
    nothing; call it before running code that may import them.
    """
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    flags = os.environ.get("XLA_FLAGS", "")
    if FAST_MIN_MAX not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --{FAST_MIN_MAX}=false".lstrip()
