"""Differences between sections: each kind, in graphs and modules of a few lines."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

from tests.graphs.proto import messages as proto
from tests.test_growth import SIZES, check_growth, counted
from tffc.assurance.diff.sections import section_points
from tffc.language import Compiled, DType, FunctionType, TensorType
from tffc.language.wire import TensorBinding, TensorFlowSection, write_tensorflow

LINE = re.compile(r"(?P<name>\S+) = (?P<op>\w+)\((?P<inputs>.*?)\)(?P<attributes>.*)")
FLOAT = FunctionType(TensorType(DType.FLOAT32), TensorType(DType.FLOAT32))

BASE = """
y = Const() value=0.5
mul = Mul(x, y) T=1
relu = Ramp(mul)
out = Total(relu, x) keep=true
"""


def section(text: str, functions: dict[str, str] | None = None) -> Compiled:
    """Return a section of type (float32 -> float32) from its parameter x to the node `out`."""
    graph = proto.GraphDef()
    graph.node.add(name="x", op="Placeholder")
    read(text, graph.node)
    for name, body in (functions or {}).items():
        function = graph.library.function.add()
        function.signature.name = name
        function.signature.input_arg.add(name="x", type=1)
        function.signature.output_arg.add(name="out", type=1)
        function.ret["out"] = "out:z:0"
        read(body, function.node_def)
    binding, result = TensorBinding("x:0"), TensorBinding("out:0")
    content = TensorFlowSection(graph.SerializeToString(), binding, result)
    return Compiled("tensorflow", write_tensorflow(content), FLOAT)


def read(text: str, nodes: Any) -> None:
    for line in text.strip().splitlines():
        match = LINE.fullmatch(line)
        assert match is not None, line
        inputs = [each for each in match["inputs"].split(", ") if each]
        node = nodes.add(name=match["name"].replace("_", "/"), op=match["op"], input=inputs)
        for name, _, value in (each.partition("=") for each in match["attributes"].split()):
            set_attribute(node.attr[name], name, value)


def set_attribute(attribute: Any, name: str, value: str) -> None:
    if name == "value":
        values = [float(each) for each in value.split(",")]
        sizes = [] if len(values) == 1 else [len(values)]
        shape = proto.TensorShapeProto(
            dim=[proto.TensorShapeProto.Dim(size=size) for size in sizes]
        )
        attribute.tensor.CopyFrom(proto.TensorProto(dtype=1, tensor_shape=shape, float_val=values))
    elif name == "f":
        attribute.func.name = value
    elif name == "T":
        attribute.type = int(value)
    elif name == "N":
        attribute.i = int(value)
    elif value in ("true", "false"):
        attribute.b = value == "true"
    else:
        attribute.s = value.encode()


def points(before: str, after: str) -> list[str]:
    return list(section_points(section(before), section(after)))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("value=0.5", "value=0.75", ["Const y: 0.5 -> 0.75"]),
        ("value=0.5", "value=1,2", ["Const y: float32 0.5 -> float32[2] 1.0 2.0"]),
        ("T=1", "T=3", ["Mul mul: T float32 -> int32"]),
        ("T=1", "", ["Mul mul: T float32 -> unset"]),
        ("keep=true", "keep=false", ["Total out: keep true -> unset"]),
        ("keep=true", "keep=true mode=\x1b[2J", ["Total out: mode unset -> '\\x1b[2J'"]),
        ("Total(relu, x)", "Total(relu, mul)", ["Total out: input 1 is Mul mul, was argument 0"]),
        ("Total(relu, x)", "Total(relu)", ["Total out: input 1 is nothing, was argument 0"]),
        (
            "Total(relu, x)",
            "Total(relu:1, x)",
            ["Total out: input 0 is Ramp relu:1, was Ramp relu"],
        ),
        ("Ramp(mul)", "Ramp(mul, ^y)", ["Ramp relu runs after Const y"]),
        (
            "Ramp(mul)",
            "Elu(mul)",
            [
                "added Elu relu",
                "removed Ramp relu",
                "Total out: input 0 is Elu relu, was Ramp relu",
            ],
        ),
        (
            "out = Total(relu, x)",
            "abs = Abs(relu)\nout = Total(abs, x)",
            ["added Abs abs", "Total out: input 0 is Abs abs, was Ramp relu"],
        ),
    ],
)
def test_a_point(old: str, new: str, expected: list[str]) -> None:
    assert points(BASE, BASE.replace(old, new)) == expected


def test_what_runs_before_has_no_order() -> None:
    """Nodes that run before another are paired by content, not by position."""
    graph = """
