"""Symbolic evaluation of compiled sections."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence, Set
from typing import Any

from google.protobuf.message import DecodeError

from tffc.ir.nodes import Compiled
from tffc.ir.type_parts import leaves
from tffc.ir.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.ir.wire import (
    SectionBinding,
    SequenceBinding,
    StructBinding,
    TensorBinding,
    read_tensorflow,
    read_xla,
)
from tffc.operations import hlo, op_table
from tffc.operations.effects import Effect
from tffc.proof.attributes import module_label, number, types_in
from tffc.proof.graph import (
    BRANCHES,
    MAPPED,
    Library,
    Node,
    Plan,
    Reader,
    Step,
    function_edge,
    graph_edge,
)
from tffc.proof.terms import GROUP, IMPURE, OUTPUT, OWN, PURE, Terms
from tffc.proof.undecided import Undecided
from tffc.proto import GraphDef
from tffc.trampoline import Task

STRING = 7
COLOCATION = b"loc:@"
AFTER = "after"


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """The place where code runs: a side, and how many functions applied to elements of sequences
    enclose it."""

    side: str
    depth: int = 0

    def inner(self) -> Place:
        """Return the place inside a function applied to elements of a sequence."""
        return Place(self.side, self.depth + 1)


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    """A TensorFlow section that has been read.

    `first` initializes it, and then `main` computes the results.  `within` does both in one run,
    for a section whose initialization depends on its argument, or that is called for each element
    of a sequence.  Nothing depends on the nodes in `unused`.
    """

    library: Library
    main: Plan
    first: Plan | None
    within: Plan
    has_token: bool
    unused: Set[str]


class _Run:
    """A run of a graph: the state that it created, and what initialization did to that state."""

    def __init__(self, place: Place, *, in_function: bool = False) -> None:
        self.place = place
        self.in_function = in_function
        self.states: dict[Hashable, int] = {}
        self.kinds: dict[Hashable, Hashable] = {}
        self.touched: dict[int, list[int]] = {}
        self.named: list[tuple[Hashable, Hashable]] = []
        self.is_first = False


class Sections:
    """An evaluator of sections, which reads each once."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.reader = Reader()
        self._read: dict[tuple[bytes, Type], Section] = {}
        self._of_program: frozenset[tuple[bytes, Type]] = frozenset()
        self._known: dict[tuple[int, tuple[int, ...], int], tuple[int, ...]] = {}

    def call(self, section: Compiled, arguments: Sequence[int], place: Place) -> Task[Any]:
        """Return the leaves of a section's result, given those of its argument."""
        assert isinstance(section.type, FunctionType)
        if section.kind != "tensorflow":
            return self._call_xla(section, tuple(arguments), place)
        key = section.payload, section.type
        if key not in self._read:
            self._read[key] = self._section(section, section.type)
        read = self._read[key]
        given = tuple(arguments)
        known = self._known.get((id(read), given, place.depth))
        if known is not None:
            return known
        made = len(self.terms.origins)
        found = yield self._run(read, given, place)
        # Results with new runs are not remembered: the next call draws again.
        if len(self.terms.origins) == made and self.terms.count is None:
            self._known[id(read), given, place.depth] = found
        return found

    def begin_form(self) -> None:
        """Record the sections called so far as those of the program."""
        self._of_program = frozenset(self._read)

    def check_whole(self, section: Compiled) -> None:
        """Check that a called section has no unneeded nodes or functions, unless the program calls
        the same section."""
        key = section.payload, section.type
        if key not in self._read or key in self._of_program:
            return
        read = self._read[key]
        if read.unused or read.library.functions.keys() - read.library.plans.keys():
            raise Undecided("a component with nodes or functions that no result needs")

    def _call_xla(
        self, section: Compiled, arguments: tuple[int, ...], place: Place
    ) -> tuple[int, ...]:
        """Return the results of an XLA module, which counts as one operation.

        If it has StableHLO too, it counts as the TensorFlow operation that runs StableHLO.
        """
        assert isinstance(section.type, FunctionType)
        content = read_xla(section.payload)
        parameter, result = section.type.parameter, section.type.result
        taken = [] if content.parameter is None else _places(content.parameter)
        given = _places(content.result)
        kinds = [] if parameter is None else leaves(parameter)
        if len(taken) != len(kinds) or len(given) != len(leaves(result)):
            raise Undecided("a malformed graph", "an XLA module is bound otherwise than its type")
        inputs = tuple(arguments[index] for index in _ordered(taken))
        label: Hashable = ("XLA", content.hlo_module)
        if content.stablehlo:
            outputs = [leaves(result)[index] for index in _ordered(given)]
            label = module_label(
                content.stablehlo, [kinds[index] for index in _ordered(taken)], outputs
            )
        if any(map(_is_impure, hlo.instructions(content.hlo_module))):
            call = itself(self.terms, label, inputs, IMPURE, place)
        else:
            call = self.terms.value(label, inputs)
        return tuple(self.terms.output(call, i) for i in given)

    def _run(self, section: Section, given: tuple[int, ...], place: Place) -> Task[Any]:
        run = _Run(place)
        arguments = given
        if section.has_token:
            arguments = (*given, self.terms.value("session token"))
        if place.depth or section.first is None:
            _, results = yield self._steps(section.within, arguments, section.library, run)
            return results
        if section.main.has_state:
            run.is_first = True
            done, _ = yield self._steps(section.first, (), section.library, run)
            self._check_initialized(done, run)
            run.is_first = False
        _, results = yield self._steps(section.main, arguments, section.library, run)
        return results

    def _check_initialized(self, done: list[int], run: _Run) -> None:
        """Check that initialisation only acts on state."""
        touched = {term for terms in run.touched.values() for term in terms}
        for term in self._waits(done[-1:]):
            if self.terms.taints[term] != PURE and term not in touched:
                raise Undecided("an initialization that does more than make state")

    # Graphs.

    def _steps(
        self, plan: Plan, arguments: tuple[int, ...], library: Library, run: _Run
    ) -> Task[Any]:
        """Return the terms of the steps, and of the results."""
        terms = self.terms
        terms.spend(len(plan.steps))
        values = list(arguments)
        for step in plan.steps:
            facts = step.facts
            data = tuple(terms.output(values[index], port) for index, port in step.data)
            controls = ()
            if step.controls:
                controls = self._waits((values[index] for index in step.controls), run.place.depth)
            if facts.functions or facts.op in MAPPED:
                values.append((yield self._call(step, data, controls, library, run)))
            elif facts.op == "Identity" and len(data) == 1:
                values.append(terms.value(AFTER, (*data, *controls)) if controls else data[0])
            elif facts.op == "NoOp":
                values.append(terms.value(GROUP, controls))
            elif step.state is not None:
                values.append(self._state(step.state, facts.label, run, controls))
            else:
                values.append(self._operation(step, data, controls, run))
        results = tuple(terms.output(values[index], port) for index, port in plan.results)
        return values[len(arguments) :], results

    def _waits(self, controls: Iterable[int], depth: int = 0) -> tuple[int, ...]:
        """Return the terms that control edges wait for, with groups expanded.

        In a function applied to elements of a sequence, pure terms are left out: captured values
        are computed before the call.
        """
        terms = self.terms
        found: dict[int, None] = {}
        for term in controls:
            label = terms.labels[term]
            if label == GROUP:
                found.update(dict.fromkeys(terms.children[term]))
            elif isinstance(label, tuple) and label[0] == OUTPUT:
                found[terms.children[term][0]] = None
            else:
                found[term] = None
        return tuple(each for each in found if not depth or terms.taints[each] != PURE)

    def _operation(
        self, step: Step, data: tuple[int, ...], controls: tuple[int, ...], run: _Run
    ) -> int:
        terms, facts = self.terms, step.facts
        label: Hashable = (facts.label, len(data)) if controls else facts.label
        children = (*data, *controls)
        if facts.op == "Placeholder" and not run.in_function:
            raise Undecided("a placeholder that is not a parameter")
        if facts.taint == PURE or facts.op in BRANCHES:
            return terms.value(label, children, facts.taint)
        return self._itself(label, data, children, facts.taint, run)

    def _itself(
        self,
        label: Hashable,
        data: tuple[int, ...],
        children: tuple[int, ...],
        taint: int,
        run: _Run,
    ) -> int:
        made = itself(self.terms, label, children, taint, run.place)
        if run.is_first:
            for each in data:
                if each in run.touched:
                    run.touched[each].append(made)
        return made

    def _state(
        self, state: Hashable, label: Hashable, run: _Run, controls: tuple[int, ...] = ()
    ) -> int:
        """Return the state that a node finds by name, after initialization.

        In a function, it is a symbol: the caller passes the state of that name.
        """
        if state not in run.states:
            if run.in_function:
                if run.place.depth:
                    raise Undecided("state that a function of a sequence finds by name")
                made = self.terms.value(("state", len(run.named), label), (), OWN)
                run.named.append((state, label))
            else:
                whole: Hashable = (label, 0) if controls else label
                made = itself(self.terms, whole, controls, OWN, run.place)
            run.states[state], run.kinds[state] = made, label
            run.touched[made] = []
        made = run.states[state]
        if run.kinds[state] != label:
            raise Undecided("one name of state for two kinds of it")
        if run.is_first or not run.touched[made]:
            return made
        return self.terms.value("initialized", (made, *run.touched[made]))

    # Functions.

    def _call(
        self,
        step: Step,
        data: tuple[int, ...],
        controls: tuple[int, ...],
        library: Library,
        run: _Run,
    ) -> Task[Any]:
        facts = step.facts
        if facts.op in MAPPED and len(facts.functions) == 1:
            return (yield self._mapped(step, data, controls, library, run))
        functions: list[int] = []
        for name in facts.functions:
            functions.append((yield self._function(name, library)))
            for state, made in library.states[name]:
                data = (*data, self._state(state, made, run))
        label = (facts.label, len(data), len(functions), len(controls))
        children = (*data, *functions, *controls)
        taint = max([facts.taint, *(self.terms.taints[each] for each in functions)])
        if taint == PURE:
            return self.terms.value(label, children)
        return self._itself(label, data, children, taint, run)

    def _function(self, name: str, library: Library) -> Task[Any]:
        """Return the term of a library function, whose body runs again in each call."""
        if name in library.terms:
            found = library.terms[name]
            if found is None:
                raise Undecided("a function that calls itself")
            return found
        # Marks the function as being evaluated, which detects recursion.
        library.terms[name] = None
        plan = self._plan(name, library)
        signature = library.functions[name].signature
        types = (
            tuple(argument.type for argument in signature.input_arg),
            tuple(argument.type for argument in signature.output_arg),
        )
        terms = self.terms
        # Runs inside the body are numbered from 0, so that equal functions have equal terms.
        outer, terms.count = terms.count, 0
        try:
            arguments = tuple(terms.value(("argument", i)) for i, _ in enumerate(types[0]))
            run = _Run(Place("function"), in_function=True)
            values, results = yield self._steps(plan, arguments, library, run)
        finally:
            terms.count = outer
        others = tuple(dict.fromkeys(values[plan.extra :]))
        gradient = library.gradients.get(name)
        inner = [] if gradient is None else [(yield self._function(gradient, library))]
        label = ("function", *types, signature.is_stateful, len(others), len(inner))
        made = terms.value(label, (*results, *others, *inner))
        library.states[name] = run.named
        library.terms[name] = made
        return made

    def _plan(self, name: str, library: Library) -> Plan:
        if name not in library.functions:
            raise Undecided("a malformed graph", f"its library does not have {name!r}")
        if name not in library.plans:
            function = library.functions[name]
            nodes = {each.name: each for each in map(Node, function.node_def)}
            arguments: dict[str, int] = {}
            for index, argument in enumerate(function.signature.input_arg):
                arguments[argument.name] = arguments[f"^{argument.name}"] = index
            resolve = function_edge(nodes, library)
            results = [
                resolve(function.ret[output.name]) for output in function.signature.output_arg
            ]
            types = [argument.type for argument in function.signature.input_arg]
            plan = self.reader.plan(nodes, arguments, results, library, resolve, list(nodes), types)
            library.plans[name] = plan
        return library.plans[name]

    def _mapped(
        self,
        step: Step,
        data: tuple[int, ...],
        controls: tuple[int, ...],
        library: Library,
        run: _Run,
    ) -> Task[Any]:
        """Return an operation that applies a function to the elements of a dataset.

        Captured values are substituted into the function's body, however they were passed.
        """
        facts = step.facts
        (name,) = facts.functions
        if name in library.entered:
            raise Undecided("a function that calls itself")
        plan = self._plan(name, library)
        count = _count(facts.label, "Targuments")
        carried = _count(facts.label, "Tstate")
        captured = data[len(data) - count :]
        if len(data) != 1 + carried + count or plan.arguments < carried + count:
            raise Undecided("a malformed graph", f"a {facts.op} has too few inputs")
        symbols = element_symbols(self.terms, run.place, carried, plan.arguments - carried - count)
        inner = _Run(run.place.inner(), in_function=True)
        library.entered.add(name)
        values, results = yield self._steps(plan, (*symbols, *captured), library, inner)
        library.entered.remove(name)
        body = (*results, *dict.fromkeys(values[plan.extra :]))
        given = data[: 1 + carried]
        return sequence_operation(
            self.terms, facts.label, given, body, controls, facts.taint, run.place
        )

    # Reading.

    def _section(self, section: Compiled, kind: FunctionType) -> Section:
        content = read_tensorflow(section.payload)
        try:
            graph = GraphDef.FromString(content.graph_def)
        except DecodeError:
            raise Undecided("a malformed graph", "it is not a GraphDef") from None
        nodes = {node.name: node for node in map(Node, graph.node)}
        if len(nodes) != len(graph.node):
            raise Undecided("a malformed graph", "two nodes have one name")
        library = Library(graph.library)
        _check_neighbours(nodes)
        arguments: dict[str, int] = {}
        token = content.session_token_tensor_name
        given = [] if content.parameter is None else _bound(content.parameter, kind.parameter)
        kinds = [] if kind.parameter is None else [number(leaf) for leaf in leaves(kind.parameter)]
        if len(kinds) != len(given):
            raise Undecided("a malformed graph", "it does not bind its parameter")
        fed = [*given, token] if token else given
        for index, tensor in enumerate(fed):
            name, port = graph_edge(tensor)
            _check_type(nodes.get(name), port, kinds[index] if index < len(given) else STRING)
            edge = f"{name}:{port}" if port else name
            if edge in arguments:
                raise Undecided("a malformed graph", "one tensor is two parameters")
            arguments[edge] = index
            arguments.setdefault(f"^{name}", index)
        plan = functools.partial(
            self.reader.plan,
            arguments=arguments,
            results=[graph_edge(tensor) for tensor in _bound(content.result, kind.result)],
            library=library,
            resolve=graph_edge,
            types=[*kinds, STRING],
        )
        main = plan(nodes)
        used = main.names.union(map(_node, arguments))
        init = content.initialize_op.removeprefix("^")
        if not init:
            return Section(library, main, None, main, bool(token), nodes.keys() - used)
        before = self.reader.needed(nodes, arguments, init)
        within = plan(_waiting(nodes, arguments, before, init))
        edges = {edge for name in before for edge in nodes[name].input}
        own = [edge for edge in arguments if not token or _node(edge) != _node(token)]
        first = None
        if edges.isdisjoint(own):
            first = self.reader.plan(nodes, {}, [(init, 0)], library, graph_edge)
        return Section(library, main, first, within, bool(token), nodes.keys() - used - before)


