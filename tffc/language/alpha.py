"""Renaming of binders, programs that are equal up to names, and new names."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

from tffc.language.environment import Environment
from tffc.language.nodes import Binding, Block, Lambda, Node, Reference
from tffc.language.size import counted, max_size, size_text
from tffc.language.traverse import postorder, walk
from tffc.support.errors import VerificationError
from tffc.support.trampoline import Task, run


def rename_binders(root: Node, name_of: Callable[[str], str]) -> Node:
    """Return the program with each binder renamed by `name_of`, and its references with it.

    `name_of(name)` is called once for each binder, in the order of evaluation: binders inside a
    local's value before the local itself.  It must not return a name that is free in the program,
    nor one that it returned before.  Types do not change.

    Raises:
      VerificationError: the program has more binders than `max_size`, those of a shared node
        counted at each of its places.
    """
    return run(_Renamer(root, name_of).rename(root, Environment()))


def canonical(root: Node) -> Node:
    """Return the program with its binders named by position, so that programs which are equal up to
    names become equal.

    No program can contain these names, so none of them is free in it.
    """
    numbers = itertools.count(1)
    return rename_binders(root, lambda name: f"\0{next(numbers)}")


class Names:
    """Names in use, and new names that get a number where theirs is taken: `x_1`, `x_2`, ..."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._counts: dict[str, int] = {}

    @classmethod
    def outside(cls, root: Node) -> Names:
        """Return names of which all that a program binds or uses are taken."""
        names: set[str] = set()
        for node in walk(root):
            names.update(binders(node))
            if isinstance(node, Reference):
                names.add(node.name)
        return cls(names)

    def fresh(self, stem: str) -> str:
        """Return `stem` or, where that is taken, `stem` with the next number; taken from now on."""
        if stem in self._taken:
            return self.numbered(stem)
        self._taken.add(stem)
        return stem

    def numbered(self, stem: str) -> str:
        """Return `stem` with the next number that is not taken; taken from now on."""
        while True:
            self._counts[stem] = self._counts.get(stem, 0) + 1
            name = f"{stem}_{self._counts[stem]}"
            if name not in self._taken:
                self._taken.add(name)
                return name


def binders(node: Node) -> tuple[str, ...]:
    """Return the names that a node itself binds."""
    if isinstance(node, Block):
        return tuple(binding.name for binding in node.locals)
    if isinstance(node, Lambda) and node.parameter_name is not None:
        return (node.parameter_name,)
    return ()


class _Renamer:
    """Renames the binders of one program.

    A subtree without binders is renamed once for all places that see the same binders, so that
    shared structs stay shared.  A subtree with binders is renamed again at each place.
    """

    def __init__(self, root: Node, name_of: Callable[[str], str]) -> None:
        self._name_of = name_of
        self._done: dict[tuple[int, Environment[str]], Node] = {}
        self._binders: dict[int, int] = {}
        for node in postorder(root):
            inside = sum(self._binders[id(child)] for child in node.children())
            self._binders[id(node)] = counted(len(binders(node)) + inside)
        if self._binders[id(root)] > max_size():
            raise VerificationError(
                "E201",
                f"the program binds {size_text(self._binders[id(root)])} names when it is written "
                f"out, more than the {max_size()} that can be told apart",
                help="bind shared functions in a block",
            )

    def rename(self, node: Node, names: Environment[str]) -> Task[Any]:
        """Return the node with new names; `names` has those of the names in scope."""
        if self._binders[id(node)]:
            return (yield self._rename(node, names))
        key = (id(node), names)
        if key not in self._done:
            self._done[key] = yield self._rename(node, names)
        return self._done[key]

    def _rename(self, node: Node, names: Environment[str]) -> Task[Any]:
        match node:
            case Reference():
                new = names.find(node.name)
                return node if new is None else dataclasses.replace(node, name=new)
            case Lambda(parameter_name=str(name)):
                new = self._name_of(name)
                result = yield self.rename(node.result, names.bind(name, new))
                return Lambda(new, node.parameter_type, result, node.span)
            case Block():
                bindings: list[Binding] = []
                for binding in node.locals:
                    value = yield self.rename(binding.value, names)
                    new = self._name_of(binding.name)
                    names = names.bind(binding.name, new)
                    bindings.append(Binding(new, value, binding.span))
                return Block(tuple(bindings), (yield self.rename(node.result, names)))
            case _:
                pass
        children: list[Node] = []
        for child in node.children():
            children.append((yield self.rename(child, names)))
        return node.with_children(tuple(children))
