"""One component of a form under construction: which calls of the round it runs, in which scope."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tffc.backends.forms.form import struct
from tffc.backends.forms.purity import Purity, left_among
from tffc.backends.forms.stages import StagedCall, StagedRound
from tffc.language.nodes import (
    Binding,
    Block,
    Compiled,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.traverse import rewrite, walk
from tffc.language.type_parts import local_type
from tffc.language.types import StructType, Type
from tffc.linking.aggregations import Aggregation, Arithmetic, Part
from tffc.linking.builder import GraphBuilder
from tffc.linking.emit import Emitter, add_place
from tffc.linking.inspect import impure_nodes
from tffc.linking.operand import Operand
from tffc.support.errors import TffcError


class ComponentEmitter(Emitter):
    """Evaluates local code of a component; the weights of plain means are constants."""

    def ones(self, value: Operand, kind: Type) -> Operand:
        return self.constant_ones(kind)


class ComponentBuilder:
    """A component being linked into one graph.

    `arguments` are the values that the component takes.  `scope` says what the round's parameter
    stands for in it, and `give` what the results of calls stand for that ran in other components.
    """

    def __init__(
        self, program: StagedRound, name: str, taken: Sequence[Type], purity: Purity | None
    ) -> None:
        self.round = program
        self.name = name
        self.purity = purity
        self.emitter = ComponentEmitter()
        self.arguments = parameters(self.emitter.builder, taken)

    def scope(self, state: Operand | None = None, data: Operand | None = None) -> None:
        """Bind the round's parameter; the half that this component does not see stands empty."""
        halves = (() if state is None else state, () if data is None else data)
        self.emitter.values[self.round.parameter] = halves

    def give(self, calls: Iterable[StagedCall], values: Operand) -> None:
        """Bind the results of calls that ran in other components to the elements of `values`."""
        for call, value in zip(calls, elements(values), strict=True):
            self.emitter.values[call.name] = value

    def run(self, roots: Iterable[Node]) -> None:
        """Emit the calls that the expressions `roots` need and that have not run."""
        calls = self.round.needed(roots, self.emitter.values)
        self.emitter.emit(call.binding for call in calls)

    def compute(self, nodes: Sequence[Node]) -> tuple[Operand, ...]:
        """Emit the calls that expressions need, and return the values of these."""
        self.run(nodes)
        return tuple(map(self.emitter.operand, nodes))

    def finish_struct(self, nodes: Sequence[Node]) -> Compiled:
        """Return the component that gives the values of expressions; see `finish`."""
        return self.finish(self.compute(nodes), local_struct(nodes))

    def finish(self, result: Operand, result_type: Type) -> Compiled:
        """Return the component that gives `result`.

        Raises:
          FormError: something is left in it that must not be repeated, and another component has
            it too.
        """
        builder = self.emitter.builder
        section = builder.finish(result, result_type)
        if self.purity is not None:
            impure = functools.cache(functools.partial(impure_nodes, section))
            for name, span in self.emitter.made.items():
                nodes = builder.computing[span.start : span.stop]
                left = functools.partial(left_among, impure, nodes)
                self.purity.record(self.name, self.round.calls[name], left)
        return section


