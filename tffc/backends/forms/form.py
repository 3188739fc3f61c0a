"""The deployable forms: what each is made of, and the rules that hold between its parts.

One round of a MapReduceForm, for state `s` and clients' data `d1 ... dn`:

    c    = prepare(s)
    ui   = work((di, c))                        each: (update, bitwidth, max_input, modulus)
    a    = fold(accumulate, zero(), [ui[0]])    in shards, joined by merge
    r    = report(a)
    b    = sum of ui[1]                         each below 2 ** secure_sum_bitwidth()
    m    = sum of ui[2]                         each at most secure_sum_max_input()
    q    = sum of ui[3] mod secure_modular_sum_modulus()
    s, x = update((s, (r, b, m, q)))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias

from tffc.errors import FormError, did_you_mean
from tffc.ir.intrinsics import definition_of
from tffc.ir.nodes import Block, Call, Compiled, Intrinsic, Lambda, Node, Struct, kind_of
from tffc.ir.traverse import contains, walk
from tffc.ir.type_parts import local_type
from tffc.ir.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    Placement,
    StructType,
    TensorType,
    Type,
)
from tffc.ir.verify import CLOSED, UNIQUE_NAMES, verify

BOUNDS = ("secure_sum_bitwidth", "secure_sum_max_input", "secure_modular_sum_modulus")
"""The parts that give the bounds of secure sums."""

WORK_UPDATE, WORK_BITWIDTH, WORK_MAX_INPUT, WORK_MODULUS = range(4)
"""Positions in the result of `work`: the plain update and the three secure sums."""


@dataclasses.dataclass(frozen=True, slots=True)
class MapReduceForm:
    """A round as ten local computations; see the picture at the top of this module.

    `type_signature` is that of the round: `(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`.

    Raises:
      FormError: a part's type does not fit those it is connected to.
    """

    type_signature: FunctionType
    prepare: Compiled
    work: Compiled
    zero: Compiled
    accumulate: Compiled
    merge: Compiled
    report: Compiled
    secure_sum_bitwidth: Compiled
    secure_sum_max_input: Compiled
    secure_modular_sum_modulus: Compiled
    update: Compiled

    def __post_init__(self) -> None:
        check_sections(self.components())
        work = signature(self.work)
        data, context = pair(work.parameter, "work", "parameter")
        _, held = pair(self.type_signature.parameter, "the round", "parameter")
        connect("clients' data", local_type(held), "work", data)
        connect("prepare's result", signature(self.prepare).result, "work", context)
        for name in ("zero", *BOUNDS):
            check_alone(name, signature(getattr(self, name)))
        outputs = struct_of(work.result, 4, "work", "result")
        self._check_aggregation(outputs[WORK_UPDATE])
        self._check_update(outputs)

    def _check_aggregation(self, update: Type) -> None:
        zero, accumulate = signature(self.zero).result, signature(self.accumulate)
        accumulator, value = pair(accumulate.parameter, "accumulate", "parameter")
        connect("zero's result", zero, "accumulate", accumulator)
        connect("work's update", update, "accumulate", value)
        connect("accumulate's result", accumulate.result, "accumulate", accumulator)
        merge = signature(self.merge)
        for side in pair(merge.parameter, "merge", "parameter"):
            connect("accumulate's result", accumulate.result, "merge", side)
            connect("merge's result", merge.result, "merge", side)
        connect("merge's result", merge.result, "report", signature(self.report).parameter)

    def _check_update(self, outputs: StructType) -> None:
        state, _ = pair(self.type_signature.parameter, "the round", "parameter")
        state = local_type(state)
        aggregate = (signature(self.report).result, *outputs.types[1:])
        update = signature(self.update)
        argument = StructType([state, StructType(aggregate)])
        connect("state and aggregates", argument, "update", update.parameter)
        new_state, output = pair(update.result, "update", "result")
        connect("the state", state, "prepare", signature(self.prepare).parameter)
        connect("update's new state", new_state, "prepare", signature(self.prepare).parameter)
        _, given = pair(self.type_signature.result, "the round", "result")
        connect("update's output", output, "the round", local_type(given))

    def components(self) -> dict[str, Node]:
        """The ten parts by name, in the order in which they are documented."""
        return _components(self)

    @property
    def securely_aggregates_tensors(self) -> bool:
        """Whether any tensor goes through a secure sum."""
        outputs = struct_of(signature(self.work).result, 4, "work", "result")
        return any(contains(output, TensorType) for output in outputs.types[1:])

    def summary(self) -> str:
        """One line a part: its name and its type."""
        return summarize(self.components())


@dataclasses.dataclass(frozen=True, slots=True)
class BroadcastForm:
    """A round that sends something to the clients and gets nothing back, as two parts.

        c  = compute_server_context(s)
        yi = client_processing((c, di))

    `type_signature` is `(<S@SERVER,{D}@CLIENTS> -> {Y}@CLIENTS)`.

    Raises:
      FormError: a part's type does not fit those it is connected to.
    """

    type_signature: FunctionType
    compute_server_context: Compiled
    client_processing: Compiled

    def __post_init__(self) -> None:
        check_sections(self.components())
        context, data = pair(
            signature(self.client_processing).parameter, "client_processing", "parameter"
        )
        state, _ = pair(self.type_signature.parameter, "the round", "parameter")
        wanted = signature(self.compute_server_context).parameter
        connect("the state", local_type(state), "compute_server_context", wanted)
        produced = signature(self.compute_server_context).result
        connect("compute_server_context's result", produced, "client_processing", context)
        _, held = pair(self.type_signature.parameter, "the round", "parameter")
        connect("clients' data", local_type(held), "client_processing", data)

    @property
    def server_data_label(self) -> str | None:
        """The name of the round's first parameter."""
        return label(self.type_signature, 0)

    @property
    def client_data_label(self) -> str | None:
        """The name of the round's second parameter."""
        return label(self.type_signature, 1)

    def components(self) -> dict[str, Node]:
        """The two parts by name."""
        return _components(self)

    def summary(self) -> str:
        """One line a part: its name and its type."""
        return summarize(self.components())


