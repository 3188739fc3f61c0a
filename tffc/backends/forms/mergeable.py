"""MergeableForm: a round that runs on groups of clients, whose results are merged.

    u    = up_to_merge((s, d))          for each group of clients
    u    = merge((u, u))                joins the results of two groups
    s, x = after_merge(((s, d), u))     once

The result `u` has one element for each aggregation: a sum, or the accumulator of the clients of a
group.  Means are sums and a quotient.  What `after_merge` needs from the state it computes again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tffc.backends.forms.distribute_aggregate import DistributeAggregateForm
from tffc.backends.forms.form import (
    Connection,
    Form,
    Side,
    check_lambda,
    parameter,
    result_of,
    runs_at,
    struct,
    taken_by,
    together,
)
from tffc.backends.forms.mergeable_parts import MergeableBuilder
from tffc.backends.forms.purity import Purity
from tffc.backends.forms.round_writer import RoundWriter
from tffc.backends.forms.stages import StagedRound, assign_stages
from tffc.backends.forms.steps import RoundSteps, Runtime, Value
from tffc.language.calls import pack
from tffc.language.intrinsics import definition_of
from tffc.language.invariants import CALL_DOMINANT
from tffc.language.nodes import (
    Block,
    Call,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
)
from tffc.language.traverse import walk
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    Placement,
    Type,
)
from tffc.language.values.concrete import Federated, unflatten
from tffc.language.verify import first_violation
from tffc.passes.table import default_pipeline
from tffc.support.errors import FormError


@dataclass(frozen=True, slots=True)
class MergeableForm(Form):
    """A round as three programs; see the picture at the top of this module."""

    component_class: ClassVar[type[Lambda]] = Lambda

    up_to_merge: Lambda = field(metadata=runs_at(Side.GROUP))
    merge: Lambda = field(metadata=runs_at(Side.AGGREGATION, "every two groups of clients"))
    after_merge: Lambda = field(metadata=runs_at(Side.SERVER))

    def connections(self) -> Iterator[Connection]:
        state, data = self.taken_by_round()
        first = taken_by("up_to_merge", self.up_to_merge)
        partial = result_of("up_to_merge", self.up_to_merge)
        last = taken_by("after_merge", self.after_merge)
        concluded = result_of("after_merge", self.after_merge)
        new_state, output = self.results_of_round()
        yield Connection("the state", state, first.element(0))
        yield Connection("clients' data", data, first.element(1))
        yield Connection("the state and the data", together(state, data), last.element(0))
        yield Connection("up_to_merge's result", partial, last.element(1))
        yield Connection("after_merge's state", concluded.element(0), new_state)
        yield Connection("after_merge's output", concluded.element(1), output)
        yield Connection("the new state", concluded.element(0), state)

    def _check_component(self, name: str, component: Node) -> None:
        program = check_lambda(name, component)
        check_part(name, program)
        if name == "merge":
            _check_merge(program, self.up_to_merge)

    @staticmethod
    def check_signature(program: Node) -> None:
        DistributeAggregateForm.check_signature(program)

    @classmethod
    def build(cls, program: StagedRound, *, allow_impure_duplicates: bool = False) -> MergeableForm:
        purity = None if allow_impure_duplicates else Purity(cls)
        parts = MergeableBuilder(program, purity).parts()
        return cls(program.type, *parts)

    def decompile(self) -> Lambda:
        """Return the round that the form computes, with all clients in one group."""
        writer = RoundWriter(self.type_signature)
        whole = writer.argument
        partial = writer.bind("partial", Call(self.up_to_merge, whole))
        return writer.close(Call(self.after_merge, pack((whole, partial))))

    def parts_by_side(self) -> list[tuple[str, Side, Node]]:
        group = round_of_group(self).parts_by_side()
        last = (
            ("merge", Side.AGGREGATION, self.merge),
            ("after_merge", Side.SERVER, self.after_merge),
        )
        return [*(("up_to_merge", side, part) for _, side, part in group), *last]

    def steps(self, runtime: Runtime) -> MergeableSteps:
        return MergeableSteps(self, runtime)


def check_part(name: str, program: Lambda) -> None:
    """Check that a part of the form moves values only as it may.

    Raises:
      FormError: `merge` has placements, or `after_merge` aggregates.
    """
    for node in walk(program):
        type = node.type
        if name == "merge" and (
            isinstance(type, FederatedType)
            or (isinstance(node, Intrinsic) and _is_at(type, (SERVER, CLIENTS)))
        ):
            raise FormError(
                "E501",
                f"merge joins values without a placement, found a value of type `{type}`",
                help="place nothing in it: it takes and gives what up_to_merge gives the server, "
                "without its placement",
            )
        if name == "after_merge" and isinstance(node, Intrinsic) and _aggregates(node):
            raise FormError(
                "E501",
                f"after_merge holds no aggregation, found `{node}` of type `{type}`",
                help="aggregate in up_to_merge, and merge the results of groups in merge",
            )


def _aggregates(operator: Intrinsic) -> bool:
    """Tell whether an operator may bring clients' values to the server."""
    definition = definition_of(operator.uri)
    if definition is not None:
        return definition.is_aggregation
    kind = operator.type
    is_function = isinstance(kind, FunctionType) and kind.parameter is not None
    return is_function and _is_at(kind, (CLIENTS,))


