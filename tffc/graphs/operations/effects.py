"""Effects: the operations that do more than compute their outputs from their inputs.

`effects.txt` lists the known ones.  Any other operation counts as having effects if TensorFlow
marks it as stateful or does not have it.

State that nothing outside a run can see, such as variables that the section initializes, is the
section's own.  Operations that are marked as stateful for other reasons, such as control flow,
count as keeping own state; the functions that they call are examined separately.

`OUTSIDE` lists the effects that reach outside of TensorFlow, with the kinds of effects that users
consent to.
"""

from __future__ import annotations

import enum
import functools
import pathlib
import re
from collections.abc import Container, Mapping
from typing import NamedTuple

from tffc.graphs.node import Attributes, NodeView, all_nodes
from tffc.graphs.operations import op_table
from tffc.graphs.operations.bytecode import BytecodeError, operations, strings
from tffc.graphs.proto import AttrValue, GraphDef, NodeDef
from tffc.graphs.proto.encoding import Kind, Place, read_message, schema
from tffc.support.errors import WireError, reader

TABLE = pathlib.Path(__file__).with_suffix(".txt")
MODULE_TABLE = pathlib.Path(__file__).with_name("stablehlo.txt")
"""The operations of StableHLO, without their versions; others count as having effects."""

MODULE = "XlaCallModule"
"""The operation that runs the portable artifact of StableHLO in its attribute `module`."""


class Effect(enum.Enum):
    """An effect of an operation besides computing."""

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


HEADINGS = {effect.name.lower().replace("_", " "): effect for effect in Effect}
"""The effects of the operations under a heading of the table.  The headings of `SEEDED` and
`UNNAMED`, and that of operations that take their seeds as attributes, are not among them."""

OUTSIDE = {
    Effect.FILES: "files",
    Effect.SUMMARIES: "files",
    Effect.NETWORK: "network",
    Effect.PYTHON: "python",
    Effect.OTHER: "unknown",
}
"""The effects that reach outside of TensorFlow, and the kind of each."""

OWN_STATE_FAMILIES = ("ResourceApply", "ResourceScatter", "ResourceSparseApply")
"""The prefixes of the names of operations that update variables."""

SEEDS = ("seed", "seed2")
"""The attributes with the seeds of operations that are seeded by attributes."""

SEEDED = "seeded by inputs from "
"""The heading of operations that take two seeds as inputs; the position of the first follows."""

UNNAMED = "files unless empty is input "
"""The heading of operations that use a file unless its name is empty; the position of the input
with the name follows."""


KEPT = "deterministic"
"""The attribute that has a kernel keep its seed, also one that it chooses itself."""


OPTIONS = schema(deterministic=(1, Kind.INTEGER))
"""A field of the options of a dataset: whether its operations give elements in order."""


class Address(NamedTuple):
    """An attribute that may name a file or an address; values that match `harmless` name none.

    With `has_schemes`, each value says by a scheme what it names, and may name either without one.
    """

    effect: Effect
    attribute: str
    harmless: bytes = b""
    has_schemes: bool = False

    def effects(self, node: NodeView) -> set[Effect]:
        """Return the effects that the attribute gives a node."""
        if self.attribute not in node.attr:
            return set()
        value = node.attr[self.attribute]
        texts = [text for text in (value.s, *value.list.s) if text]
        # A placeholder gets its value from the caller of the function.
        named = [text for text in texts if not re.fullmatch(self.harmless, text, re.DOTALL)]
        if not named and not value.placeholder:
            return set()
        if not self.has_schemes:
            return {self.effect}
        schemes = [SCHEMES.get(scheme) for text in named for scheme in SCHEME.findall(text)]
        if value.placeholder or None in schemes or len(schemes) < len(named):
            return {Effect.FILES, Effect.NETWORK}
        return {effect for effect in schemes if effect is not None}


SCHEME = re.compile(rb"(?:^|;)([a-z]+://)")
SCHEMES = {b"grpc://": Effect.NETWORK, b"file://": Effect.FILES}
"""Where the addresses of TensorFlow's debugger begin, and what they name."""


