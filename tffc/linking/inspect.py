"""Facts about compiled sections that are found without running them."""

from __future__ import annotations

import collections
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tffc.graphs.body import Body, Edge
from tffc.graphs.functions import Library
from tffc.graphs.operations import hlo
from tffc.graphs.operations.effects import Effect, effect_of
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType
from tffc.language.wire import read_xla
from tffc.linking.operand import leaf_types
from tffc.linking.section import SectionContent, read_section

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


class Facts(NamedTuple):
    """The operations of a section, as far as its results and its initialization need them.

    `operations` counts them by name, those in functions included, each function once; `effects` has
    the operations that do more than compute.  Both are in alphabetical order.
    """

    operations: dict[str, int]
    effects: dict[str, Effect]


@functools.lru_cache(maxsize=512)
def inspect(section: Compiled) -> Facts:
    """Return the facts about a section.

    Raises:
      GraphError: the section is malformed.
      WireError: its message is malformed.
    """
    operations: collections.Counter[str] = collections.Counter()
    effects: dict[str, Effect] = {}
    for op, effect in _xla(section) if section.kind == "xla" else _tensorflow(section):
        operations[op] += 1
        if effect is not None and effects.get(op, Effect.OWN_STATE) is Effect.OWN_STATE:
            effects[op] = effect
    return Facts(dict(sorted(operations.items())), dict(sorted(effects.items())))


def is_pure(section: Compiled) -> bool:
    """Tell whether a run of the section has no effects and always gives the same results for the
    same argument.

    A run begins with the section's initialization and with all state new: variables, tables, and
    random generators, which then draw the same numbers from a fixed seed.  State that nothing
    outside the run can see does not count.  Raises as `inspect` does.
    """
    return not any(map(_is_impure, inspect(section).effects.values()))


def impure_nodes(section: Compiled) -> frozenset[str]:
    """Return the needed nodes of a TensorFlow section with effects beyond state of their own, in
    themselves or in functions that they call.

    A section without such nodes is pure.  Raises as `inspect` does.
    """
    content = read_section(section)
    library = Library(content.graph.library)
    needed = list(_needed(content, library))
    calls = {node.name: library.called_by(node) for node, _ in needed}
    functions = library.leading_to(
        itertools.chain(*calls.values()),
        lambda name: any(_is_impure(effect) for _, effect in _body(name, library)),
    )
    return frozenset(
        node.name
        for node, effect in needed
        if _is_impure(effect) or not functions.isdisjoint(calls[node.name])
    )


def result_dependencies(section: Compiled) -> list[frozenset[int]]:
    """Return for each leaf of the result, the leaves of the parameter that it may depend on, by
    position.

    Every leaf depends on what the initialization depends on.  Raises as `inspect` does.
    """
    assert isinstance(section.type, FunctionType)
    if section.kind == "xla":
        parameter = section.type.parameter
        every = frozenset(range(0 if parameter is None else len(leaf_types(parameter))))
        return [every for _ in leaf_types(section.type.result)]
    content = read_section(section)
    body = content.body()
    leaves = {edge: 1 << position for position, edge in enumerate(body.arguments)}
    uses = _uses(body, leaves)
    common = uses[content.initialize_op] if content.initialize_op else 0
    ends = [leaves[edge] if edge in leaves else uses[edge.node] for edge in body.results]
    return [_positions(bits | common, len(leaves)) for bits in ends]


def _uses(body: Body, leaves: Mapping[Edge, int]) -> dict[str, int]:
    """Return the leaves of the parameter that each node depends on, as the bits of a number."""
    uses: dict[str, int] = collections.defaultdict(int)
    for edge, bit in leaves.items():
        uses[edge.node] |= bit
    changed = True
    while changed:  # once more for each loop inside loops, whose edges lead back
        changed = False
        for name in body.nodes:
            before = uses[name]
            for edge in body.inputs[name]:
                uses[name] |= leaves[edge] if edge in leaves else uses[edge.node]
            for control in body.controls[name]:
                uses[name] |= uses[control]
            changed = changed or uses[name] != before
    return uses


def _positions(bits: int, count: int) -> frozenset[int]:
    return frozenset(position for position in range(count) if bits >> position & 1)


def _xla(section: Compiled) -> Iterator[tuple[str, Effect | None]]:
    for opcode, target in hlo.instructions(read_xla(section.payload).hlo_module):
        yield opcode, hlo.effect_of(opcode, target)


def _tensorflow(section: Compiled) -> Iterator[tuple[str, Effect | None]]:
    content = read_section(section)
    library = Library(content.graph.library)
    needed = list(_needed(content, library))
    groups = library.groups(name for node, _ in needed for name in library.called_by(node))
    for name in itertools.chain(*groups):
        needed += _body(name, library)
    return ((node.op, effect) for node, effect in needed)


def _needed(content: SectionContent, library: Library) -> Iterator[tuple[NodeView, Effect | None]]:
    """Yield the needed nodes of a section and the effect of each."""
    return _effects(map(content.nodes.__getitem__, content.needed()), content.own_nodes(), library)


def _body(name: str, library: Library) -> Iterator[tuple[NodeView, Effect | None]]:
    """Yield the nodes of a function and the effect of each."""
    nodes = library.nodes(name)
    return _effects(nodes.values(), nodes, library)


def _effects(
    nodes: Iterable[NodeView], beside: Mapping[str, NodeView], library: Library
) -> Iterator[tuple[NodeView, Effect | None]]:
    """Yield the nodes, each with its own effect, without those of functions; see `effect_of`."""
    for node in nodes:
        yield node, None if node.op in library.functions else effect_of(node, beside)


def _is_impure(effect: Effect | None) -> bool:
    return effect not in (None, Effect.OWN_STATE)