a = Var() mode=a
b = Var() mode=b
c = Var() mode=c
one = Const() value=1
two = Const() value=2
three = Const() value=3
seta = Assign(a, one)
setb = Assign(b, two)
setc = Assign(c, three)
out = Total(x, {})
"""
    controls = ["^seta", "^setb", "^setc"]
    for order in itertools.permutations(controls):
        before, after = graph.format(", ".join(controls)), graph.format(", ".join(order))
        assert points(before, after.replace("value=2", "value=7")) == ["Const two: 2.0 -> 7.0"]


def test_several_layers_more() -> None:
    """Nodes behind them are paired although no path leads there from the results."""
    more = "a = Layer(mul)\nb = Layer(a)\nc = Tanh(b)\nrelu = Ramp(c)"
    assert points(BASE, BASE.replace("relu = Ramp(mul)", more)) == [
        "added Tanh c",
        "added Layer b",
        "added Layer a",
        "Ramp relu: input 0 is Tanh c, was Mul mul",
    ]


def test_names_and_order_are_no_points() -> None:
    renamed = BASE.replace("relu", "other").replace("y", "why").strip().splitlines()
    assert points(BASE, "\n".join(reversed(renamed))) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "1,2,3,4,5,6,7,8",
            "1,2,3,9,5,6,7,9",
            "2 of 8 elements differ, the first at [3]: 4.0 -> 9.0",
        ),
        (
            "1,2,3,4,5,6,7,8",
            "0,0,0,0,0,0,0,0",
            "8 of 8 elements differ, the first at [0]: 1.0 -> 0.0",
        ),
        (
            "1,1,1,1,1,1,1,1",
            "1,1,2,2,2,2,2,2",
            "6 of 8 elements differ, the first at [2]: 1.0 -> 2.0",
        ),
        ("1,2", "1,3", "1.0 2.0 -> 1.0 3.0"),
    ],
)
def test_arrays(old: str, new: str, expected: str) -> None:
    before, after = (BASE.replace("value=0.5", f"value={each}") for each in (old, new))
    assert points(before, after) == [f"Const y: {expected}"]


def test_a_constant_whose_elements_are_all_one_is_not_spread_out() -> None:
    def huge(value: float) -> Compiled:
        graph = proto.GraphDef()
        node = graph.node.add(name="out", op="Const")
        sizes = [proto.TensorShapeProto.Dim(size=2**20)] * 3
        shape = proto.TensorShapeProto(dim=sizes)
        tensor = proto.TensorProto(dtype=1, tensor_shape=shape, float_val=[value])
        node.attr["value"].tensor.CopyFrom(tensor)
        result = TensorBinding("out:0")
        written = TensorFlowSection(graph.SerializeToString(), None, result)
        return Compiled("tensorflow", write_tensorflow(written), FLOAT)

    count = 2**60
    assert list(section_points(huge(1), huge(2))) == [
        f"Const out: {count} of {count} elements differ, the first at [0,0,0]: 1.0 -> 2.0"
    ]


CALLS = "y = Apply(x) f=__inference_scale_{}\nout = Apply(y) f=__inference_shift_{}"


def test_functions() -> None:
    body = "k = Const() value={}\nout = Mul(x, k:output:0)"
    before = section(
        CALLS.format(1, 2),
        {"__inference_scale_1": body.format(2), "__inference_shift_2": body.format(3)},
    )
    after = section(
        CALLS.format(8, 7),
        {"__inference_shift_7": body.format(4), "__inference_scale_8": body.format(2)},
    )
    assert list(section_points(before, after)) == ["in shift: Const k: 3.0 -> 4.0"]


def test_another_function() -> None:
    body = "k = Const() value=2\nout = Mul(x, k:output:0)"
    functions = {"__inference_scale_1": body, "__inference_shift_2": body.replace("2", "3")}
    before = section(CALLS.format(1, 2), functions)
    after = section(CALLS.format(1, 2).replace("shift_2", "scale_1"), functions)
    assert list(section_points(before, after)) == ["Apply out: f function shift -> function scale"]


def test_no_more_than_a_few_points() -> None:
    def many(value: int) -> str:
        rows = [f"c{i} = Const() value={value}" for i in range(20)]
        return "\n".join([*rows, f"out = Several({', '.join(f'c{i}' for i in range(20))})"])

    found = points(many(1), many(2))
    assert found[0] == "Const c0: 1.0 -> 2.0"
    assert (len(found), found[-1]) == (9, "and 12 more")


def test_a_loop_of_nodes() -> None:
    loop = "m = Merge(x, next) N=2\nnext = NextIteration(m)\nout = Exit(m) name={}"
    assert points(loop.format("a"), loop.format("b")) == ["Exit out: name 'a' -> 'b'"]


def test_what_cannot_be_read_has_no_points() -> None:
    broken = Compiled("tensorflow", b"\xff", FLOAT)
    assert list(section_points(broken, section(BASE))) == []


def test_growth() -> None:
    def chain(size: int, extra: str) -> Compiled:
        rows = [f"c{i} = Const() value={i}\nn{i} = Add(n{i - 1}, c{i})" for i in range(1, size)]
        return section("\n".join(["n0 = Abs(x)", *rows, extra, f"out = Neg(n{size - 1})"]))

    counts: list[dict[str, int]] = []
    for size in SIZES:
        before = chain(size, "e = Abs(n0)")
        after = chain(size, "e = Abs(n1)")
        counts.append(counted(lambda b=before, a=after: list(section_points(b, a))))
    check_growth(counts)


def test_modules_of_xla() -> None:
    pytest.importorskip("jax", reason="an optional package")
    import numpy as np

    import tffc as tff
    from tffc.frontend.computation import Computation

    def made(factor: float, axis: int) -> Compiled:
        @tff.jax_computation(tff.TensorType(np.float32, [3, 3]))
        def scaled(x: Any) -> Any:
            return (x * np.float32(factor) + np.float32(1)).sum(axis)

        assert isinstance(scaled, Computation)
        assert isinstance(scaled.node, Compiled)
        return scaled.node

    (point,) = section_points(made(0.5, 0), made(0.75, 0))
    assert point.startswith("constant constant.")
    assert point.endswith(": 0.5 -> 0.75")
    (point,) = section_points(made(0.5, 0), made(0.5, 1))
    assert point.endswith(": dimensions [0] -> [1]")
