"""Tracing a section again, operation by operation, into a function of tensors.

Unlike the section itself, the function can be computed for many clients at once and compiled by
XLA: variables become values that are passed on, sequences become index arithmetic on arrays, and
their reductions become loops with known shapes.  A section for which this cannot be done is refused
with a `NotLoweredError` that says why.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, TypeAlias

import numpy as np

from tffc.graphs.body import Body, Edge, graph_edge
from tffc.graphs.functions import Library
from tffc.graphs.node import NodeView, all_nodes, inputs_first
from tffc.graphs.operations.datasets import APPLYING, ARRANGED, BATCHED, UNCHANGED
from tffc.graphs.operations.effects import MODULE
from tffc.graphs.order import Accesses
from tffc.graphs.proto import FunctionDefLibrary
from tffc.graphs.resources import ResourceNode, is_resource, resource_of
from tffc.graphs.state import ANONYMOUS
from tffc.language.shapes import shapes_may_agree
from tffc.language.types import TensorType, Type
from tffc.linking.section import SectionContent
from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.sequences import Order, Rests, RowElements, Rows
from tffc.runtime.lowering.tracer import Tensor, Tracer

MOST_NESTED = 40
"""The most function calls that may be nested; following each uses Python's own stack."""

UNROLLED = 4
"""The most elements of a sequence of known length that are computed without a loop."""


MOST_FILLED = 2
"""How many times as large as the largest last batch a batch may be for all to be masked."""


