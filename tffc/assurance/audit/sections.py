"""Dependency analysis of a compiled section: an abstract interpretation of its graph.

It computes with flows instead of tensors.  Four ideas make it hold for every graph:

- What no row of `operations.txt` describes takes all its inputs to all its outputs, and to all the
  state that it can reach through them.
- Whatever decides whether and how often a node runs (`decides`) reaches what the node does to
  state; results take it where a choice between results is made.
- A cell of state may hold whatever is ever written to it.  The analysis runs until no cell grows.
- An effect, such as a file that is written, is a cell too, which nothing reads.

It ends, because sets of sources are finite and only grow.  Where it would take too long, it joins
what it otherwise tells apart.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tffc.assurance.audit.carried import has_variants, may_carry
from tffc.assurance.audit.flow import (
    ANYTHING,
    NO_HANDLES,
    NOTHING,
    Flow,
    failures_of,
    handles_of,
    join,
    join_all,
    total_of,
    union,
    widened,
)
from tffc.assurance.audit.memory import ELSEWHERE, OUTSIDE, Memory, cell_of
from tffc.assurance.audit.outcomes import ERRORS, SHOWN, Draw, NodeEffect, Outcome, Outside, Summary
from tffc.assurance.audit.rules import REMEMBERING, RULES
from tffc.graphs.body import ANY_PORT, Body, Edge
from tffc.graphs.functions import Library, named_functions
from tffc.graphs.operations import hlo, op_table
from tffc.graphs.operations.effects import OUTSIDE as OUTSIDE_KINDS
from tffc.graphs.operations.effects import (
    Effect,
    effect_of,
    first_seed,
    is_seeded_by_attributes,
    read_table,
)
from tffc.graphs.operations.kernels import keeps_state
from tffc.graphs.operations.shown import Showing, showing
from tffc.graphs.state import has_named_state
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, SequenceType, Type
from tffc.language.wire import read_xla
from tffc.linking.operand import leaf_types
from tffc.linking.section import read_section
from tffc.runtime.effects.outside import outside_uses

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


DEEPEST_CALL = 40
MOST_CONTEXTS = 64
"""How deep calls of functions are followed, and for how many different arguments each function is
analysed.  Beyond that, and where functions call themselves, a function is analysed for the join of
all arguments."""

MOST_PASSES = 24
"""The passes over a graph before everything that it keeps apart is joined."""

DRAWS = re.compile(
    "(?!StatelessRandomGet)(Stateless|Stateful)?(Random|TruncatedNormal|StandardNormal|Uniform|UniformInt|"
    "UniformFullInt|Multinomial|Parameterized|RandomBinomial|Binomial).*"
    "|ParameterizedTruncatedNormal|Multinomial|.*CandidateSampler|ExperimentalRandomDataset"
)
"""Matches operations that draw random numbers; other datasets that match only draw an order."""

OF_RANDOM_NUMBERS = frozenset({"RandomDataset", "RandomDatasetV2", "ExperimentalRandomDataset"})

CATCHES_FAILURES = frozenset({"ExperimentalIgnoreErrorsDataset", "IgnoreErrorsDataset"})
"""Operations whose results tell whether functions fail, which may depend on anything."""

AFAR = frozenset({*OUTSIDE_KINDS, Effect.SESSION, Effect.CLOCK})
"""The effects of operations that may read what any other operation left somewhere."""

TABLE = pathlib.Path(__file__).with_name("operations.txt")
"""The table of operations, under a heading for each rule of `RULES` and
`SectionWalk._operation`."""

PRINTED = frozenset({Showing.PRINTS, Showing.CHECKS})


class SectionWalk:
    """The analysis of one section; `source_of` returns the bit of a draw.

    `outside` is shared by all sections that run where one may find what another left.
    """

    def __init__(
        self,
        section: Compiled,
        source_of: Callable[[Draw], int],
        outside: Outside | None = None,
    ) -> None:
        self._source_of = source_of
        self._section = section
        self._outside = outside or Outside()
        self._is_graph = section.kind == "tensorflow"
        if self._is_graph:
            content = read_section(section)
            self._library = Library(content.graph.library)
            self._graph = content.body()
        self._arguments = 0
        self._effects: dict[NodeEffect, int] = {}
        self._clear()

    def _clear(self) -> None:
        self.memory = Memory()
        self._summaries: dict[str, Summary] = {}
        self._stale: dict[str, None] = {}
        self._summarizing = ""
        self._summary_grew = False
        self._known: dict[tuple[str, tuple[Flow, ...], int], Outcome] = {}
        self._contexts: dict[str, int] = {}
        self._running: set[str] = set()
        self._seen: dict[str, NodeEffect] = {}

    def results(self, arguments: Sequence[Flow], decides: int = 0) -> list[Flow]:
        """Return the flows of the result's leaves, given those of the parameter; `decides` are the
        sources of how often the section runs."""
        type = self._section.type
        assert isinstance(type, FunctionType)
        leaves = leaf_types(type.result)
        self._arguments = total_of(arguments) | decides
        if not self._is_graph:
            return [self._of_module(arguments, decides)] * len(leaves)
        self._clear()
        flows = self._fixed_point(tuple(arguments), decides)
        for cell, effect in self._seen.items():
            self._effects[effect] = self._effects.get(effect, 0) | self.memory.effects[cell]
        self._outside.sources |= self.memory[OUTSIDE].total()
        self._outside.elsewhere |= self.memory[ELSEWHERE].total()
        return list(map(self._returned, leaves, flows))

    def effects(self) -> Mapping[NodeEffect, int]:
        """Return the effects of the section in all runs so far, with the sources of what each
        shows or passes on, and of whether and how often it does."""
        return self._effects

    def _fixed_point(self, arguments: tuple[Flow, ...], decides: int) -> tuple[Flow, ...]:
        memory = self.memory
        memory.write(frozenset((OUTSIDE,)), Flow(self._outside.sources), 0)
        memory.write(frozenset((ELSEWHERE,)), Flow(self._outside.elsewhere), 0)
        passes = 0
        # A node may write what one before it has read, so passes are repeated.  Cells and
        # summaries only grow, so a pass in which nothing grows has seen everything.
        while True:
            memory.grew = self._summary_grew = False
            self._known.clear()
            self._contexts.clear()
            flows = self._run(self._graph, arguments, decides, 0)
            self._summarize()
            passes += 1
            if passes >= MOST_PASSES:
                memory.join_cells()
            if not memory.grew and not self._summary_grew:
                return flows

    def _returned(self, leaf: Type, flow: Flow) -> Flow:
        """Return the flow of a result outside of the section.

        A tensor does not hold a dataset or a handle.  A dataset does, with functions that others
        run again.
        """
        behind = self.memory.behind((flow,))
        if not isinstance(leaf, SequenceType):
            return Flow(flow.total() | behind, flow.shape | behind) if _holds_more(flow) else flow
        if not handles_of((flow,)):
            return flow
        elements = tuple(
            Flow(component.total() | behind, component.shape | behind)
            for component in flow.elements or ()
        )
        value = flow.value if flow.elements is not None else flow.total()
        fails = failures_of((flow,)) | behind
        held = frozenset((ELSEWHERE,))
        return Flow(value | behind, flow.shape, elements or flow.elements, held, fails)

    def _of_module(self, arguments: Sequence[Flow], decides: int) -> Flow:
        """Return the flow of each result of an XLA module."""
        sources = total_of(arguments)
        for use in outside_uses(self._section):
            sources |= self._outside.sources
            self._outside.sources |= sources | decides
            event = NodeEffect(use.kind, use.operation, "", "")
            self._effects[event] = self._effects.get(event, 0) | sources | decides
        for opcode, target in hlo.instructions(read_xla(self._section.payload).hlo_module):
            if hlo.effect_of(opcode, target) is Effect.RANDOM:
                sources |= self._source_of(Draw(opcode, "", "", True))
        return Flow(sources)

    # Bodies.

    def _run(
        self, body: Body, arguments: tuple[Flow, ...], decides: int, depth: int
    ) -> tuple[Flow, ...]:
        run = _Run(self, body, arguments, decides, depth)
        run.nodes()
        return tuple(run.at(edge) for edge in body.results)

    def call(self, name: str, arguments: Sequence[Flow], decides: int, depth: int) -> Outcome:
        """Return the outcome of a function for arguments; `decides` are the sources of whether and
        how often it runs."""
        memory = self.memory
        key = name, tuple(arguments), decides
        if key not in self._known:
            body = self._body(name)
            if body is None:
                unknown = self.everything(arguments, decides)
                return Outcome((unknown,), unknown.handles)
            contexts = self._contexts.get(name, 0)
            if depth >= DEEPEST_CALL or name in self._running or contexts >= MOST_CONTEXTS:
                return self._summarized(name, key[1], decides)
            self._contexts[name] = contexts + 1
            self._running.add(name)
            before, memory.touched = memory.touched, set()
            results = self._run(body, key[1], decides, depth + 1) or (NOTHING,)
            self._known[key] = Outcome(results, frozenset(memory.touched))
            memory.touched = before
            self._running.discard(name)
        outcome = self._known[key]
        memory.touched |= outcome.touched
        return outcome

    def _summarized(self, name: str, arguments: tuple[Flow, ...], decides: int) -> Outcome:
        summary = self._summaries.setdefault(name, Summary())
        summary.callers[self._summarizing] = None
        if summary.include(arguments, decides):
            self._stale[name] = None
        self.memory.touched |= summary.outcome.touched
        return summary.outcome

    def _summarize(self) -> None:
        """Analyse each function that is analysed once for the join of its arguments; the functions
        that it calls are analysed so too."""
        self._stale.update(dict.fromkeys(self._summaries))
        while self._stale:
            name, _ = self._stale.popitem()
            body, summary = self._body(name), self._summaries[name]
            assert body is not None
            self.memory.touched = set()
            self._summarizing = name
            results = self._run(body, summary.arguments, summary.decides, DEEPEST_CALL)
            outcome = Outcome(results or (NOTHING,), frozenset(self.memory.touched))
            if outcome != summary.outcome:
                summary.outcome = outcome
                self._summary_grew |= "" in summary.callers
                self._stale.update(dict.fromkeys(caller for caller in summary.callers if caller))
        self._summarizing = ""

    def _body(self, name: str) -> Body | None:
        """Return the body of a function, or None if the section lacks it."""
        return self._library.body(name) if name in self._library.functions else None

    def width(self, function: str, captured: int) -> int:
        """Return the number of components of the elements that a function takes."""
        known = self._library.functions.get(function)
        return 1 if known is None else max(len(known.signature.input_arg) - captured, 0)

    def same_positions(self, function: str) -> frozenset[int]:
        """Return the positions at which a function returns its argument unchanged."""
        body = self._body(function)
        if body is None:
            return frozenset()
        positions: set[int] = set()
        for position, edge in enumerate(body.results):
            passed: set[str] = set()
            while edge.node not in passed and _passes_on(body.nodes.get(edge.node)):
                passed.add(edge.node)
                edge = next(iter(body.inputs[edge.node]), edge)
            if position < len(body.arguments) and edge == body.arguments[position]:
                positions.add(position)
        return frozenset(positions)

    # Nodes.

    def everything(self, inputs: Sequence[Flow], decides: int = 0) -> Flow:
        """Return the flow of something that may be anything that the section can compute."""
        sources = self._arguments | total_of(inputs) | self.memory.everything() | decides
        return Flow(sources, sources, None, frozenset((ANYTHING,)))

    def node(self, node: NodeView, inputs: list[Flow], run: _Run, decides: int) -> tuple[Flow, ...]:
        """Return the flows of a node's outputs; `decides` are the sources of whether and how often
        it runs."""
        body, depth = run.body, run.depth
        operation = op_table.find(node.op)
        if node.op in self._library.functions and operation is None:
            return self.call(node.op, inputs, decides, depth).results
        inputs = list(map(self.memory.dereferenced, inputs))
        own = frozenset((cell_of(node, body.name),))
        effect = effect_of(node, body.nodes)
        makes_state = self._makes_state(node, operation, inputs)
        if has_named_state(node):
            self.memory.add(own)
            if not makes_state:
                inputs = [*inputs, Flow(handles=own)]
        self._record(node, inputs, effect, body, decides)
        fails = failures_of(inputs)
        if operation is None or operation.names_functions:
            # Functions may fail by anything that they get.
            fails |= total_of(inputs) | self.memory.behind(inputs) | decides
        if effect in AFAR or operation is None:
            flows = self._outside_of(node, inputs, effect, decides, depth)
        elif makes_state and not operation.names_functions and not handles_of(inputs):
            flows = (Flow(total_of(inputs)),)
        else:
            flows = self._inside(node, inputs, own, decides, depth)
        if makes_state:
            total = total_of(inputs)
            self.memory.write(own, Flow(total, total, fails=fails), decides)
            flows = tuple(flow.with_handles(own) for flow in flows)
            if operation is None or operation.has_references:
                self.memory.refer(own)
        draw = self._draw(node, effect, body)
        if draw:
            flows = tuple(_drawn(flow, draw) for flow in flows)
        return tuple(flow.with_failures(fails) for flow in flows)

    def _inside(
        self, node: NodeView, inputs: list[Flow], own: frozenset[str], decides: int, depth: int
    ) -> tuple[Flow, ...]:
        """Return the outputs of an operation that reaches only the state behind its inputs, and
        what its kernel keeps."""
        heading = read_table(TABLE).get(node.op, "")
        if heading == REMEMBERING or (not heading and "Dataset" in node.op):
            cell = frozenset(f"dataset {node_cell}" for node_cell in own)
            self.memory.add(cell)
            inputs = [*inputs, Flow(handles=cell)]
        rule = RULES.get(heading)
        if rule is not None and len(inputs) >= rule.inputs:
            return rule.flows(self, node, inputs, decides, depth)
        kernel = keeps_state(node)
        if kernel:
            cell = frozenset(f"kernel {node_cell}" for node_cell in own)
            self.memory.write(cell, Flow(total_of(inputs)), decides)
            inputs = [*inputs, Flow(handles=cell)]
        return self._operation(node, heading, inputs, decides, depth)

    def _operation(
        self, node: NodeView, heading: str, inputs: list[Flow], decides: int, depth: int
    ) -> tuple[Flow, ...]:
        heading, _, places = heading.partition(" by ")
        shapes = union(tensor.shape for tensor in inputs)
        if heading == "same" and inputs:
            return (inputs[0],)
        # A variant has sizes of its own, which are not those of the tensor that holds it.
        if has_variants(node) or any(map(_holds_more, inputs)):
            return self.unknown(node, inputs, decides, depth)
        match heading:
            case "elementwise":
                return (Flow(union(tensor.value for tensor in inputs), shapes),)
            case "rearranged" if inputs:
                return (Flow(inputs[0].value, shapes | total_of(inputs[1:])),)
            case "shape":
                is_filled = node.op in ("OnesLike", "ZerosLike")
                outputs = (Flow(0, f.shape) if is_filled else Flow(f.shape) for f in inputs)
                return tuple(outputs) or (NOTHING,)
            case "shaped":
                at = (p for p in map(int, places.split()) if -len(inputs) <= p < len(inputs))
                return (Flow(total_of(inputs), shapes | total_of(inputs[p] for p in at)),)
            case _:
                return self.unknown(node, inputs, decides, depth)

    def unknown(
        self, node: NodeView, inputs: Sequence[Flow], decides: int, depth: int
    ) -> tuple[Flow, ...]:
        """Return the outputs of an operation that may take all inputs to all outputs, and to all
        state that it can reach.  It may call the functions that it names with anything."""
        memory = self.memory
        handles, sources = handles_of(inputs), total_of(inputs) | memory.behind(inputs)
        sources |= failures_of(inputs)
        if node.op in CATCHES_FAILURES:
            sources |= self._arguments | memory.everything() | decides
        while True:
            argument = Flow(sources, sources, None, handles)
            results = (argument, *self._functions_of_unknown(node, argument, decides, depth))
            more, beyond = total_of(results) | memory.behind(results), handles_of(results)
            if more == sources and beyond == handles:
                break
            sources, handles = more, beyond
        if not handles:
            return (Flow(sources, sources),)
        reached = memory.reached(handles)
        memory.write(reached, Flow(sources, sources, None, reached), decides)
        return (Flow(sources, sources, None, reached if may_carry(node) else NO_HANDLES),)

    def _functions_of_unknown(
        self, node: NodeView, argument: Flow, decides: int, depth: int
    ) -> list[Flow]:
        flows: list[Flow] = []
        names = [call.name for call in named_functions(node.attr)]
        for name in (*names, *(self._library.gradients.get(function, "") for function in names)):
            if name in self._library.functions:
                arguments = [argument] * self.width(name, 0)
                outcome = self.call(name, arguments, decides | argument.total(), depth)
                flows.extend(outcome.results)
                # Whoever gets the output may run the function again.
                flows.append(Flow(handles=outcome.touched))
        return flows

    def _outside_of(
        self, node: NodeView, inputs: list[Flow], effect: Effect | None, decides: int, depth: int
    ) -> tuple[Flow, ...]:
        """Return the outputs of an operation that may find what any other left outside of
        TensorFlow, or by a name that it computes."""
        everything = self._arguments | decides | total_of(inputs) | self.memory.everything()
        if effect is Effect.CLOCK:
            return (Flow(everything),)
        handles = frozenset((ANYTHING, OUTSIDE))
        sources = total_of(inputs) | decides | self.memory.everything()
        if effect is Effect.OTHER or effect is None:
            sources = everything
        while True:
            argument = Flow(sources, sources, None, handles)
            more = sources | total_of(self._functions_of_unknown(node, argument, decides, depth))
            if more == sources:
                break
            sources = more
        # What is written by name may be found behind any handle.
        carried = frozenset((ANYTHING,)) if handles_of(inputs) else NO_HANDLES
        left = Flow(sources, sources, None, carried)
        self.memory.write(frozenset((OUTSIDE,)), left, decides)
        return (argument if may_carry(node) else Flow(sources, sources),)

    # State, effects and draws.

    def _makes_state(
        self, node: NodeView, operation: op_table.Operation | None, inputs: Sequence[Flow]
    ) -> bool:
        """Tell whether a node's outputs are handles of state of its own, or of its name."""
        if not may_carry(node, plain_variants=True):
            return False
        if operation is None or operation.is_stateful or has_named_state(node):
            return True
        return not handles_of(inputs)

    def _record(
        self,
        node: NodeView,
        inputs: Sequence[Flow],
        effect: Effect | None,
        body: Body,
        decides: int,
    ) -> None:
        """Write what a node shows or passes on to the cell of its effect."""
        shows = showing(node.op)
        if effect in OUTSIDE_KINDS:
            kind = OUTSIDE_KINDS[effect]
        elif shows in PRINTED:
            kind = SHOWN
        elif shows is not None:
            kind = ERRORS
        else:
            return
        cell = f"{kind} {body.name}/{node.name}"
        self._seen[cell] = NodeEffect(kind, node.op, body.name, node.name)
        self.memory.show(cell, total_of(inputs) | self.memory.behind(inputs) | decides)

    def _draw(self, node: NodeView, effect: Effect | None, body: Body) -> int:
        is_drawn = effect is Effect.RANDOM or is_seeded_by_attributes(node.op)
        if not is_drawn and first_seed(node.op) is None and not DRAWS.fullmatch(node.op):
            return 0
        if node.op.endswith("Dataset") and node.op not in OF_RANDOM_NUMBERS:
            return 0
        draw = Draw(node.op, body.name, node.name, effect is Effect.RANDOM)
        return self._source_of(draw)


