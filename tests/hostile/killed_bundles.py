"""Bundles whose replacing is killed: run by a test, in a process of its own.

    python -m tests.hostile.killed_bundles exchange | two-renames

Prints how often the old bundle was there afterwards, and how often the new one; and what is wrong:
another bundle or none, or something that the next replacing leaves behind.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
import tempfile
from unittest import mock

import numpy as np

from tests.hostile.kills import every_kill
from tffc.backends.bundle.bundle import Bundle, read_bundle, write_bundle
from tffc.language import Lambda, Reference, TensorType


def bundle(name: str) -> Bundle:
    """A bundle that is another one than those of other names."""
    program = Lambda(name, TensorType(np.int32), Reference(name, TensorType(np.int32)))
    return Bundle("mapreduce", program, {"prepare": program}, None, {})


def main(kind: str) -> None:
    """Print what is there after each kill."""
    if kind == "two-renames":
        mock.patch.object(ctypes, "CDLL", return_value=None).start()
    counts, wrong, kills = {"old": 0, "new": 0}, [], 0
    with tempfile.TemporaryDirectory() as place:
        # A name as long as the file system takes.
        path = pathlib.Path(place, "b" * 255)
        write_bundle(bundle("old"), path)
        for step in every_kill(lambda: write_bundle(bundle("new"), path, replace=True)):
            kills += 1
            if kind == "exchange" and not path.exists():
                wrong.append((step, "there is no bundle"))
            found = read_bundle(path).computation
            for name in counts:
                counts[name] += str(found) == str(bundle(name).computation)
            write_bundle(bundle("old"), path, replace=True)
            wrong += [(step, left) for left in os.listdir(place) if left != path.name]
    wrong += [] if sum(counts.values()) == kills else [counts]
    print(f"{counts['old']}; {counts['new']}; wrong: {wrong}")


if __name__ == "__main__":
    main(*sys.argv[1:])
