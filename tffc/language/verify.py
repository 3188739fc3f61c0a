"""The verifier: checks what the constructors of nodes cannot see.

Types of operands are checked when nodes are made.  The rest is checked here: scope (every reference
is bound, at the type of its uses), placement (code that runs at one place holds no values of
another), and the invariants that passes rely on, by name.
"""

from __future__ import annotations

from collections.abc import Iterable

from tffc.language.intrinsics import definition_of
from tffc.language.invariants import CLOSED, INVARIANTS, Violation
from tffc.language.nodes import Call, Intrinsic, Lambda, Node, Reference, Selection, StructNode
from tffc.language.notation.excerpt import place_of, place_of_use
from tffc.language.scope import Uses, bound_names
from tffc.language.traverse import postorder, walk
from tffc.language.type_parts import distinct_leaves, local_type
from tffc.language.types import CLIENTS, SERVER, FederatedType, FunctionType, Placement, Type

ZIPS = {"federated_zip_at_clients": CLIENTS, "federated_zip_at_server": SERVER}


def verify(root: Node, invariants: Iterable[str] = (CLOSED,)) -> None:
    """Check scope, types of references and placements, then the invariants by name.

    Raises:
      VerificationError: something does not hold; the error shows the enclosing binding and marks
        the term.
    """
    violation = first_violation(root, invariants)
    if violation is not None:
        raise violation.error()


def first_violation(root: Node, invariants: Iterable[str] = (CLOSED,)) -> Violation | None:
    """Return what `verify` would refuse, or None."""
    free: Uses = {}
    violation = _check_references(root, free) or _check_placements(root)
    if violation is not None:
        return violation
    for name in invariants:
        violation = None if name == CLOSED and not free else INVARIANTS[name](root)
        if violation is not None:
            return violation._replace(invariant=name)
    return None


def holding(root: Node) -> tuple[str, ...]:
    """Return the invariants that hold for a program, by name."""
    return tuple(name for name, check in INVARIANTS.items() if check(root) is None)


def _check_references(root: Node, free: Uses) -> Violation | None:
    """Check that references have the types of their bindings; `free` gets those without a
    binding."""
    for bound in bound_names(root, free):
        misfits = [used for used in bound.uses if _is_misfit(used, bound.type)]
        if misfits:
            used = min(misfits, key=str)
            message = (
                f"`{bound.name}` is bound to a value of type `{bound.type}` but used as `{used}`"
            )
            return Violation("E140", message, place_of_use(root, bound.name, _is_misfit))
    return None


def _is_misfit(used: Type, bound: Type | None) -> bool:
    return bound is not None and used != bound and not used.is_equivalent_to(bound)


def _check_placements(root: Node) -> Violation | None:
    """Check that zips take values of their place, and functions given to operators hold none."""
    plain: set[int] = set()
    uses = _PlacedUses()
    right_zips: set[int] = set()
    for node in postorder(root):
        if not isinstance(node, Call) or not isinstance(node.function, Intrinsic):
            continue
        if definition_of(node.function.uri) is None:
            continue
        if node.function.uri in ZIPS and id(node.function) not in right_zips:
            reason = _wrong_zip(node.function, ZIPS[node.function.uri])
            if reason is not None:
                return Violation("E135", reason, place_of(root, node.function))
            right_zips.add(id(node.function))
        for operand in _operands(node):
            if isinstance(operand, Lambda):
                placed = _find_placed(operand, uses, plain)
                if placed is not None:
                    return _placed_inside(root, node.function.uri, placed)
    return None


def _find_placed(root: Node, uses: _PlacedUses, plain: set[int]) -> Node | None:
    """Return a term of `root` that holds a placed value, or None.

    Of a selection from a name, only the selected element counts.  `plain` has the ids of nodes
    known to hold no placed value, and gets more.
    """
    return next((node for node in walk(root, uses, plain) if node.type.has_placement), None)


class _PlacedUses:
    """What nodes use: the children of a node, but of a selection what it begins with, unless that
    is a name."""

    def __init__(self) -> None:
        self._begins: dict[int, Node] = {}

    def __call__(self, node: Node) -> tuple[Node, ...]:
        source = node
        passed: list[Node] = []
        while isinstance(source, Selection) and id(source) not in self._begins:
            passed.append(source)
            source = source.source
        begin = self._begins.get(id(source), source)
        self._begins.update((id(node), begin) for node in passed)
        if begin is node:
            return node.children()
        return () if isinstance(begin, Reference) else (begin,)


def _operands(call: Call) -> tuple[Node, ...]:
    if isinstance(call.argument, StructNode):
        return call.argument.values
    return () if call.argument is None else (call.argument,)


def _wrong_zip(zip_: Intrinsic, placement: Placement) -> str | None:
    assert isinstance(zip_.type, FunctionType)
    assert zip_.type.parameter is not None
    for leaf in distinct_leaves(zip_.type.parameter):
        if not isinstance(leaf, FederatedType) or leaf.placement is not placement:
            return f"{zip_.uri} takes values placed at {placement}, found one of type `{leaf}`"
    member = local_type(zip_.type.parameter)
    result = zip_.type.result
    if isinstance(result, FederatedType) and result.member.is_equivalent_to(member):
        return None
    return f"{zip_.uri} of `{zip_.type.parameter}` gives `{member}`, not `{result}`"


def _placed_inside(root: Node, uri: str, term: Node) -> Violation:
    return Violation(
        "E148",
        f"a function given to {uri} holds a placed value, of type `{term.type}`",
        place_of(root, term),
        help="such a function runs on plain values; give it the value as an operand, zipped",
    )
