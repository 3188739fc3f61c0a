"""Differences as text for users."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

from tffc.assurance.proof.compare import Mismatch
from tffc.assurance.proof.terms import Terms, has_parts
from tffc.assurance.proof.values import Value, term_of
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


def described(terms: Terms, mismatch: Mismatch, what: str, kind: Type) -> Difference:
    """Return a mismatch of `what` is of a type, or the result of a function of it, as text."""
    span = None
    if isinstance(mismatch.program, int):
        span = terms.spans.get(mismatch.program)
    return Difference(
        _path(what, kind, mismatch.leaf),
        mismatch.reason,
        expression(terms, mismatch.program),
        expression(terms, mismatch.form),
        span,
    )


def _path(text: str, kind: Type, leaf: tuple[int, ...]) -> str:
    """Return the selection that leads to a leaf of a value."""
    result = kind.result if isinstance(kind, FunctionType) else kind
    for index in leaf:
        while isinstance(result, FederatedType):
            result = result.member
        name = None
        if isinstance(result, StructType) and index < len(result):
            name, result = result.names[index], result.types[index]
        text += f"[{index}]" if name is None else f".{name}"
    return printable(text)


def expression(terms: Terms, value: Value) -> str:
    """Return a value as text, abridged."""
    if isinstance(value, tuple):
        return f"a struct of {len(value)}"
    text = _term(terms, term_of(value), DEPTH)
    return printable(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")


def _term(terms: Terms, term: int, depth: int) -> str:
    name = _name(terms.labels[term])
    children = terms.children[term]
    if not children:
        return name
    if depth == 0:
        return f"{name}(...)"
    inputs = [_term(terms, child, depth - 1) for child in children[:8]]
    return f"{name}({', '.join(inputs)})"


def _name(label: Hashable) -> str:
    while has_parts(label) and label and has_parts(label[0]):
        label = label[0]
    if not has_parts(label):
        return str(label)
    shown = [str(part) for part in label[:1]]
    rest = [_detail(part) for part in label[1:]]
    return shown[0] + (f"{{{', '.join(rest)}}}" if rest else "")


def _detail(part: Hashable) -> str:
    if has_parts(part) and len(part) == 2 and isinstance(part[0], str):
        return f"{part[0]}={_detail(part[1])}"
    if isinstance(part, bytes):
        return part[:16].hex() + ("..." if len(part) > 16 else "")
    return str(part)[:60]
