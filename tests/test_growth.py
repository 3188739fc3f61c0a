"""Work grows in step with the program: counted, not timed.

Every call of a Python or C function is counted while something runs at three sizes, each twice the
one before.  What is linear adds twice as much from the second to the third as from the first to the
second; what is quadratic adds four times as much.
"""

from __future__ import annotations

import functools
import gc
import itertools
import pathlib
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import tffc
from benchmarks.growth import SHAPES
from benchmarks.programs import PROGRAMS
from tests.processes import run_python
from tffc.backends import compile_form
from tffc.cli.collector import collector_paused
from tffc.language import wire
from tffc.language.dtypes import DType
from tffc.language.nodes import Binding, Block, Lambda, Node, Reference, Selection, StructNode
from tffc.language.notation import compact, formatted, parse, typed
from tffc.language.types import TensorType
from tffc.language.verify import verify
from tffc.passes.table import default_pipeline

pytestmark = pytest.mark.slow

SIZES = (16, 32, 64)
LINEAR = 2.1
"""The most that the second doubling may add, in terms of what the first added."""

KINDS = {
    "calls": lambda name: True,
    "visits of a node": lambda name: name.endswith(".children"),
    "sections copied": lambda name: name == "Template.copy",
    "messages parsed": lambda name: name in ("FromString", "ParseFromString"),
}
"""What is counted, by the qualified names of functions."""