ADDRESSES = {
    "FixedUnigramCandidateSampler": Address(Effect.FILES, "vocab_file"),
    "PrintV2": Address(Effect.FILES, "output_stream", rb"stdout|stderr|log\(\w+\)"),
    **dict.fromkeys(
        ("DecodeProtoV2", "EncodeProto"),
        Address(Effect.FILES, "descriptor_source", rb"(local://|bytes://.*)?"),
    ),
    **dict.fromkeys(
        ("Copy", "CopyHost"),
        Address(Effect.NETWORK, "debug_ops_spec", has_schemes=True),
    ),
    **dict.fromkeys(
        (
            *("DebugIdentity", "DebugIdentityV2", "DebugIdentityV3"),
            *("DebugNanCount", "DebugNumericSummary"),
        ),
        Address(Effect.NETWORK, "debug_urls", has_schemes=True),
    ),
}
"""Operations that reach outside only with certain values of an attribute."""

WRITE_ELSEWHERE = frozenset({"DistributedSave"})
"""Operations that have other processes write files."""

OVERWRITING = frozenset({"InplaceAdd", "InplaceSub", "InplaceUpdate", "_ParallelConcatUpdate"})
"""Operations that write over their input, which other nodes, and later runs of its kernel, read."""

WORDS = re.compile(r"\w+")


def calls_python(name: str) -> bool:
    """Return whether a name is one by which XLA calls functions of Python: `callback` follows
    `python` in a word of it."""
    return any("callback" in word.partition("python")[2] for word in WORDS.findall(name))


ELSEWHERE = re.compile(r"/job:(?!localhost(/|$))", re.IGNORECASE)
"""Found in the names of devices of other processes."""


@functools.cache
def operations_of(effect: Effect) -> frozenset[str]:
    """Return the operations under the headings of an effect."""
    return frozenset(op for op, name in read_table(TABLE).items() if HEADINGS.get(name) is effect)


@functools.cache
def read_table(path: pathlib.Path) -> dict[str, str]:
    """Return the heading of each name in a table."""
    headings: dict[str, str] = {}
    heading = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            heading = line.strip("[]")
        elif not line.startswith("#"):
            headings.update(dict.fromkeys(line.split(), heading))
    return headings


def effect_of(node: NodeView, nodes: Mapping[str, NodeView]) -> Effect | None:
    """Return the effect that a node of a graph or of a function's body has besides computing, or
    None.

    `nodes` has all nodes of that graph or body by name.
    """
    op = node.op
    if op == MODULE:
        return effect_of_module(node.attr["module"].s if "module" in node.attr else b"")
    if op in ADDRESSES and ADDRESSES[op].effects(node):
        return ADDRESSES[op].effect
    heading = read_table(TABLE).get(op, "")
    if heading in HEADINGS:
        return HEADINGS[heading]
    if is_seeded_by_attributes(op):
        if keeps_unknown_seed(node):
            return Effect.SESSION
        return Effect.OWN_STATE if any(seed.i for seed in _seeds(node)) else Effect.RANDOM
    first = first_seed(op)
    if first is not None:
        # One seed that is known not to be zero is enough: TensorFlow computes the other from it.
        seeds = [_constant(edge, nodes) for edge in node.input[first : first + 2]]
        return Effect.OWN_STATE if any(seeds) else Effect.RANDOM
    if heading.startswith(UNNAMED):
        position = int(heading.removeprefix(UNNAMED))
        names = [_constant(edge, nodes) for edge in node.input[position : position + 1]]
        return Effect.OWN_STATE if names == [b""] else Effect.FILES
    if op.startswith(OWN_STATE_FAMILIES):
        return Effect.OWN_STATE
    if _is_unordered(node.attr):
        return Effect.ORDER
    return Effect.OTHER if op_table.is_stateful(op) else None


@functools.lru_cache(maxsize=256)
def effect_of_module(module: bytes) -> Effect | None:
    """Return the effect that a portable artifact of StableHLO has besides computing, or None.

    A `custom_call`, of a function outside of the artifact, may do anything; it calls Python if a
    string of the artifact names a callback.
    """
    try:
        effects = set(effects_in_module(module).values())
        named = strings(module)
    except BytecodeError:
        return Effect.OTHER
    if Effect.OTHER in effects and any(map(calls_python, named)):
        return Effect.PYTHON
    return Effect.OTHER if Effect.OTHER in effects else next(iter(effects), None)


def effects_in_module(module: bytes) -> dict[str, Effect]:
    """Return the operations in a portable artifact of StableHLO that do more than compute, with
    their effects.

    Raises:
      BytecodeError: it is not an artifact.
    """
    effects: dict[str, Effect] = {}
    for operation in operations(module):
        name = operation.rpartition("_v")[0] or operation
        heading = read_table(MODULE_TABLE).get(name, "other")
        if heading != "computing":
            effects[name] = HEADINGS[heading]
    return effects


