"""Checks that a program is sound, and the named invariants that passes rely on.

Types of operands are checked when nodes are made.  What is left is scope: every reference has to
be bound, at the type it is used at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tffc.errors import VerificationError
from tffc.ir.nodes import Block, Call, Lambda, Node, Selection, Struct
from tffc.ir.scope import Free, free_in, free_references
from tffc.ir.traverse import postorder, walk
from tffc.ir.types import Type

CLOSED = "closed"
UNIQUE_NAMES = "unique-names"
CALL_DOMINANT = "call-dominant"


def verify(root: Node, invariants: Iterable[str] = (CLOSED,)) -> None:
    """Checks scope and types of references, then the invariants by name.

    Raises:
      VerificationError: something does not hold; the message shows the binder or the term.
    """
    _check_references(root)
    for invariant in invariants:
        INVARIANTS[invariant](root)


def _check_references(root: Node) -> None:
    known: dict[int, Free] = {}
    for node in postorder(root):
        known[id(node)] = free_in(node, known)
        match node:
            case Lambda(parameter_name=str(name), parameter_type=Type() as bound):
                uses = {used for other, used in known[id(node.result)] if other == name}
                _check_uses(name, bound, uses)
            case Block():
                _check_block(node, known)


def _check_block(node: Block, known: dict[int, Free]) -> None:
    later: dict[str, set[Type]] = {}
    for value, binding in zip(
        (node.result, *(b.value for b in reversed(node.locals))),
        (*reversed(node.locals), None),
        strict=True,
    ):
        for name, used in known[id(value)]:
            later.setdefault(name, set()).add(used)
        if binding is not None:
            _check_uses(binding.name, binding.value.type, later.pop(binding.name, set()))


def _check_uses(name: str, bound: Type, uses: Iterable[Type]) -> None:
    for used in uses:
        if used != bound and not used.is_equivalent_to(bound):
            raise VerificationError(
                "E140", f"`{name}` is bound to a value of type `{bound}` but used as `{used}`"
            )


def _check_closed(root: Node) -> None:
    free = sorted(free_references(root), key=lambda use: (use[0], str(use[1])))
    if free:
        name, used = free[0]
        raise VerificationError(
            "E141",
            f"the name `{name}` of type `{used}` is used but not bound",
            help="a computation has to receive every value it uses as its argument",
        )


def _check_unique_names(root: Node) -> None:
    """Names are counted a binder, so a node that stands in two places binds twice."""
    bound: set[str] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        names = [b.name for b in node.locals] if isinstance(node, Block) else []
        if isinstance(node, Lambda) and node.parameter_name is not None:
            names.append(node.parameter_name)
        for name in names:
            if name in bound:
                raise VerificationError("E142", f"the name `{name}` is bound twice")
            bound.add(name)
        stack.extend(node.children())


def _check_call_dominant(root: Node) -> None:
    _check_unique_names(root)
    body = root.result if isinstance(root, Lambda) else root
    for block in (node for node in walk(body) if isinstance(node, Block)):
        for binding in block.locals:
            if not isinstance(binding.value, Call):
                raise VerificationError(
                    "E143", f"`{binding.name}` is bound to a {type(binding.value).__name__}"
                )
    for node in walk(root):
        if isinstance(node, Call) and isinstance(node.function, Lambda):
            raise VerificationError("E144", "a lambda is called where it stands")
        if isinstance(node, Selection) and isinstance(node.source, Struct):
            raise VerificationError("E145", f"`{node}` selects from a struct that stands there")


INVARIANTS: dict[str, Callable[[Node], None]] = {
    CLOSED: _check_closed,
    UNIQUE_NAMES: _check_unique_names,
    CALL_DOMINANT: _check_call_dominant,
}
"""The invariants by name, each with its check."""
