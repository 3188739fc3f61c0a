"""`federated_select` in terms of what every form can do.

Each client names slices of a server value by its keys and is given the selected ones.  No form has
a channel on which clients ask the server for something, so the whole value is broadcast and each
client selects for itself: what it computes is the same, what it receives is more, and the server
learns less.
"""

from __future__ import annotations

import dataclasses
import functools

from tffc.ir.alpha import Names
from tffc.ir.calls import apply, expand_calls, federated_broadcast, operands, pack, zip_placed
from tffc.ir.invariants import SELECTS, check_no_select
from tffc.ir.nodes import (
    Binding,
    Call,
    Compiled,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
)
from tffc.ir.scope import free_names
from tffc.ir.types import (
    CLIENTS,
    FederatedType,
    FunctionType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.linking.builder import GraphBuilder
from tffc.linking.sequences import sequence_of_slices
from tffc.passes.call_dominant import call_dominant
from tffc.passes.local_processing import extract_local_processing


def lower_select(root: Node) -> Node:
    """Replace every selection of server slices by a broadcast and a local selection.

    The program has to be in call-dominant form, and stays in it.

        s=federated_select(<keys,bound,value,f>)   becomes
        s_value=federated_broadcast(value), s_keys=federated_zip_at_clients(<keys,s_value>),
        s=federated_map(<...,s_keys>)
    """
    if check_no_select(root) is None:
        return root
    names = Names.outside(root)
    return call_dominant(expand_calls(root, SELECTS, lambda select: _lowered(select, names)))


def _lowered(select: Binding, names: Names) -> list[Binding]:
    assert isinstance(select.value, Call)
    keys, _, server_value, function = operands(select.value)

    def bind(stem: str, value: Node) -> Binding:
        name = names.fresh(f"{select.name}_{stem}")
        return dataclasses.replace(select, name=name, value=value)

    sent = bind("value", federated_broadcast(server_value))
    reference = Reference(sent.name, sent.value.type)
    both = bind("keys", zip_placed(pack((keys, reference)), CLIENTS))
    zipped = Reference(both.name, both.value.type)
    selection: Node = _selection(zipped.type, function, names, select.name)
    if not free_names(selection):
        # As one section it runs where sequence operators are not known.
        selection = extract_local_processing(selection)
    return [sent, both, dataclasses.replace(select, value=apply(selection, zipped))]


def _selection(zipped: Type, select: Node, names: Names, stem: str) -> Lambda:
    """Return the function of `<keys,value>` that gives the sequence of what is selected."""
    assert isinstance(zipped, FederatedType)
    pair = zipped.member
    assert isinstance(pair, StructType)
    keys_type = pair.types[0]
    assert isinstance(keys_type, TensorType)
    assert isinstance(select.type, FunctionType)
    outer, inner = names.fresh(f"{stem}_arg"), names.fresh(f"{stem}_key")
    argument = Reference(outer, pair)
    key = Reference(inner, TensorType(keys_type.element_type))
    element = Lambda(inner, key.type, Call(select, pack((Selection(argument, 1), key))))
    slices = Call(slices_of(keys_type), Selection(argument, 0))
    mapped = SequenceType(select.type.result)
    map_type = FunctionType(StructType([element.type, slices.type]), mapped)
    body = Call(Intrinsic("sequence_map", map_type), pack((element, slices)))
    return Lambda(outer, pair, body)


@functools.lru_cache(maxsize=64)
def slices_of(keys: TensorType) -> Compiled:
    """Return the section `(int32[n] -> int32*)` that lists the elements of a vector."""
    builder = GraphBuilder()
    sequence = sequence_of_slices(builder, builder.parameter(keys))
    return builder.finish(sequence, SequenceType(TensorType(keys.element_type)))