class _Run:
    """One evaluation of a body for arguments."""

    def __init__(
        self,
        walk: SectionWalk,
        body: Body,
        arguments: tuple[Flow, ...],
        decides: int,
        depth: int,
    ) -> None:
        self.body = body
        self.depth = depth
        self._walk = walk
        self._decides = decides
        if len(arguments) != len(body.arguments):
            arguments = (join_all(arguments),) * len(body.arguments)
        self._given = dict(zip(body.arguments, arguments, strict=True))
        self._outputs: dict[str, tuple[Flow, ...]] = {}
        self._alive: dict[str, int] = {}
        """The sources that decide whether and how often each node runs."""

    def nodes(self) -> None:
        """Evaluate the nodes, those in loops until their flows are stable."""
        passes = 0
        while self._pass(passes >= MOST_PASSES) and self.body.has_loops:
            passes += 1

    def _pass(self, is_late: bool) -> bool:
        """Evaluate each node once; tell whether an output has grown.

        A late pass takes the join of everything for every input.
        """
        grew = False
        body = self.body
        everything = NOTHING
        if is_late:
            flows = (
                *self._given.values(),
                *(f for outputs in self._outputs.values() for f in outputs),
            )
            everything = self._walk.everything(flows, union(self._alive.values()))
        for name, node in body.nodes.items():
            inputs = [everything if is_late else self.at(edge) for edge in body.inputs[name]]
            alive = everything.total() if is_late else self._decides_about(name)
            flows = self._walk.node(node, inputs, self, alive)
            if _chooses(node.op) and len(inputs) > 1:
                alive |= total_of(inputs[1:])
            before = self._outputs.get(name)
            if before is not None and body.has_loops:
                width = max(len(before), len(flows))
                flows = tuple(map(join, widened(before, width), widened(flows, width)))
            grew = grew or flows != before or alive != self._alive.get(name)
            self._outputs[name] = flows
            self._alive[name] = alive | self._alive.get(name, 0)
        return grew

    def _decides_about(self, name: str) -> int:
        """Return what decides whether a node runs: TensorFlow runs it if all its inputs are
        there."""
        sources = self._decides
        for edge in self.body.inputs[name]:
            sources |= self._alive.get(edge.node, 0)
        for control in self.body.controls[name]:
            sources |= self._alive.get(control, 0)
        return sources

    def at(self, edge: Edge) -> Flow:
        """Return the flow of an output of a node, or of an argument."""
        if edge in self._given:
            return self._given[edge]
        if edge.node not in self.body.nodes:
            return self._walk.everything(tuple(self._given.values()))
        flows = self._outputs.get(edge.node, (NOTHING,))
        if len(flows) == 1:
            return flows[0]
        if edge.port == ANY_PORT or edge.port >= len(flows):
            return join_all(flows)
        return flows[edge.port]


def _holds_more(flow: Flow) -> bool:
    return flow.elements is not None or bool(flow.handles)


def _drawn(flow: Flow, draw: int) -> Flow:
    if flow.elements is None:
        return dataclasses.replace(flow, value=flow.value | draw)
    elements = tuple(_drawn(component, draw) for component in flow.elements)
    return dataclasses.replace(flow, elements=elements)


def _chooses(op: str) -> bool:
    """Tell whether an operation has outputs of which only one is there, chosen by its inputs."""
    return op in ("Switch", "RefSwitch", "_SwitchN")


def _passes_on(node: NodeView | None) -> bool:
    return node is not None and node.op == "Identity"
