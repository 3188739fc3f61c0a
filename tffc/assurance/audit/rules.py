"""Rules for operations that call functions, hold datasets, choose, or keep state.

Each returns the flows of a node's outputs.  `decides` are the sources of whether and how often the
node runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tffc.assurance.audit.flow import (
    NOTHING,
    Flow,
    dataset,
    failures_of,
    handles_of,
    join,
    join_all,
    total_of,
    union,
    widened,
)
from tffc.assurance.audit.memory import ELSEWHERE, Memory
from tffc.assurance.audit.outcomes import Outcome

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


REMEMBERING = "remembering selection"
"""The heading of datasets that an iteration over them changes."""

MOST_STEPS = 32
"""The steps of a loop before its values are joined."""

Flows: TypeAlias = tuple[Flow, ...]


class Walk(Protocol):
    """The analysis of a section, as its rules use it."""

    memory: Memory

    def call(self, name: str, arguments: Sequence[Flow], decides: int, depth: int) -> Outcome:
        """Return the outcome of a function for arguments; `decides` are the sources of whether and
        how often it runs."""
        ...

    def everything(self, inputs: Sequence[Flow], decides: int = 0) -> Flow:
        """Return the flow of something that may be anything that the section can compute."""
        ...

    def width(self, function: str, captured: int) -> int:
        """Return the number of components of the elements that a function takes."""
        ...

    def same_positions(self, function: str) -> frozenset[int]:
        """Return the positions at which a function returns its argument unchanged."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A rule for operations with at least this number of inputs."""

    inputs: int
    flows: Callable[[Walk, NodeView, list[Flow], int, int], Flows]


# Calls of functions, and control flow.


def functions_of(node: NodeView, attribute: str) -> list[str]:
    """Return the functions that an attribute names."""
    if attribute not in node.attr:
        return [""]
    value = node.attr[attribute]
    return [function.name for function in value.list.func] or [value.func.name]


