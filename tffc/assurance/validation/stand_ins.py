"""Python calls in place of the random draws of sections.

A draw is an operation whose result varies from run to run: random numbers without a fixed seed, or
the time.  It is replaced by a call of a Python function with the draw's place and operands.
`sample` computes what the operation would return for a seed.

The place of a draw consists of what linking preserves: the operation, its attributes, and its name
without the prefixes of copies.  So a draw has the same place in a component as in the program.
Functions that lead to draws are copied for each call, so that each call has separate draws, and
parallel operations are replaced by sequential ones.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import hashlib
import importlib
import math
import pickle
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tffc.assurance.validation.graph_functions import (
    GraphFunctions,
    needed_effects,
    rename_all_edges,
    rename_called,
)
from tffc.graphs.node import Nodes, control_edges, data_edges
from tffc.graphs.operations import op_table
from tffc.graphs.operations.effects import Effect, effect_of, first_seed
from tffc.language.nodes import Compiled
from tffc.language.wire import TensorFlowSection, read_tensorflow, write_tensorflow
from tffc.language.wire.python_functions import FUNCTIONS, CalledFunction
from tffc.runtime.frameworks.tensorflow.graph_content import UnreadableGraph, read_graph
from tffc.runtime.frameworks.tensorflow.load import TensorFlow, load_tensorflow
from tffc.support.trampoline import Task, run

if TYPE_CHECKING:
    from tffc.graphs.proto import FunctionDef, GraphDef, NodeDef


@dataclasses.dataclass(frozen=True, slots=True)
class Draw:
    """An operation that draws: its place, and how many draws at that place precede it."""

    place: str
    rank: int
    operation: bytes
    """The NodeDef, without name and inputs; empty if two seeds are drawn for the operation."""


Answer: TypeAlias = Callable[[Draw, Sequence[Any]], Sequence[Any]]
"""A function that returns the results of a draw for its operands."""

CACHED_SECTIONS = 512

COPIES = re.compile(r"^([fc][0-9]+/)*")
"""The prefixes that linking puts before the names of nodes."""

COMPILED = "_XlaMustCompile"
"""The attribute of functions and calls that XLA compiles; XLA cannot call Python."""

MAX_FUNCTIONS = 4096
"""The limit on copies of functions for one section; beyond it, calls use the original function."""

SEQUENTIAL = {
    "ParallelInterleaveDatasetV2": ("InterleaveDataset", 1),
    "ParallelInterleaveDatasetV3": ("InterleaveDataset", 1),
    "ParallelInterleaveDatasetV4": ("InterleaveDataset", 3),
    "ParallelMapDataset": ("MapDataset", 1),
    "ParallelMapDatasetV2": ("MapDataset", 1),
}
"""For each operation that applies functions to elements in parallel, the sequential operation that
replaces it, and the number of its last inputs to drop."""

SHUFFLING_QUEUES = frozenset({"RandomShuffleQueue", "RandomShuffleQueueV2"})
"""Queues that shuffle; they get a fixed seed, because their draws cannot be replaced."""

FRACTIONAL_POOLS = frozenset({"FractionalAvgPool", "FractionalMaxPool"})
"""Operations that draw the regions that they pool."""

VARYING = frozenset({Effect.CLOCK, Effect.ORDER, Effect.RANDOM})
"""The effects that are replaced."""

FLOAT32, INT64 = 1, 9
"""TensorFlow's numbers for element types; seeds are int64."""


@dataclasses.dataclass(frozen=True, slots=True)
class RunnableSection:
    """A section without draws, and the draws that were replaced."""

    section: Compiled
    draws: tuple[Draw, ...] = ()


@functools.lru_cache(maxsize=CACHED_SECTIONS)
def runnable(section: Compiled) -> RunnableSection:
    """Return the section with its draws replaced; the same section if it has none."""
    if section.kind != "tensorflow" or not any(effect in VARYING for _, effect in _facts(section)):
        return RunnableSection(section)
    content = read_tensorflow(section.payload)
    assert isinstance(content, TensorFlowSection)
    graph = read_graph(section).graph
    replacing = _Replacing(graph)
    run(replacing.replace_all())
    encoded = graph.SerializeToString(deterministic=True)
    payload = write_tensorflow(content._replace(graph_def=encoded))
    return RunnableSection(dataclasses.replace(section, payload=payload), tuple(replacing.draws))


def loose_operations(section: Compiled) -> dict[str, int]:
    """Count the operations whose results may vary even though draws are replaced.

    These are calls of Python, operations that depend on other machines or sessions, unknown
    operations, and all random ones of XLA.
    """
    loose = {Effect.NETWORK, Effect.OTHER, Effect.PYTHON, Effect.SESSION}
    if section.kind == "xla":
        loose.add(Effect.RANDOM)
    return collections.Counter(op for op, effect in _facts(section) if effect in loose)


@functools.lru_cache(maxsize=CACHED_SECTIONS)
def _facts(section: Compiled) -> tuple[tuple[str, Effect | None], ...]:
    """Return the operations that a section needs, with their effects; none of a section that cannot
    be read, for whatever runs it says why."""
    try:
        return tuple(needed_effects(section))
    except UnreadableGraph:
        return ()


