"""The audit of a round: every channel from its clients, and what values may depend on.

The audit analyses the program only, and holds for every argument.  A "may depend on" list is an
over-approximation: it never omits a dependency, but may name more than there are.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterator, Sequence

from tffc.assurance.audit.constants import constant_texts
from tffc.assurance.audit.contents import Contents
from tffc.assurance.audit.effects import in_errors, parts_by_side, side_effects
from tffc.assurance.audit.names import call_names
from tffc.assurance.audit.programs import Kind, Source, leaf_paths, results_of, round_flows
from tffc.assurance.audit.single import single, with_weights
from tffc.backends.compiler import has_discount, normalized
from tffc.backends.forms.discount import check_discountable
from tffc.backends.forms.form import Form, Side
from tffc.backends.forms.kinds import load_form
from tffc.backends.forms.stages import Stage, StagedCall, StagedRound, assign_stages
from tffc.language.calls import operands, uri_of
from tffc.language.intrinsics import Communication, definition_of
from tffc.language.nodes import Call, Compiled, Node, StructNode
from tffc.language.traverse import walk
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import SequenceType, StructType, TensorType, Type
from tffc.language.wire.resources import resource_type, resources_of
from tffc.linking.aggregations import PLAIN
from tffc.support.errors import Span


class Protection(enum.Enum):
    """The protection of a single client's contribution, strongest first."""

    SECURE = "secure sum"
    SYSTEM = "aggregated by the system"
    PROGRAM = "aggregated by functions of the program"
    NONE = "released by itself"


@dataclasses.dataclass(frozen=True, slots=True)
class Draw:
    """A random draw: its operation, its side, and whether each run draws new numbers."""

    operation: str
    side: str
    is_fresh: bool

    def __str__(self) -> str:
        return f"{self.operation} {self.side}" + ("" if self.is_fresh else ", from a given seed")


@dataclasses.dataclass(frozen=True, slots=True)
class Depends:
    """The dependencies that a value may have.

    `elements` are parts of a client's data, `counts` those whose number matters, and `shapes` those
    of which only the shape matters.  `state` are parts of the server's state, and `channels` the
    names of aggregations.
    """

    elements: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    draws: tuple[Draw, ...] = ()

    def listed(self) -> dict[str, tuple[str, ...]]:
        """Return the fields that are not empty, under the words that reports use."""
        words = {
            "data": self.elements,
            "how many": self.counts,
            "shape of": self.shapes,
            "state": self.state,
            "channels": self.channels,
            "draws": tuple(map(str, self.draws)),
        }
        return {word: values for word, values in words.items() if values}


@dataclasses.dataclass(frozen=True, slots=True)
class Channel:
    """The clients' contributions to one aggregation or, with the operator `output`, their output.

    `size` is the bytes from each client, None if that is not fixed.  `goes_to` are the leaves of
    the new state and the output that may depend on it.  `single` says why the result may be the
    value of a single client, and is None for the operators of `single.TOTALS`.  `content`
    identifies what the channel carries: its operator, and the computation of its operands.
    """

    name: str
    operator: str
    protection: Protection
    bound: str | None
    type: str
    size: int | None
    depends: Depends
    goes_to: tuple[str, ...]
    span: Span | None
    single: str | None
    content: str
    in_groups: bool = dataclasses.field(default=False, repr=False, compare=False)

    @property
    def shown_protection(self) -> str:
        """The protection, with the bound of a secure sum, and whom it hides a client among."""
        bound = "" if self.bound is None else f", bound {self.bound}"
        is_narrow = self.in_groups and self.protection is Protection.SECURE
        return f"{self.protection.value}{bound}{', within each group' if is_narrow else ''}"


@dataclasses.dataclass(frozen=True, slots=True)
class Broadcast:
    """A value that is sent to every client."""

    name: str
    type: str
    size: int | None
    depends: Depends
    span: Span | None


@dataclasses.dataclass(frozen=True, slots=True)
class Effect:
    """An operation with a side effect, and the side that it runs on.

    `depends` are the dependencies of what the operation is given, and of whether it runs.
    `content` identifies the effect and all that is computed on its side.
    """

    side: str
    kind: str
    operation: str
    span: Span | None
    depends: Depends = Depends()
    content: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """A leaf of the new state or of the output, and what it may depend on."""

    name: str
    type: str
    depends: Depends


@dataclasses.dataclass(frozen=True, slots=True)
class ReadResource:
    """A resource that a component reads, and the side that it runs on.  Each node gets it once, and
    no round sends it."""

    component: str
    side: str
    digest: str
    type: str
    size: int


