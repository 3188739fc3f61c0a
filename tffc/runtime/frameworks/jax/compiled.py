"""Compiled code of JAX, kept between runs on this machine."""

from __future__ import annotations

import hashlib
import os
import pathlib
import platform

from tffc.support.files.private import cache_base, is_private

VARIABLE = "JAX_COMPILATION_CACHE_DIR"


def keep_compiled() -> None:
    """Let JAX keep what took it more than a second to compile, unless the environment names a
    folder for that.

    Loads nothing; call it before JAX is imported.  Machine code runs on processors of one kind, so
    each has a folder of its own in tffc's cache.  If others can write to that, or it holds anything
    but files and folders, nothing is kept: JAX would wait for a FIFO.
    """
    folder = cache_base() / f"xla-{_processor()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_private(folder) and _holds_files(folder):
            os.environ.setdefault(VARIABLE, os.fspath(folder))
    except OSError:
        pass  # it only saves time


def _holds_files(folder: pathlib.Path) -> bool:
    with os.scandir(folder) as entries:
        return all(
            entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
            for entry in entries
        )


def _processor() -> str:
    """Return the digest of what this processor can do, as far as the system tells."""
    told = [platform.machine(), platform.processor()]
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    told += sorted({line for line in lines if line.startswith(("flags", "model name", "Features"))})
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
