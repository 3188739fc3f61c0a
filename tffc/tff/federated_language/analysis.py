"""Questions about the building blocks of a computation, and checks of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeAlias

from tffc.frontend.computation import Computation
from tffc.frontend.hints import described
from tffc.language.nodes import Block, Call, Intrinsic, Lambda, Node, Reference
from tffc.language.scope import free_names
from tffc.language.size import written_size
from tffc.language.traverse import contains as contains_kind
from tffc.language.traverse import postorder, walk
from tffc.language.types import FederatedType, Placement, TensorType
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.trampoline import Task, run
from tffc.tff.building_blocks import checked
from tffc.tff.intrinsic_defs import (
    AggregationKind,
    get_broadcast_intrinsics,
    uri_to_intrinsic_def,
)

Uris: TypeAlias = str | Collection[str] | None
"""One operator, some, or any."""

Predicate: TypeAlias = Callable[[Node], Any]

REDUCIBLE = frozenset(
    {
        "federated_aggregate",
        "federated_apply",
        "federated_broadcast",
        "federated_eval_at_clients",
        "federated_eval_at_server",
        "federated_map",
        "federated_map_all_equal",
        "federated_secure_modular_sum",
        "federated_secure_sum",
        "federated_secure_sum_bitwidth",
        "federated_value_at_clients",
        "federated_value_at_server",
        "federated_zip_at_clients",
        "federated_zip_at_server",
    }
)
"""The operators that are a broadcast, an aggregation or local work, without being rewritten."""


def is_called_intrinsic(comp: Node, uri: Uris = None) -> bool:
    """Return whether a node calls an operator, of the given ones if any are given."""
    if not isinstance(comp, Call) or not isinstance(comp.function, Intrinsic):
        return False
    uris = (uri,) if isinstance(uri, str) else uri
    return uris is None or comp.function.uri in uris


def is_identity_function(comp: Node) -> bool:
    """Return whether a node is a function that returns its parameter."""
    return (
        isinstance(comp, Lambda)
        and isinstance(comp.result, Reference)
        and comp.result.name == comp.parameter_name
    )


def aggregation_kind(comp: Node) -> AggregationKind | None:
    """Return the kind of aggregation that a node calls; None if it calls none, or moves no
    tensors."""
    if not isinstance(comp, Call) or not isinstance(comp.function, Intrinsic):
        return None
    definition = uri_to_intrinsic_def(comp.function.uri)
    if definition is None or not contains_kind(comp.type, TensorType):
        return None
    return definition.aggregation_kind


def is_called_aggregation(building_block: Node, kind: AggregationKind) -> bool:
    """Return whether a node calls an aggregation of a kind."""
    return aggregation_kind(building_block) is kind


@entry_point
def visit_preorder(tree: Node, function: Callable[[Node], Any]) -> None:
    """Call a function with every node of a program, outer ones first."""
    for node in _occurrences(checked(tree)):
        function(node)


@entry_point
def visit_postorder(tree: Node, function: Callable[[Node], Any]) -> None:
    """Call a function with every node of a program, inner ones first."""
    backwards = _occurrences(checked(tree), lambda node: node.children())
    for node in reversed(list(backwards)):
        function(node)


def _occurrences(
    tree: Node,
    inside: Callable[[Node], Iterable[Node]] = lambda node: reversed(node.children()),
) -> Iterator[Node]:
    """Yield every node of a program, as often as it occurs, outer ones first."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += inside(node)


@entry_point
def contains(tree: Node, predicate: Predicate) -> bool:
    """Return whether the predicate holds for a node of a program."""
    return any(map(predicate, walk(checked(tree))))


@entry_point
def contains_only(tree: Node, predicate: Predicate) -> bool:
    """Return whether the predicate holds for every node of a program."""
    return all(map(predicate, walk(checked(tree))))


@entry_point
def count(tree: Node, predicate: Predicate | None = None) -> int:
    """Return for how many nodes of a program the predicate holds, of all if there is none."""
    return written_size(
        checked(tree), {}, lambda node: int(predicate is None or bool(predicate(node)))
    )


def contains_called_intrinsic(tree: Node, uri: Uris = None) -> bool:
    """Return whether a program calls an operator, of the given ones if any are given."""
    return contains(tree, lambda node: is_called_intrinsic(node, uri))


