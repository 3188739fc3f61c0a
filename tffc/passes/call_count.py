"""How many calls are left when the functions of a program are inlined, told without inlining them.

Which calls there are does not depend on data.  So the program is evaluated on values of which only
the structs and the lambdas are known, and all else is one and the same unknown.  A function applied
again to such a value makes as many calls as before: each pair is evaluated once, and numbers are
added up where inlining would repeat the work.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

from tffc.errors import VerificationError
from tffc.ir.nodes import Block, Call, Lambda, Node, Reference, Selection, StructNode
from tffc.ir.size import CALL, COUNTED_BITS, GROWTH, max_size
from tffc.ir.trampoline import Task, run
from tffc.passes.frames import Frame
from tffc.passes.steps import Steps
from tffc.printable import printable


def check_calls(root: Node) -> None:
    """Check that inlining the functions of a closed program makes no more calls than it may.

    Raises:
      VerificationError: it makes more, or to count them takes more steps than there may be.
    """
    most = max_size() // CALL
    counter = _Counter(most)
    value, calls = run(counter.evaluate(root, Frame(None)))
    calls += run(counter.reify(value))
    if calls > most:
        raise _too_many_calls(str(calls), most, counter.first)


def _too_many_calls(calls: str, most: int, first: tuple[str, int] | None) -> VerificationError:
    """Return the refusal of a program; `first` is a function of it that makes too many calls, and
    how many."""
    notes: tuple[str, ...] = ()
    if first is not None:
        name, number = first
        notes = (f"`{printable(name)}` alone makes {number} calls each time it is called",)
    return VerificationError(
        "E321",
        f"the program makes {calls} calls when its functions are inlined, "
        f"more than the {most} that are made",
        notes=notes,
        help=GROWTH,
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Unknown:
    """Any value that is neither a struct nor a lambda as far as is known."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _CountedPack:
    """A struct of values."""

    values: tuple[_Value, ...]
    has_closure: bool


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _CountedClosure:
    """A lambda together with the values of the names around it."""

    node: Lambda
    frame: Frame[Any]


_Value: TypeAlias = _Unknown | _CountedPack | _CountedClosure
_Result: TypeAlias = tuple[_Value, int]
"""A value, and how many calls are made to have it."""

UNKNOWN = _Unknown()


class _Counter:
    """One count.  Equal structs of values are one object, so that ids stand for values."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._steps = Steps()
        self._bound: set[str] = set()
        self._packs: dict[tuple[int, ...], _CountedPack] = {}
        self._applied: dict[tuple[int, int], tuple[_CountedClosure, _Value, _Result]] = {}
        self._evaluated: dict[tuple[int, int], tuple[Node, Frame[Any], _Result]] = {}
        self._reified: dict[int, tuple[_Value, int]] = {}
        self._names: dict[int, str] = {}
        self.first: tuple[str, int] | None = None
        """The innermost function that makes too many calls, and how many."""

    def evaluate(self, node: Node, frame: Frame[Any]) -> Task[_Result] | _Result:
        """Return what `node` stands for; a node in several places of one scope is evaluated
        once."""
        match node:
            case Reference():
                return frame.find(node.name) or UNKNOWN, 0
            case Lambda():
                return _CountedClosure(node, frame), 0
            case Call() | StructNode() | Selection() | Block():
                return self._remember(node, frame)
            case _:
                return UNKNOWN, 0

    def _remember(self, node: Node, frame: Frame[Any]) -> Task[_Result]:
        key = id(node), id(frame)
        if key not in self._evaluated:
            self._evaluated[key] = node, frame, (yield self._compound(node, frame))
        return self._evaluated[key][2]

    def _compound(self, node: Node, frame: Frame[Any]) -> Task[_Result]:
        match node:
            case Call():
                return self._call(node, frame)
            case StructNode():
                return self._struct(node, frame)
            case Block():
                return self._block(node, frame)
            case Selection():
                return self._select(node, frame)
            case _:
                raise AssertionError(f"{type(node).__name__} is not compound")

    def _struct(self, node: StructNode, frame: Frame[Any]) -> Task[_Result]:
        values: list[_Value] = []
        calls = 0
        self._steps.taken += len(node.values)
        for inner in node.values:
            value, made = yield self.evaluate(inner, frame)
            values.append(value)
            calls += made
        return self._pack(tuple(values)), calls

    def _pack(self, values: tuple[_Value, ...]) -> _CountedPack:
        key = tuple(map(id, values))
        if key not in self._packs:
            self._packs[key] = _CountedPack(values, any(map(_has_closure, values)))
        return self._packs[key]

    def _select(self, node: Selection, frame: Frame[Any]) -> Task[_Result]:
        value, calls = yield self.evaluate(node.source, frame)
        return (value.values[node.index] if isinstance(value, _CountedPack) else UNKNOWN), calls

    def _block(self, node: Block, frame: Frame[Any]) -> Task[_Result]:
        frame, calls = Frame(frame), 0
        for binding in node.locals:
            value, made = yield self.evaluate(binding.value, frame)
            calls += made
            if isinstance(value, _CountedClosure):
                self._names.setdefault(id(value), binding.name)
            if binding.name in self._bound:
                # A closure made before now must keep seeing the older binding of this name.
                frame = Frame(frame)
            self._bound.add(binding.name)
            frame.bind(binding.name, value)
        value, made = yield self.evaluate(node.result, frame)
        return value, calls + made

    def _call(self, node: Call, frame: Frame[Any]) -> Task[_Result]:
        function, calls = yield self.evaluate(node.function, frame)
        argument: _Value = UNKNOWN
        if node.argument is not None:
            argument, made = yield self.evaluate(node.argument, frame)
            calls += made
        if isinstance(function, _CountedClosure):
            value, made = yield self._apply(function, argument)
            return value, calls + made
        return UNKNOWN, calls + 1 + (yield self.reify(argument))

    def _apply(self, function: _CountedClosure, argument: _Value) -> Task[_Result]:
        key = id(function), id(argument)
        if key in self._applied:
            return self._applied[key][2]
        name = self._names.get(id(function), function.node.parameter_name or "( -> ...)")
        before = self._steps.apply(name)
        frame: Frame[Any] = Frame(function.frame)
        if function.node.parameter_name is not None:
            self._bound.add(function.node.parameter_name)
            frame.bind(function.node.parameter_name, argument)
        result = yield self.evaluate(function.node.result, frame)
        self._steps.applied(name, before, makes_calls=result[1] > 0)
        self._applied[key] = function, argument, result
        if result[1] > self._most and self.first is None:
            self.first = name, result[1]
        if result[1].bit_length() > COUNTED_BITS:
            # What is evaluated is counted in the end, so the program makes at least as many.
            raise _too_many_calls(f"at least 2^{COUNTED_BITS}", self._most, self.first)
        return result

    def reify(self, value: _Value) -> Task[int] | int:
        """Return how many calls the term of a value holds: those in its lambdas."""
        if not _has_closure(value):
            return 0
        return self._reify(value)

    def _reify(self, value: _Value) -> Task[int]:
        if id(value) in self._reified:
            return self._reified[id(value)][1]
        calls = 0
        if isinstance(value, _CountedClosure):
            inside, calls = yield self._apply(value, UNKNOWN)
            calls += yield self.reify(inside)
        elif isinstance(value, _CountedPack):
            for inner in value.values:
                calls += yield self.reify(inner)
        self._reified[id(value)] = value, calls
        return calls


def _has_closure(value: _Value) -> bool:
    return (
        value.has_closure if isinstance(value, _CountedPack) else isinstance(value, _CountedClosure)
    )