@dataclasses.dataclass(frozen=True, slots=True)
class Audit:
    """The audit of a round in a form.

    `data` are all elements of a client's data, and `counted` all sequences in it.  `in_errors` are
    the dependencies of what the texts of errors at the clients may have in them.  `client_state` is
    what a client keeps for its next round; whatever depends on it there depends on all that it
    depends on.  It `may_be_buffered` if the program or the bundle has a discount.
    """

    form: str
    type: str
    data: tuple[str, ...]
    counted: tuple[str, ...]
    channels: tuple[Channel, ...]
    broadcasts: tuple[Broadcast, ...]
    effects: tuple[Effect, ...]
    state: tuple[Result, ...]
    output: tuple[Result, ...]
    in_errors: Depends = Depends()
    client_state: tuple[Result, ...] = ()
    may_be_buffered: bool = dataclasses.field(default=False, repr=False)
    resources: tuple[ReadResource, ...] = dataclasses.field(default=(), repr=False)

    @property
    def buffered(self) -> str | None:
        """What buffered rounds mean for what is seen of clients, if rounds may be buffered."""
        if not self.may_be_buffered:
            return None
        return (
            "allowed: whoever merges then sees the contribution of each client alone, on an older "
            "state, and multiplies its floating-point sums by a discount for its age; the server "
            "steps after as many clients as the run says"
        )

    @property
    def in_groups(self) -> str | None:
        """What clients in groups mean for what is seen of them, if the form has groups."""
        if not load_form(self.form).has_groups():
            return None
        return (
            "whoever merges sees what each group gives; a secure sum hides a client among those of "
            "its group, and not one that is alone"
        )

    @property
    def in_no_channel(self) -> list[str]:
        """The elements of a client's data on which no channel depends."""
        left = {name for channel in self.channels for name in channel.depends.elements}
        return [name for name in self.data if name not in left]

    @property
    def in_texts_of_errors(self) -> list[str]:
        """What of a client's data the texts of its errors may have in them."""
        errors = self.in_errors
        counts = (f"how many {name}" for name in errors.counts)
        shapes = (f"shape of {name}" for name in errors.shapes)
        return [*errors.elements, *counts, *shapes]

    @property
    def only_in_effects(self) -> list[str]:
        """The elements in no channel on which an effect at the clients depends."""
        effects = (effect for effect in self.effects if effect.side == "clients")
        in_effects = {name for effect in effects for name in effect.depends.elements}
        return [name for name in self.in_no_channel if name in in_effects]

    @property
    def seen_by_aggregator(self) -> list[str]:
        """The channels of which whoever carries out the aggregation sees each contribution."""
        is_open = (Protection.SYSTEM, Protection.PROGRAM)
        return [channel.name for channel in self.channels if channel.protection in is_open]


SHOWN = "shown"
"""The kind of an effect that shows values and reads nothing."""

OUTPUT = "output"
"""The operator of a channel that is what clients keep in a round without aggregations."""

SIDES = {
    Stage.ANYWHERE: "wherever it is used",
    Stage.PREPARE: "at the server, before the clients' work",
    Stage.BROADCAST: "in a broadcast",
    Stage.WORK: "at each client, before the aggregation",
    Stage.AGGREGATE: "in the aggregation",
    Stage.RESULT: "at the server, after the aggregation",
}


def audit(program: Node, form: str, discount: Node | None = None) -> Audit:
    """Return the audit of a program of one round, compiled to a form.  With a `discount`, its
    rounds may be buffered.

    Raises:
      FormError: the form cannot express the program.
      GraphError: a section of it is malformed.
    """
    staged = assign_stages(normalized(program, form))
    audited = audit_round(staged, load_form(form).build(staged), form)
    if not has_discount(form, discount):
        return audited
    check_discountable(program)
    return dataclasses.replace(audited, may_be_buffered=True)


def audit_round(program: StagedRound, compiled: Form, form: str) -> Audit:
    """Return the audit of a staged round and the form that it was compiled to.

    Raises:
      GraphError: a section of it is malformed.
    """
    return _Auditor(program, compiled).audit(form)


def unmasked(audit: Audit) -> Audit:
    """Return an audit of rounds in which nobody masks secure sums: the system sees their parts."""
    return dataclasses.replace(audit, channels=tuple(map(_unmasked, audit.channels)))


def _unmasked(channel: Channel) -> Channel:
    if channel.protection is not Protection.SECURE:
        return channel
    return dataclasses.replace(channel, protection=Protection.SYSTEM)


