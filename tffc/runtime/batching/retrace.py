"""Tracing a section again, operation by operation, into a graph for batches of clients.

Unlike the section itself, the new graph can be computed for many clients at once and compiled by
XLA: variables become values that are passed on, sequences become index arithmetic on arrays, and
their reductions become loops with known shapes.  A section for which this cannot be done is refused
with a `CannotBatchError` that says why.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import ClassVar, TypeAlias

from tffc.backends.forms.steps import CannotBatchError
from tffc.graphs.body import Body, Edge, graph_edge
from tffc.graphs.functions import Library
from tffc.graphs.node import NodeView, inputs_first
from tffc.graphs.operations.datasets import APPLYING, ARRANGED, BATCHED, UNCHANGED
from tffc.graphs.order import Accesses
from tffc.graphs.proto import FunctionDefLibrary
from tffc.graphs.resources import ResourceNode, is_resource, resource_of
from tffc.graphs.state import ANONYMOUS
from tffc.linking.section import SectionContent
from tffc.runtime.batching.operations import ALL_FIXED, CHECKS, DRAWN, PLAIN
from tffc.runtime.batching.sequences import Order, RowElements, Rows
from tffc.runtime.frameworks.tensorflow.load import Tensor, load_tensorflow

MOST_NESTED = 40
"""The most function calls that may be nested; following each uses Python's own stack."""

UNROLLED = 4
"""The most elements of a sequence of known length that are computed without a loop."""


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


Value: TypeAlias = Tensor | Dataset | Variable

Handler: TypeAlias = Callable[..., Sequence[Value]]
"""A method of `Retrace` that computes the outputs of a node from the node and its inputs."""