def call(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    return walk.call(functions_of(node, "f")[0], inputs, decides, depth).results


def branches(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return the join of all branches' results, chosen by the first input."""
    chosen, *rest = inputs
    chooses = chosen.total() | walk.memory.behind((chosen,))
    names = [
        name
        for attribute in ("then_branch", "else_branch", "branches")
        if attribute in node.attr
        for name in functions_of(node, attribute)
    ]
    results = [walk.call(name, rest, decides | chooses, depth).results for name in names]
    width = max(map(len, results), default=1)
    columns = zip(*(widened(outputs, width) for outputs in results), strict=True)
    return tuple(join_all(column).with_value(chooses) for column in columns) or (
        walk.everything(inputs),
    )


def loop(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return the result of a while loop; its condition determines the number of iterations."""
    condition, body = functions_of(node, "cond")[0], functions_of(node, "body")[0]

    def step(state: Flows, before: int) -> tuple[int, Flows]:
        repeats = decides | before
        outcome = walk.call(condition, state, repeats, depth)
        ends = total_of(outcome.results) | walk.memory.behind(outcome.results)
        return ends, walk.call(body, state, repeats | ends, depth).results

    return _repeated(tuple(inputs), step, walk.same_positions(body))


def _repeated(
    state: Flows,
    step: Callable[[Flows, int], tuple[int, Flows]],
    same: frozenset[int],
) -> Flows:
    """Return the state after any number of steps: the fixed point of joining it with the next
    state.

    `step` takes the sources that determine the number of steps, as far as they are known, and
    returns them and the next state.  Values at `same` positions never change, so they do not
    depend on that number.
    """
    steps = ends = 0
    while True:
        more, results = step(state, ends)
        if steps >= MOST_STEPS:
            results = (join_all((*state, *results)),) * len(state)
        after = tuple(
            before if position in same else join(before, output).with_value(more)
            for position, (before, output) in enumerate(
                zip(state, widened(results, len(state)), strict=True)
            )
        )
        if after == state and more | ends == ends:
            return state
        state, ends, steps = after, ends | more, steps + 1


def ports(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    return tuple(inputs) or (NOTHING,)


def switch(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    sources = total_of(inputs[1:]) | walk.memory.behind(inputs[1:])
    return (inputs[0].with_value(sources),)


def merge(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return the input that is there, and its number; what decides about them decides which."""
    joined = join_all(inputs).with_value(decides)
    return joined, Flow(total_of(inputs) | decides)


# State behind a handle.


def read(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return what the variable behind the first input holds."""
    return (walk.memory.read(inputs[0].handles).with_value(total_of(inputs)),)


def read_shape(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return the shape of what the variable behind the first input holds."""
    return (Flow(walk.memory.read(inputs[0].handles).shape | total_of(inputs)),)


def assigned(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Write the second input to the variable behind the first."""
    handle, value = inputs[:2]
    walk.memory.write(handle.handles, value, decides | handle.total() | total_of(inputs[2:]))
    return (NOTHING,)


def iterated(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Let the iterator behind the second input go through the dataset that is the first."""
    source, handle = inputs[:2]
    walk.memory.write(handle.handles, source, decides | handle.total())
    return (NOTHING,)


def next_element(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return an element of an iterator's dataset: which one depends on how often this is done."""
    handle = inputs[0]
    advances = decides | handle.total()
    walk.memory.write(handle.handles, NOTHING, advances)
    held = walk.memory.read(handle.handles)
    return _one_element(walk, node, held.with_value(advances), advances)


def next_optional(
    walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int
) -> Flows:
    """Return an element that may be missing, like a dataset of at most that one."""
    elements = next_element(walk, node, inputs, decides, depth)
    held = walk.memory.read(inputs[0].handles)
    count = held.count() | held.fails | decides | inputs[0].total()
    return (dataset(count, elements),)


def optional_value(
    walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int
) -> Flows:
    return _one_element(walk, node, inputs[0], decides)


# Datasets.  Their functions run when somebody iterates over them, as often as that needs.


def components(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return a dataset with one element, whose components are the inputs."""
    return (dataset(0, inputs, handles_of(inputs)),)


def slices(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return a dataset with an element for each row."""
    return (dataset(union(tensor.shape for tensor in inputs), inputs, handles_of(inputs)),)


def selection(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return a dataset that has the elements of the first, perhaps fewer, more often, or in another
    order."""
    first, *others = inputs
    count = total_of(others) | walk.memory.behind(others)
    return (_resized(first, first.count() | count).with_handles(handles_of(others)),)


def batches(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return a dataset of batches; the size of the last one depends on the number of elements."""
    count = inputs[0].count() | total_of(inputs[1:])
    padded = node.op.startswith("Padded")

    def batch(component: Flow) -> Flow:
        value = component.total() if padded else component.value
        return Flow(value, component.shape | count, component.elements, component.handles)

    return (_resized(inputs[0], count, batch).with_handles(handles_of(inputs)),)


def windows(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    count = inputs[0].count() | total_of(inputs[1:])
    window = _resized(inputs[0], count, lambda component: dataset(count, (component,)))
    return (window.with_handles(handles_of(inputs)),)


def mapped(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    applied = _applied(walk, node, inputs, "f", decides, depth)
    count = inputs[0].count() | _ended_by_failures(walk, node, inputs)
    return (dataset(count, applied.results, applied.handles),)


def filtered(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    applied = _applied(walk, node, inputs, "predicate", decides, depth)
    count = inputs[0].count() | total_of(applied.results)
    return (_resized(inputs[0], count).with_handles(applied.handles),)


def flattened(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    applied = _applied(walk, node, inputs, "f", decides, depth)
    inner = join_all(applied.results)
    # The function's captured inputs are followed by the parameters of interleaving.
    others = inputs[1 + len(node.attr["Targuments"].list.type) :]
    count = inputs[0].count() | inner.count() | total_of(others)
    return (_resized(inner, count).with_handles(applied.handles),)


def scanned(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return a dataset of what a function returns for each element and for its own state, which is
    after that what it returns first."""
    first = inputs[0]
    states = len(node.attr["Tstate"].list.type)
    initial, captured = inputs[1 : 1 + states], inputs[1 + states :]
    name = functions_of(node, "f")[0]
    elements = _elements(walk, first, walk.width(name, states + len(captured)))
    count = first.count()
    outcome = walk.call(name, [*initial, *elements, *captured], decides | count, depth)

    def step(state: Flows, before: int) -> tuple[int, Flows]:
        nonlocal outcome
        outcome = walk.call(name, [*state, *elements, *captured], decides | count, depth)
        return count, widened(outcome.results, max(states, len(outcome.results)))[:states]

    _repeated(tuple(initial), step, walk.same_positions(name))
    handles = handles_of(inputs) | outcome.touched
    count |= _ended_by_failures(walk, node, inputs)
    return (dataset(count, outcome.results[states:], handles),)


def _ended_by_failures(walk: Walk, node: NodeView, inputs: list[Flow]) -> int:
    """Return what may decide where a function's failure ends a dataset.

    TensorFlow takes a function that is out of range for the end, unless the node promises to
    preserve the cardinality.
    """
    if "preserve_cardinality" in node.attr and node.attr["preserve_cardinality"].b:
        return 0
    return walk.everything(inputs).total() | failures_of(inputs)


@dataclasses.dataclass(frozen=True, slots=True)
class _Applied:
    """The results of a function for the elements of a dataset, and the cells of state that running
    it, or iterating over the dataset, may touch."""

    results: Flows
    handles: frozenset[str]


def _applied(
    walk: Walk, node: NodeView, inputs: list[Flow], attribute: str, decides: int, depth: int
) -> _Applied:
    first, *rest = inputs
    name = functions_of(node, attribute)[0]
    captured = rest[: len(node.attr["Targuments"].list.type)]
    elements = _elements(walk, first, walk.width(name, len(captured)))
    outcome = walk.call(name, [*elements, *captured], decides | first.count(), depth)
    return _Applied(outcome.results, handles_of(inputs) | outcome.touched)


def reduced(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return the state after any number of elements."""
    first = inputs[0]
    states = len(node.attr["Tstate"].list.type)
    initial, captured = inputs[1 : 1 + states], inputs[1 + states :]
    name = functions_of(node, "f")[0]
    count = first.count() | consumed(walk, first, decides)
    elements = _elements(walk, first, walk.width(name, states + len(captured)))

    def step(state: Flows, before: int) -> tuple[int, Flows]:
        outcome = walk.call(name, [*state, *elements, *captured], decides | count, depth)
        return count, outcome.results

    return _repeated(tuple(initial), step, walk.same_positions(name)) or (NOTHING,)


def zipped(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    handles = handles_of(inputs)
    if any(sequence.elements is None for sequence in inputs):
        return (Flow(total_of(inputs), 0, None, handles),)
    elements = [element for sequence in inputs for element in sequence.elements or ()]
    return (dataset(union(sequence.value for sequence in inputs), elements, handles),)


def concatenated(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    return (join_all(inputs),)


def counted(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    return (Flow(inputs[0].count() | consumed(walk, inputs[0], decides)),)


def only_element(walk: Walk, node: NodeView, inputs: list[Flow], decides: int, depth: int) -> Flows:
    """Return the components of a dataset's only element."""
    return _one_element(walk, node, inputs[0], decides)


def consumed(walk: Walk, source: Flow, decides: int) -> int:
    """Record that somebody iterates over a dataset; return what then may decide its elements.

    Its functions run, and their state may have been left by whoever ran them before.
    """
    handles = handles_of((source,))
    if handles:
        walk.memory.write(handles, NOTHING, decides | source.count())
    return _left_elsewhere(walk, source)


def _left_elsewhere(walk: Walk, source: Flow) -> int:
    return walk.memory[ELSEWHERE].total() if ELSEWHERE in source.handles else 0


def _elements(walk: Walk, flow: Flow, width: int) -> Flows:
    """Return the flows of the components of a dataset's elements; if these are not known, as many
    as are expected, but at least one."""
    left = _left_elsewhere(walk, flow)
    if flow.elements is not None:
        return (
            tuple(element.with_value(left) for element in flow.elements) if left else flow.elements
        )
    sources = flow.total() | walk.memory.behind((flow,))
    return (Flow(sources, sources, None, handles_of((flow,))),) * max(width, 1)


def _one_element(walk: Walk, node: NodeView, flow: Flow, decides: int) -> Flows:
    """Return the components of the element that a node takes from a dataset."""
    count = flow.count() | consumed(walk, flow, decides)
    width = len(node.attr["output_types"].list.type)
    elements = widened(_elements(walk, flow, width), width)
    return tuple(element.with_value(count) for element in elements) or (NOTHING,)


def _resized(flow: Flow, count: int, change: Callable[[Flow], Flow] = lambda flow: flow) -> Flow:
    """Return a dataset of changed elements of another; `count` determines their number."""
    if flow.elements is None:
        return Flow(flow.total() | count, 0, None, flow.handles)
    return dataset(count, list(map(change, flow.elements)), flow.handles)


RULES: dict[str, Rule] = {
    "call": Rule(0, call),
    "branches": Rule(1, branches),
    "loop": Rule(0, loop),
    "ports": Rule(0, ports),
    "switch": Rule(2, switch),
    "merge": Rule(1, merge),
    "read": Rule(1, read),
    "shape behind": Rule(1, read_shape),
    "assigned": Rule(2, assigned),
    "iterated": Rule(2, iterated),
    "next element": Rule(1, next_element),
    "next optional": Rule(1, next_optional),
    "optional value": Rule(1, optional_value),
    "components": Rule(0, components),
    "slices": Rule(0, slices),
    "selection": Rule(1, selection),
    REMEMBERING: Rule(1, selection),
    "batches": Rule(1, batches),
    "windows": Rule(1, windows),
    "mapped": Rule(1, mapped),
    "filtered": Rule(1, filtered),
    "flattened": Rule(1, flattened),
    "scanned": Rule(1, scanned),
    "zipped": Rule(1, zipped),
    "concatenated": Rule(1, concatenated),
    "reduced": Rule(1, reduced),
    "counted": Rule(1, counted),
    "only element": Rule(1, only_element),
}
"""The rules by their headings in `operations.txt`."""