class _Auditor:
    def __init__(self, program: StagedRound, form: Form) -> None:
        self._round = program
        self._weighed, self._weights = with_weights(program)
        self._flows = round_flows(self._weighed)
        self._form = form
        self._contents = Contents(program)
        self._names = call_names(program, self._contents)
        self._reads_elsewhere = True
        self._results = results_of(program)

    def audit(self, form: str) -> Audit:
        parameter = self._round.type.parameter
        assert isinstance(parameter, StructType)
        effects = tuple(map(self._identified, self._effects()))
        self._reads_elsewhere = any(e.side == "clients" and e.kind != SHOWN for e in effects)
        return Audit(
            form=form,
            type=str(self._round.type),
            data=_data_elements(parameter[1], parameter.names[1] or "data"),
            counted=_sequences(parameter[1], parameter.names[1] or "data"),
            channels=(*self._channels(), *self._released()),
            broadcasts=tuple(self._broadcasts()),
            effects=effects,
            state=self._result("state"),
            output=self._result("output"),
            in_errors=self._depends(in_errors(self._weighed, self._flows)),
            client_state=self._result("client_state"),
            resources=tuple(
                ReadResource(name, side, each.digest, str(resource_type(each)), each.size)
                for name, side, part in parts_by_side(self._form)
                for each in resources_of([part])
            ),
        )

    # Channels.

    def _channels(self) -> Iterator[Channel]:
        for staged in self._round.aggregations():
            contribution = self._flows.contributions[staged.name]
            uri = uri_of(staged.call)
            yield Channel(
                name=self._names[staged.name],
                operator=uri,
                protection=_protection(uri),
                bound=self._bound(staged),
                type=str(local_type(contribution.type)),
                size=size_of(_contribution_type(self._form, staged.call)),
                depends=self._depends(contribution.sources),
                goes_to=self._reached(staged.name),
                span=staged.binding.span,
                single=self._single(staged),
                content=self._contents.of_call(staged.name),
                in_groups=self._form.has_groups(),
            )

    def _single(self, staged: StagedCall) -> str | None:
        """Return why the result of an aggregation may be one client's value, or None."""
        label = self._weights.get(staged.name)
        if label is None:
            return single(uri_of(staged.call))
        depends = self._depends(self._flows.contributions[label].sources)
        weighed = [*depends.elements, *(f"the shape of {name}" for name in depends.shapes)]
        if depends.draws:
            weighed.append("random draws")
        if self._reads_elsewhere:
            weighed.append("effects at the clients")
        return single(uri_of(staged.call), weighed)

    def _depends(self, total: int) -> Depends:
        elements = self._sources(total, Kind.DATA)
        return Depends(
            elements=elements,
            counts=self._sources(total, Kind.COUNT),
            shapes=tuple(n for n in self._sources(total, Kind.SHAPE) if n not in elements),
            state=self._sources(total, Kind.STATE),
            channels=tuple(self._names[name] for name in self._sources(total, Kind.CHANNEL)),
            draws=self._draws(total),
        )

    def _released(self) -> Iterator[Channel]:
        """Yield the outputs that clients keep in a round without aggregations."""
        if "state" in self._results:
            return
        for path, type, total in self._leaves("output"):
            yield Channel(
                name=path,
                operator=OUTPUT,
                protection=Protection.NONE,
                bound=None,
                type=str(type),
                size=size_of(type),
                depends=self._depends(total),
                goes_to=(path,),
                span=None,
                single=single(OUTPUT),
                content=self._contents.of_result(path),
            )

    def _bound(self, staged: StagedCall) -> str | None:
        """Return the bound of a secure sum, as far as the program determines it."""
        if not _is_secure(uri_of(staged.call)):
            return None
        bounds = walk(operands(staged.call)[1], _elements)
        texts = (self._bound_of_one(bound) for bound in bounds if not isinstance(bound, StructNode))
        return ", ".join(dict.fromkeys(texts))

    def _bound_of_one(self, bound: Node) -> str:
        uses = [use for use in self._round.uses_of(bound) if isinstance(use, str)]
        calls = [self._round.calls[use].call for use in uses]
        sections = [call.function for call in calls if call.argument is None]
        if len(sections) == len(uses) == 1 and isinstance(sections[0], Compiled):
            return ", ".join(constant_texts(sections[0])) or "computed"
        return str(bound) if not uses and not bound.children() else "computed"

    def _reached(self, call: str) -> tuple[str, ...]:
        source = Source(Kind.CHANNEL, call)
        return tuple(
            path
            for label in self._results
            for path, _, total in self._leaves(label)
            if source in self._flows.sources.of(total, Kind.CHANNEL)
        )

    # Broadcasts, results and effects.

    def _broadcasts(self) -> Iterator[Broadcast]:
        for name, total in self._flows.broadcasts.items():
            staged = self._round.calls[name]
            sent = [local_type(node.type) for node in operands(staged.call)]
            type = sent[0] if len(sent) == 1 else StructType(sent)
            yield Broadcast(
                name=self._names[name],
                type=str(type),
                size=size_of(type),
                depends=self._depends(total),
                span=staged.binding.span,
            )

    def _result(self, label: str) -> tuple[Result, ...]:
        if label not in self._results:
            return ()
        return tuple(
            Result(path, str(type), self._depends(total))
            for path, type, total in self._leaves(label)
        )

    def _leaves(self, label: str) -> Iterator[tuple[str, Type, int]]:
        """Yield the path, the type and the sources of each leaf of a result."""
        type = local_type(self._results[label].type)
        totals = self._flows.results[label]
        return zip(leaf_paths(type, label), leaves(type), totals, strict=True)

    def _effects(self) -> Iterator[Effect]:
        for use in side_effects(self._weighed, self._form, self._flows):
            depends = self._depends(use.sources)
            yield Effect(use.side, use.kind, use.operation, use.span, depends)

    def _identified(self, effect: Effect) -> Effect:
        """Return an effect with its content: whatever its side computes may change what it does."""
        at_clients = effect.side == "clients"
        parts = [
            node
            for _, side, node in self._form.parts_by_side()
            if (side is Side.CLIENTS) is at_clients
        ]
        labels = (effect.side, effect.kind, effect.operation, str(effect.depends))
        return dataclasses.replace(effect, content=self._contents.of_effect(labels, parts))

    # Sources.

    def _sources(self, total: int, kind: Kind) -> tuple[str, ...]:
        return tuple(source.name for source in self._flows.sources.of(total, kind))

    def _draws(self, total: int) -> tuple[Draw, ...]:
        draws = (
            Draw(source.name, SIDES[self._weighed.calls[source.call].stage], source.draw.is_fresh)
            for source in self._flows.sources.of(total, Kind.DRAW)
            if source.draw is not None
        )
        return tuple(dict.fromkeys(draws))


