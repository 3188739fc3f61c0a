"""Which operations do more than compute their outputs from their inputs.

`effects.txt` names those that are known.  One that TensorFlow marks as stateful and that is not
among them counts as having effects, and so does one that TensorFlow does not have.

State that nothing outside a run can see is called a section's own, such as variables that the
section initializes.  Some operations are marked as stateful for other reasons, and what is in the
functions that they call is looked at for itself.

Some effects reach outside of TensorFlow: `OUTSIDE` says which, and what each is called where a user
consents to it.
"""

from __future__ import annotations

import enum
import functools
import pathlib
import re
from collections.abc import Container, Mapping
from typing import Any

from tffc.graphdef import op_table
from tffc.graphdef.bytecode import BytecodeError, operations
from tffc.proto import NodeDef

TABLE = pathlib.Path(__file__).with_suffix(".txt")
MODULE_TABLE = pathlib.Path(__file__).with_name("stablehlo.txt")
"""The operations of StableHLO, without their versions; another one counts as having effects."""

MODULE = "XlaCallModule"
"""The operation whose attribute `module` is a portable artifact of StableHLO, which it runs."""


class Effect(enum.Enum):
    """What an operation does besides computing."""

    OWN_STATE = "keeps state that is new in each run"
    RANDOM = "draws random numbers without a fixed seed"
    CLOCK = "reads the clock"
    FILES = "reads or writes files"
    SUMMARIES = "writes summaries to files"
    NETWORK = "talks to other processes"
    OUTPUT = "prints or logs"
    PYTHON = "calls Python"
    ORDER = "gives elements in no fixed order"
    SESSION = "depends on the session or the device that it runs in"
    OTHER = "is not known to be without effects"


HEADINGS = {
    "own state": Effect.OWN_STATE,
    "random": Effect.RANDOM,
    "clock": Effect.CLOCK,
    "files": Effect.FILES,
    "summaries": Effect.SUMMARIES,
    "network": Effect.NETWORK,
    "output": Effect.OUTPUT,
    "python": Effect.PYTHON,
    "session": Effect.SESSION,
    "other": Effect.OTHER,
}
"""What the headings in the table say of the operations under them."""

OUTSIDE = {
    Effect.FILES: "files",
    Effect.SUMMARIES: "files",
    Effect.NETWORK: "network",
    Effect.PYTHON: "python",
    Effect.OTHER: "unknown",
}
"""The effects that reach outside of TensorFlow, and the kind that each is of."""

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

PRINTED_TO = re.compile(rb"stdout|stderr|log\(\w+\)")
"""The streams of `PrintV2` that are not files."""

OWN_DESCRIPTIONS = re.compile(rb"(local://|bytes://.*)?", re.DOTALL)
"""The descriptions of messages that are in no file."""

URLS = {
    "Copy": "debug_ops_spec",
    "CopyHost": "debug_ops_spec",
    "DebugIdentity": "debug_urls",
    "DebugIdentityV2": "debug_urls",
    "DebugIdentityV3": "debug_urls",
    "DebugNanCount": "debug_urls",
    "DebugNumericSummary": "debug_urls",
}
"""Operations that send tensors to addresses, if they have any, and the attribute with these."""

LOOKED_AT = frozenset(
    (
        "DecodeProtoV2",
        "EncodeProto",
        "FixedUnigramCandidateSampler",
        "PrintV2",
        MODULE,
        *URLS,
        *FILE_NAMES,
    )
)
"""Operations that reach outside only with some attributes or inputs."""

ELSEWHERE = re.compile(r"/job:(?!localhost(/|$))", re.IGNORECASE)
"""What is in the names of other processes' devices."""


@functools.lru_cache(maxsize=1)
def _table() -> dict[str, str]:
    return read_table(TABLE)


def read_table(path: pathlib.Path) -> dict[str, str]:
    """Return the heading in a table that each name stands under."""
    headings: dict[str, str] = {}
    heading = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            heading = line.strip("[]")
        elif not line.startswith("#"):
            headings.update(dict.fromkeys(line.split(), heading))
    return headings


def effect_of(node: Any, nodes: Mapping[str, Any]) -> Effect | None:
    """Return what a node of a graph or of a function's body does besides computing; None for
    nothing.

    `nodes` has all nodes beside it by name.
    """
    op = node.op
    if op == MODULE:
        return effect_of_module(_text(node, "module", b""))
    if op in LOOKED_AT:
        found = _effect_of_address(node)
        if found is not None:
            return found
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