@dataclasses.dataclass(frozen=True, slots=True)
class DistributeAggregateForm:
    """A round as five computations between which only six values pass.

        b, t = server_prepare(s)
        b'   = server_to_client_broadcast(b)
        a    = client_work((d, b'))
        a'   = client_to_server_aggregation((t, a))
        s, x = server_result((t, a'))

    The second and the fourth part hold nothing but operators that communicate.

    Raises:
      FormError: a part holds what it must not, or its type does not fit those it is connected to.
    """

    type_signature: FunctionType
    server_prepare: Lambda
    server_to_client_broadcast: Lambda
    client_work: Lambda
    client_to_server_aggregation: Lambda
    server_result: Lambda

    def __post_init__(self) -> None:
        for name, node in self.components().items():
            check_lambda(name, node)
        check_placement("server_prepare", self.server_prepare, SERVER)
        check_communicates(
            "server_to_client_broadcast", self.server_to_client_broadcast, "broadcast"
        )
        check_placement("client_work", self.client_work, CLIENTS)
        check_communicates(
            "client_to_server_aggregation", self.client_to_server_aggregation, "aggregation"
        )
        check_placement("server_result", self.server_result, SERVER)
        self._check_connections()

    def _check_connections(self) -> None:
        state, data = pair(self.type_signature.parameter, "the round", "parameter")
        new_state, output = pair(self.type_signature.result, "the round", "result")
        connect("the state", state, "server_prepare", self.server_prepare.parameter_type)
        sent, temporary = pair(self.server_prepare.type.result, "server_prepare", "result")
        broadcast = self.server_to_client_broadcast.type
        connect("what is sent", sent, "server_to_client_broadcast", broadcast.parameter)
        held, received = pair(self.client_work.parameter_type, "client_work", "parameter")
        connect("clients' data", data, "client_work", held)
        connect("what is received", broadcast.result, "client_work", received)
        aggregation = self.client_to_server_aggregation.type
        side, collected = pair(aggregation.parameter, "client_to_server_aggregation", "parameter")
        connect("the temporary state", temporary, "client_to_server_aggregation", side)
        worked = self.client_work.type.result
        connect("client_work's result", worked, "client_to_server_aggregation", collected)
        side, summed = pair(self.server_result.parameter_type, "server_result", "parameter")
        connect("the temporary state", temporary, "server_result", side)
        connect("the aggregates", aggregation.result, "server_result", summed)
        found_state, found_output = pair(self.server_result.type.result, "server_result", "result")
        connect("server_result's state", found_state, "the round", new_state)
        connect("server_result's output", found_output, "the round", output)
        connect("the new state", found_state, "the next round", state)

    def components(self) -> dict[str, Node]:
        """The five parts by name, in the order in which they run."""
        return _components(self)

    def summary(self) -> str:
        """One line a part: its name and its type."""
        return summarize(self.components())


Form: TypeAlias = MapReduceForm | BroadcastForm | DistributeAggregateForm


KINDS: dict[str, type[Form]] = {
    "mapreduce": MapReduceForm,
    "broadcast": BroadcastForm,
    "distribute-aggregate": DistributeAggregateForm,
}
"""The forms by the names that commands and bundles know them by."""