@entry_point
def find_aggregations_in_tree(
    comp: Node, kind_predicate: Callable[[AggregationKind], bool] = lambda kind: True
) -> list[Node]:
    """Return the calls of aggregations in a program whose kind the predicate holds for.

    Raises:
      LanguageValueError: what a call of placed values calls cannot be seen.
    """
    calls: list[Node] = []
    for node in walk(checked(comp)):
        if not isinstance(node, Call):
            continue
        kind = aggregation_kind(node)
        if kind is not None and kind_predicate(kind):
            calls.append(node)
        elif not isinstance(node.function, (Intrinsic, Lambda)) and _takes_placed(node):
            raise LanguageValueError(
                "E127",
                f"whether the call `{node}` aggregates cannot be seen",
                help="call an operator or a function by itself, not by a name",
            )
    return calls


def _takes_placed(call: Call) -> bool:
    return contains_kind(call.function.type, FederatedType)


def _node_of(computation: Computation) -> Node:
    """Return the program of a computation.

    Raises:
      LanguageTypeError: it is not a computation.
    """
    if not hasattr(computation, "to_building_block"):
        raise LanguageTypeError(
            "E173",
            f"expected a computation, found {described(computation)}",
            help="give what a decorator such as federated_computation returns",
        )
    return computation.to_building_block()


@entry_point
def computation_contains(computation: Computation, predicate: Predicate) -> bool:
    """Return whether the predicate holds for a node of a computation."""
    return contains(_node_of(computation), predicate)


@entry_point
def computation_contains_secure_aggregation(computation: Computation) -> bool:
    """Return whether a computation aggregates tensors by a secure operator."""
    return contains(
        _node_of(computation), lambda node: is_called_aggregation(node, AggregationKind.SECURE)
    )


@entry_point
def computation_contains_unsecure_aggregation(computation: Computation) -> bool:
    """Return whether a computation aggregates tensors by an operator that is not secure."""
    return contains(
        _node_of(computation), lambda node: is_called_aggregation(node, AggregationKind.DEFAULT)
    )


@entry_point
def check_contains_only_reducible_intrinsics(comp: Node) -> None:
    """Raise LanguageValueError if a program has an operator that has to be rewritten first, such as
    `federated_mean`."""
    for node in walk(checked(comp)):
        if isinstance(node, Intrinsic) and node.uri not in REDUCIBLE:
            raise LanguageValueError(
                "E142",
                f"the operator {node.uri} is not reducible to an aggregation, a broadcast or local "
                "work",
                help="write it with operators of the language",
            )


@entry_point
def check_has_single_placement(comp: Node, single_placement: Placement) -> None:
    """Raise LanguageValueError if something in a program is at another placement."""
    for node in walk(checked(comp)):
        for part in walk(node.type):
            if isinstance(part, FederatedType) and part.placement != single_placement:
                raise LanguageValueError(
                    "E142",
                    f"expected everything at {single_placement}, but `{node}` has "
                    f"`{part}` in its type",
                    help="ask about a part that has no values elsewhere",
                )


@entry_point
def check_broadcast_not_dependent_on_aggregate(tree: Node) -> None:
    """Raise LanguageValueError if a program broadcasts what depends on an aggregation."""
    broadcasts = frozenset(definition.uri for definition in get_broadcast_intrinsics())
    _check_independent(tree, lambda node: is_called_intrinsic(node, broadcasts), "broadcast")


@entry_point
def check_aggregate_not_dependent_on_aggregate(tree: Node) -> None:
    """Raise LanguageValueError if a program aggregates what depends on another aggregation."""
    _check_independent(tree, lambda node: aggregation_kind(node) is not None, "aggregation")


def _check_independent(tree: Node, takes: Predicate, kind: str) -> None:
    find_aggregations_in_tree(tree)
    consuming = nodes_consuming(tree, lambda node: aggregation_kind(node) is not None)
    for node in consuming:
        if isinstance(node, Call) and takes(node) and node.argument in consuming:
            raise LanguageValueError(
                "E142",
                f"the {kind} `{node}` depends on an aggregation",
                help="aggregate once in a round, and keep the aggregate in the state",
            )