@functools.lru_cache(maxsize=256)
def effect_of_module(module: bytes) -> Effect | None:
    """Return what a portable artifact of StableHLO does besides computing; None for nothing.

    A call of a function that is not in it, `custom_call`, may do anything.
    """
    try:
        effects = set(effects_in_module(module).values())
    except BytecodeError:
        return Effect.OTHER
    return Effect.OTHER if Effect.OTHER in effects else next(iter(effects), None)


def effects_in_module(module: bytes) -> dict[str, Effect]:
    """Return the operations in a portable artifact of StableHLO that do more than compute.

    Raises:
      BytecodeError: it is not an artifact.
    """
    found: dict[str, Effect] = {}
    for operation in operations(module):
        name = operation.rpartition("_v")[0] or operation
        heading = _module_table().get(name, "other")
        if heading != "computing":
            found[name] = HEADINGS[heading]
    return found


@functools.lru_cache(maxsize=1)
def _module_table() -> dict[str, str]:
    return read_table(MODULE_TABLE)


def outside_kind(node: Any, nodes: Mapping[str, Any]) -> str | None:
    """Return the kind of what a node does outside of TensorFlow, one of those in `OUTSIDE`; None
    for nothing.  For `nodes` see `effect_of`."""
    if node.device and ELSEWHERE.search(node.device):
        return OUTSIDE[Effect.NETWORK]
    if not _may_reach_outside(node.op):
        return None
    effect = effect_of(node, nodes)
    return None if effect is None else OUTSIDE.get(effect)


def has_outside(graph: Any) -> bool:
    """Tell whether a GraphDef has anything that has to be looked at to know what it does
    outside."""
    library = graph.library.function
    called = {function.signature.name for function in library}
    for nodes in (graph.node, *(function.node_def for function in library)):
        for node in nodes:
            if node.device and ELSEWHERE.search(node.device):
                return True
            if _may_reach_outside(node.op) and not is_call(node.op, called):
                return True
    return False


def is_call(op: str, functions: Container[str]) -> bool:
    """Tell whether an operation is a call of one of these functions of the graph."""
    return op in functions and op_table.find(op) is None


@functools.lru_cache(maxsize=4096)
def _may_reach_outside(op: str) -> bool:
    """Tell whether a node of this operation has to be looked at."""
    return op in LOOKED_AT or effect_of(NodeDef(op=op), {}) in OUTSIDE


def is_listed(op: str) -> bool:
    """Tell whether it is said of an operation by name what it does besides computing."""
    listed = op in _table() or op in SEEDED_BY_INPUTS or op in FILE_NAMES or op == MODULE
    return listed or op.startswith(OWN_STATE_FAMILIES)


def _effect_of_address(node: Any) -> Effect | None:
    """Return the effect of an operation whose attributes may name a file or an address."""
    if node.op == "PrintV2":
        stream = _text(node, "output_stream", b"stderr")
        return None if PRINTED_TO.fullmatch(stream) else Effect.FILES
    if node.op == "FixedUnigramCandidateSampler":
        return Effect.FILES if _text(node, "vocab_file", b"") else None
    if node.op in ("DecodeProtoV2", "EncodeProto"):
        source = _text(node, "descriptor_source", b"local://")
        return None if OWN_DESCRIPTIONS.fullmatch(source) else Effect.FILES
    if node.op in URLS and URLS[node.op] in node.attr:
        value = node.attr[URLS[node.op]]
        return Effect.NETWORK if value.placeholder or any(value.list.s) else None
    return None


def _text(node: Any, name: str, default: bytes) -> bytes:
    """Return a string attribute; `?` for one that the caller of a function gives."""
    if name not in node.attr:
        return default
    value = node.attr[name]
    return b"?" if value.placeholder else value.s


def _is_unordered(attributes: Any) -> bool:
    if "sloppy" in attributes and attributes["sloppy"].b:
        return True
    return "deterministic" in attributes and attributes["deterministic"].s == b"false"


def _seeded(seeds: list[int | bytes | None]) -> Effect:
    """Return one seed that is known not to be zero is enough; TensorFlow computes the other from
    it."""
    return Effect.OWN_STATE if any(seeds) else Effect.RANDOM


def _constant(edge: str, nodes: Mapping[str, Any]) -> int | bytes | None:
    """Return the scalar that an input is, if it is a constant integer or string."""
    node = nodes.get(edge.partition(":")[0])
    if node is None or node.op != "Const":
        return None
    value = node.attr["value"].tensor
    if value.tensor_content:
        return int.from_bytes(value.tensor_content, "little")
    found = [*value.int64_val, *value.int_val, *value.string_val]
    return found[0] if found else 0
