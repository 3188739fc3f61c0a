"""The stages of a round, and the stage in which each call of a flat program runs.

    prepare     at the server, from the state
    broadcast   server to clients
    work        at each client, from its data and what was broadcast
    aggregate   clients to server
    result      at the server, from the state and the aggregates

Every call is given the earliest stage that its operands allow.  One that would have to run later
than what consumes it is the user's error: no round can compute it.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tffc.language.calls import describe, operands
from tffc.language.intrinsics import INTRINSICS, IntrinsicDefinition, definition_of
from tffc.language.nodes import (
    Binding,
    Block,
    Call,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
    kind_of,
)
from tffc.language.type_parts import distinct_leaves, local_type
from tffc.language.types import SERVER, FederatedType, FunctionType, Placement, StructType, Type
from tffc.support.errors import FormError, Span, excerpt
from tffc.support.near import did_you_mean
from tffc.support.printable import printable


class Stage(enum.IntEnum):
    """A stage of a round; values without a placement can be made in any."""

    ANYWHERE = 0
    PREPARE = 1
    BROADCAST = 2
    WORK = 3
    AGGREGATE = 4
    RESULT = 5


class Half(enum.Enum):
    """A half of the round's parameter.  It is not a string, so that no call can have its name."""

    STATE = "state"
    DATA = "data"


STATE, DATA = Half.STATE, Half.DATA
Use = str | Half
"""Something that a call uses: another call, by its name, or a half of the round's parameter."""


class StagedCall(NamedTuple):
    """One call of the program and the stage it runs in.

    `uses` are the names of the calls it needs, and STATE and DATA for the parameters; `because` is
    the one of them that decides how early it can run.
    """

    name: str
    call: Call
    binding: Binding
    stage: Stage
    uses: tuple[Use, ...]
    because: Use | None

    @property
    def operator(self) -> IntrinsicDefinition | None:
        """Return the operator that is called, or None for a section."""
        return operator_of(self.call)


class StagedRound(NamedTuple):
    """A program of one round: its calls in order and what it returns."""

    parameter: str
    type: FunctionType
    calls: dict[str, StagedCall]
    result: Node

    @property
    def results(self) -> tuple[Node, Node]:
        """Return the new state and the server output, the first and the last that a round gives."""
        if isinstance(self.result, StructNode):
            return self.result.values[0], self.result.values[-1]
        return Selection(self.result, 0), Selection(self.result, len(self._gives) - 1)

    @property
    def results_type(self) -> StructType:
        """Return the type of the new state and the server output, without placements."""
        names, types = self._gives.names, self._gives.types
        return StructType.of((names[0], names[-1]), (local_type(types[0]), local_type(types[-1])))

    @property
    def kept(self) -> list[Node]:
        """Return the new state of a client, if clients have one: the second of three results."""
        if not isinstance(self.type.result, StructType) or len(self._gives) != 3:
            return []
        if isinstance(self.result, StructNode):
            return [self.result.values[1]]
        return [Selection(self.result, 1)]

    @property
    def _gives(self) -> StructType:
        assert isinstance(self.type.result, StructType)
        return self.type.result

    @property
    def sent(self) -> list[Node]:
        """Return what is broadcast."""
        broadcasts = self.of_stage(Stage.BROADCAST)
        return [node for call in broadcasts for node in operands(call.call)]

    def of_stage(self, stage: Stage) -> list[StagedCall]:
        return [staged for staged in self.calls.values() if staged.stage is stage]

    def aggregations(self) -> list[StagedCall]:
        """Return the aggregations in the order of their channels, which is TFF's.

        Those that need nothing that is broadcast come first, otherwise the program's order counts.
        """
        late: set[str] = set()
        for name, staged in self.calls.items():
            if staged.stage is Stage.BROADCAST or not late.isdisjoint(staged.uses):
                late.add(name)
        return sorted(self.of_stage(Stage.AGGREGATE), key=lambda staged: staged.name in late)

    def uses_of(self, node: Node) -> tuple[Use, ...]:
        """Return the calls and parameters that an expression uses, in order of first use.

        The parameter stands for the state or the data where it is selected from and for both where
        it is used whole.
        """
        uses: dict[Use, None] = {}
        seen: set[int] = set()
        stack = [node]
        while stack:
            part = stack.pop()
            if id(part) in seen:
                continue
            seen.add(id(part))
            source = part.source if isinstance(part, Selection) else part
            if not isinstance(source, Reference):
                stack.extend(reversed(part.children()))
            elif source.name != self.parameter:
                if source.name in self.calls:
                    uses[source.name] = None
            elif isinstance(part, Selection):
                uses[STATE if part.index == 0 else DATA] = None
            else:
                uses[STATE] = uses[DATA] = None
        return tuple(uses)

    def available(self, use: Use | None) -> Stage:
        """Return the earliest stage that can use a call or a half of the parameter; `ANYWHERE` for
        None."""
        if not isinstance(use, str):
            return {None: Stage.ANYWHERE, STATE: Stage.PREPARE, DATA: Stage.WORK}[use]
        stage = self.calls[use].stage
        return {Stage.BROADCAST: Stage.WORK, Stage.AGGREGATE: Stage.RESULT}.get(stage, stage)

    def needed(self, nodes: Iterable[Node], computed: Iterable[Use] = ()) -> list[StagedCall]:
        """Return the calls that expressions need, in order, without the `computed` ones."""
        known = {STATE, DATA, *computed}
        live: set[Use] = set()
        stack = [use for node in nodes for use in self.uses_of(node)]
        while stack:
            name = stack.pop()
            if isinstance(name, str) and name not in live and name not in known:
                live.add(name)
                stack.extend(self.calls[name].uses)
        return [staged for name, staged in self.calls.items() if name in live]


