"""Differences between two compiled sections: in constants, attributes, edges, nodes and functions.

Nodes are paired in three steps, each linear in the number of nodes: from the results backwards
through the inputs, skipping a node that only one graph has; by equal subgraphs, that is a node with
everything that it depends on; and by operation.
"""

from __future__ import annotations

import collections
import hashlib
import itertools
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeAlias

from tffc.assurance.diff.outline.constants import Constant
from tffc.assurance.diff.outline.read import outline
from tffc.assurance.diff.outline.rows import (
    ARGUMENT,
    Outline,
    OutlineCall,
    OutlineRow,
    OutlineScope,
    Resource,
    Value,
    Values,
)
from tffc.graphs.node import inputs_first
from tffc.language.nodes import Compiled
from tffc.support.errors import GraphError, WireError
from tffc.support.printable import printable

SHOWN = 8
"""The most differences of a section that are shown; the others are counted."""

CONTENT = ("value", "literal")
"""Attributes not named in texts, because they hold a constant's content."""


def section_points(before: Compiled, after: Compiled) -> Iterator[str]:
    """Yield the first differences between two sections, one line each, and the number of the
    others.

    Yields nothing if one of them cannot be read, or if only the tensors of their arguments or
    results differ.
    """
    try:
        sections = _Sections(outline(before), outline(after))
    except (WireError, GraphError):
        return
    for index, point in enumerate(points := list(sections.points())):
        if index == SHOWN:
            yield f"and {len(points) - SHOWN} more"
            return
        yield printable(point)


class _Sections:
    """Two sections; their functions are compared when a call of them is found."""

    def __init__(self, before: Outline, after: Outline) -> None:
        self._before, self._after = before, after
        self._pairs: list[tuple[int, int]] = []
        self._functions, self._resources = _Counterparts(), _Counterparts()
        self._pair_equal_functions()

    def points(self) -> Iterator[str]:
        """Yield all differences: those of the graphs, then of functions in the order of calls."""
        yield from self._compare(self._before.graph, self._after.graph, "")
        # The list grows while functions are compared.
        for old, new in self._pairs:
            before, after = self._before.functions[old], self._after.functions[new]
            yield from self._compare(before, after, f"in {_function_name(after.name)}: ")

    def _pair_equal_functions(self) -> None:
        """Pair functions whose content occurs once in each section; calls pair the others later."""
        old, new = (_once(section.functions) for section in (self._before, self._after))
        for body, number in old.items():
            if body in new and self._functions.pair(number, new[body]):
                self._pairs.append((number, new[body]))

    def _compare(self, before: OutlineScope, after: OutlineScope, where: str) -> Iterator[str]:
        pairs = _Pairs(before, after)
        kinds = (self._values(pairs), _nodes(pairs), _edges(pairs))
        for points in kinds:
            yield from (f"{where}{point}" for point in points)

    def _values(self, pairs: _Pairs) -> Iterator[str]:
        """Yield the differing constants and attributes."""
        for old, new in pairs.in_order():
            before, after = pairs.before.rows[old], pairs.after.rows[new]
            for name in sorted({*before.attributes, *after.attributes}):
                values = before.attributes.get(name), after.attributes.get(name)
                for change in self._value_changes(*values):
                    label = "" if name in CONTENT else f"{name} "
                    yield f"{_label(after)}: {label}{change}"
        if pairs.before.gradient or pairs.after.gradient:
            changes = self._value_changes(pairs.before.gradient, pairs.after.gradient)
            yield from (f"gradient {change}" for change in changes)

    def _value_changes(self, before: Value | None, after: Value | None) -> Iterator[str]:
        """Yield the differences between two values of an attribute; functions are compared
        later."""
        stack: list[tuple[str, Value | None, Value | None]] = [("", before, after)]
        while stack:
            label, old, new = stack.pop()
            if isinstance(old, OutlineCall) and isinstance(new, OutlineCall):
                if not self._is_pair(old, new):
                    yield f"{label}{self._change(old, new)}"
                was, now = dict(old.attributes), dict(new.attributes)
                names = sorted({*was, *now}, reverse=True)
                stack.extend((f"{label}{name} ", was.get(name), now.get(name)) for name in names)
            elif isinstance(old, Values) and isinstance(new, Values):
                parts = list(itertools.zip_longest(old.elements, new.elements))
                stack.extend((f"{label}[{at}] ", *parts[at]) for at in reversed(range(len(parts))))
            elif isinstance(old, Resource) and isinstance(new, Resource):
                if not self._resources.pair(old.number, new.number):
                    yield f"{label}is another resource"
            elif old != new:
                yield f"{label}{self._change(old, new)}"

    def _is_pair(self, before: OutlineCall, after: OutlineCall) -> bool:
        """Pair the functions of two calls if neither has a counterpart; return whether they are a
        pair."""
        old, new = before.function, after.function
        if not isinstance(old, int) or not isinstance(new, int):
            return old == new
        is_new = old not in self._functions.new
        are_paired = self._functions.pair(old, new)
        if is_new and are_paired:
            self._pairs.append((old, new))
        return are_paired

    def _change(self, before: Value | None, after: Value | None) -> str:
        if isinstance(before, Constant) and isinstance(after, Constant):
            return before.change(after)
        return f"{_shown(before, self._before)} -> {_shown(after, self._after)}"