class SideBySide(NamedTuple):
    """Aggregations that are carried out together, each with the binding of its call: their values
    are structs with an element for each.

    Types and steps are those of `Aggregation`, for all members at once.
    """

    members: Sequence[tuple[Binding, Aggregation]]

    @property
    def update(self) -> StructType:
        return StructType([aggregation.update for _, aggregation in self.members])

    @property
    def zero_type(self) -> StructType:
        return StructType([aggregation.zero_type for _, aggregation in self.members])

    @property
    def accumulator(self) -> StructType:
        return StructType([aggregation.accumulator for _, aggregation in self.members])

    @property
    def report_type(self) -> StructType:
        return StructType([aggregation.report_type for _, aggregation in self.members])

    def operands_of(self, part: Part) -> Iterator[Node]:
        for _, aggregation in self.members:
            yield from aggregation.operands_of(part)

    def contribute(self, by: Arithmetic) -> Operand:
        return self._for_all(lambda member, _: member.contribute(by))

    def zero(self, by: Arithmetic) -> Operand:
        return self._for_all(lambda member, _: member.zero(by))

    def accumulate(self, by: Arithmetic, totals: Operand, updates: Operand) -> Operand:
        return self._for_all(lambda member, own: member.accumulate(by, *own), totals, updates)

    def merge(self, by: Arithmetic, first: Operand, second: Operand) -> Operand:
        return self._for_all(lambda member, own: member.merge(by, *own), first, second)

    def report(self, by: Arithmetic, totals: Operand) -> Operand:
        return self._for_all(lambda member, own: member.report(by, *own), totals)

    def conclude(self, by: Arithmetic, reports: Operand) -> Operand:
        return self._for_all(lambda member, own: member.conclude(by, *own), reports)

    def _for_all(
        self, step: Callable[[Aggregation, Sequence[Operand]], Operand], *structs: Operand
    ) -> Operand:
        """Return the results of a step, which takes a member and its elements of the structs."""
        values: list[Operand] = []
        for (binding, member), *own in zip(self.members, *map(elements, structs), strict=True):
            try:
                values.append(step(member, own))
            except TffcError as error:
                add_place(error, binding)
                raise
        return tuple(values)


def local_struct(nodes: Iterable[Node]) -> StructType:
    """Return the type of the struct of these values, without their placements."""
    return StructType([local_type(node.type) for node in nodes])


def parameters(builder: GraphBuilder, types: Sequence[Type]) -> tuple[Operand, ...]:
    """Return the operands of a section that takes values of these types, several in a struct."""
    if len(types) > 1:
        return elements(builder.parameter(StructType(types)))
    return tuple(map(builder.parameter, types))


def elements(operand: Operand | None) -> tuple[Operand, ...]:
    """Return the elements of an operand that is known to be a struct."""
    assert isinstance(operand, tuple)
    return operand


def selections(node: Node) -> list[Node]:
    """Return the elements of a node that is a struct."""
    return [Selection(node, index) for index in range(len(struct(node.type)))]


def substitute(root: Node, values: Mapping[str, Node]) -> Node:
    """Return `root` with other terms in place of names; selections from structs are resolved."""

    def rule(node: Node) -> Node | None:
        match node:
            case Reference(name=name) if name in values:
                return values[name]
            case Selection(source=StructNode() as source, index=index):
                return source.values[index]
            case _:
                return None

    return rewrite(root, rule)


def without_argument(nodes: Sequence[Node], component: Lambda) -> Lambda | None:
    """Return a function without parameter that gives the values of some expressions in the result
    of a component, or None if they need its argument."""
    body = component.result
    bindings = {local.name: local for local in body.locals} if isinstance(body, Block) else {}
    needed: set[str] = set()
    stack = list(nodes)
    while stack:
        for node in walk(stack.pop()):
            if not isinstance(node, Reference) or node.name in needed:
                continue
            if node.name == component.parameter_name:
                return None
            if node.name in bindings:
                needed.add(node.name)
                stack.append(bindings[node.name].value)
    used = tuple(local for name, local in bindings.items() if name in needed)
    return Lambda(None, None, Block(used, StructNode(tuple(nodes))))


def argument_paths(root: Node, component: Lambda) -> set[tuple[int, ...]]:
    """Return which parts of a component's argument an expression in it uses: the first two indices
    of each selection from it, or fewer where it is used whole."""
    paths: set[tuple[int, ...]] = set()

    def inside(node: Node) -> tuple[Node, ...]:
        path: tuple[int, ...] = ()
        source = node
        while isinstance(source, Selection) and len(path) < 2:
            path, source = (source.index, *path), source.source
        if isinstance(source, Reference) and source.name == component.parameter_name:
            paths.add(path)
            return ()
        return node.children()

    for _ in walk(root, inside):
        pass  # only the paths are needed
    return paths