def first_seed(op: str) -> int | None:
    """Return the position of the first of an operation's two inputs that are seeds, or None."""
    heading = read_table(TABLE).get(op, "")
    return int(heading.removeprefix(SEEDED)) if heading.startswith(SEEDED) else None


def is_seeded_by_attributes(op: str) -> bool:
    """Tell whether an operation draws random numbers from a seed in its attributes."""
    return read_table(TABLE).get(op) == "seeded by attributes"


def keeps_unknown_seed(node: NodeView) -> bool:
    """Tell whether the kernel of an operation that `is_seeded_by_attributes` may keep a seed that
    its node does not tell.

    The caller of its function gives it, or the kernel chooses one, with which it draws the same
    each time.
    """
    if any(seed.placeholder for seed in _seeds(node)):
        return True
    if any(seed.i for seed in _seeds(node)) or KEPT not in node.attr:
        return False
    return node.attr[KEPT].b or bool(node.attr[KEPT].placeholder)


def is_told_by_inputs(op: str) -> bool:
    """Tell whether the effect of an operation depends on the values of its inputs."""
    return read_table(TABLE).get(op, "").startswith((SEEDED, UNNAMED))


def outside_kinds(node: NodeView, nodes: Mapping[str, NodeView]) -> list[str]:
    """Return the kinds of a node's effects outside of TensorFlow, of those in `OUTSIDE`.  For
    `nodes` see `effect_of`."""
    effects: set[Effect | None] = set()
    if node.device and ELSEWHERE.search(node.device):
        effects.add(Effect.NETWORK)
    if _may_reach_outside(node.op):
        addressed = ADDRESSES[node.op].effects(node) if node.op in ADDRESSES else set[Effect]()
        effects |= addressed or {effect_of(node, nodes)}
    if node.op in WRITE_ELSEWHERE:
        effects.add(Effect.FILES)
    return list(dict.fromkeys(kind for effect, kind in OUTSIDE.items() if effect in effects))


def has_outside(graph: GraphDef) -> bool:
    """Tell whether a GraphDef has nodes that must be examined for effects outside of TensorFlow."""
    called = {function.signature.name for function in graph.library.function}
    return any(
        (node.device and ELSEWHERE.search(node.device))
        or (_may_reach_outside(node.op) and not is_call(node.op, called))
        for node in all_nodes(graph)
    )


def is_call(op: str, functions: Container[str]) -> bool:
    """Tell whether an operation is a call of one of these functions of the graph."""
    return op in functions and op_table.find(op) is None


def overwriting(graph: GraphDef) -> str:
    """Return an operation of a GraphDef that writes over its input, or an empty text."""
    return next((node.op for node in all_nodes(graph) if node.op in OVERWRITING), "")


@functools.lru_cache(maxsize=4096)
def _may_reach_outside(op: str) -> bool:
    """Tell whether nodes of this operation must be examined."""
    return op in ADDRESSES or effect_of(NodeDef(op=op), {}) in OUTSIDE


def _seeds(node: NodeView) -> list[AttrValue]:
    return [node.attr[name] for name in SEEDS if name in node.attr]


def _is_unordered(attributes: Attributes) -> bool:
    if "sloppy" in attributes and attributes["sloppy"].b:
        return True
    if "serialized_options" in attributes and frees_order(attributes["serialized_options"].s):
        return True
    return "deterministic" in attributes and attributes["deterministic"].s == b"false"


def frees_order(options: bytes) -> bool:
    """Tell whether serialized options of a dataset let operations give elements in any order."""
    try:
        return not is_deterministic(options)
    except WireError:
        return True


@reader("the options of a dataset", WireError)
def is_deterministic(options: bytes) -> bool:
    """Tell whether serialized options of a dataset keep the order of its elements, as is usual.

    Raises:
      WireError: the options are malformed.
    """
    return read_message(options, Place(0, len(options)), OPTIONS).get("deterministic", 1) != 0


def _constant(edge: str, nodes: Mapping[str, NodeView]) -> int | bytes | None:
    """Return the value of an input that is a constant integer or string scalar, or None."""
    node = nodes.get(edge.partition(":")[0])
    if node is None or node.op != "Const":
        return None
    value = node.attr["value"].tensor
    if value.tensor_content:
        return int.from_bytes(value.tensor_content, "little")
    elements = [*value.int64_val, *value.int_val, *value.string_val]
    return elements[0] if elements else 0
