"""Compiled sections as graphs for drawing: nodes, edges, and functions."""

from __future__ import annotations

from typing import Any

from tffc.assurance.diff.outline.read import outline
from tffc.assurance.diff.outline.rows import OutlineCall, OutlineScope, Value, Values
from tffc.language.nodes import Compiled
from tffc.support.errors import TffcError

LONGEST = 240
"""The most characters of a node's attributes that are shown."""


class Graphs:
    """The graphs of a page, numbered, each once."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._plain: list[dict[str, Any]] = []

    def number(self, section: Compiled) -> int:
        """Return the number of a section's graph."""
        key = section.kind, section.payload
        if key not in self._numbers:
            self._numbers[key] = len(self._plain)
            self._plain.append(_graph(section))
        return self._numbers[key]

    def size(self, number: int) -> int:
        """Return the number of nodes in a graph, functions included."""
        return sum(len(scope["rows"]) for scope in self._plain[number]["scopes"])

    def plain(self) -> list[dict[str, Any]]:
        return self._plain


def _graph(section: Compiled) -> dict[str, Any]:
    try:
        read = outline(section)
    except TffcError as error:
        return {"words": [], "scopes": [], "unreadable": f"this graph cannot be read: {error}"}
    words: dict[str, int] = {}
    scopes = [_scope(scope, words) for scope in read.scopes()]
    return {"words": list(words), "scopes": scopes}


def _scope(scope: OutlineScope, words: dict[str, int]) -> dict[str, Any]:
    """Return a graph or function as rows: operation, name, attributes, inputs, control inputs,
    functions.

    Texts are numbered in `words`, because many nodes share them.  Inputs are row numbers; an output
    other than the first is appended after a colon.
    """
    rows = [
        [
            *(
                words.setdefault(text, len(words))
                for text in (row.operation, row.name, _attributes(row.attributes))
            ),
            [_edge(*edge) for edge in row.inputs],
            list(row.after),
            _functions(list(row.attributes.values())),
        ]
        for row in scope.rows
    ]
    results = [_edge(*edge) for edge in scope.results]
    return {"name": scope.name, "rows": rows, "results": results, "after": list(scope.after)}


def _edge(source: int, port: str) -> int | str:
    return source if port in ("", "0") else f"{source}:{port}"


def _attributes(attributes: Any) -> str:
    text = "\n".join(f"{name} = {value}" for name, value in attributes.items())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _functions(waiting: list[Value]) -> list[int]:
    """Return the numbers of the functions that attributes name."""
    functions: dict[int, None] = {}
    while waiting:
        value = waiting.pop()
        if isinstance(value, Values):
            waiting.extend(value.elements)
        elif isinstance(value, OutlineCall):
            if isinstance(value.function, int):
                functions[value.function] = None
            waiting.extend(attribute for _, attribute in value.attributes)
    return sorted(functions)
