"""Differences between two programs: in their bindings, and inside their compiled sections.

Bound names have no meaning, so bindings are matched by their values.  Names and order inside a
graph have no meaning either, so sections are compared by fingerprint.  For a changed section, the
changed constants, attributes, edges and functions are described.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tffc.assurance.diff.alignment import aligned
from tffc.language.alpha import Names, canonical, rename_binders
from tffc.language.fingerprint import fingerprint
from tffc.language.lines import walk_with_lines
from tffc.language.nodes import Block, Compiled, Lambda, Node, Reference
from tffc.language.notation import compact
from tffc.language.notation.labels import section_label
from tffc.language.traverse import rewrite, walk
from tffc.passes.strip_containers import strip_containers
from tffc.support.errors import Span
from tffc.support.printable import printable

CONTEXT = 2
"""The number of unchanged lines that are shown around changed ones."""


class ProgramDifference(NamedTuple):
    """A component's difference: it was added, removed, or some of its lines changed.

    `lines` begin with a space, `-` or `+`; `sections` describes differences inside compiled
    sections.
    """

    component: str
    change: str
    lines: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()


def differences(
    first: Mapping[str, Node], second: Mapping[str, Node]
) -> Iterator[ProgramDifference]:
    """Yield the components that differ: those of `first` in order, then added ones."""
    for name in {**first, **second}:
        before, after = first.get(name), second.get(name)
        if after is None:
            yield ProgramDifference(name, "removed")
        elif before is None:
            yield ProgramDifference(name, "added")
        elif not is_same(before, after):
            lines = tuple(_lines(strip_containers(before), strip_containers(after)))
            yield ProgramDifference(name, "changed", lines, tuple(_sections(before, after)))


def is_same(first: Node, second: Node) -> bool:
    """Return whether two programs are equal up to names, containers and the encoding of graphs."""
    return _essence(first) == _essence(second)


def _essence(program: Node) -> Node:
    def by_fingerprint(node: Node) -> Node | None:
        if isinstance(node, Compiled):
            return Compiled(node.kind, fingerprint(node).encode(), node.type)
        if isinstance(node, Reference) and node.context is not None:
            return Reference(node.name, node.type)
        return None

    return rewrite(canonical(strip_containers(program)), by_fingerprint)


class _Row(NamedTuple):
    """One line of a program: a binding, or the result."""

    name: str
    value: Node

    def text(self, names: Mapping[str, str]) -> str:
        name = printable(names.get(self.name, self.name))
        return f"{name}: {self.value.type} = {_text(self.value, names)}"

    def key(self) -> str:
        """Return the line without the names of other lines and of sections."""

        def anonymous(node: Node) -> Node | None:
            return Reference("_", node.type) if isinstance(node, Reference) else None

        text = compact(rewrite(self.value, anonymous), lambda section: "")
        return f"{self.value.type} = {text}"


def _text(value: Node, names: Mapping[str, str]) -> str:
    def renamed(node: Node) -> Node | None:
        if isinstance(node, Reference) and node.name in names:
            return Reference(names[node.name], node.type)
        return None

    return compact(rewrite(value, renamed))


def _rows(program: Node) -> list[_Row]:
    """Return the lines of a program, renamed so that no name is bound twice."""
    fresh = Names(set())
    node = rename_binders(program, fresh.fresh)
    rows: list[_Row] = []
    while isinstance(node, (Lambda, Block)):
        if isinstance(node, Block):
            rows += [_Row(local.name, local.value) for local in node.locals]
        elif node.parameter_name is not None and node.parameter_type is not None:
            rows.append(_Row(node.parameter_name, Reference("parameter", node.parameter_type)))
        node = node.result
    return [*rows, _Row("result", node)]


def _lines(first: Node, second: Node) -> Iterator[str]:
    """Yield the differing lines with context, using the names of the first program."""
    before, after = _rows(first), _rows(second)
    pairs = aligned([row.key() for row in before], [row.key() for row in after])
    names = _names(before, after, pairs)
    old = [row.text({}) for row in before]
    new = [row.text(names) for row in after]
    yield from _near_changes([*_marked(old, new, pairs)])


def _marked(
    old: Sequence[str], new: Sequence[str], pairs: Sequence[tuple[int, int]]
) -> Iterator[str]:
    """Yield both texts merged: removed lines begin with `-`, added ones with `+`."""
    first = start = 0
    same = [(one, other) for one, other in pairs if old[one] == new[other]]
    for one, other in (*same, (len(old), len(new))):
        yield from (f"-{line}" for line in old[first:one])
        yield from (f"+{line}" for line in new[start:other])
        yield from (f" {line}" for line in old[one : one + 1])
        first, start = one + 1, other + 1


def _near_changes(marked: Sequence[str]) -> Iterator[str]:
    """Yield the changed lines with context."""
    changed = (index for index, line in enumerate(marked) if line[0] != " ")
    near = {at for index in changed for at in range(index - CONTEXT, index + CONTEXT + 1)}
    shown = sorted(near.intersection(range(len(marked))))
    for before, index in zip([index - 1 for index in shown[:1]] + shown, shown, strict=False):
        if before < index - 1:
            yield "..."
        yield marked[index]


def _names(
    before: Sequence[_Row], after: Sequence[_Row], pairs: Sequence[tuple[int, int]]
) -> dict[str, str]:
    """Map the names of the second program to those of the first, or to new ones."""
    names: dict[str, str] = {}
    taken = Names({row.name for row in before})
    for one, other in pairs:
        names[after[other].name] = before[one].name
    for row in after:
        if row.name not in names:
            names[row.name] = taken.fresh(row.name)
    return names


def _sections(first: Node, second: Node) -> Iterator[str]:
    """Yield the differences between sections that only one of the programs has, paired in order."""
    before, after = _by_name(first), _by_name(second)
    old = [(name, node) for name, node in before.items() if name not in after]
    new = [(name, node) for name, node in after.items() if name not in before]
    places = section_places(second) if new else {}
    for (name, node), (other, changed) in zip(old, new, strict=False):
        yield f"{name} -> {other}: {_section_change(node, changed)}"
        yield from (f"  {line}" for line in _points(node, changed, places.get(other)))
    common = min(len(old), len(new))
    yield from (f"- {name}: {node.type}" for name, node in old[common:])
    yield from (f"+ {name}: {node.type}" for name, node in new[common:])


def _by_name(program: Node) -> dict[str, Compiled]:
    sections = (node for node in walk(program) if isinstance(node, Compiled))
    return {f"comp#{section_label(node)}": node for node in sections}


def section_places(program: Node) -> dict[str, Span]:
    """Return the first place in the user's source where each section is called, if known."""
    places: dict[str, Span] = {}
    for node, span in walk_with_lines(program):
        if isinstance(node, Compiled) and span is not None:
            places.setdefault(f"comp#{section_label(node)}", span)
    return places


def called_at(place: Span) -> str:
    """Return a span in the user's source with the text of its line."""
    return printable(f"{place.shown()}: {place.source_line().strip()}")


def _section_change(before: Compiled, after: Compiled) -> str:
    from tffc.linking.inspect import inspect  # which equal programs do without

    old, new = inspect(before).operations, inspect(after).operations
    parts = [] if before.type == after.type else [f"of type {before.type}, now {after.type}"]
    for operation in sorted({*old, *new}):
        change = new.get(operation, 0) - old.get(operation, 0)
        if change:
            parts.append(f"{change:+d} {printable(operation)}")
    return ", ".join(parts) or "the same operations"


def _points(before: Compiled, after: Compiled, place: Span | None) -> Iterator[str]:
    """Yield the place where a section is called, and its differences."""
    if place is not None:
        yield f"called at {called_at(place)}"
    from tffc.assurance.diff.sections import section_points

    points = list(section_points(before, after))
    if not points and before.type == after.type:
        points = ["its argument or its result has other tensors of the graph"]
    yield from points
