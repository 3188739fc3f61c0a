"""The steps of every aggregation, written out by an arithmetic that computes texts."""

from __future__ import annotations

from typing import Any

import pytest

from tffc.language.calls import uri_of
from tffc.language.nodes import Call, Lambda, Node
from tffc.language.notation import parse
from tffc.language.types import Type
from tffc.linking.aggregations import PLAIN


class Texts:
    """An arithmetic whose values are the terms that compute them."""

    def operand(self, node: Node) -> Any:
        return str(node)

    def apply(self, function: Node, argument: Any) -> Any:
        arguments = argument if isinstance(argument, tuple) else (argument,)
        return f"{function}({', '.join(arguments)})"

    def zeros(self, kind: Type) -> Any:
        return "0"

    def ones(self, value: Any, kind: Type) -> Any:
        return f"ones({value})"

    def dtype_limits(self, kind: Type, largest: bool) -> Any:
        return "largest" if largest else "smallest"

    def plus(self, first: Any, second: Any) -> Any:
        if isinstance(first, tuple):
            return tuple(map(self.plus, first, second))
        return f"{first} + {second}"

    def multiply(self, first: Any, second: Any) -> Any:
        return f"{first} * {second}"

    def divide(self, first: Any, second: Any) -> Any:
        return f"({first}) / ({second})"

    def minimum(self, first: Any, second: Any) -> Any:
        return f"min({first}, {second})"

    def maximum(self, first: Any, second: Any) -> Any:
        return f"max({first}, {second})"


def call_of(uri: str, *operands: str) -> Call:
    """The call of an aggregation on parts of the parameter `p`."""
    types = {
        "p.x": "{float32}@CLIENTS",
        "p.w": "{float32}@CLIENTS",
        "p.zero": "int32",
        "p.accumulate": "(<int32,float32> -> int32)",
        "p.merge": "(<int32,int32> -> int32)",
        "p.report": "(int32 -> str)",
    }
    taken = ",".join(f"{name.removeprefix('p.')}={kind}" for name, kind in types.items())
    parts = ",".join(types[name] for name in operands)
    result = "str@SERVER" if "p.report" in operands else "float32@SERVER"
    several = len(operands) > 1
    argument = f"<{','.join(operands)}>" if several else "".join(operands)
    parameter = f"<{parts}>" if several else parts
    program = parse(f"(p: <{taken}> -> {uri}:({parameter} -> {result})({argument}))")
    assert isinstance(program, Lambda)
    assert isinstance(program.result, Call)
    return program.result


AGGREGATE = ("p.x", "p.zero", "p.accumulate", "p.merge", "p.report")

MEAN = {
    "zero": "0",
    "accumulate": ("a + u", "c + v"),
    "merge": ("a + b", "c + d"),
    "report": ("a", "c"),
    "conclude": "(r) / (s)",
}
"""The steps of both means after the clients' own."""

STEPS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "federated_sum": (
        ("p.x",),
        {
            "contribute": "p.x",
            "zero": "0",
            "accumulate": "a + u",
            "merge": "a + b",
            "report": "a",
            "conclude": "r",
        },
    ),
    "federated_min": (
        ("p.x",),
        {
            "contribute": "p.x",
            "zero": "largest",
            "accumulate": "min(a, u)",
            "merge": "min(a, b)",
            "report": "a",
            "conclude": "r",
        },
    ),
    "federated_max": (
        ("p.x",),
        {
            "contribute": "p.x",
            "zero": "smallest",
            "accumulate": "max(a, u)",
            "merge": "max(a, b)",
            "report": "a",
            "conclude": "r",
        },
    ),
    "federated_mean": (
        ("p.x",),
        {"contribute": ("p.x * ones(p.x)", "ones(p.x)"), **MEAN},
    ),
    "federated_weighted_mean": (
        ("p.x", "p.w"),
        {"contribute": ("p.x * p.w", "p.w"), **MEAN},
    ),
    "federated_aggregate": (
        AGGREGATE,
        {
            "contribute": "p.x",
            "zero": "p.zero",
            "accumulate": "p.accumulate(a, u)",
            "merge": "p.merge(a, b)",
            "report": "p.report(a)",
            "conclude": "r",
        },
    ),
}


def test_every_aggregation_is_written_out() -> None:
    assert set(STEPS) == set(PLAIN)


@pytest.mark.parametrize("uri", STEPS)
def test_steps(uri: str) -> None:
    operands, expected = STEPS[uri]
    call = call_of(uri, *operands)
    assert uri_of(call) == uri
    by, aggregation = Texts(), PLAIN[uri](call)
    pairs = isinstance(expected["report"], tuple)

    def value(first: str, second: str) -> Any:
        return (first, second) if pairs else first

    steps = {
        "contribute": aggregation.contribute(by),
        "zero": aggregation.zero(by),
        "accumulate": aggregation.accumulate(by, value("a", "c"), value("u", "v")),
        "merge": aggregation.merge(by, value("a", "c"), value("b", "d")),
        "report": aggregation.report(by, value("a", "c")),
        "conclude": aggregation.conclude(by, value("r", "s")),
    }
    assert steps == expected


def test_types_of_steps() -> None:
    mean = PLAIN["federated_weighted_mean"](call_of("federated_weighted_mean", "p.x", "p.w"))
    assert str(mean.update) == str(mean.accumulator) == "<float32,float32>"
    assert [str(node) for node in mean.values] == ["p.x", "p.w"]
    own: Any = PLAIN["federated_aggregate"](call_of("federated_aggregate", *AGGREGATE))
    types = own.update, own.zero_type, own.accumulator, own.report_type
    assert list(map(str, types)) == ["float32", "int32", "int32", "str"]
    assert [str(*own.operands_of(part)) for part in own.PARTS] == list(AGGREGATE[1:])
