"""How the time of commands grows with programs of fourteen shapes.

    python -m benchmarks.growth [--largest N] [--shape NAME] [--command NAME]

Each shape has N nodes, from 1,024 to 8,192 by default, unless its message is too large before.
Prints, for each shape and command, the processor time of the largest program, and the largest
factor for a message of twice the bytes, all measured in one process.

Each time is the least of three runs, taken in turn with those of the other sizes, so that a
processor that is slower for a while slows all.  Where a factor is above the limit, there are up to
nine runs: what is not linear stays above it.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import os
import pathlib
import tempfile
import time
from collections.abc import Callable
from typing import Any

import click
from click.testing import CliRunner

from tffc.cli.application import application
from tffc.graphs.proto import GraphDef
from tffc.language import Node, wire
from tffc.language.notation import parse
from tffc.language.notation.section_folder import digest
from tffc.language.wire import TensorBinding, TensorFlowSection, write_tensorflow
from tffc.support.errors import OversizeError

FIRST = 1024
RUNS, MOST_RUNS = 3, 9
LIMIT = 2.1
PLUS = "generic_plus:(<int32,int32> -> int32)"

ROUND = """\
(x: <int32@SERVER,{{int32}}@CLIENTS> -> (let
  {bindings}
 in <x[0],federated_sum:({{int32}}@CLIENTS -> int32@SERVER)({data})>)){where}"""
MAP = (
    "federated_map:(<(int32 -> int32),{{int32}}@CLIENTS> -> {{int32}}@CLIENTS)(<{function},{data}>)"
)


def mapped(function: str, where: str = "") -> str:
    """A round that maps a function at the clients, and adds up what it gives."""
    call = MAP.format(function=function, data="x[1]")
    return ROUND.format(bindings=f"m={call}", data="m", where=where)


def sums(size: int) -> Node:
    """Each number is the sum of the one before with itself."""
    bindings = ["v0=p", *(f"v{i}={PLUS}(<v{i - 1},v{i - 1}>)" for i in range(1, size))]
    return parse(mapped(f"(p: int32 -> (let {','.join(bindings)} in v{size - 1}))"))


def functions(size: int) -> Node:
    """Each function calls the one before."""
    bindings = ["f0=(y: int32 -> y)", *(f"f{i}=(y: int32 -> f{i - 1}(y))" for i in range(1, size))]
    return parse(mapped(f"(p: int32 -> (let {','.join(bindings)} in f{size - 1}(p)))"))


def elements(size: int) -> Node:
    """A struct of many elements, of which one is taken."""
    return parse(mapped(f"(p: int32 -> <{','.join(['p'] * size)}>[{size - 1}])"))


def depth(size: int) -> Node:
    """A struct in a struct, and so on, opened again."""
    return parse(mapped(f"(p: int32 -> {'<' * size}p{'>' * size}{'[0]' * size})"))


def maps(size: int) -> Node:
    """Many maps in a row, each of a function without calls."""
    calls = [MAP.format(function="(y: int32 -> y)", data=f"m{i - 1}") for i in range(1, size)]
    bindings = ["m0=x[1]", *(f"m{i}={call}" for i, call in enumerate(calls, 1))]
    return parse(ROUND.format(bindings=",".join(bindings), data=f"m{size - 1}", where=""))


def literals(size: int) -> Node:
    """Many constants, all added."""
    bindings = ["v0=p", *(f"v{i}={PLUS}(<v{i - 1},{i}>)" for i in range(1, size))]
    return parse(mapped(f"(p: int32 -> (let {','.join(bindings)} in v{size - 1}))"))


def graph_round(build: Callable[[Any], str]) -> Node:
    """A round that maps a graph from the node `x` to what `build` returns."""
    graph = GraphDef()
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = 3
    result = build(graph)
    content = graph.SerializeToString(deterministic=True)
    section = TensorFlowSection(content, TensorBinding("x:0"), TensorBinding(f"{result}:0"), "")
    payload = write_tensorflow(section)
    where = f"\nwhere\n  comp#work: (int32 -> int32) tensorflow sha256:{digest(payload)}"
    return parse(mapped("comp#work", where), {digest(payload): payload})


def node(nodes: Any, name: str, op: str, *inputs: str) -> str:
    """Add a node of integers."""
    nodes.add(name=name, op=op, input=inputs).attr["T"].type = 3
    return name


def called(graph: Any, name: str, count: int) -> None:
    """Add a function of so many nodes to the library."""
    function = graph.library.function.add()
    function.signature.name = name
    function.signature.input_arg.add(name="a", type=3)
    function.signature.output_arg.add(name="o", type=3)
    last = "a"
    for i in range(count):
        last = node(function.node_def, f"n{i}", "Neg", last) + ":y:0"
    function.ret["o"] = last


def call(nodes: Any, name: str, function: str, edge: str) -> str:
    """Add a call of a function of one integer."""
    added = nodes.add(name=name, op="PartitionedCall", input=[edge])
    added.attr["f"].func.name = function
    added.attr["Tin"].list.type.append(3)
    added.attr["Tout"].list.type.append(3)
    return name


def row(size: int, add: Callable[[Any, int, str], str]) -> Node:
    """A round that maps a graph of nodes in a row; `add` adds the next one after the last."""

    def build(graph: Any) -> str:
        last = "x"
        for i in range(size):
            last = add(graph, i, last)
        return last

    return graph_round(build)


def chain(size: int) -> Node:
    """Nodes in a row."""
    return row(size, lambda graph, i, last: node(graph.node, f"n{i}", "Neg", last))


def fan(size: int) -> Node:
    """Nodes beside each other, all added."""

    def build(graph: Any) -> str:
        names = [node(graph.node, f"n{i}", "Neg", "x") for i in range(size)]
        node(graph.node, "sum", "AddN", *names)
        graph.node[-1].attr["N"].i = size
        return "sum"

    return graph_round(build)


def ladder(size: int) -> Node:
    """Nodes that each use the one before twice."""
    return row(size, lambda graph, i, last: node(graph.node, f"n{i}", "AddV2", last, last))


def body(size: int) -> Node:
    """A function of many nodes, called once."""

    def build(graph: Any) -> str:
        called(graph, "f", size)
        return call(graph.node, "call", "f", "x")

    return graph_round(build)


def calls(size: int) -> Node:
    """A function that is called many times, in a row."""

    def add(graph: Any, i: int, last: str) -> str:
        if i == 0:
            called(graph, "f", 1)
        return call(graph.node, f"n{i}", "f", last)

    return row(size, add)


def nested(size: int) -> Node:
    """Functions that each call the one before."""

    def build(graph: Any) -> str:
        called(graph, "f0", 1)
        for i in range(1, size):
            called(graph, f"f{i}", 0)
            function = graph.library.function[-1]
            function.ret["o"] = call(function.node_def, "c", f"f{i - 1}", "a") + ":output:0"
        return call(graph.node, "call", f"f{size - 1}", "x")

    return graph_round(build)


def library(size: int) -> Node:
    """Many functions, each called once."""

    def add(graph: Any, i: int, last: str) -> str:
        called(graph, f"f{i}", 1)
        return call(graph.node, f"n{i}", f"f{i}", last)

    return row(size, add)


def controls(size: int) -> Node:
    """Nodes that each wait for the one before."""

    def build(graph: Any) -> str:
        last = node(graph.node, "n0", "Neg", "x")
        for i in range(1, size):
            last = node(graph.node, f"n{i}", "Neg", "x", f"^{last}")
        return last

    return graph_round(build)


SHAPES: dict[str, Callable[[int], Node]] = {
    each.__name__: each
    for each in (
        *(sums, functions, elements, depth, maps, literals),
        *(chain, fan, ladder, body, calls, nested, library, controls),
    )
}

COMMANDS = {
    "print": "print r.pb --style typed",
    "check": "check r.pb --form mapreduce",
    "opt": "opt r.pb -o o.sexpr",
    "compile": "compile r.pb --form mapreduce --out b --force",
    "decompile": "decompile b -o d.pb",
    "prove": "prove r.pb b",
    "audit": "audit b",
    "explore": "explore b -o e.html",
    "diff": "diff r.pb r.pb",
    "diff --breaking": "diff --breaking b b",
}


class Series:
    """The programs of one shape, each in a folder of its own, and the times of commands on them.

    A shape whose message is too large to be written has no larger programs.
    """

    def __init__(self, shape: str, first: int, largest: int, folder: pathlib.Path) -> None:
        self.bytes: list[int] = []
        self.folders: list[pathlib.Path] = []
        self.times: dict[str, list[float]] = {}
        self.size = first
        while True:
            try:
                message = wire.to_bytes(SHAPES[shape](self.size))
            except OversizeError:
                self.size //= 2
                break
            place = folder / str(self.size)
            place.mkdir()
            (place / "r.pb").write_bytes(message)
            self.bytes.append(len(message))
            self.folders.append(place)
            if 2 * self.size > largest:
                break
            self.size *= 2

    def measure(self, name: str) -> None:
        """Run a command once on each program, smallest first, and keep the least times.

        Raises:
          click.ClickException: the command fails.
        """
        times = self.times.setdefault(name, [math.inf] * len(self.folders))
        for index, folder in enumerate(self.folders):
            with contextlib.chdir(folder):
                times[index] = min(times[index], seconds(COMMANDS[name]))

    def per_doubling(self, name: str) -> float:
        """Return the largest factor of a command's time for a message of twice the bytes.

        It is NaN if there is only one message.
        """
        steps = zip(
            itertools.pairwise(self.times[name]), itertools.pairwise(self.bytes), strict=True
        )
        factors = (
            2 ** (math.log(b / a) / math.log(after / before)) for (a, b), (before, after) in steps
        )
        return max(factors, default=math.nan)


def seconds(command: str) -> float:
    """Return the processor time of a command.

    Raises:
      click.ClickException: the command fails.
    """
    gc.collect()
    begun = time.process_time()
    ran = CliRunner().invoke(application, command.split())
    taken = time.process_time() - begun
    if ran.exit_code not in (0, 3):
        raise click.ClickException(f"{command}: {ran.exit_code}\n{ran.stderr[-600:]}")
    return taken


@click.command()
@click.option("--first", default=FIRST, show_default=True)
@click.option("--largest", default=8 * FIRST, show_default=True)
@click.option("--shape", multiple=True, type=click.Choice(list(SHAPES)))
@click.option("--command", "names", multiple=True, type=click.Choice(list(COMMANDS)))
def main(first: int, largest: int, shape: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Measure how commands grow."""
    click.echo(f"load {os.getloadavg()[0]:.1f}")
    click.echo("| shape | nodes | command | seconds | most per doubling |")
    click.echo("| --- | --- | --- | --- | --- |")
    for kind in shape or SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            series = Series(kind, first, largest, pathlib.Path(folder))
            if "compile" not in (names or COMMANDS):
                series.measure("compile")  # for the commands that read a bundle
            for name in (each for each in COMMANDS if each in (names or COMMANDS)):
                runs = 0
                while runs < RUNS or (series.per_doubling(name) > LIMIT and runs < MOST_RUNS):
                    series.measure(name)
                    runs += 1
                row = (kind, series.size, name, f"{series.times[name][-1]:.2f}")
                click.echo(f"| {' | '.join(map(str, row))} | {series.per_doubling(name):.2f} |")


if __name__ == "__main__":
    main()