class Retrace:
    """Traces sections into TensorFlow's current graph.

    `resources` are the tensors that stand for resources.  With `selects`, both branches of an If
    are computed, and the results of one are selected: XLA cannot compile a vectorised If otherwise.
    """

    def __init__(
        self, resources: Mapping[ResourceNode, Tensor] | None = None, *, selects: bool = False
    ) -> None:
        self._resources = resources or {}
        self._selects = selects
        self._tf = load_tensorflow()
        self._library = Library(FunctionDefLibrary())
        self._variables: dict[str, Tensor] = {}
        self._checks: list[Tensor] = []
        self._depth = self._made = 0
        self._branches = 0
        self._uses: dict[Hashable, bool] = {}
        """The variables that the node being computed uses, each with whether it changes it."""
        self.orders: dict[Order, None] = {}
        """The orders in which elements are read by the sections traced so far."""

    def run(self, content: SectionContent, arguments: Sequence[Value]) -> list[Tensor]:
        """Return the leaves of a section's result, given the leaves of its argument."""
        graph = self._tf.compat.v1.GraphDef.FromString(content.graph.SerializeToString())
        self._library = Library(graph.library)
        self._variables = {}
        nodes = {node.name: node for node in graph.node}
        body = dataclasses.replace(content, nodes=nodes).body()
        values_by_edge: dict[Edge, Value] = dict(zip(body.arguments, arguments, strict=True))
        if content.session_token:
            values_by_edge.setdefault(graph_edge(content.session_token), self._tf.constant(b""))
        if content.initialize_op:
            self._evaluate(body, [content.initialize_op], values_by_edge)
        roots = [edge.node for edge in body.results if edge not in values_by_edge]
        values = self._evaluate(body, roots, values_by_edge)
        return [self._tensor(values[edge]) for edge in body.results]

    def holds(self) -> Tensor:
        """Return whether all checks traced since the last call hold, as a boolean tensor."""
        checks, self._checks = self._checks, []
        return self._tf.reduce_all(self._tf.stack([self._tf.constant(True), *checks]))

    def _call(self, name: str, arguments: Sequence[Value]) -> list[Value]:
        """Return the results of a function of the library."""
        if name not in self._library.functions:
            raise CannotBatchError(f"the function {name!r} is not in the graph")
        if self._depth >= MOST_NESTED:
            raise CannotBatchError(f"functions are nested more than {MOST_NESTED} deep")
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
          CannotBatchError: one node writes a variable that another uses, and neither waits for the
            other, so that their order is undefined.
        """
        values = dict(known)
        accesses = Accesses()
        for name in inputs_first(roots, body.before):
            outer, self._uses = self._uses, {}
            if not values.keys() >= set(body.inputs[name]):
                raise CannotBatchError(f"the node {name!r} has an input that is not known")
            inputs = [values[edge] for edge in body.inputs[name]]
            for port, value in enumerate(self._compute(body.nodes[name], inputs)):
                values.setdefault(Edge(name, port), value)
            if not accesses.enter(name, body.before(name), self._uses):
                raise CannotBatchError(
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
        if node.op in DRAWN:
            return self._known(node, [self._tensor(value) for value in inputs])
        if node.op not in PLAIN:
            raise CannotBatchError(f"it has the operation {node.op}")
        tensors = [self._tensor(value) for value in inputs]
        if node.op in ALL_FIXED:
            for tensor in tensors[1 if "Slice" in node.op else 0 :]:
                if tensor.shape.rank == 0 or tensor.dtype.is_integer:
                    self._fixed(node, tensor)
        if node.op in CHECKS:
            check = CHECKS[node.op](self._tf, node, tensors)
            if check is not None:
                self._checks.append(check)
        return self._add(node, tensors)

    def _known(self, node: NodeView, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the outputs of a node as constants, which TensorFlow computes now."""
        tf = self._tf
        values = [tf.get_static_value(tensor) for tensor in tensors]
        if any(value is None for value in values):
            raise CannotBatchError(f"it has the operation {node.op}, of a seed that is not known")
        with tf.Graph().as_default():
            outputs = self._add(node, [tf.constant(value) for value in values])
            with tf.compat.v1.Session() as session:
                results = session.run(list(outputs))
        return [tf.constant(value) for value in results]

    def _fixed(self, node: NodeView, tensor: Tensor) -> None:
        if node.op != "Fill" and self._tf.get_static_value(tensor) is None:
            raise CannotBatchError(
                f"it has the operation {node.op} of what is known only when it runs"
            )

    def _add(self, node: NodeView, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Add a copy of a node to the current graph, and return its outputs."""
        graph = self._tf.compat.v1.get_default_graph()
        attributes = {name: value for name, value in node.attr.items() if name[0] != "_"}
        try:
            operation = graph._create_op_internal(node.op, list(tensors), attrs=attributes)
        except (ValueError, TypeError) as error:
            text = str(error).partition("\n")[0]
            raise CannotBatchError(f"{node.op} cannot be made: {text}") from None
        return operation.outputs

    def _tensor(self, value: Value) -> Tensor:
        if isinstance(value, (Dataset, Variable)):
            raise CannotBatchError(f"a {type(value).__name__.lower()} is used as a tensor")
        return value

    def _dataset(self, node: NodeView, value: Value) -> Dataset:
        if not isinstance(value, Dataset):
            raise CannotBatchError(f"{node.op} is of what is not a client's sequence")
        return value

    def _number(self, node: NodeView, value: Value) -> int:
        number = self._tf.get_static_value(self._tensor(value))
        if number is None or number < 0:
            raise CannotBatchError(f"{node.op} has a number that is not known or below 0")
        return int(number)

    # Calls and branches.

    def _call_node(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        return self._call(node.attr["f"].func.name, inputs)

    def _if(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        condition = self._tensor(inputs[0])
        if condition.dtype != self._tf.bool or condition.shape.rank != 0:
            raise CannotBatchError("it has an If of what is not a truth value")
        names = list(self._variables)
        before = dict(self._variables), self._checks

        def branch(name: str) -> Callable[[], tuple[Tensor, ...]]:
            def run() -> tuple[Tensor, ...]:
                self._variables, self._checks = dict(before[0]), []
                results = self._call(node.attr[name].func.name, inputs[1:])
                return (*map(self._tensor, results), *self._leave(names))

            return run

        first, second = branch("then_branch"), branch("else_branch")
        if self._selects:
            self._branches += 1
            pairs = list(zip(first(), second(), strict=True))
            self._branches -= 1
            if any(one.shape != other.shape for one, other in pairs):
                raise CannotBatchError("branches give tensors of different shapes")
            outputs = [self._tf.where(condition, one, other) for one, other in pairs]
        else:
            outputs = list(self._tf.cond(condition, first, second))
        self._variables, self._checks = before
        return self._return(outputs, names)

    def _leave(self, names: Sequence[str]) -> list[Tensor]:
        """Return what a branch or loop step passes on: variables, and whether checks hold."""
        if set(self._variables) - set(names):
            raise CannotBatchError("a variable is made in a branch or a loop")
        return [*(self._variables[name] for name in names), self.holds()]

    def _return(self, outputs: list[Tensor], names: Sequence[str]) -> list[Tensor]:
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
    ) -> list[Tensor]:
        """Return the final values of the loop's tensors."""
        tf, names = self._tf, list(self._variables)
        before = self._variables, self._checks
        if self._branches:
            raise CannotBatchError("a loop in a branch, which might not end in the other case")
        if any(tensor.dtype == tf.variant for tensor in start):
            raise CannotBatchError("a loop has a list of tensors")

        def condition(*values: Tensor) -> Tensor:
            self._variables = dict(zip(names, values[len(start) : -1], strict=True))
            self._checks = []
            value = again(values[: len(start)])
            return tf.logical_and(value, self.holds())

        def body(*values: Tensor) -> tuple[Tensor, ...]:
            self._variables = dict(zip(names, values[len(start) : -1], strict=True))
            self._checks = [values[-1]]
            return (*step(values[: len(start)]), *self._leave(names))

        first = (*start, *(self._variables[name] for name in names), tf.constant(True))
        try:
            outputs = tf.while_loop(condition, body, first, parallel_iterations=1)
        except ValueError as error:
            if isinstance(error.__cause__, CannotBatchError):
                raise error.__cause__ from None
            text = str(error).partition("\n")[0]
            raise CannotBatchError(f"a loop changes a shape: {text}") from None
        self._variables, self._checks = before
        return self._return(list(outputs), names)

    # Sequences.

    def _arranged(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        data = self._unapplied(node, inputs[0])
        number = self._number(node, inputs[1])
        return [dataclasses.replace(data, order=data.order.arranged(node.op, number))]

    def _batched(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        data = self._unapplied(node, inputs[0])
        size, whole = (self._number(node, value) for value in inputs[1:])
        if data.order.size or size == 0:
            raise CannotBatchError("batches of a dataset are batched again")
        order = dataclasses.replace(data.order, size=size, whole=bool(whole))
        return [dataclasses.replace(data, order=order)]

    def _unapplied(self, node: NodeView, value: Value) -> Dataset:
        data = self._dataset(node, value)
        if data.applied:
            raise CannotBatchError(f"a dataset has a function applied to it before {node.op}")
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
        runs = order.runs(rows.like)
        if runs is None:
            raise CannotBatchError("batches of different sizes alternate often")
        self.orders[order] = None
        counts = rows.counts(order)
        elements = RowElements(rows, order, max((size for _, size in runs), default=0))
        first: Tensor = 0
        for (_, size), count in zip(runs, counts, strict=True):
            if isinstance(count, int) and count <= UNROLLED and size:
                for index in range(count):
                    states = step(states, elements.take(first + index, size))
                first = first + count
                continue
            begin = self._tf.cast(first, self._tf.int64)
            end = begin + self._tf.cast(count, self._tf.int64)

            def again(values: Sequence[Tensor], end: Tensor = end) -> Tensor:
                return values[0] < end

            def body(values: Sequence[Tensor], size: int = size) -> list[Tensor]:
                element = elements.take(values[0], size)
                return [values[0] + 1, *step(values[1:], element)]

            _, *states = self._loop([begin, *states], again, body)
            first = first + count if isinstance(first + count, int) else end
        return states

    # Variables.

    def _variable(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        name = node.attr["shared_name"].s.decode() or node.name
        if name == ANONYMOUS.decode():
            self._made += 1
            name = str(self._made)
        return [Variable(name)]

    def _value_of(self, node: NodeView, value: Value) -> Tensor:
        if not isinstance(value, Variable) or value.name not in self._variables:
            raise CannotBatchError(f"{node.op} is of a variable that has no value yet")
        self._uses.setdefault(value.name, False)
        return self._variables[value.name]

    def _read(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        return [self._value_of(node, inputs[0])]

    def _assign(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        handle, value = inputs
        if not isinstance(handle, Variable):
            raise CannotBatchError(f"{node.op} is of what is not a variable of the section")
        self._write(handle, self._tensor(value))
        return []

    def _write(self, handle: Value, value: Tensor) -> None:
        assert isinstance(handle, Variable)
        self._uses[handle.name] = True
        self._variables[handle.name] = value

    def _assign_add(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        handle, value = inputs
        self._write(handle, self._value_of(node, handle) + self._tensor(value))
        return []

    def _assign_sub(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        handle, value = inputs
        self._write(handle, self._value_of(node, handle) - self._tensor(value))
        return []

    def _is_assigned(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        return [self._tf.constant(getattr(inputs[0], "name", None) in self._variables)]

    # The program's own checks.

    def _assert(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        self._checks.append(self._tensor(inputs[0]))
        return []

    def _check_numerics(self, node: NodeView, inputs: list[Value]) -> Sequence[Value]:
        tensor = self._tensor(inputs[0])
        self._checks.append(self._tf.reduce_all(self._tf.math.is_finite(tensor)))
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
        "ReduceDataset": _reduce,
        "VarHandleOp": _variable,
        "ReadVariableOp": _read,
        "AssignVariableOp": _assign,
        "AssignAddVariableOp": _assign_add,
        "AssignSubVariableOp": _assign_sub,
        "VarIsInitializedOp": _is_assigned,
        "Assert": _assert,
        "CheckNumerics": _check_numerics,
    }
    """The operations that are computed in ways of their own."""