def _elements(node: Node) -> Sequence[Node]:
    return node.values if isinstance(node, StructNode) else ()


def _is_secure(uri: str) -> bool:
    definition = definition_of(uri)
    secure = Communication.SECURE_AGGREGATION
    return definition is not None and definition.communication is secure


def _protection(uri: str) -> Protection:
    if _is_secure(uri):
        return Protection.SECURE
    return Protection.PROGRAM if uri == "federated_aggregate" else Protection.SYSTEM


def _contribution_type(form: Form, call: Call) -> Type:
    """Return the type of a client's contribution to an aggregation.

    If the form consists of graphs, these compute the whole contribution, such as a weighted value
    and its weight.  If it consists of programs, the aggregating system gets the operands.
    """
    kind = PLAIN.get(uri_of(call))
    if kind is None:
        return local_type(operands(call)[0].type)
    aggregation = kind(call)
    if form.component_class is Compiled:
        return aggregation.update
    return StructType([local_type(value.type) for value in aggregation.values])


def size_of(type: Type) -> int | None:
    """Return the size in bytes of a value of this type; None if it is not fixed."""
    total = 0
    for leaf in leaves(type):
        if not isinstance(leaf, TensorType) or leaf.shape is None or not leaf.element_type.size:
            return None
        for size in leaf.shape:
            if size is None:
                return None
        total += math.prod(size for size in leaf.shape if size is not None) * leaf.element_type.size
    return total


def _data_elements(type: Type, label: str) -> tuple[str, ...]:
    """Return the paths of all elements of a client's data."""
    paths: list[str] = []
    local = local_type(type)
    for leaf, path in zip(leaves(local), leaf_paths(local, label), strict=True):
        paths.extend(leaf_paths(getattr(leaf, "element", leaf), path))
    return tuple(paths)


def _sequences(type: Type, label: str) -> tuple[str, ...]:
    """Return the paths of all sequences in a client's data, also of those in sequences."""
    paths: dict[str, None] = {}
    parts = [(local_type(type), label)]
    while parts:
        part, above = parts.pop()
        for leaf, path in zip(leaves(part), leaf_paths(part, above), strict=True):
            if isinstance(leaf, SequenceType):
                paths[path] = None
                parts.append((leaf.element, path))
    return tuple(paths)
