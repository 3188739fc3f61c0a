"""Names of channels and broadcasts, for people.

A call is named by the variable that the user's line assigns, else by its operator.  Where one line
makes several calls, as loops and comprehensions do, the name continues with the keys of the struct
that the call's operand is selected from, or of the result that it becomes, so that another call
does not rename the others.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import re
from collections.abc import Callable, Iterable

from tffc.assurance.audit.contents import Contents, selected
from tffc.assurance.audit.programs import results_of
from tffc.backends.forms.stages import Stage, StagedRound
from tffc.language.calls import operands, uri_of
from tffc.language.intrinsics import MAPS, PLACEMENTS_ONLY
from tffc.language.nodes import Node, Reference, Selection, StructNode
from tffc.language.type_parts import local_type
from tffc.language.types import StructType, Type
from tffc.support.errors import Span
from tffc.support.source_text import source_lines

ASSIGNED = re.compile(r"\s*([^\W\d]\w*)\s*(?::[^=]+)?=(?!=)")
"""Matches a line that assigns its result to a name."""


def call_names(program: StagedRound, contents: Contents) -> dict[str, str]:
    """Return a name for each aggregation and broadcast."""
    places = _Places()
    ends = _ends(program)
    named: dict[str, tuple[str, str, str]] = {}
    for staged in program.calls.values():
        if staged.stage in (Stage.AGGREGATE, Stage.BROADCAST):
            place = places.of(staged.binding.span)
            base = place.variable or uri_of(staged.call).removeprefix("federated_")
            keys = _keys(program, operands(staged.call)[0])
            end = ends.get(staged.name, "")
            if place.is_repeated:
                base += keys or end
            elif not place.is_whole and "." in keys:
                base += keys
            named[staged.name] = base, keys, end
    names = {name: base for name, (base, _, _) in named.items()}
    names = _told_apart(names, lambda name: _longer(names[name], named[name][1]))
    names = _told_apart(names, lambda name: _longer(names[name], named[name][2]))
    names = _told_apart(names, lambda name: f"{names[name]}#{contents.of_call(name)[:4]}")
    return _numbered(names)


def _longer(name: str, ending: str) -> str:
    return name if name.endswith(ending) else name + ending


def _told_apart(names: dict[str, str], other: Callable[[str], str]) -> dict[str, str]:
    """Return the names, with another one for each that several calls share."""
    count = collections.Counter(names.values())
    return {key: name if count[name] == 1 else other(key) for key, name in names.items()}


def _numbered(names: dict[str, str]) -> dict[str, str]:
    """Return the names, with a number after those of calls that compute the same."""
    numbered: dict[str, str] = {}
    taken: set[str] = set()
    for key, name in names.items():
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{name}#{number}"
        taken.add(free)
        numbered[key] = free
    return numbered


# Keys.


def _keys(program: StagedRound, node: Node) -> str:
    """Return the path by which an operand is selected from the result of a call, or from the
    parameter; empty if it is not."""
    path: tuple[int, ...] = ()
    while True:
        if isinstance(node, Selection):
            path = (node.index, *path)
            node = node.source
            continue
        staged = program.calls.get(node.name) if isinstance(node, Reference) else None
        if staged is None or staged.operator is None:
            break
        uri, argument = staged.operator.uri, staged.call.argument
        chosen: tuple[int, ...] | None = None
        if uri in MAPS and isinstance(argument, StructNode):
            chosen = selected(argument.values[0])
        if chosen is None:
            break
        assert isinstance(argument, StructNode)
        path = (*chosen, *path)
        node = argument.values[1]
    if isinstance(node, Reference) and node.name == program.parameter:
        # The first step chooses the state or the data.
        return _path(_element(node.type, path[:1]), path[1:])
    return _path(node.type, path)


def _element(type: Type, path: Iterable[int]) -> Type:
    for index in path:
        part = local_type(type)
        type = part.types[index] if isinstance(part, StructType) else part
    return type


def _path(type: Type, path: Iterable[int]) -> str:
    """Return a path of positions as reports print it."""
    text = ""
    for index in path:
        part = local_type(type)
        name = part.names[index] if isinstance(part, StructType) else None
        text += f"[{index}]" if name is None else f".{name}"
        type = _element(part, (index,))
    return text


def _ends(program: StagedRound) -> dict[str, str]:
    """Return for each call that is an element of the round's results its path in them."""
    paths: dict[str, str] = {}
    stack: list[tuple[Node, str]] = [(node, "") for node in results_of(program).values()]
    while stack:
        node, path = stack.pop()
        if isinstance(node, StructNode):
            for index, value in enumerate(node.values):
                stack.append((value, path + _path(node.type, (index,))))
        elif isinstance(node, Reference) and node.name in program.calls:
            staged = program.calls[node.name]
            paths.setdefault(node.name, path)
            argument = staged.call.argument
            is_placed = staged.operator is not None and staged.operator.uri in PLACEMENTS_ONLY
            if is_placed and argument is not None:
                stack.append((argument, path))
    return paths


# Places in the user's source.


@dataclasses.dataclass(frozen=True, slots=True)
class _Place:
    """What the source says of a call.

    `variable` is assigned by its statement.  It `is_whole` if it is all of what is assigned or
    returned, and `is_repeated` if it stands in a loop or a comprehension.
    """

    variable: str | None = None
    is_whole: bool = True
    is_repeated: bool = False


_Key = tuple[int, int | None, int | None, int | None]
"""The lines and columns of a call."""

REPEATS = (
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.Lambda,
)


class _Places:
    """The places of calls in the user's files, each of which is parsed once."""

    def __init__(self) -> None:
        self._files: dict[str, dict[_Key, _Place]] = {}

    def of(self, span: Span | None) -> _Place:
        if span is None:
            return _Place(is_whole=False)
        if span.file not in self._files:
            self._files[span.file] = _places("" if span.text else _source(span.file))
        key = (span.line, span.column, span.end_line, span.end_column)
        assigned = ASSIGNED.match(span.source_line())
        otherwise = _Place(assigned[1] if assigned else None)
        return self._files[span.file].get(key, otherwise)


def _source(file: str) -> str:
    return "".join(source_lines(file))


def _places(source: str) -> dict[_Key, _Place]:
    """Return the places of all calls in a module by their lines and columns; none if it cannot be
    parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    places: dict[_Key, _Place] = {}
    stack: list[tuple[ast.AST, _Place, ast.expr | None]] = [(tree, _Place(None), None)]
    while stack:
        node, place, value = stack.pop()
        if isinstance(node, ast.stmt):
            target, value = _assigned(node)
            place = dataclasses.replace(place, variable=target)
        if isinstance(node, ast.Call):
            key = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
            places[key] = dataclasses.replace(place, is_whole=node is value)
        if isinstance(node, REPEATS):
            place = dataclasses.replace(place, is_repeated=True)
        stack.extend((child, place, value) for child in ast.iter_child_nodes(node))
    return places


def _assigned(statement: ast.stmt) -> tuple[str | None, ast.expr | None]:
    """Return the variable that a statement assigns, if it is one, and the value."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            return name, value
        case ast.Return(value=value) | ast.Expr(value=value):
            return None, value
        case _:
            return None, None
