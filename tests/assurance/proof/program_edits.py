"""Single edits of components that are programs, as in a DistributeAggregateForm."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

from tffc.language.nodes import (
    Binding,
    Block,
    Call,
    Intrinsic,
    Literal,
    Node,
    Reference,
    Selection,
    StructNode,
)
from tffc.language.traverse import rewrite, walk
from tffc.support.errors import TffcError

OPERATORS = (
    ("federated_sum", "federated_max", "federated_min", "federated_mean"),
    ("federated_map", "federated_map_all_equal"),
    ("federated_secure_sum", "federated_secure_sum_bitwidth", "federated_secure_modular_sum"),
    ("federated_value_at_clients", "federated_value_at_server"),
    ("federated_eval_at_clients", "federated_eval_at_server"),
    ("federated_select", "federated_secure_select"),
    ("sequence_sum", "generic_zero"),
    ("generic_plus", "generic_multiply", "generic_divide"),
)
"""Operators of which one can stand where another of its row does, if the types fit."""

Replacement = tuple[Node, Node]
"""A node of a component, and what takes its place."""


def other_operator(component: Node, choose: random.Random) -> Replacement | None:
    """An operator is replaced."""
    rows = {uri: row for row in OPERATORS for uri in row}
    found = [node for node in walk(component) if isinstance(node, Intrinsic) and node.uri in rows]
    if not found:
        return None
    node = choose.choice(found)
    uri = choose.choice([each for each in rows[node.uri] if each != node.uri])
    return node, dataclasses.replace(node, uri=uri)


def other_selection(component: Node, choose: random.Random) -> Replacement | None:
    """Another element of the same type is selected."""
    found = [node for node in walk(component) if isinstance(node, Selection)]
    if not found:
        return None
    node = choose.choice(found)
    kinds = getattr(node.source.type, "types", ())
    others = [i for i, kind in enumerate(kinds) if kind == node.type and i != node.index]
    return (node, Selection(node.source, choose.choice(others))) if others else None


def other_element(component: Node, choose: random.Random) -> Replacement | None:
    """An element of a struct is replaced by another of the same type."""
    found = [node for node in walk(component) if isinstance(node, StructNode) and len(node.values)]
    if not found:
        return None
    node = choose.choice(found)
    values = list(node.values)
    place = choose.randrange(len(values))
    others = [i for i, v in enumerate(values) if v.type == values[place].type and i != place]
    if not others:
        return None
    other = choose.choice(others)
    if choose.random() < 0.5:
        values[other] = node.values[place]
    values[place] = node.values[other]
    return node, StructNode(tuple(values), node.names, node.container)


def other_reference(component: Node, choose: random.Random) -> Replacement | None:
    """A name is replaced by another of its type."""
    found = [node for node in walk(component) if isinstance(node, Reference)]
    if not found:
        return None
    node = choose.choice(found)
    others = [each for each in found if each.type == node.type and each.name != node.name]
    return (node, choose.choice(others)) if others else None


def other_function(component: Node, choose: random.Random) -> Replacement | None:
    """A function is replaced by another of its type."""
    found = [node for node in walk(component) if hasattr(node.type, "result")]
    node = choose.choice(found)
    others = [each for each in found if each.type == node.type and each != node]
    return (node, choose.choice(others)) if others else None


def other_literal(component: Node, choose: random.Random) -> Replacement | None:
    """One bit of a literal is flipped."""
    found = [
        node
        for node in walk(component)
        if isinstance(node, Literal) and isinstance(node.array.content, bytes)
    ]
    if not found:
        return None
    node = choose.choice(found)
    assert isinstance(node.array.content, bytes)
    content = bytearray(node.array.content)
    if not content:
        return None
    place = choose.randrange(8 * len(content))
    content[place // 8] ^= 1 << place % 8
    value = dataclasses.replace(node.value, content=bytes(content))
    return node, Literal(value, node.type)


def done_again(component: Node, choose: random.Random) -> Replacement | None:
    """One use of a binding computes it again, which changes nothing unless it draws."""
    bindings = _bindings(component)
    used = [
        node for node in walk(component) if isinstance(node, Reference) and node.name in bindings
    ]
    if not used:
        return None
    node = choose.choice(used)
    value = bindings[node.name].value
    return (node, value) if isinstance(value, Call) else None


def swapped_bindings(component: Node, choose: random.Random) -> Replacement | None:
    """Two bindings of one type exchange their values."""
    blocks = [node for node in walk(component) if isinstance(node, Block)]
    if not blocks:
        return None
    block = choose.choice(blocks)
    if len(block.locals) < 2:
        return None
    first, second = sorted(choose.sample(range(len(block.locals)), 2))
    made = list(block.locals)
    one, other = made[first], made[second]
    if one.value.type != other.value.type:
        return None
    made[first] = Binding(one.name, other.value)
    made[second] = Binding(other.name, one.value)
    return block, Block(tuple(made), block.result)


def _bindings(component: Node) -> dict[str, Binding]:
    return {
        each.name: each
        for node in walk(component)
        if isinstance(node, Block)
        for each in node.locals
    }


ProgramEdit = Callable[[Node, random.Random], "Replacement | None"]

PROGRAM_EDITS: tuple[ProgramEdit, ...] = (
    other_operator,
    other_selection,
    other_element,
    other_reference,
    other_function,
    other_literal,
    done_again,
    swapped_bindings,
)


def edited_program(component: Node, edit: ProgramEdit, choose: random.Random) -> Node | None:
    """The component after an edit; None if it cannot be made, or would have another type."""
    try:
        found = edit(component, choose)
        if found is None:
            return None
        old, new = found
        if new.type != old.type:
            return None
        made = rewrite(component, lambda node: new if node == old else None)
    except TffcError:
        return None
    return made if made != component and made.type == component.type else None
