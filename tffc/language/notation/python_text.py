"""Programs as the Python expressions that make them, as `repr` shows them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, assert_never

from tffc.language.array import Array
from tffc.language.nodes import (
    Block,
    Call,
    Compiled,
    Data,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    PlacementNode,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.notation.labels import section_label
from tffc.language.notation.pieces import expanded

LONGEST, SHOWN = 2**16, 1000
"""Of a text with more than `LONGEST` pieces, the first `SHOWN` are shown."""


def python_text(root: Node) -> str:
    """Return the expression that makes a node; a long one is cut short."""
    pieces = [str(piece) for piece in itertools.islice(expanded([root], _pieces), LONGEST + 1)]
    if len(pieces) > LONGEST:
        pieces = [*pieces[:SHOWN], " ..."]
    return "".join(pieces)


def _pieces(node: Node) -> list[Any]:
    match node:
        case Reference():
            return _call(node, node.name, node.type, *filter(None, [node.context]))
        case Selection():
            by_name = node.name is not None
            step = f"name={node.name!r}" if by_name else f"index={node.index}"
            return ["Selection(", node.source, ", ", step, ")"]
        case StructNode():
            pairs = (
                [value] if name is None else _pair(name, value) for name, value in node.items()
            )
            suffix = "" if node.container is None else f" as {node.container.__name__}"
            return ["Struct([", *_joined(pairs), f"]){suffix}"]
        case Call(argument=None):
            return ["Call(", node.function, ")"]
        case Call():
            return ["Call(", node.function, ", ", node.argument, ")"]
        case Lambda():
            parameter = f"Lambda({node.parameter_name!r}, {node.parameter_type!r}, "
            return [parameter, node.result, ")"]
        case Block():
            pairs = (_pair(binding.name, binding.value) for binding in node.locals)
            return ["Block([", *_joined(pairs), "], ", node.result, ")"]
        case Intrinsic():
            return _call(node, node.uri, node.type)
        case Data():
            return _call(node, node.content, node.type)
        case Compiled():
            return ["CompiledComputation(", f"{section_label(node)!r}, {node.type!r})"]
        case PlacementNode():
            return [f"Placement({node.uri!r})"]
        case Literal():
            return [f"Literal({_constant(node.array)}, {node.type!r})"]
        case _:
            assert_never(node)


def _call(node: Node, *arguments: object) -> list[str]:
    return [f"{type(node).__name__}({', '.join(map(repr, arguments))})"]


def _pair(name: str | None, value: Node) -> list[Any]:
    return [f"({name!r}, ", value, ")"]


def _joined(items: Iterable[list[Any]]) -> list[Any]:
    pieces: list[Any] = []
    for item in items:
        pieces += [", ", *item] if pieces else item
    return pieces


def _constant(array: Array) -> str:
    values = array.numpy()
    if array.shape == ():
        return repr(getattr(values, "item", lambda: values)())
    return f"np.array({values.tolist()!r}, dtype={array.dtype!r})"
