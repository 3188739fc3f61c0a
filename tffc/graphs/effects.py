"""Which operations do more than compute their outputs from their inputs.

`effects.txt` names those that are known.  One that TensorFlow marks as stateful and that is not
among them counts as having effects, and so does one that TensorFlow does not have.

State that nothing outside a run can see is called a section's own, such as variables that the
section initializes.  Some operations are marked as stateful for other reasons, and what is in the
functions that they call is looked at for itself.
"""

from __future__ import annotations

import enum
import functools
import pathlib
from collections.abc import Mapping
from typing import Any

from tffc.graphs import op_table

TABLE = pathlib.Path(__file__).with_suffix(".txt")


class Effect(enum.Enum):
    """What an operation does besides computing."""

    OWN_STATE = "keeps state that is new in each run"
    RANDOM = "draws random numbers without a fixed seed"
    CLOCK = "reads the clock"
    FILES = "reads or writes files"
    OUTPUT = "prints or logs"
    PYTHON = "calls Python"
    ORDER = "gives elements in no fixed order"
    OTHER = "is not known to be without effects"


HEADINGS = {
    "own state": Effect.OWN_STATE,
    "random": Effect.RANDOM,
    "clock": Effect.CLOCK,
    "files": Effect.FILES,
    "output": Effect.OUTPUT,
    "python": Effect.PYTHON,
}
"""What the headings in the table say of the operations under them."""

OWN_STATE_FAMILIES = ("ResourceApply", "ResourceScatter", "ResourceSparseApply")
"""What the names of the operations that update variables begin with."""

SEEDED_BY_INPUTS = {
    "AnonymousRandomSeedGenerator": 0,
    "AnonymousSeedGenerator": 0,
    "ExperimentalRandomDataset": 0,
    "RandomDataset": 0,
    "RandomDatasetV2": 0,
    "SamplingDataset": 2,
    "ShuffleAndRepeatDataset": 2,
    "ShuffleAndRepeatDatasetV2": 2,
    "ShuffleDataset": 2,
    "ShuffleDatasetV3": 2,
}
"""Those that take two seeds as inputs, and the position of the first."""

FILE_NAMES = {"CacheDataset": 1, "CacheDatasetV2": 1}
"""Operations that use a file unless its name is empty, and the position of that input."""


@functools.lru_cache(maxsize=1)
def _table() -> dict[str, str]:
    """The heading in the table that each operation stands under."""
    headings: dict[str, str] = {}
    heading = ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            heading = line.strip("[]")
        elif not line.startswith("#"):
            headings.update(dict.fromkeys(line.split(), heading))
    return headings


def effect_of(node: Any, nodes: Mapping[str, Any]) -> Effect | None:
    """What a node of a graph or of a function's body does besides computing; None for nothing.

    `nodes` has all nodes beside it by name.
    """
    op = node.op
    heading = _table().get(op)
    if heading in HEADINGS:
        return HEADINGS[heading]
    if heading == "seeded by attributes":
        seeds = [node.attr[name].i for name in ("seed", "seed2") if name in node.attr]
        return Effect.OWN_STATE if any(seeds) else Effect.RANDOM
    if op in SEEDED_BY_INPUTS:
        first = SEEDED_BY_INPUTS[op]
        return _seeded([_constant(edge, nodes) for edge in node.input[first : first + 2]])
    if op in FILE_NAMES:
        place = FILE_NAMES[op]
        names = [_constant(edge, nodes) for edge in node.input[place : place + 1]]
        return Effect.OWN_STATE if names == [b""] else Effect.FILES
    if op.startswith(OWN_STATE_FAMILIES):
        return Effect.OWN_STATE
    if _is_unordered(node.attr):
        return Effect.ORDER
    operation = op_table.find(op)
    return Effect.OTHER if operation is None or operation.is_stateful else None


def _is_unordered(attributes: Any) -> bool:
    if "sloppy" in attributes and attributes["sloppy"].b:
        return True
    return "deterministic" in attributes and attributes["deterministic"].s == b"false"


def _seeded(seeds: list[int | bytes | None]) -> Effect:
    """One seed that is known not to be zero is enough; TensorFlow computes the other from it."""
    return Effect.OWN_STATE if any(seeds) else Effect.RANDOM


def _constant(edge: str, nodes: Mapping[str, Any]) -> int | bytes | None:
    """The scalar that an input is, if it is a constant integer or string."""
    node = nodes.get(edge.partition(":")[0])
    if node is None or node.op != "Const":
        return None
    value = node.attr["value"].tensor
    if value.tensor_content:
        return int.from_bytes(value.tensor_content, "little")
    found = [*value.int64_val, *value.int_val, *value.string_val]
    return found[0] if found else 0
