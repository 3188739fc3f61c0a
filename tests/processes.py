"""Python in new processes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TFFC_PROGRESS": "off"}
"""With this, a new interpreter finds this checkout from any folder, and commands say no more where
they are slow."""


def run_python(
    *arguments: str, env: dict[str, str] = ENVIRONMENT, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run Python in a new process and capture what it prints; `options` are `subprocess.run`'s."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, **options)
