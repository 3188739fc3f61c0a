"""The invariants that passes require and ensure, by name, and how each is checked.

    closed                every name that is used is bound
    unique-names          no name is bound twice
    call-dominant         blocks bind calls only, and nothing stands in the way of a call
    no-containers         no type names a Python container
    no-identity-maps      no operator maps the identity
    no-means              the means are written as sums and quotients
    no-select             clients select for themselves
    no-unused-bindings    every binding of a block is needed by its result

A check gives the first violation that it finds, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tffc.language.alpha import binders
from tffc.language.intrinsics import MAPS
from tffc.language.nodes import (
    Block,
    Call,
    Compiled,
    Data,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
    kind_of,
)
from tffc.language.notation.excerpt import TermPlace, place_of, place_of_use
from tffc.language.scope import bound_names, free_references
from tffc.language.traverse import postorder, walk
from tffc.language.types import Type
from tffc.support.errors import VerificationError
from tffc.support.printable import printable

CLOSED = "closed"
UNIQUE_NAMES = "unique-names"
CALL_DOMINANT = "call-dominant"
NO_CONTAINERS = "no-containers"
NO_IDENTITY_MAPS = "no-identity-maps"
NO_MEANS = "no-means"
NO_SELECT = "no-select"
NO_UNUSED_BINDINGS = "no-unused-bindings"

MEANS = frozenset({"federated_mean", "federated_weighted_mean"})
SELECTS = frozenset({"federated_select", "federated_secure_select"})


class Violation(NamedTuple):
    """A violation and its place; `invariant` is the name of the invariant, if it has one."""

    code: str
    message: str
    place: TermPlace
    help: str | None = None
    invariant: str | None = None

    def error(self) -> VerificationError:
        """Return the refusal, which shows the place in the program and in the user's source."""
        note = self.place.note()
        notes = () if note is None else (note,)
        return VerificationError(
            self.code, self.message, notes=notes, help=self.help, span=self.place.span
        )


Check = Callable[[Node], Violation | None]


def check_closed(root: Node) -> Violation | None:
    """Tell whether every name is bound."""
    free = sorted(free_references(root), key=lambda use: (use[0], str(use[1])))
    if not free:
        return None
    name, used = free[0]
    return Violation(
        "E141",
        f"the name `{printable(name)}` of type `{used}` is used but not bound",
        place_of_use(root, name, lambda type, bound: bound is None and type == used),
        help="a computation has to receive every value it uses as its argument",
    )


def check_unique_names(root: Node) -> Violation | None:
    """Tell whether no name is bound twice.  A node that stands in two places binds twice."""
    binding: set[int] = set()
    for node in postorder(root):
        if binders(node) or not binding.isdisjoint(map(id, node.children())):
            binding.add(id(node))
    bound: set[str] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) not in binding:
            continue
        for name in binders(node):
            if name in bound:
                message = f"the name `{printable(name)}` is bound twice"
                return Violation("E142", message, place_of(root, node))
            bound.add(name)
        stack.extend(reversed(node.children()))
    return None


def check_call_dominant(root: Node) -> Violation | None:
    """Tell whether names are unique, blocks bind all calls and nothing else, and nothing can be
    reduced."""
    violation = check_unique_names(root)
    if violation is not None:
        return violation
    if _is_reduced(root):
        return _unbound_call(root, root)
    for node in walk(root):
        for binding in node.locals if isinstance(node, Block) else ():
            if not isinstance(binding.value, Call):
                message = f"`{printable(binding.name)}` is bound to {kind_of(binding.value)}"
                return Violation("E142", message, place_of(root, binding.value))
        if isinstance(node, Call) and isinstance(node.function, Lambda):
            return Violation("E142", "a lambda is called where it stands", place_of(root, node))
        if isinstance(node, Selection) and isinstance(node.source, StructNode):
            message = "an element is selected from a struct that stands there"
            return Violation("E142", message, place_of(root, node))
        for child in (node.result,) if isinstance(node, Block) else node.children():
            if _is_reduced(child):
                return _unbound_call(root, child)
    return None


def _is_reduced(node: Node) -> bool:
    return isinstance(node, Call) and not isinstance(node.function, Lambda)


def _unbound_call(root: Node, call: Node) -> Violation:
    return Violation("E142", "a call is not the value of a binding", place_of(root, call))


def check_no_containers(root: Node) -> Violation | None:
    """Tell whether every struct type is without a Python container."""
    node = next(filter(_has_own_container, walk(root)), None)
    if node is None:
        return None
    message = f"{kind_of(node)} names a Python container in its type"
    return Violation("E142", message, place_of(root, node))


def _has_own_container(node: Node) -> bool:
    """Tell whether a type has a Python container and does not follow from the node's operands."""
    match node:
        case Lambda(parameter_type=Type() as parameter):
            return parameter.has_container
        case StructNode(container=type()) | Reference() | Intrinsic() | Compiled() | Data():
            return node.type.has_container
        case _:
            return False


def check_no_identity_maps(root: Node) -> Violation | None:
    """Tell whether no operator maps the identity, except to change a type."""
    node = next(filter(is_identity_map, walk(root)), None)
    if node is None:
        return None
    return Violation("E142", "an operator maps the identity", place_of(root, node))


def is_identity_map(node: Node) -> bool:
    """Tell whether a node is a map of the identity that keeps the type of the value."""
    match node:
        case Call(Intrinsic(uri), StructNode((Lambda() as function, value))):
            is_map = uri in (*MAPS, "sequence_map")
            return is_map and is_identity(function) and value.type == node.type
        case _:
            return False


def is_identity(node: Lambda) -> bool:
    """Tell whether a lambda returns its parameter as it is."""
    result: Node = node.result
    while isinstance(result, Block) and not result.locals:
        result = result.result
    return isinstance(result, Reference) and result.name == node.parameter_name


def check_no_unused_bindings(root: Node) -> Violation | None:
    """Tell whether every binding is needed by the result of its block."""
    for bound in bound_names(root):
        if isinstance(bound.binder, Block) and bound.local is not None and not bound.uses:
            value = bound.binder.locals[bound.local].value
            message = f"nothing uses `{printable(bound.name)}`"
            return Violation("E142", message, place_of(root, value))
    return None


def check_no_means(root: Node) -> Violation | None:
    """Tell whether no operator computes a mean."""
    return _find_operator(root, MEANS, "E142", "computes a mean", "desugar-means")


def check_no_select(root: Node) -> Violation | None:
    """Tell whether no operator selects slices at the server."""
    return _find_operator(root, SELECTS, "E142", "selects slices of a server value", "lower-select")


def _find_operator(
    root: Node, uris: frozenset[str], code: str, what: str, remedy: str
) -> Violation | None:
    for node in walk(root):
        if isinstance(node, Intrinsic) and node.uri in uris:
            message = f"the operator {node.uri} {what}"
            help = f"the pass {remedy} writes it in terms of other operators"
            return Violation(code, message, place_of(root, node), help)
    return None


INVARIANTS: dict[str, Check] = {
    CLOSED: check_closed,
    UNIQUE_NAMES: check_unique_names,
    CALL_DOMINANT: check_call_dominant,
    NO_CONTAINERS: check_no_containers,
    NO_IDENTITY_MAPS: check_no_identity_maps,
    NO_MEANS: check_no_means,
    NO_SELECT: check_no_select,
    NO_UNUSED_BINDINGS: check_no_unused_bindings,
}
"""The checks by the names of the invariants."""
