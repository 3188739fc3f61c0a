"""What is known about the kernels of operations: whether they may fail, and whether they remember.

`failing.txt` lists the operations that cannot fail, and those whose kernels remember nothing.  Any
other operation may fail; any other one that is stateful remembers.
"""

from __future__ import annotations

import functools
import pathlib

from tffc.graphs.operations.effects import OWN_STATE_FAMILIES, Effect

TABLE = pathlib.Path(__file__).with_suffix(".txt")


@functools.cache
def operations_under(heading: str) -> frozenset[str]:
    """Return the operations under a heading of the table, which may be under several."""
    operations: set[str] = set()
    current = ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            current = line.strip("[]")
        elif not line.startswith("#") and current == heading:
            operations.update(line.split())
    return frozenset(operations)


def may_fail(op: str) -> bool:
    """Tell whether an operation may fail for some values of its inputs."""
    return op not in operations_under("cannot fail")


def remembers(op: str, effect: Effect | None) -> bool:
    """Tell whether the kernel of an operation with this effect may remember its earlier runs.

    Draws without a seed remember where their generators are, but nothing can be told from it.
    """
    if effect in (None, Effect.RANDOM) or op in operations_under("no memory"):
        return False
    return not op.startswith(OWN_STATE_FAMILIES)