def _is_at(type: Type, placements: Sequence[Placement]) -> bool:
    """Tell whether a part of a type is placed at one of some placements."""
    return any(
        isinstance(part, FederatedType) and part.placement in placements for part in walk(type)
    )


def _check_merge(merge: Lambda, up_to_merge: Lambda) -> None:
    """Check that `merge` takes two results of `up_to_merge` and gives one."""
    partial = up_to_merge.type.result
    if not isinstance(partial, FederatedType) or partial.placement is not SERVER:
        raise FormError(
            "E501",
            f"up_to_merge has to give one value at the server, found `{partial}`",
            help="join several values with federated_zip",
        )
    member = partial.member
    wanted = FunctionType((member, member), member)
    if not wanted.is_assignable_from(merge.type):
        raise FormError(
            "E501",
            f"merge has to be of type `{wanted}`, found `{merge.type}`",
            help="let it take two results of up_to_merge and give one, without their placement",
        )


@functools.lru_cache(maxsize=16)
def round_of_group(form: MergeableForm) -> DistributeAggregateForm:
    """Return the round of one group of clients, whose output is the result of `up_to_merge`, split
    into what runs at the server, at the clients and between.

    Raises:
      FormError: it cannot be split.
    """
    part = form.up_to_merge
    body = part.result
    bindings, result = (body.locals, body.result) if isinstance(body, Block) else ((), body)
    argument = Reference(str(part.parameter_name), parameter(part))
    state = Selection(argument, 0)
    program = Lambda(argument.name, argument.type, Block(bindings, pack((state, result))))
    is_flat = first_violation(program, (CALL_DOMINANT,)) is None
    flat = program if is_flat else default_pipeline().run(program)
    # Impure duplicates are the business of whoever compiled the form.
    return DistributeAggregateForm.build(assign_stages(flat), allow_impure_duplicates=True)


class MergeableSteps(RoundSteps):
    """The steps of a round whose clients are one group.

    `group` are those of one group of several, whose output is the result of `up_to_merge`, which
    `join` and `conclude` take.
    """

    def __init__(self, form: MergeableForm, runtime: Runtime) -> None:
        self._form = form
        self._runtime = runtime
        self.group = round_of_group(form).steps(runtime)
        self._state, self._data = struct(form.type_signature.parameter)
        self._new_state, self._output = struct(form.type_signature.result)
        self.state_type = local_type(self._state)
        self.data_type = self.group.data_type
        self.sent_type = self.group.sent_type
        self.output_type = local_type(self._output)
        self.aggregations = self.group.aggregations
        self.batches = self.group.batches

    def prepare(self, state: Value) -> tuple[Value, Value]:
        return self.group.prepare(state)

    def shared(self, carried: Value) -> Value:
        return self.group.shared(carried)

    def parameters(self) -> Value:
        return self.group.parameters()

    def work(self, data: Value, sent: Value) -> Value:
        return self.group.work(data, sent)

    def finish(self, carried: Value, reports: Sequence[Value]) -> tuple[Value, Value]:
        state, partial = self.group.finish(carried, reports)
        return self.conclude(state, partial)

    def join(self, first: Value, second: Value) -> Value:
        """Return the result of two groups from those of each."""
        return self._runtime.evaluate(self._form.merge, (first, second), 0)

    def conclude(self, state: Value, partial: Value) -> tuple[Value, Value]:
        """Return the new state and the server output from the result of all groups."""
        placed, unplaced = self._runtime.placed, self._runtime.unplaced
        whole = placed(state, self._state), self._no_data
        merged = placed(partial, self._form.up_to_merge.type.result)
        new_state, output = self._runtime.evaluate(self._form.after_merge, (whole, merged), 0)
        return unplaced(new_state, self._new_state), unplaced(output, self._output)

    @functools.cached_property
    def _no_data(self) -> Value:
        """The data of no clients: what `after_merge` gives the server cannot depend on it."""
        return unflatten((Federated((), all_equal=False) for _ in leaves(self._data)), self._data)
