"""Forgets that values are equal at all clients."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from tffc.language.calls import is_call_of
from tffc.language.nodes import Binding, Block, Compiled, Intrinsic, Lambda, Node, Reference
from tffc.language.traverse import contains, rewrite, walk
from tffc.language.type_parts import is_all_equal, not_all_equal
from tffc.language.types import FunctionType, Type
from tffc.linking.inspect import is_pure

EQUAL_MAPS = frozenset({"federated_map_all_equal"})


def normalize_all_equal(root: Node) -> Node:
    """Replace functions applied to all-equal values with maps over the clients.

    The types then say that the results may differ between clients.  Broadcasts and constants keep
    their all-equal types.

    A program does not change if its own type has an all-equal value at the clients or a function
    as a parameter, or if it applies a function that would give each client a different value, such
    as a random number.

        federated_map_all_equal(<f,v>)   becomes   federated_map(<f,v>)
    """
    program = root if isinstance(root, Lambda) else None
    body = root if program is None else program.result
    if not isinstance(body, Block) or _must_stay(root, body.locals):
        return root
    types: dict[str, Type] = {}

    def rule(node: Node) -> Node | None:
        if isinstance(node, Reference) and node.name in types:
            return Reference(node.name, types[node.name], node.context)
        return _normalized(node) if isinstance(node, Intrinsic) else None

    bindings: list[Binding] = []
    for binding in body.locals:
        value = rewrite(binding.value, rule)
        types[binding.name] = value.type
        bindings.append(Binding(binding.name, value, binding.span))
    made = Block(tuple(bindings), rewrite(body.result, rule))
    return made if program is None else dataclasses.replace(program, result=made)


def _must_stay(root: Node, bindings: Iterable[Binding]) -> bool:
    result = root.type
    if isinstance(result, FunctionType):
        if result.parameter is not None and contains(result.parameter, FunctionType):
            return True
        result = result.result
    if any(map(is_all_equal, walk(result))):
        return True
    maps = (binding.value for binding in bindings if is_call_of(binding.value, EQUAL_MAPS))
    sections = (node for call in maps for node in walk(call) if isinstance(node, Compiled))
    return not all(map(is_pure, sections))


def _normalized(operator: Intrinsic) -> Intrinsic:
    """Return the operator at a type that takes values which need not be equal."""
    found = operator.type
    if not isinstance(found, FunctionType):
        return operator
    if operator.uri in EQUAL_MAPS:
        return Intrinsic("federated_map", not_all_equal(found))
    parameter = None if found.parameter is None else not_all_equal(found.parameter)
    return Intrinsic(operator.uri, FunctionType(parameter, found.result))