@entry_point
def nodes_consuming(tree: Node, predicate: Predicate) -> set[Node]:
    """Return the nodes for which the predicate holds, and those whose values depend on theirs,
    through names too."""
    consuming: set[Node] = set()
    run(_consumes(checked(tree), frozenset(), predicate, consuming, {}))
    return consuming


def _consumes(
    node: Node,
    names: frozenset[str],
    predicate: Predicate,
    consuming: set[Node],
    known: dict[tuple[Node, frozenset[str]], bool],
) -> Task[bool]:
    """Add a node and those inside it to the nodes that depend on the predicate's; return whether
    it does itself.  `names` are those in scope that are bound to such nodes."""
    if (node, names) in known:
        return known[node, names]
    depends = bool(predicate(node)) or (isinstance(node, Reference) and node.name in names)
    inner = names
    if isinstance(node, Lambda):
        inner -= {node.parameter_name or ""}
    if isinstance(node, Block):
        for binding in node.locals:
            is_in = yield _consumes(binding.value, inner, predicate, consuming, known)
            inner = inner | {binding.name} if is_in else inner - {binding.name}
            depends = depends or is_in
    for child in (node.result,) if isinstance(node, Block) else node.children():
        is_in = yield _consumes(child, inner, predicate, consuming, known)
        depends = depends or is_in
    if depends:
        consuming.add(node)
    known[node, names] = depends
    return depends


_extract_nodes_consuming = nodes_consuming  # as the tests of today's language call it


class NonuniqueNameError(LanguageValueError):
    """A name is bound twice in a program, or hides one that it uses."""

    def __init__(self, comp: Node, name: str) -> None:
        super().__init__(
            "E142",
            f"the name {name!r} is bound more than once in `{comp}`",
            help="give each binding a name of its own, as unique_name_generator does",
        )
        self.comp, self.name = comp, name


def bound_names(node: Node) -> list[str]:
    """Return the names that a node itself binds."""
    match node:
        case Lambda(parameter_name=str(name)):
            return [name]
        case Block():
            return [binding.name for binding in node.locals]
        case _:
            return []


@entry_point
def check_has_unique_names(comp: Node) -> None:
    """Raise NonuniqueNameError if a name is bound twice, or is bound and free."""
    names = set(free_names(checked(comp)))
    for node in _occurrences(comp):
        for name in bound_names(node):
            if name in names:
                raise NonuniqueNameError(comp, name)
            names.add(name)


@entry_point
def get_map_of_unbound_references(comp: Node) -> dict[Node, set[str]]:
    """Return for each node of a program the names that it uses and does not bind."""
    names: dict[Node, set[str]] = {}
    for node in postorder(checked(comp)):
        free: set[str] = {node.name} if isinstance(node, Reference) else set()
        if isinstance(node, Block):
            free |= names[node.result]
            for binding in reversed(node.locals):
                free.discard(binding.name)
                free |= names[binding.value]
        else:
            for child in node.children():
                free |= names[child]
            free -= set(bound_names(node))
        names[node] = free
    return names


def _without(names: frozenset[str], excluding: str | Iterable[str] | None) -> set[str]:
    left_out = (excluding,) if isinstance(excluding, str) else (excluding or ())
    return set(names) - set(left_out)


@entry_point
def contains_no_unbound_references(
    tree: Node, excluding: str | Iterable[str] | None = None
) -> bool:
    """Return whether a program binds all names that it uses, but for some."""
    return not _without(free_names(checked(tree)), excluding)


@entry_point
def check_contains_no_unbound_references(
    tree: Node, excluding: str | Iterable[str] | None = None
) -> None:
    """Raise LanguageValueError if a program uses names that it does not bind, but for some."""
    free = _without(free_names(checked(tree)), excluding)
    if free:
        raise LanguageValueError(
            "E141",
            f"`{tree}` uses what it does not bind: {', '.join(sorted(free))}",
            help="bind these names around it",
        )


@entry_point
def check_contains_no_new_unbound_references(old_tree: Node, new_tree: Node) -> None:
    """Raise LanguageValueError if a program uses unbound names that another one does not."""
    new = _without(free_names(checked(new_tree)), free_names(checked(old_tree)))
    if new:
        raise LanguageValueError(
            "E141",
            f"`{new_tree}` uses what it does not bind, and `{old_tree}` does not use: "
            f"{', '.join(sorted(new))}",
            help="bind these names in it",
        )
