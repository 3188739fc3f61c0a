"""Places of terms in a program, as messages show them: the enclosing binding with the term marked.

in the binding `y`:
    y=federated_map(<(x -> <x,z>),p[1]>)
                             ^
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from tffc.language.nodes import Binding, Block, Compiled, Lambda, Node, Reference
from tffc.language.notation.labels import section_label
from tffc.language.notation.lines import compact
from tffc.language.types import Type
from tffc.support.errors import NotationError, Span, excerpt
from tffc.support.printable import printable

LONGEST_MARK = 60
"""The most characters of a term that are marked."""

HOLE = "\0"
"""The placeholder for the term while the text around it is printed; no name is printed like
this."""

Path: TypeAlias = tuple[tuple[Node, int], ...]
"""The path from the root to a term: each node on it, and the index of the child that comes next."""


class TermPlace(NamedTuple):
    """One occurrence of a term in a program."""

    path: Path
    term: Node

    @property
    def span(self) -> Span | None:
        """The user's line of the innermost enclosing binding that has one."""
        spans = (binding.span for binding, _ in self._bindings())
        return next((span for span in spans if span is not None), None)

    def note(self) -> str | None:
        """Return the text that shows the place; None if the program is too large to print."""
        binding, depth = next(self._bindings(), (None, 0))
        name = "" if binding is None else printable(binding.name)
        around = "in the program" if binding is None else f"in the binding `{name}`"
        try:
            text, start, length = self._text(depth)
        except NotationError:
            return None
        prefix = "" if binding is None else f"{name}="
        return f"{around}:\n{_marked(prefix + text, len(prefix) + start, length)}"

    def _bindings(self) -> Iterator[tuple[Binding, int]]:
        """Yield the bindings around the term, innermost first, and the depth in the path at which
        the value of each begins."""
        for depth in range(len(self.path) - 1, -1, -1):
            node, index = self.path[depth]
            if isinstance(node, Block) and index < len(node.locals):
                yield node.locals[index], depth + 1

    def _text(self, depth: int) -> tuple[str, int, int]:
        """Return the text of the node at this depth of the path, and the start and length of the
        term in it."""
        term = compact(self.term)
        hole = Compiled("xla", b"", self.term.type)
        node: Node = hole
        for around, index in reversed(self.path[depth:]):
            children = list(around.children())
            children[index] = node
            node = around.with_children(tuple(children))
        text = compact(node, lambda part: HOLE if part is hole else section_label(part))
        before, after = text.split(f"comp#{HOLE}")
        return before + term + after, len(before), len(term)


def _marked(text: str, start: int, length: int) -> str:
    """Return the part of a text around a term, with carets below the term."""
    length = min(length, LONGEST_MARK)
    shown, start = excerpt(text, start, length)
    return f"    {shown}\n    {' ' * start}{'^' * max(1, length)}"


def place_of(root: Node, term: Node) -> TermPlace:
    """Return the first place, in reading order, of the node object `term`."""
    place = _search(root, lambda node: node is term)
    assert place is not None
    return place


def place_of_use(root: Node, name: str, is_wrong: Callable[[Type, Type | None], bool]) -> TermPlace:
    """Return the place of the first wrong reference to a name, given its type and that of its
    binding, if any."""
    seen: set[tuple[int, int]] = set()
    stack: list[tuple[Node, _Link | None, Type | None]] = [(root, None, None)]
    while stack:
        node, link, bound = stack.pop()
        if (id(node), id(bound)) in seen:
            continue
        seen.add((id(node), id(bound)))
        if isinstance(node, Reference) and node.name == name and is_wrong(node.type, bound):
            return TermPlace(_path(link), node)
        steps = list(enumerate(_bound_at(node, name, bound)))
        for index, inner in reversed(steps):
            stack.append((node.children()[index], (link, node, index), inner))
    raise AssertionError(f"{name!r} is used rightly")


_Link: TypeAlias = tuple["_Link | None", Node, int]


def _bound_at(node: Node, name: str, bound: Type | None) -> Iterator[Type | None]:
    """Yield for each child the type of the value that `name` is bound to there, or None."""
    match node:
        case Lambda(parameter_name=parameter):
            yield node.parameter_type if parameter == name else bound
        case Block():
            for binding in node.locals:
                yield bound
                bound = binding.value.type if binding.name == name else bound
            yield bound
        case _:
            yield from (bound for _ in node.children())


def _search(root: Node, accept: Callable[[Node], bool]) -> TermPlace | None:
    seen: set[int] = set()
    stack: list[tuple[Node, _Link | None]] = [(root, None)]
    while stack:
        node, link = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if accept(node):
            return TermPlace(_path(link), node)
        for index, child in reversed(list(enumerate(node.children()))):
            stack.append((child, (link, node, index)))
    return None


def _path(link: _Link | None) -> Path:
    steps: list[tuple[Node, int]] = []
    while link is not None:
        link, node, index = link
        steps.append((node, index))
    return tuple(reversed(steps))
