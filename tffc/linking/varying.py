"""Sequences of a section's result that may have other elements in each iteration.

A run of a section computes its tensors first, and then the elements of its sequences, one sequence
after another.  Where that order makes a difference, because they use the same state, a graph has
to follow it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set

from tffc.graphs.body import outputs_of
from tffc.graphs.functions import LinkedLibrary
from tffc.graphs.node import NodeView, reached, source
from tffc.graphs.operations.effects import frees_order
from tffc.graphs.operations.iterations import is_ordered, is_steady
from tffc.graphs.state import state_name
from tffc.linking.attributes import VARIANT
from tffc.linking.section import SectionContent
from tffc.support.errors import GraphError

RESOURCE = 20
"""TensorFlow's number for the element type of tensors that name a state."""


class VaryingSequences:
    """The varying ones among some parts of a section's result, which are sequences.

    `calls` has the functions that each needed node of the section names.  `positions` has the parts
    that vary, and `in_order` those of them that use what something else uses too, with an effect
    that depends on the order.
    """

    def __init__(
        self,
        content: SectionContent,
        parts: Iterable[int],
        calls: Mapping[str, Iterable[str]],
        library: LinkedLibrary,
    ) -> None:
        self.positions: frozenset[int] = frozenset()
        self.in_order: tuple[int, ...] = ()
        names = {i: source(content.result[i]) for i in parts}
        roots = {i: name for i, name in names.items() if name in calls}
        if not roots:
            return
        self._body = content.body()

        def any_of(
            functions: Set[str], changes: Callable[[NodeView, Mapping[str, NodeView]], bool]
        ) -> Iterator[str]:
            for name, node in self._body.nodes.items():
                is_changing = node.op not in calls[name] and changes(node, content.nodes)
                if is_changing or not functions.isdisjoint(calls[name]):
                    yield name

        self._check_options(roots.values())
        users: defaultdict[str, list[str]] = defaultdict(list)
        for name in self._body.nodes:
            for inner in self._inside(name, VARIANT):
                users[inner].append(name)
        changing = any_of(library.varying, lambda node, nodes: not is_steady(node, nodes))
        reaching = set(reached(changing, lambda name: users[name]))
        self.positions = frozenset(i for i, name in roots.items() if name in reaching)
        start = [content.initialize_op] if content.initialize_op in self._body.nodes else []
        initial = set(reached(start, self._body.before))
        if library.stateful:
            # Functions find state by name, so that it is not known who shares it.
            self.in_order = tuple(sorted(self.positions))
        elif any(name not in initial for name in any_of(library.ordered, is_ordered)):
            varying_roots = {i: roots[i] for i in sorted(self.positions)}
            results = enumerate(self._body.results)
            others = [edge.node for i, edge in results if i not in self.positions]
            before = self._before(varying_roots, others)
            sharing = self._sharing(varying_roots, reaching, initial, before)
            self.in_order = tuple(sorted(sharing))
        self._check_caches((roots[i] for i in self.in_order), reaching)

    def _check_options(self, roots: Iterable[str]) -> None:
        """Check that no returned dataset has options that hold for what others make of it.

        Raises:
          GraphError: one has.
        """
        for name in reached(roots, lambda name: list(self._inside(name, VARIANT))):
            attributes = self._body.nodes[name].attr
            if self._body.nodes[name].op == "OptionsDataset" and frees_order(
                attributes["serialized_options"].s
            ):
                raise GraphError(
                    "E397",
                    "a computation returns a dataset whose options let others compute its elements "
                    "in any order",
                    notes=(f"node {name!r} sets deterministic to False",),
                    help="leave that option out, or use the dataset in the same computation",
                )

    def _check_caches(self, roots: Iterable[str], reaching: Set[str]) -> None:
        """Check that no cache is behind sequences that may share what changes.

        Each iteration of a `CacheDataset` may fill a cache of its own, or read that of another one:
        TensorFlow decides by what runs at the same time.  Functions of TensorFlow have another
        operation, `CacheDatasetV2`, whose caches are tensors.

        Raises:
          GraphError: there is one.
        """
        for name in reached(roots, lambda name: list(self._inside(name, VARIANT))):
            if self._body.nodes[name].op == "CacheDataset" and name in reaching:
                raise GraphError(
                    "E398",
                    "a computation returns a dataset behind a cache that may have another reader, "
                    "and whose elements may differ in each iteration",
                    notes=(f"node {name!r} is the cache",),
                    help="put the body of the computation in a function that is decorated with "
                    "tf.function: then all read one cache",
                )

    def _inside(self, name: str, *kinds: int) -> Iterator[str]:
        """Yield the nodes of which a node takes tensors of these types, or of an unknown type."""
        for edge in self._body.inputs[name]:
            if edge.node in self._body.nodes:
                types = _types(self._body.nodes[edge.node])
                kind = types[edge.port] if 0 <= edge.port < len(types) else None
                if kind in (None, *kinds):
                    yield edge.node

    def _before(self, roots: Mapping[int, str], others: Iterable[str]) -> dict[str, int]:
        """Return the nodes that only one of the sequences needs, and nothing else in the result, so
        that they run before its elements are computed."""
        owners, again = _owners(roots, self._body.before)
        several = [name for name in others if name in self._body.nodes]
        several += [name for name, _ in again]
        for name in reached(several, self._body.before):
            owners.pop(name, None)
        return owners

    def _sharing(
        self,
        roots: Mapping[int, str],
        reaching: Set[str],
        initial: Set[str],
        before: Mapping[str, int],
    ) -> set[int]:
        """Return the sequences that share what may change with another one, or with what else is
        computed.

        Each node behind them belongs to the first one that it is behind of.
        """
        sharing: set[int] = set()
        owners, again = _owners(roots, lambda name: self._inside(name, VARIANT, RESOURCE))

        def is_shared(name: str) -> bool:
            types = _types(self._body.nodes[name])
            return name in reaching or RESOURCE in types or None in types

        for name, position in again:
            if is_shared(name):
                sharing |= {position, owners[name]}
        for name in self._body.nodes:
            if name not in owners and name not in initial:
                for inner in self._inside(name, VARIANT, RESOURCE):
                    owner = owners.get(inner)
                    if owner is not None and owner != before.get(name) and is_shared(inner):
                        sharing.add(owner)
        for nodes in self._of_one_state():
            several = {owners.get(name) for name in nodes if name in owners or name not in initial}
            if len(several) > 1:
                sharing.update(owner for owner in several if owner is not None)
        return sharing

    def _of_one_state(self) -> Iterable[list[str]]:
        """Return the nodes that find one state, for each name of a state."""
        groups: defaultdict[bytes, list[str]] = defaultdict(list)
        for name, node in self._body.nodes.items():
            state = state_name(node)
            if state is not None:
                groups[state].append(name)
        return groups.values()


def _owners(
    roots: Mapping[int, str], inside: Callable[[str], Iterable[str]]
) -> tuple[dict[str, int], list[tuple[str, int]]]:
    """Return the position of the first root that each node is behind of; and the nodes that are
    behind of another one too, with its position."""
    owners: dict[str, int] = {}
    again: list[tuple[str, int]] = []
    for position, root in roots.items():
        stack = [root]
        while stack:
            name = stack.pop()
            if name not in owners:
                owners[name] = position
                stack.extend(inside(name))
            elif owners[name] != position:
                again.append((name, position))
    return owners, again


def _types(node: NodeView) -> list[int | None]:
    outputs = outputs_of(node, {})
    return [None] if outputs is None else [kind for *_, kind in outputs]
