<<<<<<< HEAD
"""State that a node's kernel keeps from one run to the next, such as where a seeded generator is.

TensorFlow makes one kernel for each node of a graph, and one for each node of a function that is
called, however many calls of the function there are.  So calls of one function share its kernels,
and calls of two functions of equal content do not.
=======
"""What is known about the kernels of operations: whether they may fail, and whether they remember.

`kernels.txt` lists the operations that cannot fail, and those whose kernels remember nothing.  Any
other operation may fail; any other one that is stateful remembers.
>>>>>>> prover
"""

from __future__ import annotations

<<<<<<< HEAD
import pathlib
from typing import Any

from tffc.operations import op_table
from tffc.operations.effects import MODULE, TABLE, Effect, effect_of_module, read_table

STATELESS = pathlib.Path(__file__).with_suffix(".txt")
SEEDS = ("seed", "seed2")
FILLED_ONCE = frozenset({"HashTable", "HashTableV2"})
"""Tables that only their initialization fills, which fails if a later one has other entries."""


def keeps_state(node: Any) -> bool:
    """Tell whether the kernel of a node keeps state, not counting the functions that it calls.

    It does unless it is known not to.  Generators whose state is a seed that TensorFlow chooses
    count as keeping none: no run can tell one from two.
    """
    op = node.op
    if op == MODULE:
        module = node.attr["module"].s if "module" in node.attr else b""
        return effect_of_module(module) is Effect.OTHER
    operation = op_table.find(op)
    if operation is None:
        return True
    if not operation.is_stateful or op in read_table(STATELESS):
        return False
    if read_table(TABLE).get(op) == "seeded by attributes" and not operation.has_named_state:
        return is_seeded(node)
    return True


def remembers_runs(node: Any) -> bool:
    """Tell whether a later run of a node can find what an earlier one left in its kernel."""
    return keeps_state(node) and node.op not in FILLED_ONCE


def is_seeded(node: Any) -> bool:
    """Tell whether an attribute gives a node a seed, or the caller of its function may."""
    seeds = [node.attr[name] for name in SEEDS if name in node.attr]
    return any(seed.i or seed.placeholder for seed in seeds)
=======
import functools
import pathlib

from tffc.operations.effects import OWN_STATE_FAMILIES, Effect

TABLE = pathlib.Path(__file__).with_suffix(".txt")


@functools.cache
def operations_under(heading: str) -> frozenset[str]:
    """Return the operations under a heading of the table, which may be under several."""
    found: set[str] = set()
    current = ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            current = line.strip("[]")
        elif not line.startswith("#") and current == heading:
            found.update(line.split())
    return frozenset(found)


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
>>>>>>> prover
