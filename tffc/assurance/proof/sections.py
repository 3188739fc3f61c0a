"""Symbolic evaluation of compiled sections."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Sequence

from tffc.assurance.proof import loading
from tffc.assurance.proof.attributes import module_label
from tffc.assurance.proof.contents import (
    element_kinds,
    function_content,
    has_only_shapes,
    is_general,
    promised_shapes,
    shape_of,
)
from tffc.assurance.proof.declared import Declared
from tffc.assurance.proof.fields import Message
from tffc.assurance.proof.graph import (
    BRANCHES,
    MAPPED,
    REPEATABLE,
    Library,
    Plan,
    Reader,
    Step,
)
from tffc.assurance.proof.iterations import Iterations, iterates_once
from tffc.assurance.proof.loading import malformed
from tffc.assurance.proof.modules import taint_of_module
from tffc.assurance.proof.passes import Pass, Passes
from tffc.assurance.proof.reading import Section, ordered, places_of, read_section
from tffc.assurance.proof.runs import Evaluated, Owed, Run, effects_besides_state
from tffc.assurance.proof.sequences import (
    Place,
    check_types,
    count,
    element_symbols,
    is_unchanged,
    itself,
    sequence_operation,
)
from tffc.assurance.proof.terms import GROUP, OUTPUT, OWN, PURE, Terms, has_parts
from tffc.assurance.proof.undecided import Undecided
from tffc.graphs.body import Edge
from tffc.language.nodes import Compiled
from tffc.language.type_parts import leaves
from tffc.language.types import FunctionType, Type
from tffc.language.wire import read_xla, write_xla
from tffc.support.trampoline import Task

AFTER = "after"
INITIALIZED = "initialized"
KERNELS = "kernels of"
"""The state that the kernels of a function keep, which all calls of it in one graph share."""

XLA = "XLA"
"""The operation of a module without StableHLO, or with another than the program's."""


