"""The side of tffc."""

from __future__ import annotations

import functools
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

import google.protobuf
import numpy as np
import tensorflow as tf

import tffc
from benchmarks import averaging
from benchmarks.by_hand import ByHand
from benchmarks.clock import seconds
from benchmarks.programs import PROGRAMS
from tffc.assurance.proof.prove import Answer, Proof, prove
from tffc.backends import compile_form
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.compiler import compile_bundle
from tffc.backends.forms.kinds import load_form
from tffc.backends.forms.stages import assign_stages
from tffc.graphs.proto import GraphDef
from tffc.language import wire
from tffc.language.nodes import (
    Binding,
    Block,
    Compiled,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.notation import compact, typed
from tffc.language.notation import parse as parse_text
from tffc.language.size import tree_size
from tffc.language.types import StructType, TensorType, at_clients, at_server
from tffc.language.verify import verify
from tffc.passes.table import default_pipeline
from tffc.runtime.data.location import open_source
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process


class Side:
    """Measurements of tffc; every method returns seconds, unless it says otherwise."""

    def __init__(self) -> None:
        self._data = b""
        self._node: Node | None = None
        self._engine: Any = None
        self._folder: Any = None
        self._temporary = tempfile.TemporaryDirectory()

    def versions(self) -> dict[str, str]:
        """Return the versions of the packages here, by name."""
        return {
            "numpy": np.__version__,
            "protobuf": google.protobuf.__version__,
            "TensorFlow": tf.__version__,
        }

    def trace(self, kind: str, size: int) -> float:
        """Time tracing a program, which the other methods then use."""
        made: list[Any] = []
        taken = seconds(lambda: made.append(PROGRAMS[kind](tffc, size)))
        self._keep(made[0].to_building_block())
        return taken

    def load(self, path: str) -> float:
        """Time reading a serialized program, which the other methods then use."""
        self._data, self._node = pathlib.Path(path).read_bytes(), None
        return seconds(self._program)

    def save(self, path: str) -> int:
        """Write the program to a file; return its size in bytes."""
        return pathlib.Path(path).write_bytes(self._data)

    def make_large(self, nodes: int) -> int:
        """Make a program of about `nodes` nodes; return their number."""
        program = large_program(nodes)
        self._keep(program)
        return tree_size(program)

    def compile_doubled(self, levels: int) -> float:
        """Time compiling a struct of `levels` levels.

        It is not read from bytes, because these have the whole type of each level, which is twice
        as long as that of the level below.
        """
        program = doubled_struct(levels)
        return seconds(lambda: compile_form(program, "mapreduce"))

    def compile(self, form: str) -> float:
        """Time reading the program's bytes and compiling it to a form."""
        return seconds(lambda: compile_form(self._read(), form))

    def prove(self, form: str) -> float:
        """Time proving that what the program is compiled to computes what it does, for all
        arguments."""
        program = self._program()
        components = compile_form(program, form).components()
        proofs: list[Proof] = []
        taken = seconds(lambda: proofs.append(prove(program, form, components)))
        assert proofs[0].answer is Answer.PROVED, proofs[0]
        return taken

    def floor(self) -> float:
        """Time parsing every graph in the program, renaming all nodes, and serializing it again."""
        graphs = [wire.read_tensorflow(s.payload).graph_def for s in _sections(self._program())]
        return seconds(lambda: [_renamed(graph) for graph in graphs])

    def stages(self, form: str) -> dict[str, float]:
        """Return the seconds of each stage of compiling, by name."""
        taken = {"read": seconds(self._read)}
        program = self._program()
        pipeline = default_pipeline()
        taken["verify"] = seconds(lambda: verify(program, pipeline.given))
        after: list[Node] = []
        seconds(
            lambda: after.append(
                pipeline.run(program, [lambda s: taken.update({s.step.each.name: s.seconds})])
            )
        )
        build = load_form(form).build
        made: list[Any] = []
        taken["build the form"] = seconds(lambda: made.append(build(assign_stages(after[0]))))
        bundle = Bundle(form, program, made[0].components(), None, {})
        taken["write"] = seconds(bundle.encode)
        return taken

    def show(self) -> float:
        """Time printing the program."""
        program = self._program()
        return seconds(lambda: compact(program))

    def write(self) -> float:
        """Time serializing the program."""
        program = self._program()
        return seconds(lambda: wire.to_bytes(program))

    def parse(self) -> float:
        """Time parsing the program's text with types."""
        text = typed(self._program())
        return seconds(lambda: parse_text(text))

    def verify(self) -> float:
        """Time verifying the program."""
        program = self._program()
        return seconds(lambda: verify(program))

    def prepare_round(self) -> float:
        """Time tracing and compiling federated averaging."""
        return seconds(self._prepare_round)

    def round(self, clients: int) -> float:
        """Time one round of federated averaging from the first weights."""
        source = self._clients(clients)
        cohort = Cohort(source, source.clients)
        return seconds(lambda: self._engine.run_round(self._state, cohort))

    def round_by_hand(self, clients: int) -> float:
        """Time the same round without federated programs, which shows the least time."""
        data = list(averaging.client_data(clients))
        return seconds(lambda: self._by_hand.round(self._state, data))

    @functools.cached_property
    def _by_hand(self) -> ByHand:
        return ByHand()

    def close(self) -> None:
        """Remove the files of the clients."""
        self._temporary.cleanup()

    def _prepare_round(self) -> None:
        program = averaging.build(tffc).to_building_block()
        self._engine = LocalEngine(Process(compile_bundle(program, "mapreduce")))
        self._state = tuple(averaging.first_weights())
        self.round(1)

    def _clients(self, clients: int) -> InMemory:
        path = pathlib.Path(self._temporary.name) / str(clients)
        if not path.exists():
            path.mkdir()
            for number, (x, y) in enumerate(averaging.client_data(clients)):
                np.savez(path / f"{number:06}.npz", x=x, y=y)
        return InMemory(open_source(path, self._engine.process.data_type))

    def _keep(self, program: Node) -> None:
        self._data, self._node = wire.to_bytes(program), None

    def _program(self) -> Node:
        """Return the current program, which is read once."""
        if self._node is None:
            self._node = self._read()
        return self._node

    def _read(self) -> Node:
        return wire.from_bytes(self._data)


class InMemory:
    """The clients of a folder, all read beforehand, as the peer's are."""

    def __init__(self, folder: ClientSource) -> None:
        self.clients = folder.clients
        self._values = {client: folder.read(client) for client in folder.clients}

    def read(self, client: str) -> Any:
        """Return the value that a client holds."""
        return self._values[client]


def large_program(nodes: int) -> Node:
    """Return a flat program of about `nodes` nodes: `(p -> (let v1=<p,p>,v2=<v1[0],p>,... in
    vN[1]))`."""
    parameter = Reference("p", TensorType(np.int32))
    bindings = [Binding("v1", StructNode((parameter, parameter)))]
    for index in range(2, nodes // 4):
        last = bindings[-1]
        value = StructNode((Selection(Reference(last.name, last.value.type), 0), parameter))
        bindings.append(Binding(f"v{index}", value))
    last = bindings[-1]
    result = Selection(Reference(last.name, last.value.type), 1)
    return Lambda("p", parameter.type, Block(tuple(bindings), result))


def doubled_struct(levels: int) -> Node:
    """`(p -> (let a1=<p[0],p[0]>,a2=<a1,a1>,... in <aN[0][0]...,p[0]>))`, a round whose state is
    the first of 2 to the power of N."""
    state = at_server(TensorType(np.float32))
    parameter = Reference("p", StructType([state, at_clients(TensorType(np.float32))]))
    first: Node = Selection(parameter, 0)
    last = first
    bindings: list[Binding] = []
    for level in range(1, levels + 1):
        bindings.append(Binding(f"a{level}", StructNode((last, last))))
        last = Reference(f"a{level}", bindings[-1].value.type)
    for _ in range(levels):
        last = Selection(last, 0)
    return Lambda("p", parameter.type, Block(tuple(bindings), StructNode((last, first))))


def _sections(root: Node) -> Iterator[Compiled]:
    """Yield the sections of a program, a shared one once for each place."""
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Compiled) and node.kind == "tensorflow":
            yield node
        stack.extend(node.children())


def _renamed(encoded: bytes) -> bytes:
    graph = GraphDef.FromString(encoded)
    for node in graph.node:
        node.name = f"c1/{node.name}"
        node.input[:] = [f"c1/{edge}" for edge in node.input]
    return graph.SerializeToString()