class _Replacing:
    """Replaces the draws of a graph, in the order of the calls that lead to them."""

    def __init__(self, graph: GraphDef) -> None:
        self.draws: list[Draw] = []
        self._graph = graph
        self._library = GraphFunctions(graph)
        self._functions = dict(self._library.bodies)
        self._ranks: collections.Counter[str] = collections.Counter()
        self._copies = 0
        self._drawing = self._library.leading_to(self._has_draws)

    def replace_all(self) -> Task[None]:
        """Replace the draws of the graph, and of copies of the functions that it calls."""
        for function in list(self._functions.values()):
            for node in function.node_def:
                _put_in_order(node)
        yield self._replace(self._graph.node, None, {})

    def _has_draws(self, name: str) -> bool:
        return any(True for _ in self._draws(self._functions[name].node_def))

    def _draws(self, nodes: Iterable[NodeDef]) -> Iterator[NodeDef]:
        beside = {node.name: node for node in nodes}
        for node in nodes:
            if node.op not in self._functions and node.op not in SHUFFLING_QUEUES:
                if effect_of(node, beside) in (Effect.RANDOM, Effect.CLOCK):
                    yield node

    def _replace(
        self, nodes: Nodes, function: FunctionDef | None, path: dict[str, str]
    ) -> Task[None]:
        """Replace the draws among the nodes of the graph, or of a function.

        `path` maps the functions whose copies are being made to the names of the copies.
        """
        renamed: dict[str, str] = {}
        drawing = {node.name for node in self._draws(nodes)}
        for node in list(nodes):
            _put_in_order(node)
            if node.name in drawing:
                renamed.update(self._replace_draw(nodes, node, in_function=function is not None))
                continue
            called = [name for name in self._library.called_by(node) if name in self._drawing]
            for name in called:
                rename_called(node, {name: (yield self._copy(name, path))})
            # The copies call Python, so XLA must not compile the call.
            if called:
                node.attr.pop(COMPILED, None)
        if function is not None:
            rename_all_edges(function, renamed)

    def _copy(self, name: str, path: dict[str, str]) -> Task[str]:
        """Return the name of a copy of a function in which draws are replaced."""
        # A recursive call must refer to the copy that is being made.
        if name in path or self._copies > MAX_FUNCTIONS:
            return path.get(name, name)
        self._copies += 1
        copy = self._graph.library.function.add()
        copy.CopyFrom(self._functions[name])
        copy.signature.name = f"{name}_{self._copies}"
        while copy.signature.name in self._functions:
            copy.signature.name += "_"
        copy.attr.pop(COMPILED, None)
        yield self._replace(copy.node_def, copy, {**path, name: copy.signature.name})
        return copy.signature.name

    def _replace_draw(self, nodes: Nodes, node: NodeDef, *, in_function: bool) -> dict[str, str]:
        """Replace a draw; return new edges for its outputs, in the notation of function bodies."""
        first = first_seed(node.op)
        if first is not None:
            self._ask_for_seeds(nodes, node, first, in_function=in_function)
            return {}
        operation = op_table.find(node.op)
        assert operation is not None
        ports = operation.ports(node.attr)
        draw = type(node)(op=node.op)
        for name in sorted(node.attr):
            if not name.startswith("_"):
                draw.attr[name].CopyFrom(node.attr[name])
        encoded = draw.SerializeToString(deterministic=True)
        self._ask(node, encoded, _input_types(node), [dtype or 0 for _, _, dtype in ports])
        return {
            f"{node.name}:{output}:{index}": f"{node.name}:output:{position}"
            for position, (output, index, _) in enumerate(ports)
        }

    def _ask_for_seeds(self, nodes: Nodes, node: NodeDef, first: int, *, in_function: bool) -> None:
        seeds = nodes.add(name=f"{node.name}/tffc_seeds")
        self._ask(seeds, b"", [], [INT64, INT64])
        for position in range(2):
            port = f"output:{position}" if in_function else str(position)
            node.input[first + position] = f"{seeds.name}:{port}"

    def _ask(self, node: NodeDef, operation: bytes, takes: list[int], gives: list[int]) -> None:
        """Turn a node into the Python call that replaces an operation."""
        name = COPIES.sub("", node.name)
        place = f"{name} {hashlib.sha256(operation).hexdigest()[:16]}"
        draw = Draw(place, self._ranks[place], operation)
        self._ranks[place] += 1
        self.draws.append(draw)
        node.op = "PyFunc"
        node.attr.clear()
        node.attr["token"].s = _token(draw)
        node.attr["Tin"].list.type.extend(takes)
        node.attr["Tout"].list.type.extend(gives)