def counted(run: Callable[[], Any]) -> dict[str, int]:
    """How often each kind of thing was done."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            calls[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            calls[argument.__name__] += 1

    run()  # what is loaded or remembered at first use is not part of the growth
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return {
        kind: sum(count for name, count in calls.items() if belongs(name))
        for kind, belongs in KINDS.items()
    }


def check_growth(counts: list[dict[str, int]]) -> None:
    """Fails unless everything grows in step with the size, which doubles each time."""
    for kind in counts[0]:
        small, middle, big = (count[kind] for count in counts)
        assert big - middle <= LINEAR * (middle - small), f"{kind}: {small}, {middle}, {big}"


def test_a_loop_in_a_loop_is_noticed() -> None:
    def pairs(size: int) -> Callable[[], Any]:
        return lambda: [abs(i) for i in range(size) for _ in range(size)]

    with pytest.raises(AssertionError, match="calls: "):
        check_growth([counted(pairs(size)) for size in SIZES])


KIND_NAMES = ("chain", "aggregations", "wide", "sums", "server-chain")
FORMS = ("mapreduce", "distribute-aggregate")
SELECTING = {("aggregations", "distribute-aggregate"), ("sums", "distribute-aggregate")}
"""Selecting each of n aggregates from one struct; every selection writes the type of the struct."""


@functools.cache
def messages(kind: str) -> tuple[bytes, ...]:
    """One program at all sizes, serialized."""
    programs = (PROGRAMS[kind](tffc, size) for size in SIZES)
    return tuple(wire.to_bytes(program.to_building_block()) for program in programs)


def compiling(data: bytes, form: str) -> Callable[[], Any]:
    return lambda: compile_form(wire.from_bytes(data), form)


@pytest.mark.tensorflow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KIND_NAMES)
def test_compiling(kind: str, form: str) -> None:
    check_growth([counted(compiling(data, form)) for data in messages(kind)])


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("kind", "form"),
    [pair for pair in itertools.product(KIND_NAMES, FORMS) if pair not in SELECTING],
)
def test_what_is_written(kind: str, form: str) -> None:
    written = []
    for data in messages(kind):
        components = compiling(data, form)().components()
        written.append({"bytes": sum(len(wire.to_bytes(node)) for node in components.values())})
    check_growth(written)


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["chain", "aggregations", "server-chain"])
def test_sections_are_parsed_once_and_copied_for_each_call(kind: str) -> None:
    small, _, big = (counted(compiling(data, "mapreduce")) for data in messages(kind))
    assert 0 < small["messages parsed"] == big["messages parsed"]
    assert 0 < 3 * small["sections copied"] < big["sections copied"]
    assert 0 < small["visits of a node"] < big["visits of a node"]


@pytest.mark.tensorflow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KIND_NAMES)
def test_compiling_leaves_no_garbage_behind(kind: str, form: str) -> None:
    """The command line pauses the collector meanwhile, so that nothing may be left to it."""
    small, _, big = (garbage_of(compiling(data, form)) for data in messages(kind))
    assert big == small


@collector_paused()
def garbage_of(run: Callable[[], Any]) -> int:
    """How many objects are left that only the collector can free."""
    gc.freeze()  # what was there before is neither looked at nor counted
    try:
        run()
        gc.collect()
        run()
        return gc.collect()
    finally:
        gc.unfreeze()


def flat(size: int) -> Node:
    """A program of so many bindings: `(p -> (let v1=<p,p>,v2=<v1[0],p>,... in vN[1]))`."""
    parameter = Reference("p", TensorType(DType.INT32))
    bindings = [Binding("v1", StructNode((parameter, parameter)))]
    for index in range(2, size + 1):
        last = bindings[-1]
        value = StructNode((Selection(Reference(last.name, last.value.type), 0), parameter))
        bindings.append(Binding(f"v{index}", value))
    result = Selection(Reference(bindings[-1].name, bindings[-1].value.type), 1)
    return Lambda("p", parameter.type, Block(tuple(bindings), result))


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(lambda node: functools.partial(compact, node), id="compact"),
        pytest.param(lambda node: functools.partial(formatted, node), id="formatted"),
        pytest.param(lambda node: functools.partial(typed, node), id="typed"),
        pytest.param(lambda node: functools.partial(verify, node), id="verify"),
        pytest.param(lambda node: functools.partial(wire.to_bytes, node), id="write"),
        pytest.param(lambda node: functools.partial(parse, typed(node)), id="parse"),
        pytest.param(
            lambda node: functools.partial(wire.from_bytes, wire.to_bytes(node)), id="read"
        ),
    ],
)
def test_one_operation(operation: Callable[[Node], Callable[[], Any]]) -> None:
    check_growth([counted(operation(flat(4 * size))) for size in SIZES])


def doubled(levels: int) -> Node:
    """`(a0 -> (let a1=<a0,a0>,a2=<a1,a1>,... in aN[0][1]...))`: 2 ** N values, were they copied."""
    last = Reference("a0", TensorType(DType.INT32))
    bindings = []
    for level in range(1, levels + 1):
        bindings.append(Binding(f"a{level}", StructNode((last, last))))
        last = Reference(f"a{level}", bindings[-1].value.type)
    result: Node = last
    for level in range(levels):
        result = Selection(result, level % 2)
    return Lambda("a0", TensorType(DType.INT32), Block(tuple(bindings), result))


def test_what_is_shared_is_not_copied() -> None:
    pipeline = default_pipeline()

    def run(levels: int) -> Callable[[], Any]:
        program = doubled(levels)
        return lambda: (verify(program), pipeline.run(program))

    check_growth([counted(run(4 * size)) for size in SIZES])
    assert compact(pipeline.run(doubled(1024))) == "(a0 -> a0)"


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("command", "own"),
    [
        (["print"], {"collector", "commands.print", "options"}),
        (
            ["compile", "--form", "mapreduce", "--out", "bundle"],
            {
                "collector",
                "commands.compile",
                "options",
                "pass_instrumentation",
                "pipeline_choice",
                "timings",
            },
        ),
    ],
)
@pytest.mark.parametrize("kind", ["chain", "aggregations", "wide"])
def test_no_module_depends_on_the_size(
    command: list[str], own: set[str], kind: str, tmp_path: pathlib.Path
) -> None:
    loaded = []
    for number, data in enumerate(messages(kind)[::2]):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "x.pb").write_bytes(data)
        code = (
            "import sys\n"
            "from tffc.cli.application import application\n"
            f"application({[*command, 'x.pb']}, standalone_mode=False)\n"
            "print('modules:', *sys.modules, file=sys.stderr)"
        )
        ran = run_python("-c", code, cwd=folder, check=True)
        loaded.append(set(ran.stderr.partition("modules:")[2].split()))
    assert loaded[0] == loaded[1]
    assert "tensorflow" not in loaded[0]
    commands = {name.removeprefix("tffc.cli.") for name in loaded[0] if "tffc.cli." in name}
    shared = {
        "application",
        "command_line",
        "commands",
        "completion",
        "consent",
        "interrupts",
        "output",
        "progress",
        "revisions",
        "screen",
        "usage",
    }
    assert commands == {*shared, "sources", "status_line", "streams", *own}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str) -> None:
    """Programs of many shapes are checked and compiled in steps of their size."""

    def run(size: int) -> Callable[[], Any]:
        data = wire.to_bytes(SHAPES[shape](size))
        return lambda: compile_form(wire.from_bytes(data), "mapreduce")

    check_growth([counted(run(size)) for size in (128, 256, 512)])