@dataclasses.dataclass(frozen=True, slots=True)
class Dataset:
    """Rows in an order, with the functions applied to them: each as its node and other inputs."""

    rows: Rows
    order: Order
    applied: tuple[tuple[NodeView, tuple[Tensor, ...]], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Variable:
    """The name of a variable of the section."""

    name: str


DRAWING = frozenset({"RandomStandardNormal", "RandomUniform", "RandomUniformInt"})
"""Random operations that draw anew in each call, unless they have a seed of their own."""

DRAWN = object()
"""The name of a variable that no section has: the number of draws so far."""


def draws(content: SectionContent) -> bool:
    """Return whether a section draws anew in each call."""
    return any(node.op in DRAWING for node in all_nodes(content.graph))


Value: TypeAlias = Tensor | Dataset | Variable

Handler: TypeAlias = Callable[..., Sequence[Value]]
"""A method of `Retrace` that computes the outputs of a node from the node and its inputs."""


class Retrace:
    """Traces sections with a tracer.

    `resources` are the tensors that stand for resources; under `key`, two 64-bit numbers, sections
    draw.
    """

    def __init__(
        self,
        tracer: Tracer,
        resources: Mapping[ResourceNode, Tensor] | None = None,
        *,
        key: Tensor = None,
    ) -> None:
        self._tracer = tracer
        self._resources = resources or {}
        self._key = key
        self._library = Library(FunctionDefLibrary())
        self._variables: dict[Hashable, Tensor] = {}
        self._checks: list[Tensor] = []
        self._depth = self._made = 0
        self._branches = 0
        self._uses: dict[Hashable, bool] = {}
        """The variables that the node being computed uses, each with whether it changes it."""
        self.orders: dict[Order, None] = {}
        """The orders in which elements are read by the sections traced so far."""

    def run(self, content: SectionContent, arguments: Sequence[Value]) -> list[Tensor]:
        """Return the leaves of a section's result, given the leaves of its argument."""
        self._library = Library(content.graph.library)
        self._variables = {DRAWN: np.int64(0)} if draws(content) else {}
        body = content.body()
        values_by_edge: dict[Edge, Value] = dict(zip(body.arguments, arguments, strict=True))
        if content.session_token:
            values_by_edge.setdefault(graph_edge(content.session_token), np.array(b"", object))
        if content.initialize_op:
            self._evaluate(body, [content.initialize_op], values_by_edge)
        roots = [edge.node for edge in body.results if edge not in values_by_edge]
        values = self._evaluate(body, roots, values_by_edge)
        return [self._tensor(values[edge]) for edge in body.results]

    def check_shapes(self, results: Sequence[Tensor], types: Sequence[Type]) -> None:
        """Check the shapes of results, as far as they are known.

        Raises:
          NotLoweredError: one is none of its type.
        """
        for result, type in zip(results, types, strict=True):
            shape = self._tracer.shape(result)
            if isinstance(type, TensorType) and not shapes_may_agree(type.shape, shape):
                raise NotLoweredError(f"it gives a tensor of shape {[*shape]} for type {type}")

    def holds(self) -> Tensor:
        """Return whether all checks traced since the last call hold, as a boolean tensor."""
        checks, self._checks = self._checks, []
        return self._tracer.both(checks)

    def _call(self, name: str, arguments: Sequence[Value]) -> list[Value]:
        """Return the results of a function of the library."""
        if name not in self._library.functions:
            raise NotLoweredError(f"the function {name!r} is not in the graph")
        if self._depth >= MOST_NESTED:
            raise NotLoweredError(f"functions are nested more than {MOST_NESTED} deep")
        body = self._library.body(name)
        known: dict[Edge, Value] = dict(zip(body.arguments, arguments, strict=True))
        roots = [*(edge.node for edge in body.results if edge not in known), *body.awaited]
        self._depth += 1
        values = self._evaluate(body, roots, known)
        self._depth -= 1
        return [values[edge] for edge in body.results]

    def _evaluate(
        self, body: Body, roots: Iterable[str], known: Mapping[Edge, Value]
    ) -> dict[Edge, Value]:
        """Return the values of all edges of the nodes `roots` and their ancestors.

        Raises:
          NotLoweredError: one node writes a variable that another uses, and neither waits for the
            other, so that their order is undefined.
        """
        values = dict(known)
        accesses = Accesses()
        for name in inputs_first(roots, body.before):
            outer, self._uses = self._uses, {}
            if not values.keys() >= set(body.inputs[name]):
                raise NotLoweredError(f"the node {name!r} has an input that is not known")
            inputs = [values[edge] for edge in body.inputs[name]]
            for port, value in enumerate(self._compute(body.nodes[name], inputs)):
                values.setdefault(Edge(name, port), value)
            if not accesses.enter(name, body.before(name), self._uses):
                raise NotLoweredError(
                    "a variable is written and read in no order that the graph tells"
                )
            for variable, writes in outer.items():
                self._uses[variable] = self._uses.get(variable, False) or writes
        return values

    def _compute(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        """Return the outputs of a node."""
        if is_resource(node):
            return [self._resources[resource_of(node)]]
        if node.op in self._special:
            return self._special[node.op](self, node, inputs)
        if any(isinstance(value, (Dataset, Variable)) for value in inputs):
            raise NotLoweredError(f"it has the operation {node.op} of a dataset or a variable")
        tensors = [self._tensor(value) for value in inputs]
        if node.op in DRAWING and self._tracer.draws:
            return [self._draw(node, tensors)]
        outputs, check = self._tracer.apply(node, tensors)
        if check is not None:
            self._checks.append(check)
        return outputs

    def _draw(self, node: NodeView, tensors: Sequence[Tensor]) -> Tensor:
        if node.attr["seed"].i or node.attr["seed2"].i:
            raise NotLoweredError(f"it has the operation {node.op}, of a seed of its own")
        count = self._variables[DRAWN]
        self._variables[DRAWN] = count + np.int64(1)
        return self._tracer.draw(node, tensors, self._key, count)

    def _tensor(self, value: Value) -> Tensor:
        if isinstance(value, (Dataset, Variable)):
            raise NotLoweredError(f"a {type(value).__name__.lower()} is used as a tensor")
        return value

    def _plain(self, value: Value) -> Tensor:
        return self._tracer.plain(self._tensor(value))

    def _dataset(self, node: NodeView, value: Value) -> Dataset:
        if not isinstance(value, Dataset):
            raise NotLoweredError(f"{node.op} is of what is not a client's sequence")
        return value

    def _number(self, node: NodeView, value: Value) -> int:
        number = self._tracer.known(self._tensor(value))
        if number is None or number < 0:
            raise NotLoweredError(f"{node.op} has a number that is not known or below 0")
        return int(number)

    # Calls and branches.

    def _module(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        tensors = [self._tensor(value) for value in inputs]
        return self._tracer.call(node, tensors, is_shared=self._branches > 0)

    def _call_node(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        return self._call(node.attr["f"].func.name, inputs)

    def _if(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        condition = self._tensor(inputs[0])
        if not self._tracer.is_truth(condition):
            raise NotLoweredError("it has an If of what is not a truth value")

        def branch(name: str) -> Callable[[], list[Tensor]]:
            def run() -> list[Tensor]:
                results = self._call(node.attr[name].func.name, inputs[1:])
                return [self._tensor(value) for value in results]

            return run

        one, other = branch("then_branch"), branch("else_branch")
        known = self._tracer.known(condition)
        if known is not None:
            return one() if known else other()
        return self._choose(
            [one, other], lambda one, other: self._tracer.branch(condition, one, other)
        )

    def _choose(
        self,
        branches: Sequence[Callable[[], Sequence[Tensor]]],
        choose: Callable[..., Sequence[Tensor]],
    ) -> list[Tensor]:
        """Return the results of one of some branches, which `choose` calls."""
        names = list(self._variables)
        before = dict(self._variables), self._checks

        def whole(branch: Callable[[], Sequence[Tensor]]) -> Callable[[], list[Tensor]]:
            def run() -> list[Tensor]:
                self._variables, self._checks = dict(before[0]), []
                return [*branch(), *self._leave(names)]

            return run

        self._branches += self._tracer.selects
        outputs = choose(*map(whole, branches))
        self._branches -= self._tracer.selects
        self._variables, self._checks = before
        return self._return(list(outputs), names)

    def _leave(self, names: Sequence[Hashable]) -> list[Tensor]:
        """Return what a branch or loop step passes on: variables, and whether checks hold."""
        if set(self._variables) - set(names):
            raise NotLoweredError("a variable is made in a branch or a loop")
        return [*(self._variables[name] for name in names), self.holds()]

    def _return(self, outputs: list[Tensor], names: Sequence[Hashable]) -> list[Tensor]:
        """Take over what `_leave` returned from the end of `outputs`, and return the rest."""
        count = len(outputs) - len(names) - 1
        self._variables.update(zip(names, outputs[count:-1], strict=True))
        self._checks.append(outputs[-1])
        return outputs[:count]

    # Loops.

    def _while(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        condition, body = node.attr["cond"].func.name, node.attr["body"].func.name
        handles = [value if isinstance(value, Variable) else None for value in inputs]

        def full(tensors: Sequence[Tensor]) -> list[Value]:
            left = iter(tensors)
            return [next(left) if handle is None else handle for handle in handles]

        def again(tensors: Sequence[Tensor]) -> Tensor:
            (value,) = self._call(condition, full(tensors))
            return self._tensor(value)

        def step(tensors: Sequence[Tensor]) -> list[Tensor]:
            following = self._call(body, full(tensors))
            return [
                self._tensor(value)
                for value, handle in zip(following, handles, strict=True)
                if handle is None
            ]

        start = [self._tensor(v) for v, h in zip(inputs, handles, strict=True) if h is None]
        return full(self._loop(start, again, step))

    def _loop(
        self,
        start: Sequence[Tensor],
        again: Callable[[Sequence[Tensor]], Tensor],
        step: Callable[[Sequence[Tensor]], list[Tensor]],
        *,
        even: bool = False,
    ) -> list[Tensor]:
        """Return the final values of the loop's tensors; with `even`, all clients of a batch take
        as many steps.

        Where clients are vectorised, a step is computed for all of them as long as one goes on.
        """
        tracer, names = self._tracer, list(self._variables)
        before = self._variables, self._checks
        if self._branches:
            raise NotLoweredError(
                "a loop in a branch or a loop, which might not end for clients not in it"
            )
        if tracer.holds_lists(start):
            raise NotLoweredError("a loop has a list of tensors")

        def condition(*values: Tensor) -> Tensor:
            self._variables = dict(zip(names, values[len(start) : -1], strict=True))
            self._checks = []
            value = again(values[: len(start)])
            return tracer.both([value, self.holds()])

        def body(*values: Tensor) -> list[Tensor]:
            self._variables = dict(zip(names, values[len(start) : -1], strict=True))
            self._checks = [values[-1]]
            is_shared = self._tracer.selects and not even
            self._branches += is_shared
            after = [*step(values[: len(start)]), *self._leave(names)]
            self._branches -= is_shared
            return after

        first = (*start, *(self._variables[name] for name in names), np.True_)
        outputs = tracer.loop(condition, body, first)
        self._variables, self._checks = before
        return self._return(outputs, names)

    # Sequences.

    def _arranged(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        data = self._unapplied(node, inputs[0])
        number = self._number(node, inputs[1])
        return [dataclasses.replace(data, order=data.order.arranged(node.op, number))]

    def _batched(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        data = self._unapplied(node, inputs[0])
        size, whole = (self._number(node, value) for value in inputs[1:])
        if data.order.size or size == 0:
            raise NotLoweredError("batches of a dataset are batched again")
        order = dataclasses.replace(data.order, size=size, whole=bool(whole))
        return [dataclasses.replace(data, order=order)]

    def _unapplied(self, node: NodeView, value: Value) -> Dataset:
        data = self._dataset(node, value)
        if data.applied:
            raise NotLoweredError(f"a dataset has a function applied to it before {node.op}")
        return data

    def _applied(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        data = self._dataset(node, inputs[0])
        applied = (*data.applied, (node, tuple(inputs[1:])))
        return [dataclasses.replace(data, applied=applied)]

    def _reduce(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        data = self._dataset(node, inputs[0])
        steps = [*data.applied, (node, tuple(inputs[1:]))]
        states: list[Tensor] = []
        sizes: list[int] = []
        for operation, captured in steps:
            count = len(operation.attr["Tstate"].list.type) if "Tstate" in operation.attr else 0
            states += [self._tensor(value) for value in captured[:count]]
            sizes.append(count)

        def step(state: Sequence[Tensor], element: Sequence[Tensor]) -> list[Tensor]:
            following: list[Tensor] = []
            for (operation, captured), count in zip(steps, sizes, strict=True):
                before, state = state[:count], state[count:]
                arguments = [*before, *element, *captured[count:]]
                results = self._call(operation.attr["f"].func.name, arguments)
                results = [self._tensor(value) for value in results]
                following += results[:count]
                element = results[count:]
            return following

        states = self._fold(data, states, step)
        return states[len(states) - sizes[-1] :]

    def _fold(
        self,
        data: Dataset,
        states: list[Tensor],
        step: Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor]],
    ) -> list[Tensor]:
        """Return the states after all elements of a dataset."""
        rows, order = data.rows, data.order
        rests = rows.rests(order)
        if rests is not None and order.size <= MOST_FILLED * max(rests.sizes):
            states_after = self._tried(lambda: self._masked(data, states, rests, step))
            if states_after is not None:
                return states_after
        runs = order.runs(rows.like) if rests is None else ((0, order.size),)
        if runs is None:
            raise NotLoweredError("batches of different sizes alternate often")
        self.orders[order] = None
        counts = rows.counts(order)
        elements = RowElements(
            self._tracer, rows, order, max((size for _, size in runs), default=0)
        )
        first: Tensor = 0
        for (_, size), count in zip(runs, counts, strict=True):
            if isinstance(count, int) and count <= UNROLLED and size:
                for index in range(count):
                    states = step(states, elements.take(first + index, size))
                first = first + count
                continue
            begin = self._tracer.long(first)
            end = begin + self._tracer.long(count)

            def again(values: Sequence[Tensor], end: Tensor = end) -> Tensor:
                return values[0] < end

            def body(values: Sequence[Tensor], size: int = size) -> list[Tensor]:
                element = elements.take(values[0], size)
                return [values[0] + 1, *step(values[1:], element)]

            even = isinstance(count, int)
            _, *states = self._loop([begin, *states], again, body, even=even)
            first = first + count if isinstance(first + count, int) else end
        return states if rests is None else self._rest(states, rests, first, elements, step)

    def _tried(self, run: Callable[[], list[Tensor]]) -> list[Tensor] | None:
        """Return what a function returns, or None, as if it was not called, if it is refused."""
        before = self._tracer, dict(self._variables), list(self._checks), self._uses.copy()
        numbers = self._depth, self._made, self._branches
        uses, orders = self._uses, dict(self.orders)
        try:
            return run()
        except NotLoweredError:
            self._tracer, self._variables, self._checks, uses_before = before
            self._depth, self._made, self._branches = numbers
            uses.clear()
            uses.update(uses_before)
            self._uses, self.orders = uses, orders
            return None

    def _masked(
        self,
        data: Dataset,
        states: list[Tensor],
        rests: Rests,
        step: Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor]],
    ) -> list[Tensor]:
        """Return the states after all batches, of which the last may be smaller.

        All are computed by one loop, whose step masks the rows that a batch does not have.  Its
        code is compiled once instead of once for each size.  Where clients are vectorised, each is
        as fast as its number of batches allows, while branches are all computed.  Masks cost little
        in whole batches: they stand only where rows are summed.
        """
        rows, order, outer = data.rows, data.order, self._tracer
        self.orders[order] = None
        elements = RowElements(outer, rows, order, order.size, filled=True)
        whole = outer.long(rows.counts(order)[0])
        end = whole + outer.least(outer.long(rests.size), 1)

        def again(values: Sequence[Tensor]) -> Tensor:
            return values[0] < end

        def body(values: Sequence[Tensor]) -> list[Tensor]:
            index, *before = values
            # The size of whole batches, or that of the last one.
            last = index - whole + 1
            count = order.size + outer.most(last, 0) * (rests.size - order.size)
            tracer, element = outer.masked(count, elements.take(index, order.size))
            self._tracer = tracer
            after = [tracer.plain(value) for value in step(before, element)]
            self._variables = {name: tracer.plain(v) for name, v in self._variables.items()}
            self._checks = [tracer.both(self._checks)]
            self._tracer = outer
            return [index + 1, *after]

        begin = outer.long(0)
        return self._loop([begin, *states], again, body)[1:]

    def _rest(
        self,
        states: list[Tensor],
        rests: Rests,
        index: Tensor,
        elements: RowElements,
        step: Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor]],
    ) -> list[Tensor]:
        """Return the states after the last, smaller batch, of one of several sizes or none."""

        def branch(size: int) -> Callable[[], list[Tensor]]:
            return lambda: step(states, elements.take(index, size)) if size else states

        number = sum((rests.size >= size) * np.int32(1) for size in rests.sizes)
        branches = [branch(size) for size in (0, *rests.sizes)]
        return self._choose(branches, lambda *all: self._tracer.switch(number, all))

    # Variables.

    def _variable(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        name = node.attr["shared_name"].s.decode() or node.name
        if name == ANONYMOUS.decode():
            self._made += 1
            name = str(self._made)
        return [Variable(name)]

    def _value_of(self, node: NodeView, value: Value) -> Tensor:
        if not isinstance(value, Variable) or value.name not in self._variables:
            raise NotLoweredError(f"{node.op} is of a variable that has no value yet")
        self._uses.setdefault(value.name, False)
        return self._variables[value.name]

    def _read(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        return [self._value_of(node, inputs[0])]

    def _assign(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        handle, value = inputs
        if not isinstance(handle, Variable):
            raise NotLoweredError(f"{node.op} is of what is not a variable of the section")
        validates = "validate_shape" in node.attr and node.attr["validate_shape"].b
        if validates and handle.name in self._variables:
            self._check_shape(node, self._variables[handle.name], value)
        self._write(handle, self._tensor(value))
        return []

    def _check_shape(self, node: NodeView, old: Value, new: Value) -> None:
        """Check that the shape of a value is that of a variable, as far as they are known.

        Raises:
          NotLoweredError: it is another.
        """
        if not shapes_may_agree(self._tracer.shape(old), self._tracer.shape(new)):
            raise NotLoweredError(f"{node.op} of another shape than that of its variable")

    def _write(self, handle: Value, value: Tensor) -> None:
        assert isinstance(handle, Variable)
        self._uses[handle.name] = True
        self._variables[handle.name] = value

    def _assign_change(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        handle, value = inputs
        old, change = self._tracer.plain(self._value_of(node, handle)), self._plain(value)
        self._check_shape(node, old, change)
        self._write(handle, old + change if node.op == "AssignAddVariableOp" else old - change)
        return []

    def _is_assigned(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        return [np.bool_(getattr(inputs[0], "name", None) in self._variables)]

    # The program's own checks.

    def _assert(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        self._checks.append(self._tensor(inputs[0]))
        return []

    def _check_numerics(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        tensor = self._tensor(inputs[0])
        self._checks.append(self._tracer.is_finite(tensor))
        return [tensor]

    def _pass_on(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        return list(inputs)

    _special: ClassVar[Mapping[str, Handler]] = {
        **dict.fromkeys(["StatefulPartitionedCall", "PartitionedCall"], _call_node),
        **dict.fromkeys(["If", "StatelessIf"], _if),
        **dict.fromkeys(["While", "StatelessWhile"], _while),
        **dict.fromkeys(ARRANGED, _arranged),
        **dict.fromkeys(APPLYING, _applied),
        **dict.fromkeys([*UNCHANGED, "IdentityN", "NoOp"], _pass_on),
        BATCHED: _batched,
        MODULE: _module,
        "ReduceDataset": _reduce,
        "VarHandleOp": _variable,
        "ReadVariableOp": _read,
        "AssignVariableOp": _assign,
        "AssignAddVariableOp": _assign_change,
        "AssignSubVariableOp": _assign_change,
        "VarIsInitializedOp": _is_assigned,
        "Assert": _assert,
        "CheckNumerics": _check_numerics,
    }
    """The operations that are computed in ways of their own."""