class _Counterparts:
    """A one-to-one correspondence of numbers: `old` by the new number, `new` by the old one."""

    def __init__(self) -> None:
        self.old: dict[int, int] = {}
        self.new: dict[int, int] = {}

    def pair(self, old: int, new: int) -> bool:
        """Pair two numbers if neither has a counterpart; return whether they are a pair."""
        if old not in self.new and new not in self.old:
            self.new[old], self.old[new] = new, old
        return self.new.get(old) == new


def _shown(value: Value | None, section: Outline) -> str:
    if isinstance(value, OutlineCall) and isinstance(value.function, int):
        return f"function {_function_name(section.functions[value.function].name)}"
    return "unset" if value is None or value == "" else str(value)


def _function_name(name: str) -> str:
    """Return a function's name without the affixes of tracing: `scale` for
    `__inference_scale_12`."""
    stem, _, number = name.removeprefix("__inference_").rpartition("_")
    return stem if number.isdigit() and stem else name.removeprefix("__inference_")


def _label(row: OutlineRow) -> str:
    return row.operation if row.name in ("", row.operation) else f"{row.operation} {row.name}"


def _nodes(pairs: _Pairs) -> Iterator[str]:
    """Yield the nodes that only one of the scopes has."""
    for number, row in enumerate(pairs.after.rows):
        if number not in pairs.old:
            yield f"added {_described(row)}"
    for number, row in enumerate(pairs.before.rows):
        if number not in pairs.new:
            yield f"removed {_described(row)}"


def _described(row: OutlineRow) -> str:
    constants = [str(value) for value in row.attributes.values() if isinstance(value, Constant)]
    return " ".join([_label(row), *constants])


def _edges(pairs: _Pairs) -> Iterator[str]:
    """Yield the differing inputs, results and control edges of nodes that both scopes have."""
    before, after = pairs.before, pairs.after
    for old, new in pairs.in_order():
        one, other = before.rows[old], after.rows[new]
        yield from pairs.edges(f"{_label(other)}: input", one.inputs, other.inputs)
        yield from pairs.orders(f"{_label(other)} runs", one.after, other.after)
    yield from pairs.edges("result", before.results, after.results)


