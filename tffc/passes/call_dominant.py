"""The normaliser: one symbolic walk that leaves nothing but calls.

A program in call-dominant form is

    (p -> (let v1=f1(a1),v2=f2(a2) in r))

where every `f` is a compiled section, an intrinsic or an unresolved function, and every argument
and the result are made of references, selections from references, structs, constants, sections and
lambdas that are call-dominant themselves.  Every binding is used, and no two have the same name.

The walk is a symbolic evaluation: applying a closure evaluates its body, applying an atom emits a
binding.  Inlining, selecting, flattening and renaming are what that does, in time linear in the
program and in the calls that it makes; what nothing uses is dropped in the end.  Calls are never
merged: two calls of a random section are two draws.

Code that makes no calls is evaluated once: a function applied again to the same value, and a node
shared within one scope.  Functions that call others twice can still make astronomically many calls;
a long walk has the calls counted, and continues only if there are not too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import GeneratorType
from typing import Any

from tffc.language.alpha import Names
from tffc.language.nodes import Binding, Block, Call, Lambda, Node, Reference, Selection, StructNode
from tffc.language.size import APPLICATION, CALL, max_size
from tffc.language.type_parts import without_containers
from tffc.language.types import StructType, Type
from tffc.passes.drop_unused_bindings import drop_unused_bindings
from tffc.passes.symbolic import NO_HINT, Atom, Evaluator, Frame, Hint, Pack, SymbolicClosure, Value
from tffc.support.errors import VerificationError
from tffc.support.printable import printable
from tffc.support.trampoline import Task, run


def call_dominant(root: Node) -> Node:
    """Bring a closed program into call-dominant form.

        (x -> (let y=<f(x),x> in y[0]))   becomes   (x -> (let v_1=f(x) in v_1))

    Raises:
      VerificationError: the program uses a name that it does not bind, or makes more calls than
        the size that is allowed.
    """
    normalizer = _Normalizer(root)
    value = run(normalizer.evaluate(root, Frame()))
    if isinstance(value, SymbolicClosure):
        made = run(normalizer.close(value))
    else:
        made = _block(normalizer.sink, run(normalizer.reify(value)))
    return drop_unused_bindings(made)


UNCOUNTED = 10_000
"""How many calls are made before all calls of the program are counted."""


class _Normalizer(Evaluator):
    """Emits the calls that stay as bindings of the block at hand."""

    def __init__(self, root: Node) -> None:
        super().__init__()
        self.sink: list[Binding] = []
        """The bindings of the block at hand."""
        self._root = root
        self._uncounted = min(UNCOUNTED, max_size() // CALL)
        self._is_counted = False
        self._names = Names(set())
        self._atoms: dict[int, Atom] = {}
        self._elements: dict[tuple[int, int], tuple[Value, Value]] = {}

    # Evaluation.

    def look_up(self, node: Reference, frame: Frame) -> Value:
        value = frame.find(node.name)
        if value is None:
            raise VerificationError(
                "E141",
                f"the name `{printable(node.name)}` of type `{node.type}` is used but not bound",
                help="a computation has to receive every value it uses as its argument",
            )
        return value

    def atom(self, node: Node) -> Atom:
        made = self._atoms.get(id(node))
        if made is None:
            made = self._atoms[id(node)] = Atom(node)
        return made

    def pack(self, values: tuple[Value, ...], struct: StructType) -> Pack:
        return super().pack(values, struct.with_types(tuple(map(type_of, values))))

    def select(self, value: Atom, index: int) -> Value:
        known = self._elements.get((id(value), index))
        if known is None:
            known = self._elements[id(value), index] = value, Atom(Selection(value.node, index))
        return known[1]

    def inline(self, function: SymbolicClosure, argument: Value | None, hint: Hint) -> Task[Any]:
        self._count(self.steps.taken + APPLICATION > self._uncounted * APPLICATION)
        return super().inline(function, argument, hint)

    def emit(self, function: Value, argument: Value | None, hint: Hint) -> Task[Any]:
        target = yield self.reify(function)
        operand = None if argument is None else (yield self.reify(argument))
        call = Call(target, operand)
        self.calls += 1
        self._count(self.calls > self._uncounted)
        name = self._names.numbered("v") if hint.name is None else self._names.fresh(hint.name)
        self.sink.append(Binding(name, call, hint.span))
        return Atom(Reference(name, call.type))

    def _count(self, is_long: bool) -> None:
        """Count the calls of the whole program, once, if the walk is long."""
        if is_long and not self._is_counted:
            from tffc.passes.call_count import check_calls  # needed by few programs

            self._is_counted = True
            check_calls(self._root)

    # Values back to terms.

    def reify(self, value: Value) -> Task[Any] | Node:
        """Return the term of a value, or the task that makes it."""
        match value:
            case Atom():
                return value.node
            case SymbolicClosure():
                return self._reify_closure(value)
            case Pack():
                return self._reify_pack(value) if value.node is None else value.node

    def _reify_closure(self, value: SymbolicClosure) -> Task[Any]:
        outer, self.sink = self.sink, []
        made = yield self.close(value)
        self.sink = outer
        return made

    def _reify_pack(self, value: Pack) -> Task[Any]:
        nodes: list[Node] = []
        for inner in value.values:
            node: Any = self.reify(inner)
            nodes.append((yield node) if isinstance(node, GeneratorType) else node)
        made = StructNode.of_type(tuple(nodes), value.type)
        if not value.has_closure:
            # A lambda is made again for each use, so that every binder keeps a name of its own.
            value.node = made
        return made

    def close(self, value: SymbolicClosure) -> Task[Any]:
        """Return the lambda of a closure; its block has the calls in the sink and then its own."""
        node = value.node
        frame = Frame(value.frame)
        name = None
        if node.parameter_name is not None:
            assert node.parameter_type is not None
            name = self._names.fresh(node.parameter_name)
            self.bind(frame, node.parameter_name, Atom(Reference(name, node.parameter_type)))
        sink = self.sink
        value_inside = yield self.evaluate(node.result, frame, NO_HINT)
        result = yield self.reify((yield self.conform(value_inside, node.result.type)))
        return Lambda(name, node.parameter_type, _block(sink, result), node.span)

    def conform(self, value: Value, wanted: Type) -> Task[Any] | Value:
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

    def _named(self, value: Value, wanted: StructType) -> Task[Any]:
        values: list[Value] = []
        for index, inner in enumerate(wanted.types):
            values.append((yield self.conform(self.element(value, index), inner)))
        return self.pack(tuple(values), wanted)


def _block(bindings: Sequence[Binding], result: Node) -> Node:
    """Return the block of bindings and a result, or the result if there are none."""
    return Block(tuple(bindings), result) if bindings else result


def type_of(value: Value) -> Type:
    """Return the type of the term that `value` stands for."""
    return value.type if isinstance(value, Pack) else value.node.type
