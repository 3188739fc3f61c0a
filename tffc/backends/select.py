"""`federated_select` in terms of what every form can do.

Each client names slices of a server value by its keys and is given the selected ones.  No form has
a channel on which clients ask the server for something, so the whole value is broadcast and each
client selects for itself: what it computes is the same, what it receives is more, and the server
learns less.
"""

from __future__ import annotations

import dataclasses
import functools

from tffc.backends.local_processing import extract_local_processing
from tffc.graphs.builder import GraphBuilder
from tffc.graphs.slices import sequence_of_slices
from tffc.ir.calls import apply, broadcast, zip_placed
from tffc.ir.nodes import (
    Binding,
    Block,
    Call,
    Compiled,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    Struct,
)
from tffc.ir.scope import free_names
from tffc.ir.traverse import walk
from tffc.ir.types import (
    CLIENTS,
    FederatedType,
    FunctionType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)

SELECTS = frozenset({"federated_select", "federated_secure_select"})


def lower_select(program: Node) -> Node:
    """Replace every selection of server slices by a broadcast and a local selection.

    The program has to be in call-dominant form.

        s=federated_select(<keys,bound,value,f>)   becomes
        s_value=federated_broadcast(value), s_keys=federated_zip_at_clients(<keys,s_value>),
        s=federated_map(<...,s_keys>)
    """
    root = program.result if isinstance(program, Lambda) else program
    if not isinstance(root, Block) or not any(_is_select(b.value) for b in root.locals):
        return program
    taken = _names(program)
    bindings: list[Binding] = []
    for binding in root.locals:
        if _is_select(binding.value):
            bindings += _lowered(binding, taken)
        else:
            bindings.append(binding)
    body = Block(tuple(bindings), root.result)
    if not isinstance(program, Lambda):
        return body
    return Lambda(program.parameter_name, program.parameter_type, body)


def _is_select(node: Node) -> bool:
    return (
        isinstance(node, Call)
        and isinstance(node.function, Intrinsic)
        and node.function.uri in SELECTS
    )


def _lowered(binding: Binding, taken: set[str]) -> list[Binding]:
    assert isinstance(binding.value, Call)
    argument = binding.value.argument
    assert isinstance(argument, Struct)
    keys, _, server_value, select = argument.values

    def bind(stem: str, value: Node) -> Binding:
        return dataclasses.replace(
            binding, name=_fresh(f"{binding.name}_{stem}", taken), value=value
        )

    sent = bind("value", broadcast(server_value))
    reference = Reference(sent.name, sent.value.type)
    both = bind("keys", zip_placed(Struct((keys, reference)), CLIENTS))
    zipped = Reference(both.name, both.value.type)
    function: Node = _selection(zipped.type, select, taken, binding.name)
    if not free_names(function):
        # As one section it runs where sequence operators are not known.
        function = extract_local_processing(function)
    return [sent, both, dataclasses.replace(binding, value=apply(function, zipped))]


def _selection(zipped: Type, select: Node, taken: set[str], stem: str) -> Lambda:
    """The function of `<keys,value>` that gives the sequence of what is selected."""
    assert isinstance(zipped, FederatedType)
    pair = zipped.member
    assert isinstance(pair, StructType)
    keys_type = pair.types[0]
    assert isinstance(keys_type, TensorType)
    assert isinstance(select.type, FunctionType)
    outer, inner, listed = (_fresh(f"{stem}_{n}", taken) for n in ("arg", "key", "slices"))
    argument = Reference(outer, pair)
    slices = Call(slices_of(keys_type), Selection(argument, 0))
    key = Reference(inner, TensorType(keys_type.dtype))
    one = _fresh(f"{stem}_one", taken)
    selected = Call(select, Struct((Selection(argument, 1), key)))
    element = Lambda(
        inner, key.type, Block((Binding(one, selected),), Reference(one, selected.type))
    )
    result = SequenceType(select.type.result)
    type_ = FunctionType(StructType([element.type, slices.type]), result)
    mapped_name = _fresh(f"{stem}_selected", taken)
    mapped = Call(
        Intrinsic("sequence_map", type_), Struct((element, Reference(listed, slices.type)))
    )
    bindings = (Binding(listed, slices), Binding(mapped_name, mapped))
    return Lambda(outer, pair, Block(bindings, Reference(mapped_name, result)))


@functools.lru_cache(maxsize=64)
def slices_of(keys: TensorType) -> Compiled:
    """The section `(int32[n] -> int32*)` that lists the elements of a vector."""
    builder = GraphBuilder()
    sequence = sequence_of_slices(builder, builder.parameter(keys))
    return builder.finish(sequence, SequenceType(TensorType(keys.dtype)))


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _names(program: Node) -> set[str]:
    names: set[str] = set()
    for node in walk(program):
        if isinstance(node, Block):
            names.update(binding.name for binding in node.locals)
        elif isinstance(node, Lambda) and node.parameter_name is not None:
            names.add(node.parameter_name)
        elif isinstance(node, Reference):
            names.add(node.name)
    return names
