"""The normaliser: one symbolic walk that leaves nothing but calls.

A program in call-dominant form is

    (p -> (let v1=f1(a1),v2=f2(a2) in r))

where every `f` is a compiled section, an intrinsic or an unresolved function, and every argument
and the result are made of references, selections from references, structs, constants, sections and
lambdas that are call-dominant themselves.  Every binding is used, and no two have the same name.

The walk evaluates the lambda calculus on symbolic values: a struct of values, a closure, or an
atom, which is a term that can not be reduced.  Applying a closure evaluates its body; applying an
atom emits a binding.  Inlining, selecting, flattening, renaming and dead-code removal are what that
evaluation does, in time linear in the program and in the calls that it makes.  Calls are never
merged: two calls of a random section are two draws.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

from tffc.errors import Span, VerificationError
from tffc.ir.nodes import (
    Binding,
    Block,
    Call,
    Lambda,
    Node,
    Reference,
    Selection,
    Struct,
)
from tffc.ir.trampoline import Task, run
from tffc.ir.types import StructType, Type, without_containers
from tffc.printable import printable


def call_dominant(root: Node) -> Node:
    """Bring a closed program to call-dominant form.

        (x -> (let y=<f(x),x> in y[0]))   becomes   (x -> (let v_1=f(x) in v_1))

    Raises:
      VerificationError: the program uses a name that it does not bind.
    """
    walker = _Walker()
    value = run(walker.evaluate(root, _Frame(None), _Hint(None, None)))
    if isinstance(value, _Closure):
        return run(walker.close(value))
    result = run(walker.reify(value))
    return walker.block(walker.sink, result)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Atom:
    """A term that can not be reduced further."""

    node: Node


@dataclasses.dataclass(slots=True, eq=False)
class _Pack:
    """A struct of values.  `node` is its term, once somebody asked for it."""

    values: tuple[_Value, ...]
    type: StructType
    has_closure: bool
    node: Node | None = None

    @classmethod
    def of(cls, values: tuple[_Value, ...], like: StructType) -> _Pack:
        """The struct of these values, with the names of the elements of `like`."""
        made = like.with_types(tuple(map(type_of, values)))
        return cls(values, made, any(map(_has_closure, values)))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Closure:
    """A lambda together with the values of the names around it."""

    node: Lambda
    frame: _Frame


_Value: TypeAlias = _Atom | _Pack | _Closure


class _Frame:
    """The values of names in one scope, and the scope around it."""

    __slots__ = ("around", "values")

    def __init__(self, around: _Frame | None) -> None:
        self.around = around
        self.values: dict[str, _Value] = {}

    def find(self, name: str) -> _Value | None:
        passed: list[_Frame] = []
        frame: _Frame | None = self
        while frame is not None:
            value = frame.values.get(name)
            if value is not None:
                for inner in passed:
                    # Remembered on the way, so that a name far out is not searched for again.
                    inner.values[name] = value
                return value
            passed.append(frame)
            frame = frame.around
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class _Hint:
    """What a binding made by the expression at hand should be called, and where it came from."""

    name: str | None
    span: Span | None

    def inner(self) -> _Hint:
        """What is said to the parts of the expression."""
        return self if self.name is None else _Hint(None, self.span)


class _Walker:
    """One walk: the bindings emitted so far and the names that are taken."""

    def __init__(self) -> None:
        self.sink: list[Binding] = []
        self.taken: set[str] = set()
        self.bound: set[str] = set()
        self.used: dict[int, tuple[Lambda, set[str]]] = {}
        self.counters: dict[str, int] = {}

    # Evaluation.

    def evaluate(self, node: Node, frame: _Frame, hint: _Hint) -> Task[Any] | _Value:
        """The value of `node`, or the task that makes it and emits the calls that stay."""
        match node:
            case Reference():
                return self._lookup(node, frame)
            case Call():
                return self._call(node, frame, hint)
            case Struct():
                return self._struct(node, frame, hint.inner())
            case Selection():
                return self._select(node, frame, hint)
            case Lambda():
                return _Closure(node, frame)
            case Block():
                return self._block(node, frame, hint)
            case _:
                return _Atom(node)

    def _struct(self, node: Struct, frame: _Frame, hint: _Hint) -> Task[Any]:
        values = []
        for value in node.values:
            values.append((yield self.evaluate(value, frame, hint)))
        return _Pack.of(tuple(values), node.type)

    def _lookup(self, node: Reference, frame: _Frame) -> _Value:
        value = frame.find(node.name)
        if value is None:
            raise VerificationError(
                "E350",
                f"the name `{printable(node.name)}` of type `{node.type}` is used but not bound",
                help="a computation has to receive every value it uses as its argument",
            )
        return value

    def _select(self, node: Selection, frame: _Frame, hint: _Hint) -> Task[Any]:
        indices = []
        source: Node = node
        while isinstance(source, Selection):
            indices.append(source.index)
            source = source.source
        value = yield self.evaluate(source, frame, hint)
        for index in reversed(indices):
            value = element(value, index)
        return value

    def _block(self, node: Block, frame: _Frame, hint: _Hint) -> Task[Any]:
        frame = _Frame(frame)
        for binding in node.locals:
            span = binding.span or hint.span
            value = yield self.evaluate(binding.value, frame, _Hint(binding.name, span))
            if binding.name in self.bound:
                # A closure made before now must keep seeing the older binding of this name.
                frame = _Frame(frame)
            self.bound.add(binding.name)
            frame.values[binding.name] = value
        return (yield self.evaluate(node.result, frame, hint))

    def _call(self, node: Call, frame: _Frame, hint: _Hint) -> Task[Any]:
        inner = hint.inner()
        function = yield self.evaluate(node.function, frame, inner)
        argument = None
        if node.argument is not None:
            argument = yield self.evaluate(node.argument, frame, inner)
        if isinstance(function, _Closure):
            return (yield self._apply(function, argument, hint))
        target = yield self.reify(function)
        operand = None if argument is None else (yield self.reify(argument))
        return self._emit(Call(target, operand), hint)

    def _apply(self, function: _Closure, argument: _Value | None, hint: _Hint) -> Task[Any]:
        frame = _Frame(function.frame)
        node = function.node
        if node.parameter_name is not None and argument is not None:
            assert node.parameter_type is not None
            self.bound.add(node.parameter_name)
            frame.values[node.parameter_name] = yield conform(argument, node.parameter_type)
        return (yield self.evaluate(node.result, frame, hint))

    # Emission.

    def _emit(self, call: Call, hint: _Hint) -> _Atom:
        name = self.fresh(hint.name)
        self.sink.append(Binding(name, call, hint.span))
        return _Atom(Reference(name, call.type))

    def fresh(self, wish: str | None) -> str:
        """A name that nothing else has: the one wished for, or one that is numbered."""
        stem = wish or "v"
        name = wish
        while name is None or name in self.taken:
            self.counters[stem] = self.counters.get(stem, 0) + 1
            name = f"{stem}_{self.counters[stem]}"
        self.taken.add(name)
        return name

    # Values back to terms.

    def reify(self, value: _Value) -> Task[Any] | Node:
        """The term of a value, or the task that makes it."""
        match value:
            case _Atom():
                return value.node
            case _Closure():
                return self._reify_closure(value)
            case _Pack():
                return self._reify_pack(value) if value.node is None else value.node

    def _reify_closure(self, value: _Closure) -> Task[Any]:
        outer, self.sink = self.sink, []
        try:
            return (yield self.close(value))
        finally:
            self.sink = outer

    def _reify_pack(self, value: _Pack) -> Task[Any]:
        nodes = []
        for inner in value.values:
            nodes.append((yield self.reify(inner)))
        made = Struct.of_type(tuple(nodes), value.type)
        if not value.has_closure:
            # A lambda is made anew for each use, so that every binder keeps a name of its own.
            value.node = made
        return made

    def close(self, value: _Closure) -> Task[Any]:
        """The lambda of a closure; its calls, after those in the sink already, are its block."""
        node = value.node
        frame = _Frame(value.frame)
        name = None
        if node.parameter_name is not None:
            assert node.parameter_type is not None
            name = self.fresh(node.parameter_name)
            self.bound.add(node.parameter_name)
            frame.values[node.parameter_name] = _Atom(Reference(name, node.parameter_type))
        sink = self.sink
        value_inside = yield self.evaluate(node.result, frame, _Hint(None, None))
        result = yield self.reify((yield conform(value_inside, node.result.type)))
        made = Lambda(name, node.parameter_type, self.block(sink, result), node.span)
        self.used[id(made)] = (made, self._uses(made.result, set()) - {name})
        return made

    # Dead code.

    def block(self, bindings: list[Binding], result: Node) -> Node:
        """The block of those bindings that the result needs, or the result if it needs none."""
        seen: set[int] = set()
        live = self._uses(result, seen)
        kept: list[Binding] = []
        for binding in reversed(bindings):
            if binding.name in live:
                kept.append(binding)
                live |= self._uses(binding.value, seen)
        return Block(tuple(reversed(kept)), result) if kept else result

    def _uses(self, root: Node, seen: set[int]) -> set[str]:
        """The names in `root`, without entering what was seen and lambdas that are finished."""
        names: set[str] = set()
        stack = [root]
        while stack:
            node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Reference):
                names.add(node.name)
            elif id(node) in self.used:
                names |= self.used[id(node)][1]
            else:
                stack.extend(node.children())
        return names


def element(value: _Value, index: int) -> _Value:
    """Element `index` of a value of struct type."""
    if isinstance(value, _Pack):
        return value.values[index]
    return _Atom(Selection(value.node, index))


def type_of(value: _Value) -> Type:
    """The type of the term that `value` stands for."""
    return value.type if isinstance(value, _Pack) else value.node.type


def _has_closure(value: _Value) -> bool:
    return value.has_closure if isinstance(value, _Pack) else isinstance(value, _Closure)


def conform(value: _Value, wanted: Type) -> Task[Any] | _Value:
    """`value` with the element names of `wanted`, a type that is assignable from its own.

    An unnamed struct may stand where a named one is needed; inlining must not lose the names.
    """
    found = type_of(value)
    if not isinstance(wanted, StructType) or found == wanted:
        return value
    if without_containers(found) == without_containers(wanted):
        return value
    return _named(value, wanted)


def _named(value: _Value, wanted: StructType) -> Task[Any]:
    values = []
    for index, inner in enumerate(wanted.types):
        values.append((yield conform(element(value, index), inner)))
    return _Pack.of(tuple(values), wanted)
