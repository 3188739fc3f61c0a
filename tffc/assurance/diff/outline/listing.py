"""A section as text, one line for each node, that depends only on what it computes.

    comp#2d264793: (float32 -> float32)
      Mul(argument.0, float32 0.3) T=float32
      result: Mul

Nodes are named after their operations, and numbered if there are several.  A constant used by one
node only is written in its place.
"""

from __future__ import annotations

import collections
from collections.abc import Container, Iterable, Iterator

from tffc.assurance.diff.outline.constants import Constant
from tffc.assurance.diff.outline.read import outline
from tffc.assurance.diff.outline.rows import ARGUMENT, OutlineRow, OutlineScope
from tffc.language.nodes import Compiled
from tffc.language.notation.labels import section_label
from tffc.support.errors import GraphError, WireError
from tffc.support.printable import printable

CONSTANTS = {"Const": "value", "constant": "literal"}
"""The operations that return a constant, and the attribute that holds it."""


def section_listing(section: Compiled) -> str:
    """Return a section as text; only its fingerprint if it cannot be read."""
    lines = [f"comp#{section_label(section)}: {section.type}"]
    try:
        read = outline(section)
    except (WireError, GraphError):
        return f"{lines[0]}\n  (not readable)\n"
    lines += _scope(read.graph, "  ")
    for number, scope in enumerate(read.functions):
        gradient = f", gradient {scope.gradient}" if scope.gradient else ""
        lines.append(f"  function #{number}{gradient}:")
        lines += _scope(scope, "    ")
    return "".join(f"{printable(line)}\n" for line in lines)


def _scope(scope: OutlineScope, indent: str) -> Iterator[str]:
    inline = _inline(scope)
    names = _names(scope, inline)
    for number, row in enumerate(scope.rows):
        if number not in inline and row.operation != ARGUMENT:
            yield f"{indent}{names[number]}({_edges(row.inputs, names, inline)}){_rest(row, names)}"
    if scope.results:
        yield f"{indent}result: {_edges(scope.results, names, inline)}"


def _inline(scope: OutlineScope) -> dict[int, str]:
    """Return the texts of the constants that are used once."""
    uses = collections.Counter(source for row in scope.rows for source, _ in row.inputs)
    uses.update(source for source, _ in scope.results)
    uses.update(source for row in scope.rows for source in row.after)
    texts: dict[int, str] = {}
    for number, row in enumerate(scope.rows):
        value = row.attributes.get(CONSTANTS.get(row.operation, ""))
        if isinstance(value, Constant) and uses[number] == 1 and not row.after:
            texts[number] = str(value)
    return texts


def _names(scope: OutlineScope, inline: dict[int, str]) -> list[str]:
    counts: collections.Counter[str] = collections.Counter()
    names: list[str] = []
    for number, row in enumerate(scope.rows):
        if number in inline:
            names.append(inline[number])
            continue
        count = counts[row.operation]
        counts[row.operation] += 1
        is_numbered = count or row.operation == ARGUMENT
        names.append(f"{row.operation}.{count}" if is_numbered else row.operation)
    return names


def _rest(row: OutlineRow, names: list[str]) -> str:
    parts = [f"{name}={value}" for name, value in row.attributes.items()]
    if row.after:
        parts.append(f"after {', '.join(names[source] for source in row.after)}")
    return "".join(f" {part}" for part in parts)


def _edges(edges: Iterable[tuple[int, str]], names: list[str], inline: Container[int]) -> str:
    return ", ".join(
        names[source] if port == "0" or source in inline else f"{names[source]}:{port}"
        for source, port in edges
    )