class _Pairs(_Counterparts):
    """The correspondence of the rows of two scopes."""

    def __init__(self, before: OutlineScope, after: OutlineScope) -> None:
        super().__init__()
        self.before, self.after = before, after
        scopes = before, after
        self._digests: Keys = [_digests(scope) for scope in scopes]
        self._names: Keys = [[(r.operation, r.name) for r in scope.rows] for scope in scopes]
        self._operations: Keys = [[row.operation for row in scope.rows] for scope in scopes]
        self._pair_arguments()
        self._pair_from_results()
        self._pair_rest(self._digests, 1)
        # From the end: later rows pair with later ones.
        self._pair_rest(self._operations, -1)

    def in_order(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs, in the order of the new scope."""
        yield from ((self.old[new], new) for new in sorted(self.old))

    def edges(
        self, label: str, before: tuple[tuple[int, str], ...], after: tuple[tuple[int, str], ...]
    ) -> Iterator[str]:
        """Yield the differences between the edges into a node, or between results."""
        for at, (old, new) in enumerate(itertools.zip_longest(before, after)):
            if old is None or new is None or (self.new.get(old[0]), old[1]) != new:
                was = "nothing" if old is None else _edge(old, self.before)
                now = "nothing" if new is None else _edge(new, self.after)
                yield f"{label} {at} is {now}, was {was}"

    def orders(self, label: str, before: tuple[int, ...], after: tuple[int, ...]) -> Iterator[str]:
        """Yield the differences between the control edges into a node."""
        counterparts = {self.new.get(row) for row in before}
        new_counterparts = {self.old.get(row) for row in after}
        for row in after:
            if row not in counterparts:
                yield f"{label} after {_label(self.after.rows[row])}"
        for row in before:
            if row not in new_counterparts:
                yield f"{label} no longer after {_label(self.before.rows[row])}"

    def pair(self, old: int, new: int) -> bool:
        """Pair two rows of the same operation if neither has a counterpart; return whether they are
        a pair."""
        is_one = self.before.rows[old].operation == self.after.rows[new].operation
        return is_one and super().pair(old, new)

    def _pair_arguments(self) -> None:
        shortest = min(len(self.before.rows), len(self.after.rows))
        for at in range(shortest):
            if self.before.rows[at].operation != ARGUMENT or not self.pair(at, at):
                break

    def _pair_from_results(self) -> None:
        ends = ((scope.results, scope.after) for scope in (self.before, self.after))
        (results, after), (new_results, new_after) = ends
        stack = self._in_step(after, new_after)
        stack += [(o[0], n[0]) for o, n in zip(results, new_results, strict=False)]
        stack.reverse()
        while stack:
            old, new = stack.pop()
            if old in self.new or new in self.old:
                continue
            one, other = self.before.rows[old], self.after.rows[new]
            if self.pair(old, new):
                stack += reversed(self._in_step(one.after, other.after))
                inputs = zip(one.inputs, other.inputs, strict=False)
                stack += [(o[0], n[0]) for o, n in reversed(list(inputs))]
            elif (past := self._past(old, new)) is not None:
                stack.append(past)

    def _in_step(self, before: tuple[int, ...], after: tuple[int, ...]) -> list[tuple[int, int]]:
        """Pair the rows that run before two nodes, which have no order.

        Rows with equal subgraphs are paired first, then those with equal operation and name, then
        those with equal operation; the rest is left out.
        """
        pairs: dict[int, int] = {}
        left, rest = list(before), list(after)
        for keys in (self._digests, self._names, self._operations):
            matches = dict(_matched(left, rest, keys))
            pairs |= matches
            taken = set(matches.values())
            left = [row for row in left if row not in matches]
            rest = [row for row in rest if row not in taken]
        return list(pairs.items())

    def _past(self, old: int, new: int) -> tuple[int, int] | None:
        """Return the pair to try next if only one of the scopes has an extra node here."""
        one, other = self.before.rows[old], self.after.rows[new]
        for source, _ in other.inputs:
            if self.after.rows[source].operation == one.operation and source not in self.old:
                return old, source
        for source, _ in one.inputs:
            if self.before.rows[source].operation == other.operation and source not in self.new:
                return source, new
        return None

    def _pair_rest(self, keys: Keys, step: int) -> None:
        """Pair the rows with equal keys that have no counterpart yet, in order, or with `step` -1
        from the end."""
        left = [row for row in range(len(self.before.rows)) if row not in self.new]
        rest = [row for row in range(len(self.after.rows)) if row not in self.old]
        for old, new in _matched(left[::step], rest[::step], keys):
            self.pair(old, new)


Keys: TypeAlias = Sequence[Sequence[Hashable]]
"""For each of two scopes, the keys by which its rows are paired."""


def _matched(before: list[int], after: list[int], keys: Keys) -> Iterator[tuple[int, int]]:
    """Yield pairs of rows with equal keys; rows with the same key are paired in order."""
    old_keys, new_keys = keys
    waiting: dict[Hashable, collections.deque[int]] = collections.defaultdict(collections.deque)
    for row in after:
        waiting[new_keys[row]].append(row)
    for row in before:
        if counterparts := waiting.get(old_keys[row]):
            yield row, counterparts.popleft()


def _edge(edge: tuple[int, str], scope: OutlineScope) -> str:
    source, port = edge
    row = scope.rows[source]
    if row.operation == ARGUMENT:
        return f"argument {source}"
    output = "" if port.rpartition(":")[2] == "0" else f":{port}"
    return f"{_described(row)}{output}"


def _digests(scope: OutlineScope) -> list[bytes]:
    """Return for each row a hash of its subgraph, without functions and resources."""
    digests = [b""] * len(scope.rows)
    for number in _inputs_first(scope):
        row = scope.rows[number]
        parts: list[object] = [row.operation, number if row.operation == ARGUMENT else ""]
        for name, value in row.attributes.items():
            is_numbered = isinstance(value, OutlineCall | Resource | Values)
            parts.append(f"{name}={'' if is_numbered else value}")
        parts += [part for source, port in row.inputs for part in (digests[source], port)]
        parts += sorted(digests[source] for source in row.after)
        digests[number] = hashlib.sha256(repr(parts).encode()).digest()
    return digests


def _once(functions: list[OutlineScope]) -> dict[tuple[object, ...], int]:
    """Map each function content that occurs once to the function's number."""
    numbers: dict[tuple[object, ...], list[int]] = collections.defaultdict(list)
    for number, scope in enumerate(functions):
        digests = _digests(scope)
        results = tuple((digests[source], port) for source, port in scope.results)
        numbers[results, *sorted(digests[source] for source in scope.after)].append(number)
    return {body: same[0] for body, same in numbers.items() if len(same) == 1}


def _inputs_first(scope: OutlineScope) -> list[int]:
    """Return the rows in topological order; on a cycle, one comes before some that it needs."""

    def inputs(number: int) -> list[int]:
        row = scope.rows[number]
        return [*(source for source, _ in row.inputs), *row.after]

    return inputs_first(range(len(scope.rows)), inputs)
