"""Merges calls that always give the same."""

from __future__ import annotations

from typing import cast

from tffc.language.alpha import canonical
from tffc.language.intrinsics import definition_of
from tffc.language.nodes import (
    Binding,
    Block,
    Call,
    Compiled,
    Data,
    Intrinsic,
    Lambda,
    Node,
    Reference,
)
from tffc.language.traverse import rewrite, walk
from tffc.linking.inspect import is_pure


def share_equal_calls(root: Node) -> Node:
    """Bind equal calls of a block only once.

    Two calls are equal if they are the same up to the names bound inside them.  Only pure calls are
    merged: two draws of a random section stay two draws.  The first call stays where it is.

        (let a=f(x),b=f(x) in <a,b>)   becomes   (let a=f(x) in <a,a>)
    """
    return rewrite(root, lambda node: _shared(node) if isinstance(node, Block) else None)


def _shared(block: Block) -> Block | None:
    first: dict[Node, Reference] = {}
    instead: dict[str, Reference] = {}

    def renamed(node: Node) -> Node:
        if not instead:
            return node
        return rewrite(
            node, lambda inner: instead.get(inner.name) if isinstance(inner, Reference) else None
        )

    bindings: list[Binding] = []
    for binding in block.locals:
        value = renamed(binding.value)
        reference = Reference(binding.name, value.type)
        known = first.setdefault(canonical(value), reference) if _is_pure(value) else reference
        if known is reference:
            bindings.append(Binding(binding.name, value, binding.span))
        else:
            instead[binding.name] = known
    return Block(tuple(bindings), renamed(block.result)) if instead else None


def _is_pure(call: Node) -> bool:
    """Tell whether a call does nothing but compute its result, which its operands alone decide."""
    if not isinstance(call, Call) or not isinstance(call.function, Compiled | Intrinsic):
        return False
    for node in walk(cast("Node", call)):
        match node:
            case Compiled() if not is_pure(node):
                return False
            case Intrinsic() if definition_of(node.uri) is None:
                return False
            case Data():
                return False
            case Call(function) if not isinstance(function, Compiled | Intrinsic | Lambda):
                return False
            case _:
                pass
    return True