def _check_neighbours(nodes: Mapping[str, Node]) -> None:
    """Check that every node exists that another one must be colocated with."""
    for node in nodes.values():
        for name in node.attr["_class"].list.s if "_class" in node.attr else ():
            beside = name.removeprefix(COLOCATION)
            if beside != name and beside.decode(errors="replace") not in nodes:
                raise Undecided("a malformed graph", f"it does not have the node {beside!r}")


def _check_type(node: Node | None, port: int, expected: int) -> None:
    """Check that a tensor bound to a parameter exists and has its element type."""
    operation = None if node is None else op_table.find(node.op)
    if node is None or operation is None:
        raise Undecided("a malformed graph", "it does not have its parameter")
    types = [dtype for _, _, dtype in operation.ports(node.attr)]
    if port >= len(types) or types[port] != expected:
        raise Undecided("a malformed graph", "its parameter is of another type")


def _node(edge: str) -> str:
    return edge.removeprefix("^").partition(":")[0]


def _waiting(
    nodes: Mapping[str, Node], arguments: Container[str], before: set[str], init: str
) -> dict[str, Node]:
    """Return the nodes of a graph that is initialized within its run.

    Except nodes without inputs, all nodes that initialization does not depend on wait for it,
    directly or through an input.
    """
    early = before.union(name for name, node in nodes.items() if not node.input)
    made = dict(nodes)
    for name, node in nodes.items():
        edges = [edge.removesuffix(":0") for edge in node.input]
        if name not in early and all(e in arguments or _node(e) in early for e in edges):
            made[name] = node.with_input([*node.input, f"^{init}"])
    return made


