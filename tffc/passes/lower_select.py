"""`federated_select` in terms of what every form can do.

Each client names slices of a server value by its keys and is given the selected ones.  No form has
a channel on which clients ask the server for something, so the whole value is broadcast and each
client selects for itself: what it computes is the same, what it receives is more, and the server
learns less.
"""

from __future__ import annotations

import dataclasses
import functools

from tffc.language.alpha import Names
from tffc.language.calls import apply, expand_calls, federated_broadcast, operands, pack, zip_placed
from tffc.language.invariants import SELECTS, check_no_select
from tffc.language.nodes import (
    Binding,
    Call,
    Compiled,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
)
from tffc.language.scope import free_names
from tffc.language.type_parts import local_type
from tffc.language.types import CLIENTS, FunctionType, SequenceType, StructType, TensorType, Type
from tffc.linking.builder import GraphBuilder
from tffc.linking.sequences import sequence_of_slices
from tffc.passes.call_dominant import call_dominant
from tffc.passes.local_processing import extract_local_processing


def lower_select(root: Node) -> Node:
    """Replace every selection of server slices with a broadcast and a local selection.

    The program must be in call-dominant form, and stays in it.

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

    made: list[Binding] = []

    def bind(stem: str, value: Node) -> Reference:
        name = names.fresh(f"{select.name}_{stem}")
        made.append(dataclasses.replace(select, name=name, value=value))
        return Reference(name, value.type)

    sent = bind("value", federated_broadcast(server_value))
    both = bind("keys", zip_placed(pack((keys, sent)), CLIENTS))
    selection: Node = _selection(local_type(both.type), function, names, select.name)
    if not free_names(selection):
        # One section runs also where sequence operators are not known.
        selection = extract_local_processing(selection)
    return [*made, dataclasses.replace(select, value=apply(selection, both))]


def _selection(pair: Type, select: Node, names: Names, stem: str) -> Lambda:
    """Return the function of `<keys,value>` that gives the sequence of what is selected."""
    argument = Reference(names.fresh(f"{stem}_arg"), pair)
    keys, value = Selection(argument, 0), Selection(argument, 1)
    assert isinstance(keys.type, TensorType)
    assert isinstance(select.type, FunctionType)
    key = Reference(names.fresh(f"{stem}_key"), TensorType(keys.type.element_type))
    element = Lambda(key.name, key.type, Call(select, pack((value, key))))
    slices = Call(slices_of(keys.type), keys)
    mapped = SequenceType(select.type.result)
    map_type = FunctionType(StructType([element.type, slices.type]), mapped)
    body = Call(Intrinsic("sequence_map", map_type), pack((element, slices)))
    return Lambda(argument.name, pair, body)


@functools.lru_cache(maxsize=64)
def slices_of(keys: TensorType) -> Compiled:
    """Return the section `(int32[n] -> int32*)` that lists the elements of a vector."""
    builder = GraphBuilder()
    sequence = sequence_of_slices(builder, builder.parameter(keys))
    return builder.finish(sequence, SequenceType(TensorType(keys.element_type)))