def _put_in_order(node: NodeDef) -> None:
    """Make a node process elements one after another, in the same order each time."""
    if node.op in SEQUENTIAL:
        node.op, extra = SEQUENTIAL[node.op]
        node.input[:] = [*data_edges(node)[:-extra], *control_edges(node)]
        for name in ("deterministic", "sloppy", "use_unbounded_threadpool"):
            node.attr.pop(name, None)
    if "sloppy" in node.attr:
        node.attr["sloppy"].b = False
    # Other operations have a flag of this name.
    if "deterministic" in node.attr and node.attr["deterministic"].WhichOneof("value") == "s":
        node.attr["deterministic"].s = b"true"
    if "parallel_iterations" in node.attr:
        node.attr["parallel_iterations"].i = 1
    if node.op in SHUFFLING_QUEUES and not (node.attr["seed"].i or node.attr["seed2"].i):
        node.attr["seed"].i = node.attr["seed2"].i = 1


def _input_types(node: NodeDef) -> list[int]:
    """Return the element types of the inputs of an operation."""
    registry = importlib.import_module("tensorflow.python.framework.op_def_registry")
    types: list[int] = []
    for operand in registry.get(node.op).input_arg:
        dtype = node.attr[operand.type_attr].type if operand.type_attr else operand.type
        types += [dtype] * (node.attr[operand.number_attr].i if operand.number_attr else 1)
    return types


def _by_itself(draw: Draw, operands: Sequence[Any]) -> Sequence[Any]:
    return sample(draw.operation, 0, operands)


_answers: list[Answer] = [_by_itself]
"""A stack of functions that answer draws; the last is active."""


@functools.cache
def _token(draw: Draw) -> bytes:
    """Return the token by which TensorFlow finds the Python function that replaces a draw."""
    tf = load_tensorflow()
    with tf.Graph().as_default() as graph:

        def answer(*operands: Any) -> Sequence[Any]:
            return _answers[-1](draw, operands)

        called = tf.numpy_function(answer, [], tf.int64)
    token = called.op.get_attr("token")
    # TensorFlow forgets the function when the graph is freed.
    FUNCTIONS[token] = CalledFunction(graph, None)
    return token


@contextlib.contextmanager
def answering(answer: Answer) -> Generator[None]:
    """Answer draws with a function while the context is active; only one section may run then.

    TensorFlow reports an exception in a Python call as a failure of the section.  That is right if
    the drawing operation itself fails; any other exception is raised unchanged.
    """
    defects: list[Exception] = []

    def ask(draw: Draw, operands: Sequence[Any]) -> Sequence[Any]:
        try:
            return answer(draw, operands)
        except load_tensorflow().errors.OpError:
            raise
        except Exception as error:
            defects.append(error)
            raise

    _answers.append(ask)
    try:
        yield
    finally:
        _answers.pop()
        if defects:
            raise defects[-1]


def sample(operation: bytes, seed: int, operands: Sequence[Any]) -> Sequence[Any]:
    """Return the outputs of an operation for its operands, determined by a seed."""
    return _sample(operation, seed, pickle.dumps([np.asarray(operand) for operand in operands]))


@functools.lru_cache(maxsize=8192)
def _sample(operation: bytes, seed: int, pickled: bytes) -> Sequence[Any]:
    tf = load_tensorflow()
    operands = pickle.loads(pickled)
    node = tf.compat.v1.NodeDef.FromString(operation)
    numbers: Any = np.random.default_rng(seed)
    is_single = node.attr["dtype"].type == FLOAT32
    match node.op:
        # Most draws are one of these two, and TensorFlow takes a hundred times longer for them.
        case "RandomStandardNormal" if is_single:
            return [numbers.standard_normal(operands[0], np.float32)]
        case "RandomUniform" if is_single:
            return [numbers.random(operands[0], np.float32)]
        case "":
            return list(numbers.integers(1, 2**31, 2))
        case "Timestamp":
            return [np.float64(numbers.integers(2**30, 2**31))]
        case "NonDeterministicInts":
            dtype: Any = np.dtype(tf.as_dtype(node.attr["dtype"].type or INT64).as_numpy_dtype)
            count = math.prod(map(int, operands[0]))
            content = numbers.bytes(count * dtype.itemsize)
            return [np.frombuffer(content, dtype).reshape(operands[0])]
        case _:
            pass
    for name in ("seed", "seed2"):
        node.attr[name].i = int(numbers.integers(1, 2**31))
    if node.op in FRACTIONAL_POOLS:
        # They take seeds only then.
        node.attr["deterministic"].b = True
    return _run(tf, node, operands)


def _run(tf: TensorFlow, node: NodeDef, operands: Sequence[Any]) -> Sequence[Any]:
    """Run an operation in a new graph, where its generator starts from the seed."""
    with tf.Graph().as_default() as graph:
        inputs = [tf.compat.v1.placeholder(operand.dtype) for operand in operands]
        names = [f"operand_{index}" for index in range(len(operands))]
        node.name = "draw"
        node.input.extend(names)
        tf.import_graph_def(
            tf.compat.v1.GraphDef(node=[node]),
            input_map=dict(zip(names, inputs, strict=True)),
            name="",
        )
        with tf.compat.v1.Session(graph=graph) as session:
            outputs = graph.get_operation_by_name("draw").outputs
            return session.run(outputs, dict(zip(inputs, operands, strict=True)))
