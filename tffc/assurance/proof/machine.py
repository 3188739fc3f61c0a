"""The symbolic machine, which evaluates programs down to operations of graphs.

A value is a term, a tuple of values for a struct, or a function.  A placed value is represented by
its member; at the clients, that is the value of an arbitrary client.  So a broadcast changes
nothing, and a map applies its function once.
"""

from __future__ import annotations

from tffc.assurance.proof.carried import Carried
from tffc.assurance.proof.constants import constant_of_array
from tffc.assurance.proof.operators import CALLING, OPERATORS
from tffc.assurance.proof.sections import Sections
from tffc.assurance.proof.sequences import Place
from tffc.assurance.proof.terms import Terms
from tffc.assurance.proof.undecided import Undecided
from tffc.assurance.proof.values import (
    Closure,
    Function,
    Scope,
    Value,
    elements_of,
    from_leaves,
    function_of,
    leaf_terms,
    leaves_of,
)
from tffc.language.environment import Environment
from tffc.language.nodes import (
    Block,
    Call,
    Compiled,
    Data,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    PlacementNode,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.traverse import walk
from tffc.language.types import FunctionType, SequenceType, Type
from tffc.support.trampoline import Task

ONCE = Place("once")
"""The place of the server and of unplaced values, where code runs once in each round."""

EMPTY: Scope = Environment()


class Machine:
    """An evaluator of programs; `place` is where the current code runs.

    `carried` is what the current side, the program or the form, has handed on so far.
    """

    def __init__(self, terms: Terms, sections: Sections) -> None:
        self.terms = terms
        self.sections = sections
        self.place = ONCE
        self.carried = self.carried_by_program = Carried()
        self._evaluated: dict[tuple[int, int, int], tuple[Node, Scope, Value]] = {}
        self._applied: dict[tuple[int, bool, int, int], tuple[Closure, Value | None, Value]] = {}

    def evaluate(self, node: Node, scope: Scope) -> Task[Value] | Value:
        """Return the value of a node, or the task that computes it."""
        match node:
            case Reference():
                value = scope.find(node.name)
                if value is None:
                    raise Undecided("a name that nothing binds", node.name)
                return value
            case Selection():
                return self._select(node, scope)
            case Literal():
                value = self.terms.value(("Const", constant_of_array(node.array)), fails=False)
                self.declare(node.type, value)
                return value
            case Lambda():
                return Closure(node, scope)
            case Call() | StructNode() | Block():
                return self._once(node, scope)
            case Intrinsic(uri="generic_zero"):
                return OPERATORS["generic_zero"](self, node, ())
            case Compiled() | Intrinsic():
                return node
            case Data():
                whole = self.terms.value(("data block", node.type_url, node.value))
                kinds = range(len(leaves_of(node.type)))
                parts = (self.terms.value(("part", i), (whole,)) for i in kinds)
                return from_leaves(node.type, parts)
            case PlacementNode():
                return self.terms.value(("placement", node.own_label()))

    def _once(self, node: Call | StructNode | Block, scope: Scope) -> Task[Value]:
        """Evaluate a node; remember the value for its scope unless evaluation made new runs.

        A node that draws or has effects must be evaluated again each time.
        """
        # The entry keeps node and scope alive, so that their ids stay unique.
        key = id(node), id(scope), self.place.depth
        known = self._evaluated.get(key)
        if known is not None:
            return known[2]
        runs_before = len(self.terms.origins)
        value: Value
        match node:
            case Call():
                value = yield self._call(node, scope)
            case StructNode():
                elements: list[Value] = []
                for element in node.values:
                    elements.append((yield self.evaluate(element, scope)))
                value = tuple(elements)
            case Block():
                value = yield self._block(node, scope)
        if len(self.terms.origins) == runs_before:
            self._evaluated[key] = node, scope, value
        return value

    def _select(self, node: Selection, scope: Scope) -> Task[Value]:
        indices: list[int] = []
        source: Node = node
        while isinstance(source, Selection):
            indices.append(source.index)
            source = source.source
        value: Value = yield self.evaluate(source, scope)
        for index in reversed(indices):
            value = elements_of(value)[index]
        return value

    def _block(self, node: Block, scope: Scope) -> Task[Value]:
        outer = self.terms.span
        for local in node.locals:
            self.terms.span = local.span or outer
            scope = scope.bind(local.name, (yield self.evaluate(local.value, scope)))
        self.terms.span = outer
        return (yield self.evaluate(node.result, scope))

    def _call(self, node: Call, scope: Scope) -> Task[Value]:
        function: Value = yield self.evaluate(node.function, scope)
        argument: Value | None = None
        if node.argument is not None:
            argument = yield self.evaluate(node.argument, scope)
        return (yield self.apply(function_of(function), argument))

    def apply(self, function: Function, argument: Value | None) -> Task[Value]:
        """Return the result of a function; `argument` is None if it takes none."""
        self.terms.spend(1)
        operand = () if argument is None else argument
        match function:
            case Closure():
                return (yield self._apply_closure(function, argument))
            case Compiled():
                assert isinstance(function.type, FunctionType)
                results = yield self.sections.call(function, leaf_terms(operand), self.place)
                return from_leaves(function.type.result, results)
            case Intrinsic(uri=uri) if uri in OPERATORS:
                value = OPERATORS[uri](self, function, operand)
            case Intrinsic(uri=uri) if uri in CALLING:
                value = yield CALLING[uri](self, function, operand)
            case Intrinsic(uri=uri):
                raise Undecided("an unknown operator", uri)
        assert isinstance(function.type, FunctionType)
        value = self._handed(function.type.result, value)
        self.declare(function.type.result, value)
        return value

    def _handed(self, kind: Type, value: Value) -> Value:
        """Return the value that an operator hands on, with sequences of elements for datasets."""
        kinds = leaves_of(kind)
        if not any(isinstance(leaf, SequenceType) for leaf in kinds):
            return value
        handed = self.sections.iterations.handed
        return from_leaves(kind, handed(kinds, leaf_terms(value), self.place.depth))

    def iterate(self, kind: Type, sequence: int) -> None:
        """Note that an operator iterates over a sequence, once."""
        if self.carried is self.carried_by_program:
            self.sections.iterations.note(kind, sequence, self.place.depth)

    def declare(self, kind: Type, value: Value) -> None:
        """Note that the current side declares a value to be of a type."""
        self.sections.declare(leaves_of(kind), leaf_terms(value))

    def _apply_closure(self, function: Closure, argument: Value | None) -> Task[Value]:
        # A term is an int and could be equal to the id of another argument, hence the flag in the
        # key.
        is_term = isinstance(argument, int)
        which = argument if isinstance(argument, int) else id(argument)
        key = id(function), is_term, which, self.place.depth
        known = self._applied.get(key)
        if known is not None:
            return known[2]
        runs_before, scope = len(self.terms.origins), function.scope
        if function.function.parameter_name is not None:
            scope = scope.bind(function.function.parameter_name, argument)
        value: Value = yield self.evaluate(function.function.result, scope)
        if len(self.terms.origins) == runs_before:
            self._applied[key] = function, argument, value
        return value

    def at(self, place: Place, function: Value, argument: Value | None) -> Task[Value]:
        """Apply a function at another place."""
        outer, self.place = self.place, place
        try:
            return (yield self.apply(function_of(function), argument))
        finally:
            self.place = outer

    def program(self, program: Node, argument: Value | None) -> Task[Value]:
        """Return the result of the traced program; `argument` is None if it takes none."""
        value: Value = yield self._called(program, ONCE, argument)
        self._note_iterations(program.type, value)
        self.sections.begin_form()
        self.terms.of_program = len(self.terms.labels)
        self.carried = Carried()
        return value

    def _note_iterations(self, kind: Type, result: Value) -> None:
        """Note that whoever takes the result of the program iterates over its sequences."""
        assert isinstance(kind, FunctionType)
        for leaf, term in zip(leaves_of(kind.result), leaf_terms(result), strict=True):
            self.sections.iterations.note(leaf, term, ONCE.depth)

    def component(self, component: Node, place: Place, argument: Value | None) -> Task[Value]:
        """Return the result of a component at a place; `argument` is None if it takes none."""
        value = yield self._called(component, place, argument)
        for section in walk(component):
            if isinstance(section, Compiled):
                self.sections.check_whole(section)
        return value

    def _called(self, program: Node, place: Place, argument: Value | None) -> Task[Value]:
        function = yield self.evaluate(program, EMPTY)
        return (yield self.at(place, function, argument))
