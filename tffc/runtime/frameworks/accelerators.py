"""Settings of accelerators for all frameworks, which they read when they first look for one."""

from __future__ import annotations

import os


def share_accelerators() -> None:
    """Let several processes use one accelerator, unless the environment says otherwise.

    TensorFlow and JAX would each take all or most of its memory at once.  Loads nothing; call it
    before running code that may import them.
    """
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
