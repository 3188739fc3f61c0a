"""From a form back to a computation of one round.

A form and its computation agree on every value, and the types do not grow: the form of the
computation of a form has the parts' types of the form.  For that, the channels of a MapReduceForm
are taken apart again wherever its graphs keep them apart.
"""

from __future__ import annotations

from tffc.backends.forms.channels import Channel, channels
from tffc.backends.forms.form import (
    BroadcastForm,
    DistributeAggregateForm,
    Form,
    MapReduceForm,
    pair,
    signature,
)
from tffc.ir.calls import apply, broadcast, element, members, pack, secure_sum, zip_placed
from tffc.ir.nodes import (
    Binding,
    Block,
    Call,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    Struct,
)
from tffc.ir.types import (
    CLIENTS,
    SERVER,
    FederatedType,
    FunctionType,
    Placement,
    StructType,
    Type,
    at_server,
)
from tffc.linking.aggregations import SECURE


def computation_of(form: Form) -> Lambda:
    """The computation of one round that a form was, or could have been, made from."""
    match form:
        case MapReduceForm():
            return computation_of_mapreduce(form)
        case BroadcastForm():
            return computation_of_broadcast(form)
        case DistributeAggregateForm():
            return computation_of_distribute_aggregate(form)


class _Writer:
    """A round being written: its parameter and the bindings so far."""

    def __init__(self, round_type: FunctionType) -> None:
        assert round_type.parameter is not None
        self.argument = Reference("round_arg", round_type.parameter)
        self.bindings: list[Binding] = []

    def bind(self, name: str, value: Node) -> Reference:
        """Binds a value to a name of its own."""
        self.bindings.append(Binding(name, value))
        return Reference(name, value.type)

    def parameter(self, index: int, placement: Placement) -> Node:
        """One of the two parameters, zipped if it is a struct of placed values."""
        value = Selection(self.argument, index)
        if isinstance(value.type, FederatedType):
            return value
        return self.bind(("state", "data")[index], zip_placed(value, placement))

    def close(self, result: Node) -> Lambda:
        body = Block(tuple(self.bindings), result)
        return Lambda(self.argument.name, self.argument.type, body)


def computation_of_mapreduce(form: MapReduceForm) -> Lambda:
    """The computation of a MapReduceForm, `(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`."""
    writer = _Writer(form.type_signature)
    state = writer.parameter(0, SERVER)
    data = writer.parameter(1, CLIENTS)
    context = writer.bind("context", apply(form.prepare, state))
    received = [
        writer.bind(f"broadcast_{index}", broadcast(element(context, index)))
        for index in range(len(members(context)))
    ]
    worked = writer.bind(
        "work", apply(form.work, zip_placed(pack((data, pack(received))), CLIENTS))
    )
    aggregates: list[list[Node]] = [[], [], [], []]
    for index, channel in enumerate(channels(form)):
        value = element(worked, 0, *channel.path)
        aggregates[0].append(writer.bind(f"aggregate_{index}", aggregate(channel, value)))
    bounds = (form.secure_sum_bitwidth, form.secure_sum_max_input, form.secure_modular_sum_modulus)
    for position, (uri, bound) in enumerate(zip(SECURE, bounds, strict=True), start=1):
        limits = writer.bind(f"{uri}_bounds", Call(bound))
        for index in range(len(members(worked, position))):
            value = element(worked, position, index)
            call = secure_sum(uri, value, Selection(limits, index))
            aggregates[position].append(writer.bind(f"{uri}_{index}", call))
    plain, *secure = aggregates
    whole = plain[0] if _is_joint(form) else pack(plain)
    gathered = pack((state, pack((whole, *map(pack, secure)))))
    updated = writer.bind("update", apply(form.update, zip_placed(gathered, SERVER)))
    return writer.close(results(updated, form.type_signature))


def _is_joint(form: MapReduceForm) -> bool:
    return any(not channel.path for channel in channels(form))


def computation_of_broadcast(form: BroadcastForm) -> Lambda:
    """The computation of a BroadcastForm, `(<S@SERVER,{D}@CLIENTS> -> {Y}@CLIENTS)`."""
    writer = _Writer(form.type_signature)
    state = writer.parameter(0, SERVER)
    data = writer.parameter(1, CLIENTS)
    context = writer.bind("context", apply(form.compute_server_context, state))
    received = [
        writer.bind(f"broadcast_{index}", broadcast(element(context, index)))
        for index in range(len(members(context)))
    ]
    zipped = zip_placed(pack((pack(received), data)), CLIENTS)
    return writer.close(writer.bind("output", apply(form.client_processing, zipped)))


def computation_of_distribute_aggregate(form: DistributeAggregateForm) -> Lambda:
    """The computation of a DistributeAggregateForm: its five parts called in sequence."""
    writer = _Writer(form.type_signature)
    state, data = Selection(writer.argument, 0), Selection(writer.argument, 1)
    prepared = writer.bind("prepared", Call(form.server_prepare, state))
    sent, temporary = Selection(prepared, 0), Selection(prepared, 1)
    received = writer.bind("received", Call(form.server_to_client_broadcast, sent))
    worked = writer.bind("worked", Call(form.client_work, pack((data, received))))
    collected = Call(form.client_to_server_aggregation, pack((temporary, worked)))
    summed = writer.bind("aggregated", collected)
    return writer.close(Call(form.server_result, pack((temporary, summed))))


def aggregate(channel: Channel, value: Node) -> Node:
    """The aggregation of clients' values by a channel's four functions."""
    found = value.type
    assert isinstance(found, FederatedType)
    operands = (value, Call(channel.zero), channel.accumulate, channel.merge, channel.report)
    accumulator, _ = pair(signature(channel.accumulate).parameter, "accumulate", "parameter")
    parameter = StructType([found, accumulator, *(function.type for function in operands[2:])])
    type_ = FunctionType(parameter, at_server(signature(channel.report).result))
    return Call(Intrinsic("federated_aggregate", type_), pack(operands))


def results(updated: Node, round_type: FunctionType) -> Node:
    """The new state and the output, in the structure that the round's type gives them."""
    wanted = round_type.result
    assert isinstance(wanted, StructType)
    parts = (_place(updated, t, (i,)) for i, t in enumerate(wanted.types))
    return Struct(tuple(parts), wanted.names)


def _place(updated: Node, wanted: Type, path: tuple[int, ...]) -> Node:
    if isinstance(wanted, FederatedType):
        return element(updated, *path)
    assert isinstance(wanted, StructType)
    parts = (_place(updated, t, (*path, i)) for i, t in enumerate(wanted.types))
    return Struct(tuple(parts), wanted.names)
