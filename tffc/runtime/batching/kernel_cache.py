"""Kernels kept between runs, as portable modules, by the digest of what they are made from.

The cache is the folder `tffc/kernels` in `$XDG_CACHE_HOME` or else in `~/.cache`.  As kernels are
run without a look at what they compute, the folder is not used if anybody else can write to it.
What is kept there runs on processors and GPUs, on any machine with the same releases of tffc and
JAX.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
import re
from collections.abc import Iterable

from tffc.runtime import lowering
from tffc.support.files import atomic
from tffc.support.files.private import cache_base, is_private, is_private_inside, remove_oldest
from tffc.support.files.reading import read_regular
from tffc.support.version import VERSION

MOST_FILES = 200
"""The most kernels that the cache keeps: those used last."""

MOST_BYTES = 2**31
"""The most bytes of a kernel's file; JAX writes none that is larger."""

NAME = re.compile(r"[0-9a-f]{64}")
"""Matches the name of a kernel; nothing else is ever removed from the cache."""


@functools.cache
def _own_code() -> bytes:
    """Return the digest of the code that makes kernels: whoever changes it needs others."""
    total = hashlib.sha256(VERSION.encode())
    for package in (pathlib.Path(__file__).parent, pathlib.Path(lowering.__file__).parent):
        for path in sorted(package.rglob("*.py")):
            total.update(path.read_bytes())
    return total.digest()


def digest_of(parts: Iterable[bytes]) -> str:
    """Return the digest of what a kernel is made from, and of the code that makes it."""
    total = hashlib.sha256(_own_code())
    for part in parts:
        total.update(hashlib.sha256(part).digest())
    return total.hexdigest()


def load_kernel(digest: str) -> bytes | None:
    """Return the content of a kernel, or None if it is not kept, in a regular file."""
    path = cache_folder() / digest
    try:
        if not is_private(path.parent) or not is_private_inside(path):
            return None
        content = read_regular(path, MOST_BYTES)
        path.touch()
    except OSError:
        return None
    stated, _, module = content.partition(b"\n")
    # A file that was cut off, that a disk has changed, or that is another kernel's.
    return module if _seal(digest, module) == stated else None


def keep_kernel(digest: str, module: bytes) -> bool:
    """Keep a kernel; return whether that was possible."""
    folder = cache_folder()
    path = folder / digest
    content = _seal(digest, module) + b"\n" + module
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_private(folder):
            return False
        if path.is_dir() and not path.is_symlink():
            atomic.remove(path)  # no file replaces a folder
        atomic.replace_file(path, content, is_shared=True)
        remove_oldest(folder, NAME, MOST_FILES)
    except OSError:
        return False
    return True


def _seal(digest: str, module: bytes) -> bytes:
    """Return the first line of the file of a kernel."""
    return hashlib.sha256(digest.encode() + module).hexdigest().encode()


def cache_folder() -> pathlib.Path:
    """Return the folder of kept kernels; without a home folder, a path that cannot exist."""
    return cache_base() / "kernels"