def assign_stages(program: Node) -> StagedRound:
    """Return the stages of a call-dominant program of a server state and clients' data.

    Raises:
      FormError: the program is not such a lambda, or a call can run in no stage of one round.
    """
    if not isinstance(program, Lambda):
        raise FormError(
            "E514", f"a round has to be written out as a lambda, found {kind_of(program)}"
        )
    assert program.parameter_name is not None
    body = program.result
    bindings, result = (body.locals, body.result) if isinstance(body, Block) else ((), body)
    staged = StagedRound(program.parameter_name, program.type, {}, result)
    for binding in bindings:
        staged.calls[binding.name] = _staged(binding, staged)
    return staged


def _staged(binding: Binding, before: StagedRound) -> StagedCall:
    """Return a call in the stage that the calls before it allow."""
    call = binding.value
    assert isinstance(call, Call)
    uses = before.uses_of(call)
    because = max(uses, key=before.available, default=None)
    ready = before.available(because)
    operator = operator_of(call)
    if operator is not None and operator.communicates:
        stage = Stage.BROADCAST if operator.is_broadcast else Stage.AGGREGATE
        if ready is Stage.RESULT:
            why = _chain(because, before.calls, binding.span)
            if stage is Stage.BROADCAST:
                raise _too_late(binding, "a broadcast", "E511", why)
            raise _too_late(binding, "an aggregation", "E511", why)
    else:
        _check_stays(binding)
        placement = placement_of(call.type)
        if placement is SERVER:
            stage = Stage.RESULT if ready > Stage.PREPARE else Stage.PREPARE
        else:
            stage = Stage.ANYWHERE if placement is None else Stage.WORK
    return StagedCall(binding.name, call, binding, stage, uses, because)


def operator_of(node: Node) -> IntrinsicDefinition | None:
    """Return the operator that a node calls, if it calls one that is known."""
    function = node.function if isinstance(node, Call) else None
    return definition_of(function.uri) if isinstance(function, Intrinsic) else None


def _check_stays(binding: Binding) -> None:
    """Check that an operator that does not communicate gives values where its operands are."""
    call = binding.value
    assert isinstance(call, Call)
    if not isinstance(call.function, Intrinsic):
        return
    uri = call.function.uri
    taken = [] if call.argument is None else _placements(call.argument.type)
    results = _placements(call.type)
    if len(taken) > 1 or len(results) > 1 or (taken and results != taken):
        near = None if uri in INTRINSICS else did_you_mean(uri, INTRINSICS)
        raise FormError(
            "E533",
            f"`{describe(binding)}` moves values, and the operator {printable(uri)} is not known "
            "to do that",
            notes=(f"it is of type `{call.function.type}`",),
            help=near
            or "broadcasts and aggregations of the language move values; an operator of your own "
            "works where its operands are",
            span=binding.span,
        )


@functools.lru_cache(maxsize=1024)
def _placements(type: Type) -> list[Placement]:
    """Return the places of the parts of a value of this type, each once."""
    parts = (leaf for leaf in distinct_leaves(type) if isinstance(leaf, FederatedType))
    return list(dict.fromkeys(part.placement for part in parts))


def _too_late(binding: Binding, what: str, code: str, why: Iterable[str]) -> FormError:
    return FormError(
        code,
        f"{what} depends on an aggregation: `{describe(binding)}` cannot run in the same round",
        notes=tuple(why),
        help="a round broadcasts first and aggregates last; keep the aggregate in the server state "
        "and use it in the next round",
        span=binding.span,
    )


def _chain(name: Use | None, calls: dict[str, StagedCall], shown: Span | None) -> Iterator[str]:
    """Yield why a call runs as late as it does: a note for each call back to where that begins.

    Each note has the call's line in the user's source, unless that is `shown` already.
    """
    while isinstance(name, str) and name in calls:
        staged = calls[name]
        yield f"it needs `{describe(staged.binding)}`{_place(staged.binding.span, shown)}"
        if staged.stage is Stage.AGGREGATE:
            return
        name, shown = staged.because, staged.binding.span


def _place(span: Span | None, shown: Span | None) -> str:
    if span is None:
        return ""
    source = span.source_line()
    if not source or str(span) == str(shown):
        return f" at {span}"
    text, _ = excerpt(source.strip(), 0, 0)
    return f" at {span}:\n  {text}"


def placement_of(type: Type) -> Placement | None:
    """Return where a value of this type is, or None if it is nowhere in particular."""
    return next(iter(_placements(type)), None)
