"""The normaliser: one symbolic walk that leaves nothing but calls.

A program in call-dominant form is

    (p -> (let v1=f1(a1),v2=f2(a2) in r))

where every `f` is a compiled section, an intrinsic or an unresolved function, and every argument
and the result are made of references, selections from references, structs, constants, sections and
lambdas that are call-dominant themselves.  Every binding is used, and no two have the same name.

The walk evaluates the lambda calculus on symbolic values: a struct of values, a closure, or an
atom, which is a term that cannot be reduced.  Applying a closure evaluates its body; applying an
atom emits a binding.  Inlining, selecting, flattening, renaming and dead-code removal are what that
evaluation does, in time linear in the program and in the calls that it makes.  Calls are never
merged: two calls of a random section are two draws.

What makes no calls is evaluated once: a function applied again to the same value, and a node that
stands in two places of one scope.  Functions that call others twice can still make astronomically
many calls; a walk that gets long has them counted, and goes on only if they are not too many.
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
    StructNode,
)
from tffc.ir.size import APPLICATION, CALL, max_size
from tffc.ir.trampoline import Task, run
from tffc.ir.type_parts import without_containers
from tffc.ir.types import StructType, Type
from tffc.passes.frames import Frame
from tffc.passes.steps import Steps
from tffc.printable import printable


def call_dominant(root: Node) -> Node:
    """Bring a closed program to call-dominant form.

        (x -> (let y=<f(x),x> in y[0]))   becomes   (x -> (let v_1=f(x) in v_1))

    Raises:
      VerificationError: the program uses a name that it does not bind, or makes more calls than
        the size that is allowed.
    """
    walker = _Walker(root)
    value = run(walker.evaluate(root, Frame(None), _Hint(None, None)))
    if isinstance(value, _Closure):
        return run(walker.close(value))
    result = run(walker.reify(value))
    return walker.block(walker.sink, result)


@dataclasses.dataclass(slots=True, eq=False)
class _Atom:
    """A term that cannot be reduced further."""

    node: Node


@dataclasses.dataclass(slots=True, eq=False)
class _Pack:
    """A struct of values.  `node` is its term, once somebody asked for it."""

    values: tuple[_Value, ...]
    type: StructType
    has_closure: bool
    node: Node | None = None


@dataclasses.dataclass(slots=True, eq=False)
class _Closure:
    """A lambda together with the values of the names around it."""

    node: Lambda
    frame: Frame[Any]


_Value: TypeAlias = _Atom | _Pack | _Closure


@dataclasses.dataclass(slots=True, eq=False)
class _Hint:
    """What a binding made by the expression at hand should be called, and where it came from."""

    name: str | None
    span: Span | None

    def inner(self) -> _Hint:
        """Return what is said to the parts of the expression."""
        return self if self.name is None else _Hint(None, self.span)


UNCOUNTED = 10_000
"""So many calls are made before anybody counts how many there will be."""


class _Walker:
    """One walk: the bindings emitted so far and the names that are taken."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.calls = 0
        self.uncounted = min(UNCOUNTED, max_size() // CALL)
        self.is_counted = False
        self.names: dict[int, str] = {}
        self.steps = Steps()
        self.results: dict[tuple[int, int], tuple[_Closure, _Value | None, _Value]] = {}
        # What nodes stood for in a scope before, if no calls were made to have it.
        self.evaluated: dict[tuple[int, int], tuple[Node, Frame[Any], _Value]] = {}
        self.packs: dict[tuple[Any, ...], _Pack] = {}
        self.elements: dict[tuple[int, int], tuple[_Value, _Value]] = {}
        self.atoms: dict[int, _Atom] = {}
        self.sink: list[Binding] = []
        self.taken: set[str] = set()
        self.bound: set[str] = set()
        self.used: dict[int, tuple[Lambda, set[str]]] = {}
        self.counters: dict[str, int] = {}

    # Evaluation.

    def evaluate(self, node: Node, frame: Frame[Any], hint: _Hint) -> Task[Any] | _Value:
        """Return the value of `node`, or the task that makes it and emits the calls that stay."""
        match node:
            case Reference():
                return self._lookup(node, frame)
            case Call():
                return self._call(node, frame, hint)
            case StructNode():
                return self._struct(node, frame, hint.inner())
            case Selection():
                return self._select(node, frame, hint)
            case Lambda():
                return _Closure(node, frame)
            case Block():
                return self._block(node, frame, hint)
            case _:
                return self._atom(node)

    def _keep(self, node: Node, frame: Frame[Any], calls: int, value: _Value) -> _Value:
        """Keep what `node` stands for, unless more than so many calls have been made by now."""
        if self.calls == calls:
            self.evaluated[id(node), id(frame)] = node, frame, value
        return value

    def _atom(self, node: Node) -> _Atom:
        made = self.atoms.get(id(node))
        if made is None:
            made = self.atoms[id(node)] = _Atom(node)
        return made

    def _struct(self, node: StructNode, frame: Frame[Any], hint: _Hint) -> Task[Any]:
        known = self.evaluated.get((id(node), id(frame)))
        if known is not None:
            return known[2]
        calls = self.calls
        values: list[_Value] = []
        self.steps.taken += len(node.values)
        for value in node.values:
            values.append((yield self.evaluate(value, frame, hint)))
        return self._keep(node, frame, calls, self._pack(tuple(values), node.type))

    def _pack(self, values: tuple[_Value, ...], like: StructType) -> _Pack:
        """Return the struct of these values, with the names of the elements of `like`; equal ones
        are the same object."""
        key = (like.names, *map(id, values))
        made = self.packs.get(key)
        if made is None:
            types = like.with_types(tuple(map(type_of, values)))
            made = self.packs[key] = _Pack(values, types, any(map(_has_closure, values)))
        return made

    def _element(self, value: _Value, index: int) -> _Value:
        """Return element `index` of a value of struct type."""
        if isinstance(value, _Pack):
            return value.values[index]
        known = self.elements.get((id(value), index))
        if known is None:
            known = self.elements[id(value), index] = value, _Atom(Selection(value.node, index))
        return known[1]

    def _lookup(self, node: Reference, frame: Frame[Any]) -> _Value:
        value = frame.find(node.name)
        if value is None:
            raise VerificationError(
                "E350",
                f"the name `{printable(node.name)}` of type `{node.type}` is used but not bound",
                help="a computation has to receive every value it uses as its argument",
            )
        return value

    def _select(self, node: Selection, frame: Frame[Any], hint: _Hint) -> Task[Any]:
        indices: list[int] = []
        source: Node = node
        while isinstance(source, Selection):
            indices.append(source.index)
            source = source.source
        value = yield self.evaluate(source, frame, hint)
        for index in reversed(indices):
            value = self._element(value, index)
        return value

    def _block(self, node: Block, frame: Frame[Any], hint: _Hint) -> Task[Any]:
        known = self.evaluated.get((id(node), id(frame)))
        if known is not None:
            return known[2]
        calls, outer = self.calls, frame
        frame = Frame(frame)
        for binding in node.locals:
            span = binding.span or hint.span
            value = yield self.evaluate(binding.value, frame, _Hint(binding.name, span))
            if binding.name in self.bound:
                # A closure made before now must keep seeing the older binding of this name.
                frame = Frame(frame)
            self.bound.add(binding.name)
            frame.bind(binding.name, value)
            if isinstance(value, _Closure):
                self.names.setdefault(id(value), binding.name)
        return self._keep(node, outer, calls, (yield self.evaluate(node.result, frame, hint)))

    def _call(self, node: Call, frame: Frame[Any], hint: _Hint) -> Task[Any]:
        known = self.evaluated.get((id(node), id(frame)))
        if known is not None:
            return known[2]
        calls, inner = self.calls, hint.inner()
        function = yield self.evaluate(node.function, frame, inner)
        argument = None
        if node.argument is not None:
            argument = yield self.evaluate(node.argument, frame, inner)
        if isinstance(function, _Closure):
            return self._keep(node, frame, calls, (yield self._apply(function, argument, hint)))
        target = yield self.reify(function)
        operand = None if argument is None else (yield self.reify(argument))
        return self._emit(Call(target, operand), hint)

    def _apply(self, function: _Closure, argument: _Value | None, hint: _Hint) -> Task[Any]:
        key = id(function), id(argument)
        if key in self.results:
            return self.results[key][2]
        before, name = self._step(function)
        calls, frame, node = self.calls, Frame(function.frame), function.node
        if node.parameter_name is not None and argument is not None:
            assert node.parameter_type is not None
            self.bound.add(node.parameter_name)
            value = yield self._conform(argument, node.parameter_type)
            frame.bind(node.parameter_name, value)
        value = yield self.evaluate(node.result, frame, hint)
        self.steps.applied(name, before, makes_calls=self.calls > calls)
        if self.calls == calls:
            self.results[key] = function, argument, value
        return value

    def _step(self, function: _Closure) -> tuple[int, str]:
        """Take the step of applying a function; return how many were taken before, and its name."""
        if self.steps.taken + APPLICATION > self.uncounted * APPLICATION:
            self._count()
        name = self.names.get(id(function), function.node.parameter_name or "( -> ...)")
        return self.steps.apply(name), name

    def _count(self) -> None:
        """Have the calls of the whole program counted, once."""
        if not self.is_counted:
            from tffc.passes.call_count import check_calls  # which few programs need

            self.is_counted = True
            check_calls(self.root)

    # Emission.

    def _emit(self, call: Call, hint: _Hint) -> _Atom:
        self.calls += 1
        if self.calls > self.uncounted:
            self._count()
        name = self.fresh(hint.name)
        self.sink.append(Binding(name, call, hint.span))
        return _Atom(Reference(name, call.type))

    def fresh(self, wish: str | None) -> str:
        """Return a name that nothing else has: the one wished for, or one that is numbered."""
        stem = wish or "v"
        name = wish
        while name is None or name in self.taken:
            self.counters[stem] = self.counters.get(stem, 0) + 1
            name = f"{stem}_{self.counters[stem]}"
        self.taken.add(name)
        return name

    # Values back to terms.

    def reify(self, value: _Value) -> Task[Any] | Node:
        """Return the term of a value, or the task that makes it."""
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
        nodes: list[Node] = []
        for inner in value.values:
            nodes.append((yield self.reify(inner)))
        made = StructNode.of_type(tuple(nodes), value.type)
        if not value.has_closure:
            # A lambda is made anew for each use, so that every binder keeps a name of its own.
            value.node = made
        return made

    def close(self, value: _Closure) -> Task[Any]:
        """Return the lambda of a closure; its calls, after those in the sink already, are its
        block."""
        node = value.node
        frame = Frame(value.frame)
        name = None
        if node.parameter_name is not None:
            assert node.parameter_type is not None
            name = self.fresh(node.parameter_name)
            self.bound.add(node.parameter_name)
            frame.bind(node.parameter_name, _Atom(Reference(name, node.parameter_type)))
        sink = self.sink
        value_inside = yield self.evaluate(node.result, frame, _Hint(None, None))
        result = yield self.reify((yield self._conform(value_inside, node.result.type)))
        made = Lambda(name, node.parameter_type, self.block(sink, result), node.span)
        self.used[id(made)] = (made, self._uses(made.result, set()) - {name})
        return made

    def _conform(self, value: _Value, wanted: Type) -> Task[Any] | _Value:
        """Return `value` with the element names of `wanted`, a type that is assignable from its
        own.

        An unnamed struct may stand where a named one is needed; inlining must not lose the names.
        """
        found = type_of(value)
        if not isinstance(wanted, StructType) or found == wanted:
            return value
        if without_containers(found) == without_containers(wanted):
            return value
        return self._named(value, wanted)

    def _named(self, value: _Value, wanted: StructType) -> Task[Any]:
        values: list[_Value] = []
        for index, inner in enumerate(wanted.types):
            values.append((yield self._conform(self._element(value, index), inner)))
        return self._pack(tuple(values), wanted)

    # Dead code.

    def block(self, bindings: list[Binding], result: Node) -> Node:
        """Return the block of those bindings that the result needs, or the result if it needs
        none."""
        seen: set[int] = set()
        live = self._uses(result, seen)
        kept: list[Binding] = []
        for binding in reversed(bindings):
            if binding.name in live:
                kept.append(binding)
                live |= self._uses(binding.value, seen)
        return Block(tuple(reversed(kept)), result) if kept else result

    def _uses(self, root: Node, seen: set[int]) -> set[str]:
        """Return the names in `root`, without entering what was seen and lambdas that are
        finished."""
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


def type_of(value: _Value) -> Type:
    """Return the type of the term that `value` stands for."""
    return value.type if isinstance(value, _Pack) else value.node.type


def _has_closure(value: _Value) -> bool:
    return value.has_closure if isinstance(value, _Pack) else isinstance(value, _Closure)