def assemble(kind: str, type_signature: Type, components: Mapping[str, Any]) -> Form:
    """The form of this kind that has these components.

    Raises:
      FormError: there is no such kind, a component is missing or none of the form's, or the
        components do not fit each other.
    """
    if kind not in KINDS:
        raise FormError(
            "E508",
            f"there is no form {kind!r}",
            notes=(f"there are {', '.join(KINDS)}",),
            help=did_you_mean(kind, KINDS) or "give one of these names",
        )
    wanted = [field.name for field in dataclasses.fields(KINDS[kind])][1:]
    if sorted(wanted) != sorted(components):
        raise FormError(
            "E509",
            f"the form {kind} has the components {', '.join(wanted)}; "
            f"found {', '.join(components) or 'none'}",
            help=_component_fix(wanted, list(components)),
        )
    if not isinstance(type_signature, FunctionType):
        raise FormError(
            "E653",
            f"a round is a function, found one of type `{type_signature}`",
            help="give the type of the whole round, which is written with an arrow",
        )
    fields: dict[str, Any] = {"type_signature": type_signature, **components}
    return KINDS[kind](**fields)


def _components(form: Form) -> dict[str, Node]:
    names = [field.name for field in dataclasses.fields(form)]
    return {name: getattr(form, name) for name in names if name != "type_signature"}


def summarize(components: Mapping[str, Node]) -> str:
    """One line a component, the names padded to the longest."""
    width = max(map(len, components))
    return "\n".join(f"{name:<{width}}: {node.type}" for name, node in components.items())


def signature(section: Node) -> FunctionType:
    """The function type of a part that `check_sections` has passed."""
    assert isinstance(section.type, FunctionType)
    return section.type


def check_sections(components: Mapping[str, Node]) -> None:
    """Raises FormError unless every part is a TensorFlow section with a function type."""
    for name, node in components.items():
        is_section = isinstance(node, Compiled) and node.kind == "tensorflow"
        if not is_section or not isinstance(node.type, FunctionType):
            found = f"{kind_of(node)} of type `{node.type}`"
            raise FormError("E501", f"{name} has to be a TensorFlow computation, found {found}")


def pair(found: Type | None, part: str, side: str) -> tuple[Type, Type]:
    """The two elements of a type that has to be a struct of two."""
    first, second = struct_of(found, 2, part, side).types
    return first, second


def struct_of(found: Type | None, size: int, part: str, side: str) -> StructType:
    """`found`, which has to be a struct of `size` elements; raises FormError otherwise."""
    if isinstance(found, StructType) and len(found) == size:
        return found
    raise FormError("E502", f"the {side} of {part} has to be a struct of {size}, found `{found}`")


def check_alone(part: str, found: FunctionType) -> None:
    """Raises FormError unless a part takes no argument."""
    if found.parameter is not None:
        raise FormError("E655", f"{part} takes no argument, found one of type `{found}`")


def connect(origin: str, source: Type, part: str, target: Type | None) -> None:
    """Raises FormError unless what `origin` gives can be handed to `part`."""
    if target is not None and target.is_assignable_from(source):
        return
    raise FormError(
        "E503", f"{origin} of type `{source}` does not fit {part}, which takes `{target}`"
    )


def label(round_type: FunctionType, index: int) -> str | None:
    """The name of a round's parameter, if it has one."""
    return struct_of(round_type.parameter, 2, "the round", "parameter").names[index]


def check_lambda(part: str, node: Node) -> None:
    """Raises FormError unless a part is a closed lambda in which no name is bound twice."""
    if not isinstance(node, Lambda):
        raise FormError("E504", f"{part} has to be a lambda, found {kind_of(node)}")
    verify(node, (CLOSED, UNIQUE_NAMES))


def _component_fix(wanted: list[str], found: list[str]) -> str:
    """Return which components to add and which to leave out."""
    missing = [name for name in wanted if name not in found]
    extra = [name for name in found if name not in wanted]
    parts = [f"add {', '.join(missing)}"] if missing else []
    return "; ".join([*parts, f"leave out {', '.join(extra)}"] if extra else parts)


def check_placement(part: str, node: Lambda, placement: Placement) -> None:
    """Raises FormError if anything in a part is placed elsewhere."""
    for inner in walk(node):
        found = inner.type
        if isinstance(found, FederatedType) and found.placement is not placement:
            raise FormError(
                "E505",
                f"{part} runs at {placement} alone, found a value of type `{found}`",
                help=f"keep only values at {placement} in it; what runs elsewhere is "
                "another part of the form",
            )


def check_communicates(part: str, node: Lambda, kind: str) -> None:
    """Raises FormError unless a part is a block of operators of one kind, returned in order."""
    block = node.result
    names = [binding.name for binding in block.locals] if isinstance(block, Block) else []
    result = block.result if isinstance(block, Block) else block
    returned = [getattr(value, "name", None) for value in result.children()]
    if not isinstance(result, Struct) or returned != names:
        raise FormError("E506", f"{part} has to return the results of its operators, in order")
    for binding in block.locals if isinstance(block, Block) else ():
        call = binding.value
        function = call.function if isinstance(call, Call) else None
        definition = definition_of(function.uri) if isinstance(function, Intrinsic) else None
        if definition is None or not getattr(definition, f"is_{kind}"):
            raise FormError(
                "E507",
                f"{part} holds {kind} operators only, found `{binding.value}`",
                help="compute the rest in the parts before and after it",
            )
