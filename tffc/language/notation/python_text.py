"""Programs as the Python expressions that make them, as `repr` shows them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from tffc.language.array import Array
from tffc.language.notation.labels import section_label
from tffc.language.notation.pieces import expanded

LONGEST, SHOWN = 2**16, 1000
"""Of a text with more than `LONGEST` pieces, the first `SHOWN` are shown."""


def python_text(root: object) -> str:
    """Return the expression that makes a node; a long one is cut short."""
    pieces = [str(piece) for piece in itertools.islice(expanded([root], _pieces), LONGEST + 1)]
    if len(pieces) > LONGEST:
        pieces = [*pieces[:SHOWN], " ..."]
    return "".join(pieces)


def _pieces(node: Any) -> list[Any]:
    return PIECES[type(node).__name__](node)


def _selection(node: Any) -> list[Any]:
    step = f"index={node.index}" if node.name is None else f"name={node.name!r}"
    return ["Selection(", node.source, f", {step})"]


def _of_call(node: Any) -> list[Any]:
    argument = [] if node.argument is None else [", ", node.argument]
    return ["Call(", node.function, *argument, ")"]


def _block(node: Any) -> list[Any]:
    pairs = (_pair(binding.name, binding.value) for binding in node.locals)
    return ["Block([", *_joined(pairs), "], ", node.result, ")"]


def _call(node: Any, *arguments: object) -> list[str]:
    return [f"{type(node).__name__}({', '.join(map(repr, arguments))})"]


def _pair(name: str | None, value: object) -> list[Any]:
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


PIECES: dict[str, Callable[[Any], list[Any]]] = {
    "Reference": lambda node: _call(node, node.name, node.type, *filter(None, [node.context])),
    "Selection": _selection,
    "StructNode": lambda node: [
        "Struct([",
        *_joined(_pair(*item) for item in node.items()),
        "])",
    ],
    "Call": _of_call,
    "Lambda": lambda node: [
        f"Lambda({node.parameter_name!r}, {node.parameter_type!r}, ",
        node.result,
        ")",
    ],
    "Block": _block,
    "Intrinsic": lambda node: _call(node, node.uri, node.type),
    "Data": lambda node: _call(node, node.value, node.type),
    "Compiled": lambda node: [f"CompiledComputation({section_label(node)!r}, {node.type!r})"],
    "PlacementNode": lambda node: [f"Placement({node.uri!r})"],
    "Literal": lambda node: [f"Literal({_constant(node.array)}, {node.type!r})"],
}
"""The pieces of a node's expression, the nodes inside among them, by the name of its class."""