def element_symbols(terms: Terms, place: Place, carried: int, elements: int) -> tuple[int, ...]:
    """Return the symbols for the arguments of a function applied to elements of a sequence, the
    carried state first."""
    return tuple(
        terms.value(("element", place.depth, "carried" if i < carried else "of", i))
        for i in range(carried + elements)
    )


def sequence_operation(
    terms: Terms,
    label: Hashable,
    data: tuple[int, ...],
    body: tuple[int, ...],
    controls: tuple[int, ...],
    taint: int,
    place: Place,
) -> int:
    """Return an operation on a dataset whose function has this body.

    A map with the identity returns the dataset itself.
    """
    assert isinstance(label, tuple)
    if label[0] == "MapDataset" and not controls and taint == PURE:
        if body == element_symbols(terms, place, 0, len(body)):
            return data[0]
    kept = tuple(part for part in label if not (isinstance(part, tuple) and part[0] in LOOKED_INTO))
    whole = (kept, len(data), len(body), len(controls))
    if taint == PURE:
        return terms.value(whole, (*data, *body, *controls))
    return itself(terms, whole, (*data, *body, *controls), taint, place)


def itself(
    terms: Terms, label: Hashable, children: tuple[int, ...], taint: int, place: Place
) -> int:
    """Return a new run of an operation at a place.

    State that is new in each run may move between the server and a client, but not into or out of a
    function that is applied to each element of a sequence.
    """
    where = place.depth if taint == OWN else place
    return terms.instance((label, where), children, taint)


