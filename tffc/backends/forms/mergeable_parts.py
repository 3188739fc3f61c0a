"""The three programs of a MergeableForm, built from the stages of a program.

The program may be any that aggregates once.  `up_to_merge` runs whatever its aggregations need, and
`after_merge` whatever its result needs besides them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tffc.backends.forms.component import selections, substitute
from tffc.backends.forms.form import struct
from tffc.backends.forms.purity import Purity
from tffc.backends.forms.stages import StagedCall, StagedRound, assign_stages
from tffc.language.alpha import Names
from tffc.language.calls import (
    apply,
    intrinsic_call,
    operands,
    pack,
    uri_of,
    with_operands,
    zip_placed,
)
from tffc.language.nodes import (
    Binding,
    Block,
    Call,
    Compiled,
    Lambda,
    Literal,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.traverse import walk
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import (
    SERVER,
    FederatedType,
    FunctionType,
    StructType,
    TensorType,
    Type,
    at_server,
)
from tffc.linking.aggregations import PLAIN, Arithmetic, Sum
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.emit import Emitter
from tffc.linking.language_arithmetic import language_function
from tffc.linking.operand import Operand, from_leaves, tensors
from tffc.passes.desugar_means import MakeFunction, means_as_sums
from tffc.support.errors import TffcError

MODULAR = "federated_secure_modular_sum"
ARGUMENT, MERGED = "top_level_arg", "merge_result"
"""The names of what `after_merge` takes, as in TFF."""


class ComponentParts(NamedTuple):
    """The components of the form, in its order."""

    up_to_merge: Lambda
    merge: Lambda
    after_merge: Lambda


class MergeableBuilder:
    """A program and its aggregations, from which the components are made."""

    def __init__(self, program: StagedRound, purity: Purity | None) -> None:
        whole = _written(program)
        self._names = Names.outside(whole)
        self._function = _functions_of(whole, self._names)
        # Means become sums of the program itself, so that each has its element.
        flat = means_as_sums(whole, self._names, self._function, multiplies=True)
        self.round = program if flat == whole else assign_stages(flat)
        self._purity = purity
        self.aggregations = self.round.aggregations()
        self._members = [self._member(call) for call in self.aggregations]

    def parts(self) -> ComponentParts:
        """Return the components.

        Raises:
          FormError: a call that does not always give the same would run several times.
          TffcError: an aggregation cannot be merged.
        """
        up_to_merge = self._up_to_merge()
        partial = up_to_merge.type.result
        assert isinstance(partial, FederatedType)
        return ComponentParts(up_to_merge, self._merge(partial.member), self._after_merge(partial))

    def _member(self, staged: StagedCall) -> _Member:
        kind = _MEMBERS.get(uri_of(staged.call), _Member)
        return kind(staged, self._names, self._function)

    def _up_to_merge(self) -> Lambda:
        argument = Reference(self.round.parameter, _parameter(self.round))
        known = [call.name for call in self.aggregations]
        bindings: list[Binding] = []
        members = dict(zip(known, self._members, strict=True))
        needed = {call.name for call in self.round.needed(m.partial for m in self._members)}
        for name, staged in self.round.calls.items():
            if name in members:
                bindings += members[name].in_group()
            elif name in needed:
                self._record("up_to_merge", staged)
                bindings.append(staged.binding)
        result = zip_placed(pack(member.element for member in self._members), SERVER)
        name = self._names.numbered("partial")
        bindings.append(Binding(name, result))
        body = Block(tuple(bindings), Reference(name, result.type))
        return Lambda(argument.name, argument.type, body)

    def _merge(self, member: Type) -> Lambda:
        argument = Reference(self._names.fresh("merge_arg"), StructType([member, member]))
        wanted = [node for one in self._members for node in one.merges_with]
        bindings: list[Binding] = []
        for staged in self.round.needed(wanted):
            self._record("merge", staged)
            bindings.append(staged.binding)
        results: list[Node] = []
        for one, pair in zip(self._members, _pairs(argument), strict=True):
            made, value = one.merged(*pair)
            bindings += made
            results.append(value)
        body = StructNode(tuple(results))
        return Lambda(
            argument.name, argument.type, Block(tuple(bindings), body) if bindings else body
        )

    def _after_merge(self, partial: Type) -> Lambda:
        taken = StructType([(ARGUMENT, _parameter(self.round)), (MERGED, partial)])
        argument = Reference(self._names.fresh("after_merge_arg"), taken)
        known = [call.name for call in self.aggregations]
        reports = [node for one in self._members for node in one.reports_with]
        needed = self.round.needed([*reports, self.round.result], known)
        bindings: list[Binding] = []
        # What reports need may stand anywhere before them, and the rest after all of them.
        early = {call.name for call in self.round.needed(reports)}
        for staged in needed:
            self._record("after_merge", staged)
            if staged.name in early:
                bindings.append(staged.binding)
        for index, one in enumerate(self._members):
            bindings += one.reported(Selection(argument, 1), index)
        bindings += (staged.binding for staged in needed if staged.name not in early)
        values = {self.round.parameter: Selection(argument, 0)}
        body = substitute(Block(tuple(bindings), self.round.result), values)
        return Lambda(argument.name, argument.type, body)

    def _record(self, component: str, staged: StagedCall) -> None:
        if self._purity is not None:
            self._purity.record(component, staged)


class _Member:
    """One aggregation: a sum or an extreme, whose partial results are values of its own type.

    `element` is its result in a group.  `merges_with` and `reports_with` are the expressions of the
    program that merging and reporting need.
    """

    merges_with: tuple[Node, ...] = ()
    reports_with: tuple[Node, ...] = ()

    def __init__(self, staged: StagedCall, names: Names, function: MakeFunction) -> None:
        self.staged = staged
        self.names = names
        self._function = function
        self.partial: Node = staged.call
        self.element: Node = Reference(staged.name, staged.call.type)

    def in_group(self) -> list[Binding]:
        """Return the bindings that compute the element."""
        return [dataclasses.replace(self.staged.binding, value=self.partial)]

    @property
    def type(self) -> Type:
        """The type of the partial result, without placement."""
        return local_type(self.partial.type)

    def merged(self, first: Node, second: Node) -> tuple[list[Binding], Node]:
        """Return bindings, and the element of both groups, from that of each."""
        aggregation = PLAIN.get(uri_of(self.staged.call), Sum)(self.staged.call)

        def join(by: Arithmetic, pair: Any) -> Any:
            return aggregation.merge(by, *pair)

        return self._called(self._joining(join), pack((first, second)))

    def _joining(self, join: Callable[[Any, Any], Any]) -> Node:
        """Return the function of two partial results that an arithmetic computes."""
        try:
            return self._function(StructType([self.type, self.type]), self.type, join)
        except TffcError as error:
            error.span = error.span or self.staged.binding.span
            raise

    def _called(self, function: Node, argument: Node) -> tuple[list[Binding], Node]:
        call = Call(function, argument)
        name = self.names.numbered("merged")
        return [dataclasses.replace(self.staged.binding, name=name, value=call)], Reference(
            name, call.type
        )

    def reported(self, merged: Node, index: int) -> list[Binding]:
        """Return the bindings that give the program the result, from that of all groups."""
        return [dataclasses.replace(self.staged.binding, value=self._part(merged, index))]

    def _part(self, merged: Node, *path: int) -> Node:
        """Return a part of the merged result as a server value."""
        kind = local_type(merged.type)
        name = self.names.numbered("all")
        body: Node = Reference(name, kind)
        for index in path:
            body = Selection(body, index)
        return apply(Lambda(name, kind, body), merged)


class _Aggregate(_Member):
    """An aggregation by functions of the program: its partial result is the accumulator."""

    def __init__(self, staged: StagedCall, names: Names, function: MakeFunction) -> None:
        super().__init__(staged, names, function)
        *others, merge, report = operands(staged.call)
        assert isinstance(staged.call.function.type, FunctionType)
        types = struct(staged.call.function.type.parameter).types
        assert isinstance(types[-2], FunctionType)
        kind = types[-2].result
        name = names.numbered("accumulator")
        itself = Lambda(name, kind, Reference(name, kind))
        argument = with_operands(staged.call, (*others, merge, itself))
        taken = StructType([*types[:-1], itself.type])
        self.partial = intrinsic_call("federated_aggregate", taken, at_server(kind), argument)
        self.element = Reference(names.numbered(f"{staged.name}_total"), self.partial.type)
        self.merges_with, self.reports_with = (merge,), (report,)

    def in_group(self) -> list[Binding]:
        assert isinstance(self.element, Reference)
        return [Binding(self.element.name, self.partial, self.staged.binding.span)]

    def merged(self, first: Node, second: Node) -> tuple[list[Binding], Node]:
        return self._called(self.merges_with[0], pack((first, second)))

    def reported(self, merged: Node, index: int) -> list[Binding]:
        total = Reference(self.names.numbered(f"{self.staged.name}_total"), at_server(self.type))
        return [
            dataclasses.replace(
                self.staged.binding, name=total.name, value=self._part(merged, index)
            ),
            dataclasses.replace(self.staged.binding, value=apply(self.reports_with[0], total)),
        ]


class _Modular(_Member):
    """A modular sum.  A modulus that is computed goes with it, so that merging knows it."""

    def __init__(self, staged: StagedCall, names: Names, function: MakeFunction) -> None:
        super().__init__(staged, names, function)
        _, self._modulus = operands(staged.call)
        self._is_known = all(isinstance(n, (Literal, StructNode)) for n in walk(self._modulus))
        self._total = local_type(staged.call.type)
        if not self._is_known:
            self.element = pack((self.element, self._placed_modulus()))

    def _placed_modulus(self) -> Node:
        modulus = self._modulus
        if modulus.type.has_placement:
            return modulus
        self._place = intrinsic_call(
            "federated_value_at_server", modulus.type, at_server(modulus.type), modulus
        )
        return Reference(self.names.numbered(f"{self.staged.name}_modulus"), self._place.type)

    def in_group(self) -> list[Binding]:
        bindings = super().in_group()
        if not self._is_known and not self._modulus.type.has_placement:
            assert isinstance(self.element, StructNode)
            modulus = self.element.values[1]
            assert isinstance(modulus, Reference)
            bindings.append(Binding(modulus.name, self._place, self.staged.binding.span))
        return bindings

    def merged(self, first: Node, second: Node) -> tuple[list[Binding], Node]:
        total = self._total
        if self._is_known:

            def join(by: Emitter, pair: Any) -> Any:
                first, second = pair
                return _sum_modulo(by, first, second, by.operand(self._modulus))

            function = _section(StructType([total, total]), total, join)
            return self._called(function, pack((first, second)))
        modulus = Selection(first, 1)

        def join_by(by: Emitter, taken: Any) -> Any:
            return _sum_modulo(by, *taken)

        function = _section(StructType([total, total, modulus.type]), total, join_by)
        taken = pack((Selection(first, 0), Selection(second, 0), modulus))
        bindings, result = self._called(function, taken)
        return bindings, pack((result, modulus))

    def reported(self, merged: Node, index: int) -> list[Binding]:
        path = (index,) if self._is_known else (index, 0)
        return [dataclasses.replace(self.staged.binding, value=self._part(merged, *path))]


_MEMBERS: dict[str, type[_Member]] = {"federated_aggregate": _Aggregate, MODULAR: _Modular}


def _sum_modulo(by: GraphArithmetic, first: Operand, second: Operand, modulus: Operand) -> Operand:
    """Return the sum of two remainders as a remainder.  One modulus may apply to all tensors.

    No step leaves the range of the element type, as the sum itself may.
    """
    ones, others, moduli = map(tensors, (first, second, modulus))
    spread = moduli * len(ones) if len(moduli) == 1 else moduli
    sums = (
        by.floor_mod(by.plus(one, by.minus(other, limit)), limit)
        for one, other, limit in zip(ones, others, spread, strict=True)
    )
    return from_leaves(first, sums)


class _Emitter(Emitter):
    """Evaluates arithmetic; the weights of plain means are constants where their shape is known."""

    def ones(self, value: Operand, kind: Type) -> Operand:
        tensors = (leaf for leaf in leaves(kind) if isinstance(leaf, TensorType))
        is_known = all(leaf.is_fully_defined() for leaf in tensors)
        return self.constant_ones(kind) if is_known else super().ones(value, kind)


def _section(parameter: Type, result: Type, compute: Callable[[Emitter, Any], Operand]) -> Compiled:
    """Return the TensorFlow section that computes `compute` of its parameter."""
    by = _Emitter()
    return by.builder.finish(compute(by, by.builder.parameter(parameter)), result)


def _functions_of(program: Node, names: Names) -> MakeFunction:
    """Return how functions of arithmetic are made for a program.

    If it has no TensorFlow sections, these are functions of the language, as far as the language
    has operators, so that it runs without TensorFlow.
    """
    kinds = {node.kind for node in walk(program) if isinstance(node, Compiled)}

    def function(parameter: Type, result: Type, compute: Any) -> Node:
        if "tensorflow" not in kinds:
            made = language_function(names, parameter, result, compute)
            if made is not None:
                return made
        return _section(parameter, result, compute)

    return function


def _written(program: StagedRound) -> Lambda:
    """Return a staged program as a program again."""
    bindings = tuple(staged.binding for staged in program.calls.values())
    body = Block(bindings, program.result) if bindings else program.result
    return Lambda(program.parameter, program.type.parameter, body)


def _parameter(program: StagedRound) -> Type:
    assert program.type.parameter is not None
    return program.type.parameter


def _pairs(argument: Node) -> Iterable[tuple[Node, Node]]:
    """Return the pairs of elements of two structs, which are the elements of an argument."""
    first, second = selections(argument)
    return zip(selections(first), selections(second), strict=True)
