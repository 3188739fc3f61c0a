"""Evaluates the lambda calculus of a program on symbolic values.

A value is a struct of values, a closure, or an atom, which is a term that cannot be reduced.
Applying a closure evaluates its body; classes derived from `Evaluator` define what the application
of an atom becomes, which is a call that stays.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from types import GeneratorType
from typing import Any, TypeAlias

from tffc.language.environment import Environment
from tffc.language.nodes import Block, Call, Lambda, Node, Reference, Selection, StructNode
from tffc.language.size import APPLICATION, max_size
from tffc.language.types import StructType, Type
from tffc.support.errors import Span, VerificationError
from tffc.support.printable import printable
from tffc.support.trampoline import Task


class Frame:
    """The values of names in one scope, at first those of the scope around it.

    It stays one object while names are bound in it, so that its id identifies the scope.
    """

    __slots__ = ("_values",)

    def __init__(self, around: Frame | None = None) -> None:
        self._values: Environment[Value] = Environment() if around is None else around._values

    def bind(self, name: str, value: Value) -> None:
        """Bind a name here and in scopes that are made inside this one later."""
        self._values = self._values.bind(name, value)

    def find(self, name: str) -> Value | None:
        """Return the value of a name, or None if it has none."""
        return self._values.find(name)


@dataclasses.dataclass(slots=True, eq=False)
class Atom:
    """A term that cannot be reduced further."""

    node: Node


@dataclasses.dataclass(slots=True, eq=False)
class Pack:
    """A struct of values.  `node` is its term, once it has been made."""

    values: tuple[Value, ...]
    type: StructType
    has_closure: bool
    node: Node | None = None


@dataclasses.dataclass(slots=True, eq=False)
class SymbolicClosure:
    """A lambda together with the values of the names around it."""

    node: Lambda
    frame: Frame


Value: TypeAlias = Atom | Pack | SymbolicClosure


def has_closure(value: Value) -> bool:
    """Tell whether a value is or holds a closure."""
    return value.has_closure if isinstance(value, Pack) else isinstance(value, SymbolicClosure)


@dataclasses.dataclass(slots=True, eq=False)
class Hint:
    """The wanted name and the source position of a binding that an expression makes."""

    name: str | None
    span: Span | None

    def inner(self) -> Hint:
        """Return the hint for the parts of the expression."""
        return self if self.name is None else Hint(None, self.span)


NO_HINT = Hint(None, None)


class Evaluator:
    """One evaluation.  Equal structs of values are one object, so that ids stand for values."""

    repeats_calls = True
    """Whether code that makes calls is evaluated again for each use."""

    def __init__(self) -> None:
        self.calls: int = 0
        """How many calls that stay have been made."""
        self.steps = Steps()
        # The value of a node in a frame, or of a closure for an argument, and the number of calls
        # made for it, by the ids of the two objects, which are kept so that no other object gets
        # their ids.
        self._known: dict[tuple[int, int], tuple[object, object, Value, int]] = {}
        self._packs: dict[tuple[Any, ...], Pack] = {}
        self._function_names: dict[int, str] = {}
        self._bound: set[str] = set()

    def evaluate(self, node: Node, frame: Frame, hint: Hint = NO_HINT) -> Task[Any] | Value:
        """Return the value of a node in a scope, or the task that makes it."""
        match node:
            case Reference():
                return self.look_up(node, frame)
            case Lambda():
                return SymbolicClosure(node, frame)
            case Selection():
                return self._select(node, frame, hint)
            case Call() | StructNode() | Block():
                known = self.recall(node, frame)
                return self._compound(node, frame, hint) if known is None else known
            case _:
                return self.atom(node)

    def recall(self, first: object, second: object) -> Value | None:
        """Return the value kept for two objects, or None, and count its calls again."""
        known = self._known.get((id(first), id(second)))
        if known is None:
            return None
        self.calls += known[3]
        return known[2]

    def keep(self, first: object, second: object, before: int, value: Value) -> Value:
        """Keep the value for two objects; `before` is the number of calls before its evaluation."""
        if self.calls == before or not self.repeats_calls:
            self._known[id(first), id(second)] = first, second, value, self.calls - before
        return value

    def _compound(self, node: Call | StructNode | Block, frame: Frame, hint: Hint) -> Task[Any]:
        before = self.calls
        match node:
            case Call():
                value = yield from self._call(node, frame, hint)
            case StructNode():
                value = yield from self._struct(node, frame, hint.inner())
            case Block():
                value = yield from self._block(node, frame, hint)
        return self.keep(node, frame, before, value)

    def _struct(self, node: StructNode, frame: Frame, hint: Hint) -> Task[Any]:
        values: list[Value] = []
        self.steps.taken += len(node.values)
        for inner in node.values:
            value: Any = self.evaluate(inner, frame, hint)
            values.append((yield value) if isinstance(value, GeneratorType) else value)
        return self.pack(tuple(values), node.type)

    def pack(self, values: tuple[Value, ...], struct: StructType) -> Pack:
        """Return the struct of these values, which is of this type."""
        key = (struct.names, *map(id, values))
        made = self._packs.get(key)
        if made is None:
            made = self._packs[key] = Pack(values, struct, any(map(has_closure, values)))
        return made

    def _select(self, node: Selection, frame: Frame, hint: Hint) -> Task[Any]:
        indices: list[int] = []
        source: Node = node
        while isinstance(source, Selection):
            indices.append(source.index)
            source = source.source
        value: Any = self.evaluate(source, frame, hint)
        if isinstance(value, GeneratorType):
            value = yield value
        for index in reversed(indices):
            value = self.element(value, index)
        return value

    def element(self, value: Value, index: int) -> Value:
        """Return element `index` of a value of struct type."""
        return value.values[index] if isinstance(value, Pack) else self.select(value, index)

    def _block(self, node: Block, frame: Frame, hint: Hint) -> Task[Any]:
        frame = Frame(frame)
        for binding in node.locals:
            span = binding.span or hint.span
            value = yield self.evaluate(binding.value, frame, Hint(binding.name, span))
            if binding.name in self._bound:
                # A closure made before now must keep seeing the older binding of this name.
                frame = Frame(frame)
            self.bind(frame, binding.name, value)
            if isinstance(value, SymbolicClosure):
                self._function_names.setdefault(id(value), binding.name)
        return (yield self.evaluate(node.result, frame, hint))

    def bind(self, frame: Frame, name: str, value: Value) -> None:
        """Give a name its value in a scope."""
        self._bound.add(name)
        frame.bind(name, value)

    def _call(self, node: Call, frame: Frame, hint: Hint) -> Task[Any]:
        inner = hint.inner()
        function: Any = self.evaluate(node.function, frame, inner)
        if isinstance(function, GeneratorType):
            function = yield function
        argument: Any = None
        if node.argument is not None:
            argument = self.evaluate(node.argument, frame, inner)
            if isinstance(argument, GeneratorType):
                argument = yield argument
        if isinstance(function, SymbolicClosure):
            return (yield self.apply(function, argument, hint))
        return (yield self.emit(function, argument, hint))

    def apply(
        self, function: SymbolicClosure, argument: Value | None, hint: Hint
    ) -> Task[Any] | Value:
        """Return the result of a closure, or the task that makes it."""
        known = self.recall(function, argument)
        return self.inline(function, argument, hint) if known is None else known

    def inline(self, function: SymbolicClosure, argument: Value | None, hint: Hint) -> Task[Any]:
        """Return the result of a closure for an argument, which is not known yet."""
        name, steps, calls = self.name_of(function), self.steps.taken, self.calls
        self.steps.apply(name)
        frame, node = Frame(function.frame), function.node
        if node.parameter_name is not None and argument is not None:
            assert node.parameter_type is not None
            value = yield self.conform(argument, node.parameter_type)
            self.bind(frame, node.parameter_name, value)
        value = yield self.evaluate(node.result, frame, hint)
        self.steps.applied(name, steps, makes_calls=self.calls > calls)
        return self.keep(function, argument, calls, value)

    def name_of(self, function: SymbolicClosure) -> str:
        """Return the name of a function in messages."""
        return self._function_names.get(id(function), function.node.parameter_name or "( -> ...)")

    # Defined by derived classes.

    def look_up(self, node: Reference, frame: Frame) -> Value:
        """Return the value of a name."""
        raise NotImplementedError

    def atom(self, node: Node) -> Atom:
        """Return the value of a node of any other kind."""
        raise NotImplementedError

    def select(self, value: Any, index: int) -> Value:
        """Return element `index` of an atom of struct type."""
        raise NotImplementedError

    def emit(self, function: Value, argument: Value | None, hint: Hint) -> Task[Any]:
        """Count the call of an atom, and return its result."""
        raise NotImplementedError

    def conform(self, value: Value, wanted: Type) -> Task[Any] | Value:
        """Return a value as one of the type that is wanted, to which it can be assigned."""
        return value


NOTABLE = 8
"""The notes of an error name an application that takes more than one in this many steps."""


class Steps:
    """The steps of inlining: one for each element of a new struct, and `APPLICATION` for each
    application of a function, but one if it makes calls, which are counted themselves."""

    def __init__(self) -> None:
        self.most = max_size()
        self.taken = 0
        self._times: Counter[str] = Counter()
        self._longest = (0, "")

    def apply(self, name: str) -> None:
        """Count that a function is applied.

        Raises:
          VerificationError: there are too many steps.
        """
        self.taken += APPLICATION
        self._times[name] += 1
        if self.taken > self.most:
            raise self._too_many()

    def applied(self, name: str, before: int, *, makes_calls: bool) -> None:
        """Note the end of an application that began after `before` steps."""
        if makes_calls:
            self.taken -= APPLICATION - 1
        self._longest = max(self._longest, (self.taken - before, name))

    def _too_many(self) -> VerificationError:
        name, times = max(self._times.items(), key=lambda item: (item[1], item[0]))
        notes = [f"`{printable(name)}` was applied {times} times by then"]
        steps, name = self._longest
        if steps > self.most // NOTABLE:
            notes.append(f"`{printable(name)}` alone takes {steps} steps each time it is called")
        return VerificationError(
            "E321",
            f"the functions of the program are not inlined in {self.most} steps",
            notes=tuple(notes),
            help="call functions fewer times, or allow more",
        )
