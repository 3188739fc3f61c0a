"""What all of Python shares, kept in order while a user's module is imported."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def importing_from(folder: str) -> Iterator[None]:
    """Let modules of a folder be imported meanwhile.

    Afterwards the process can import and print as before: a module may add paths, finders and
    streams, and those that it took away are put back.
    """
    path, finders = sys.path, sys.meta_path
    known = list(finders)
    streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    path.insert(0, folder)
    try:
        yield
    finally:
        if not isinstance(sys.path, list):
            sys.path = path
        if folder in sys.path:
            sys.path.remove(folder)
        if not isinstance(sys.meta_path, list):
            sys.meta_path = finders
        sys.meta_path += [finder for finder in known if finder not in sys.meta_path]
        for name, stream in streams.items():
            if getattr(sys, name, None) is None:
                setattr(sys, name, stream)
