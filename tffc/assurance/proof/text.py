"""Differences as text for users."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

from tffc.assurance.proof.compare import Mismatch
from tffc.assurance.proof.terms import Terms
from tffc.language.types import FederatedType, FunctionType, StructType, Type
from tffc.support.errors import Span
from tffc.support.printable import printable

DEPTH = 4
"""The depth to which nested operations are shown."""

LONGEST = 400
"""The most characters of an expression that are shown."""


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """A difference of program and form: the leaf of the result, the reason, both expressions, and
    the user's source line, if the program records it."""

    leaf: str
    reason: str
    program: str
    form: str
    span: Span | None


def described(terms: Terms, found: Mismatch, kind: Type) -> Difference:
    """Return a mismatch as text."""
    span = None
    if isinstance(found.program, int):
        span = terms.spans.get(found.program)
    return Difference(
        _path(kind, found.leaf),
        found.reason,
        expression(terms, found.program),
        expression(terms, found.form),
        span,
    )


def _path(kind: Type, leaf: tuple[int, ...]) -> str:
    """Return the selection that leads to a leaf of the result."""
    result = kind.result if isinstance(kind, FunctionType) else kind
    text = "the result"
    for index in leaf:
        while isinstance(result, FederatedType):
            result = result.member
        name = None
        if isinstance(result, StructType) and index < len(result):
            name, result = result.names[index], result.types[index]
        text += f"[{index}]" if name is None else f".{name}"
    return printable(text)


def expression(terms: Terms, value: Any) -> str:
    """Return a value as text, abridged."""
    if isinstance(value, tuple):
        return f"a struct of {len(value)}"
    text = _term(terms, value, DEPTH)
    return printable(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")


def _term(terms: Terms, term: int, depth: int) -> str:
    name = _name(terms.labels[term])
    children = terms.children[term]
    if not children:
        return name
    if depth == 0:
        return f"{name}(...)"
    return f"{name}({', '.join(_term(terms, each, depth - 1) for each in children[:8])})"


def _name(label: Hashable) -> str:
    while isinstance(label, tuple) and label and isinstance(label[0], tuple):
        label = label[0]
    if not isinstance(label, tuple):
        return str(label)
    shown = [str(part) for part in label[:1]]
    rest = [_detail(part) for part in label[1:]]
    return shown[0] + (f"{{{', '.join(rest)}}}" if rest else "")


def _detail(part: Hashable) -> str:
    if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str):
        return f"{part[0]}={_detail(part[1])}"
    if isinstance(part, bytes):
        return part[:16].hex() + ("..." if len(part) > 16 else "")
    return str(part)[:60]
