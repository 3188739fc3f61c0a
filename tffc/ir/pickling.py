"""Types and nodes as flat lists, which is how they are pickled.

Trees may be deeper than pickle can follow, and hashes are good for one process only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from tffc.ir.term import Term


@dataclasses.dataclass(frozen=True, slots=True)
class Number:
    """Stands in a flat list for the term at this place of it."""

    index: int


def flatten(root: Term) -> list[tuple[type, dict[str, Any]]]:
    """The class and the fields of every term in `root`, each after the terms in its fields.

    A shared term stands once.
    """
    numbers: dict[int, Number] = {}
    flat: list[tuple[type, dict[str, Any]]] = []
    stack: list[tuple[Term, bool]] = [(root, False)]
    while stack:
        term, expanded = stack.pop()
        if id(term) in numbers:
            continue
        fields = _fields(term)
        if expanded:
            state = {
                name: _replace(value, Term, lambda inner: numbers[id(inner)])
                for name, value in fields.items()
            }
            numbers[id(term)] = Number(len(flat))
            flat.append((type(term), state))
        else:
            stack.append((term, True))
            stack.extend((inner, False) for value in fields.values() for inner in _terms(value))
    return flat


def restore(flat: list[tuple[type, dict[str, Any]]]) -> Term:
    """The term that `flatten` made the list of."""
    terms: list[Term] = []
    for kind, state in flat:
        term = object.__new__(kind)
        for name, value in state.items():
            restored = _replace(value, Number, lambda number: terms[number.index])
            object.__setattr__(term, name, restored)
        term._seal()
        terms.append(term)
    return terms[-1]


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _is_record(value: Any) -> bool:
    """Whether the value is a dataclass that is no term itself, such as a binding."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type | Term | Number)


def _terms(value: Any) -> Iterator[Term]:
    """The terms that a field holds: itself, in a tuple, or in a binding."""
    if isinstance(value, Term):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _terms(item)
    elif _is_record(value):
        yield from _terms(tuple(_fields(value).values()))


def _replace(value: Any, kind: type, by: Callable[[Any], Any]) -> Any:
    """What a field holds, with everything of one kind in it replaced."""
    if isinstance(value, kind):
        return by(value)
    if isinstance(value, tuple):
        return tuple(_replace(item, kind, by) for item in value)
    if _is_record(value):
        return type(value)(*_replace(tuple(_fields(value).values()), kind, by))
    return value