class Sections:
    """An evaluator of sections, which reads each once.

    `owed` has what the initializations of the called sections do, those of the form from `of_form`
    on.  `declared` has the types that the program declares.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.reader = Reader()
        self.owed: list[Owed] = []
        self.of_form = 0
        self.declared = Declared(terms)
        self.iterations = Iterations(terms)
        self._initialized = 0
        self._passes: dict[int, tuple[Plan, Passes]] = {}
        self._modules: set[tuple[bytes, bytes]] = set()
        self._read: dict[tuple[bytes, Type], Section] = {}
        self._of_program: frozenset[tuple[bytes, Type]] | None = None
        self._known: dict[tuple[int, tuple[int, ...], int], tuple[int, ...]] = {}

    def call(
        self, section: Compiled, arguments: Sequence[int], place: Place
    ) -> Task[tuple[int, ...]]:
        """Return the leaves of a section's result, given those of its argument."""
        assert isinstance(section.type, FunctionType)
        if section.kind != "tensorflow":
            return self._call_xla(section, tuple(arguments), place)
        key = section.payload, section.type
        if key not in self._read:
            self._read[key] = read_section(
                section, self.reader, is_of_program=self._of_program is None
            )
        read = self._read[key]
        inputs = tuple(arguments)
        self._note(read, section.type.parameter, inputs, place)
        known = self._known.get((id(read), inputs, place.depth))
        if known is not None:
            return known
        runs_before = len(self.terms.origins)
        if section.type.parameter is not None:
            kinds = leaves(section.type.parameter)
            if len(kinds) != len(inputs):
                raise Undecided("components that do not fit each other")
            self.declare(kinds, inputs)
        start = self._initialized = len(self.terms.labels)
        results: tuple[int, ...] = yield self._run(read, inputs, place)
        kinds = leaves(section.type.result)
        if self._of_program is None:
            self.iterations.check_order(kinds, results, start, self._initialized)
        results = self.iterations.handed(kinds, results, place.depth)
        self.declare(kinds, results)
        # Results with new runs are not remembered: the next call draws again.
        if len(self.terms.origins) == runs_before and self.terms.count is None:
            self._known[id(read), inputs, place.depth] = results
        return results

    def _note(
        self, section: Section, parameter: Type | None, inputs: tuple[int, ...], place: Place
    ) -> None:
        """Note the iterations of a section of the program over its argument."""
        if parameter is None or self._of_program is not None:
            return
        for index, (kind, term) in enumerate(zip(leaves(parameter), inputs, strict=False)):
            once = functools.partial(iterates_once, section.within, index)
            self.iterations.note(kind, term, place.depth, once)

    def declare(self, kinds: Iterable[Type], terms: Iterable[int]) -> None:
        """Note that a side declares these types for the leaves of a value."""
        self.declared.declare(kinds, terms)

    def begin_form(self) -> None:
        """Record the sections called so far as those of the program."""
        self._of_program = frozenset(self._read)
        self.of_form = len(self.owed)
        self.declared.begin_form()

    def check_whole(self, section: Compiled) -> None:
        """Check that a called section has no unneeded nodes or functions, unless the program calls
        the same section."""
        key = section.payload, section.type
        if key not in self._read or key in (self._of_program or ()):
            return
        read = self._read[key]
        if read.unused or read.library.functions.keys() - read.library.plans.keys():
            raise Undecided("a component with nodes or functions that no result needs")

    def _call_xla(
        self, section: Compiled, arguments: tuple[int, ...], place: Place
    ) -> tuple[int, ...]:
        """Return the results of an XLA module, which counts as one operation.

        If it has StableHLO too, that is what it means, and it counts as the TensorFlow operation
        that runs StableHLO.  A module of a form counts so only if the program has the same HLO
        beside the same StableHLO, for another system may run the HLO.
        """
        assert isinstance(section.type, FunctionType)
        content = read_xla(section.payload)
        parameter, result = section.type.parameter, section.type.result
        inputs_at = [] if content.parameter is None else places_of(content.parameter, parameter)
        outputs_at = places_of(content.result, result)
        kinds = [] if parameter is None else leaves(parameter)
        if (content.parameter is None) != (parameter is None):
            malformed("an XLA module is bound otherwise than its type")
        if len(inputs_at) != len(kinds) or len(outputs_at) != len(leaves(result)):
            malformed("an XLA module is bound otherwise than its type")
        if write_xla(content) != section.payload:
            raise Undecided("a section with unknown fields")
        inputs = tuple(arguments[index] for index in ordered(inputs_at))
        label: Hashable = (XLA, content.hlo_module, content.stablehlo)
        pair = content.hlo_module, content.stablehlo
        if self._of_program is None:
            self._modules.add(pair)
        if content.stablehlo and pair in self._modules:
            outputs = [leaves(result)[index] for index in ordered(outputs_at)]
            label = module_label(
                content.stablehlo, [kinds[index] for index in ordered(inputs_at)], outputs
            )
        taint = taint_of_module(content.hlo_module, content.stablehlo)
        if taint == PURE:
            call = self.terms.value(label, inputs)
        else:
            call = itself(self.terms, label, inputs, taint, place)
        results = tuple(self.terms.output(call, i) for i in outputs_at)
        self.declare(leaves(result), results)
        return results

    def _run(
        self, section: Section, inputs: tuple[int, ...], place: Place
    ) -> Task[tuple[int, ...]]:
        run = Run(place, section.library)
        arguments = inputs
        if section.has_token:
            arguments = (*inputs, self.terms.value("session token", fails=False))
        if place.depth or section.first is None:
            values, results = yield self._steps(section.within, arguments, run)
            self._check_repeated(section, values, run)
            if section.beside is not None:
                self._owe(values[section.beside], results, run)
            return results
        run.is_first = True
        done, _ = yield self._steps(section.first, (), run)
        run.is_first = False
        self._initialized = len(self.terms.labels)
        _, results = yield self._steps(section.main, arguments, run)
        self._owe(done[-1], results, run)
        return results

    def _check_repeated(self, section: Section, values: list[int], run: Run) -> None:
        """Check that doing the steps of an initialization again changes nothing."""
        remembers = any(has_parts(key) and key[0] == KERNELS for key in run.states)
        for place in section.repeated:
            step, taint = section.within.steps[place], self.terms.taints[values[place]]
            is_harmless = taint <= OWN and not (remembers and step.facts.functions)
            if (
                step.state is None
                and (taint != PURE or step.facts.functions)
                and not (is_harmless and (step.facts.op in REPEATABLE or step.facts.taint == PURE))
            ):
                raise Undecided("an initialization that the run repeats", step.facts.op)

    def _owe(self, done: int, results: tuple[int, ...], run: Run) -> None:
        """Note what an initialization does besides making state, by its last term."""
        terms = self.terms
        effects = effects_besides_state(terms, done, run)
        if not effects:
            return
        if run.place.depth:
            raise Undecided("an initialization that the results of a sequence do not need")
        label = ("initialization", run.place.side)
        owed = tuple(terms.value(label, (term,), fails=False) for term in effects)
        self.owed.append(Owed(results, owed))

    # Graphs.

    def _steps(self, plan: Plan, arguments: tuple[int, ...], run: Run) -> Task[Evaluated]:
        """Return the terms of the steps, and of the results."""
        terms = self.terms
        terms.spend(len(plan.steps))
        values = list(arguments)
        masks = [0] * len(values)
        passes = self._passes_of(plan, run.library)
        for at, step in enumerate(plan.steps):
            if at in passes.hidden:
                values.append(terms.value(GROUP, (), fails=False))
                masks.append(0)
                continue
            data = tuple(terms.output(values[index], port) for index, port in step.data)
            controls = ()
            if step.controls:
                controls = self._waits((values[index] for index in step.controls), run.place.depth)
            if run.is_first:
                run.mask = 0
                for index in (*(index for index, _ in step.data), *step.controls):
                    run.mask |= masks[index]
            if at in passes.by_place:
                values.append(self._elements_once(passes.by_place[at], values, run))
            else:
                values.append((yield self._step(step, data, controls, run)))
            masks.append(run.mask)
        results = tuple(terms.output(values[index], port) for index, port in plan.results)
        return values[len(arguments) :], results

    def _passes_of(self, plan: Plan, library: Library) -> Passes:
        """Return the passes in a plan, which is kept so that its id stays its own."""
        if id(plan) not in self._passes:
            self._passes[id(plan)] = plan, Passes(plan, library)
        return self._passes[id(plan)][1]

    def _elements_once(self, over: Pass, values: list[int], run: Run) -> int:
        """Return the elements of a dataset that a pass has computed."""
        index, port = over.dataset
        dataset = self.terms.output(values[index], port)
        declared = self.declared.elements_like(dataset)
        if self._of_program is not None and not any(map(over.is_of, declared)):
            raise Undecided("a type that the program does not declare", "of a sequence's elements")
        self._plan(over.function, run.library)
        return self.iterations.computed_by_pass(dataset, run.place.depth)

    def _step(
        self, step: Step, data: tuple[int, ...], controls: tuple[int, ...], run: Run
    ) -> Task[int] | int:
        """Return the term of a step, or the task that evaluates it."""
        facts = step.facts
        if facts.functions or facts.op in MAPPED:
            return self._call(step, data, controls, run)
        if facts.is_plain and facts.op == "Identity" and len(data) == 1:
            return self._after(data[0], controls)
        if facts.is_plain and facts.op == "NoOp" and not data:
            return self.terms.value(GROUP, controls, fails=False)
        if step.state is not None:
            return self._state_of(step, data, controls, run)
        return self._operation(step, data, controls, run)

    def _after(self, value: int, controls: tuple[int, ...]) -> int:
        """Return a value that waits for others."""
        return self.terms.value(AFTER, (value, *controls), fails=False) if controls else value

    def _waits(self, controls: Iterable[int], depth: int = 0) -> tuple[int, ...]:
        """Return the terms that control edges wait for, with groups expanded.

        In a function applied to elements of a sequence, pure terms that cannot fail are left out:
        captured values are computed before the call.
        """
        terms = self.terms
        waits: dict[int, None] = {}
        for term in controls:
            label = terms.labels[term]
            if label == GROUP:
                waits.update(dict.fromkeys(terms.children[term]))
            elif (
                has_parts(label)
                and label[0] == OUTPUT
                and terms.children[term][0] not in terms.branches
            ):
                waits[terms.children[term][0]] = None
            else:
                waits[term] = None
        return tuple(
            term for term in waits if not depth or terms.taints[term] != PURE or terms.fails[term]
        )

    def _operation(
        self, step: Step, data: tuple[int, ...], controls: tuple[int, ...], run: Run
    ) -> int:
        terms, facts = self.terms, step.facts
        label: Hashable = (facts.label, len(data)) if controls else facts.label
        children = (*data, *controls)
        if facts.resource is not None:
            return terms.value(facts.resource, fails=False)
        if facts.op == "Placeholder" and not run.function:
            raise Undecided("a placeholder that is not a parameter")
        if facts.taint == PURE or facts.op in BRANCHES:
            term = terms.value(label, children, facts.taint, fails=facts.fails)
            if facts.op in BRANCHES:
                terms.branches.add(term)
            return term
        if facts.remembers:
            label, children = self._remembering(step, label, children, run)
        term = self._itself(label, children, facts.taint, run, fails=facts.fails)
        if run.is_first:
            run.earlier[step.name] = term
        return term

    def _remembering(
        self, step: Step, label: Hashable, children: tuple[int, ...], run: Run
    ) -> tuple[Hashable, tuple[int, ...]]:
        """Return the label and the inputs of an operation whose kernel remembers earlier runs.

        The kernels of a function are those of all its calls.  A section that is called for each
        element of a sequence has new ones each time.
        """
        if run.function:
            return (label, "of its function"), (*children, self._kernels(run))
        if run.place.depth:
            return (label, "new for each element"), children
        if not run.is_first and step.name in run.earlier:
            return (label, "again"), (*children, run.earlier[step.name])
        return label, children

    def _kernels(self, run: Run) -> int:
        """Return the state that the kernels of the current function keep."""
        return self._state((KERNELS, run.function), KERNELS, run)

    def _itself(
        self,
        label: Hashable,
        children: tuple[int, ...],
        taint: int,
        run: Run,
        *,
        fails: bool = True,
    ) -> int:
        term = itself(self.terms, label, children, taint, run.place, fails=fails)
        if run.is_first:
            for state, bit in run.bits.items():
                if run.mask & bit:
                    run.touched[state].append(term)
        return term

    def _state_of(
        self, step: Step, data: tuple[int, ...], controls: tuple[int, ...], run: Run
    ) -> int:
        """Return the state that a node creates or finds."""
        assert step.state is not None
        label: Hashable = step.facts.label
        if step.is_unnamed and len(step.state) == 2:
            label = "named like its node", label
        if run.function:
            if data:
                raise Undecided("state that a function creates from inputs")
            term = self._state(step.state, label, run)
            if step.is_unnamed:
                # Without a name, it may be that of the node or of its kernel.
                term = self.terms.value("of its function", (term, self._kernels(run)), fails=False)
            return self._after(term, controls)
        # A node that initialization ran too is the same one after it.
        children = tuple(map(self._without_initialization, (*data, *controls)))
        whole = (label, len(data)) if children else label
        return self._state(step.state, whole, run, children, fails=step.facts.fails)

    def _without_initialization(self, term: int) -> int:
        """Return a state as it was before its initialization."""
        return self.terms.children[term][0] if self.terms.labels[term] == INITIALIZED else term

    def _state(
        self,
        state: Hashable,
        label: Hashable,
        run: Run,
        children: tuple[int, ...] = (),
        *,
        fails: bool = False,
    ) -> int:
        """Return the state that a node finds by name, after initialization.

        In a function, it is a symbol: the caller passes the state of that name.
        """
        if run.outer is not None:
            if has_parts(state) and state[0] == KERNELS:
                return self._state(state, label, run.outer)
            raise Undecided("state that a function of a sequence finds by name")
        if state not in run.states:
            if run.function:
                term = self.terms.value(("state", len(run.named), label), (), OWN, fails=False)
                run.named.append((state, label))
            else:
                term = itself(self.terms, label, children, OWN, run.place, fails=fails)
            run.states[state] = term, label, children
            run.touched[term] = []
            run.bits[term] = 1 << len(run.bits)
        term, kind, inputs = run.states[state]
        if kind != label:
            raise Undecided("one name of state for two kinds of it")
        if inputs != children:
            raise Undecided("one state that several nodes create")
        if run.is_first:
            run.mask |= run.bits[term]
            return term
        if not run.touched[term]:
            return term
        return self.terms.value(INITIALIZED, (term, *run.touched[term]), fails=False)

    # Functions.

    def _call(
        self, step: Step, data: tuple[int, ...], controls: tuple[int, ...], run: Run
    ) -> Task[int]:
        facts = step.facts
        if facts.op in MAPPED and len(facts.functions) == 1:
            return (yield self._mapped(step, data, controls, run))
        functions: list[int] = []
        for name in facts.functions:
            functions.append((yield self._function(name, run.library)))
            for state, created in run.library.states[name]:
                data = (*data, self._state(state, created, run))
        label = (facts.label, len(data), len(functions), len(controls))
        children = (*data, *functions, *controls)
        taint = max([facts.taint, *(self.terms.taints[term] for term in functions)])
        if taint == PURE:
            return self.terms.value(label, children)
        return self._itself(label, children, taint, run)

    def _function(self, name: str, library: Library) -> Task[int]:
        """Return the term of a library function, whose body runs again in each call."""
        if name in library.terms:
            known = library.terms[name]
            if known is None:
                raise Undecided("a function that calls itself")
            return known
        # Marks the function as being evaluated, which detects recursion.
        library.terms[name] = None
        plan = self._plan(name, library)
        function = library.functions[name]
        signature = function.signature
        types = (
            tuple(argument.type for argument in signature.input_arg),
            tuple(argument.type for argument in signature.output_arg),
        )
        terms = self.terms
        # Runs inside the body are numbered from 0, so that equal functions have equal terms.
        outer, terms.count = terms.count, 0
        try:
            arguments = tuple(
                terms.value(("argument", i), fails=False) for i, _ in enumerate(types[0])
            )
            run = Run(Place("function"), library, function=name)
            values, results = yield self._steps(plan, arguments, run)
        finally:
            terms.count = outer
        places = {step.name: place for place, step in enumerate(plan.steps)}
        awaiting = [function.control_ret[output] for output in signature.control_output]
        awaited = [values[places[name]] for name in awaiting]
        others = tuple(dict.fromkeys(values[plan.extra :]))
        gradient = library.gradients.get(name)
        inner = [] if gradient is None else [(yield self._function(gradient, library))]
        content = function_content(function, is_of_program=library.is_of_program)
        label = ("function", *types, content, len(others), len(inner), len(awaited))
        term = terms.value(label, (*results, *others, *inner, *awaited))
        library.states[name] = run.named
        library.terms[name] = term
        return term

    def _plan(self, name: str, library: Library) -> Plan:
        if name not in library.functions:
            malformed(f"its library does not have {name!r}")
        if name not in library.plans:
            function = library.functions[name]
            loading.check_function(function)
            body = library.body(name)
            for awaited in body.awaited:
                if awaited not in body.nodes:
                    malformed(f"{name!r} does not have the node {awaited!r}")
            arguments: dict[Edge | str, int] = {}
            for index, edge in enumerate(body.arguments):
                arguments[edge] = arguments[edge.node] = index
            types = [argument.type for argument in function.signature.input_arg]
            nodes = library.nodes(name)
            plan = self.reader.plan(body, arguments, body.results, library, nodes, types)
            for output, edge in zip(function.signature.output_arg, body.results, strict=True):
                known = self.reader.type_of(edge, body, arguments, types, library)
                if known not in (None, output.type):
                    malformed(f"{name!r} returns another type than it says")
            library.plans[name] = plan
        return library.plans[name]

    def _mapped(
        self, step: Step, data: tuple[int, ...], controls: tuple[int, ...], run: Run
    ) -> Task[int]:
        """Return an operation that applies a function to the elements of a dataset.

        Captured values are substituted into the function's body, however they were passed.
        """
        facts, library = step.facts, run.library
        (name,) = facts.functions
        if name in library.entered:
            raise Undecided("a function that calls itself")
        plan = self._plan(name, library)
        taken = count(facts.label, "Targuments")
        carried = count(facts.label, "Tstate")
        captured = data[len(data) - taken :]
        if len(data) != 1 + carried + taken or plan.arguments < carried + taken:
            malformed(f"a {facts.op} has too few inputs")
        function = library.functions[name]
        kinds = element_kinds(function, plan.arguments - taken)
        check_types(function, facts.label, carried, plan.arguments - taken)
        symbols = element_symbols(self.terms, run.place, carried, kinds)
        inner = Run(run.place.inner(), library, function=name, outer=run)
        library.entered.add(name)
        values, results = yield self._steps(plan, (*symbols, *captured), inner)
        library.entered.remove(name)
        body = (*results, *dict.fromkeys(values[plan.extra :]))
        unneeded = (captured[i] for i in plan.unneeded(plan.arguments - taken))
        waits = (*controls, *self._waits(unneeded, depth=1))
        content = self._content(function, plan, captured, library)
        if body == symbols and not waits and not content:
            dataset = self.terms.labels[self.iterations.dataset_of(data[0])]
            if is_unchanged(facts.label, kinds, dataset, self.declared.elements_of(data[0])):
                return data[0]
        return sequence_operation(
            self.terms,
            facts.label,
            data[: 1 + carried],
            body,
            waits,
            facts.taint,
            run.place,
            kinds,
            content,
        )

    def _content(
        self, function: Message, plan: Plan, captured: Sequence[int], library: Library
    ) -> tuple[Hashable, ...]:
        """Return what a function of a sequence has besides its body.

        Functions that tffc makes have nothing but the shapes of their arguments, of which those of
        captured values must be shapes that the program declares.
        """
        name = function.signature.name
        if name in library.gradients:
            raise Undecided("a gradient of a function of a sequence")
        if not has_only_shapes(function, [step.facts.op for step in plan.steps]):
            return function_content(function, is_of_program=library.is_of_program)
        promised = promised_shapes(function, plan.arguments - len(captured))
        for term, shape in zip(captured, promised, strict=True):
            if not self._is_declared(term, shape):
                if self._of_program is not None:
                    raise Undecided("a shape that the program does not declare", f"in {name!r}")
                return function_content(function, is_of_program=True)
        return ()

    def _is_declared(self, term: int, promised: Message) -> bool:
        """Tell whether the program declares a shape for a term, or a more special one."""
        if promised.unknown_rank:
            return is_general(promised, None)
        return self.declared.has(term, lambda kind: is_general(promised, shape_of(kind)))
