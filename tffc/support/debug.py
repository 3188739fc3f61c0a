"""The debugging mode, which shows tffc's own frames in tracebacks, and TensorFlow's log."""

from __future__ import annotations

import os

VARIABLE = "TFFC_DEBUG"
"""The environment variable for it, which worker processes inherit."""


def is_debugging() -> bool:
    """Return whether frames of tffc stay in tracebacks, and TensorFlow may log."""
    return os.environ.get(VARIABLE) == "1"


def start_debugging() -> None:
    """Set the variable, for this process and those that it starts."""
    os.environ[VARIABLE] = "1"