LOOKED_INTO = ("Targuments", "f")


def _count(label: Any, name: str) -> int:
    """Return how many element types an attribute lists."""
    return next((types_in(part[1]) for part in label if part[0] == name), 0)


def _is_impure(instruction: tuple[str, str]) -> bool:
    return hlo.effect_of(*instruction) not in (None, Effect.OWN_STATE)


def _places(root: SectionBinding) -> list[int]:
    """Return the indices of a binding's tensors in the module; they must be 0, 1, 2 and so on in
    any order."""
    found: list[int] = []
    stack = [root]
    while stack:
        binding = stack.pop()
        if isinstance(binding, StructBinding):
            stack.extend(reversed(binding.elements))
        elif isinstance(binding, TensorBinding) and isinstance(binding.tensor, int):
            found.append(binding.tensor)
    if sorted(found) != list(range(len(found))):
        raise Undecided("a malformed graph", "an XLA module is bound otherwise than its type")
    return found


def _ordered(places: list[int]) -> list[int]:
    """Return the inverse of a permutation."""
    return sorted(range(len(places)), key=places.__getitem__)


def _bound(root: SectionBinding, kind: Type | None) -> list[str]:
    """Return the tensors of a binding, whose structure must be that of the type."""
    found: list[str] = []
    stack: list[tuple[SectionBinding, Type | None]] = [(root, kind)]
    while stack:
        binding, expected = stack.pop()
        match binding, expected:
            case StructBinding(), StructType() if len(binding.elements) == len(expected):
                stack.extend(zip(reversed(binding.elements), reversed(expected.types), strict=True))
            case TensorBinding(str() as name), TensorType():
                found.append(name)
            case SequenceBinding(variant=name), SequenceType():
                found.append(name)
            case _:
                raise Undecided("a malformed graph", f"it does not bind a `{expected}`")
    return found
