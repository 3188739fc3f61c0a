"""What the graphs of TensorFlow compute, as far as privacy can be shown of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tffc.assurance.privacy.graphs import samplers
from tffc.assurance.privacy.graphs.constants import constant_of_node
from tffc.assurance.privacy.graphs.operations import OPERATIONS
from tffc.assurance.privacy.graphs.random_numbers import RANDOM_NUMBERS, STATELESS
from tffc.assurance.privacy.graphs.table import NodeUse, sizes_of
from tffc.assurance.privacy.quantities import bounds, choices, lines, noises
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.quantity import Provenance, Quantity, Shape, union
from tffc.assurance.privacy.quantities.streams import Stream
from tffc.graphs.body import ANY_PORT, Body, Edge
from tffc.graphs.functions import Library, named_functions
from tffc.graphs.node import reached
from tffc.graphs.operations import op_table
from tffc.graphs.operations.effects import Effect, effect_of, is_seeded_by_attributes
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, SequenceType, TensorType, Type
from tffc.linking.operand import leaf_types
from tffc.linking.section import read_section

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView

DEEPEST = 60
"""How deep calls of functions are followed."""

MOST_STEPS = 1_000_000
"""The nodes of a section that are evaluated before functions are followed no further."""

SHORTEST = 40
"""The nodes of a loop that is looked at iteration by iteration."""

MOST_ITERATIONS = 32
"""The iterations of such a loop."""

STEPPED = {"Const", *OPERATIONS} - set(RANDOM_NUMBERS.rules)
"""Its operations."""

MOST_PASSES = 100
"""How often shapes in the loops of a section are dropped one by one."""

Place = tuple[tuple[str, ...], Edge]
"""An output of a node of a section, and the nodes that call the functions that it is in."""

NO_NOISE: Mapping[Place, Stream] = {}

CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
CONDITIONALS = frozenset({"If", "StatelessIf"})
LOOPS = frozenset({"While", "StatelessWhile"})
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, MemoryError)
"""What rules raise for attributes and operands that no operation has: they describe nothing."""

OVER_DATASETS = frozenset(
    {
        "DatasetToSingleElement",
        "RangeDataset",
        "ReduceDataset",
        "TensorDataset",
        "TensorSliceDataset",
    }
)
"""Operations that TensorFlow marks as keeping state, and that only read their datasets."""

WITHOUT_STATE = frozenset(
    {"Assert", "CheckNumerics", "CheckNumericsV2", "NoOp", *CALLS, *CONDITIONALS, *LOOPS}
)
"""Operations that TensorFlow marks as keeping state, and that are followed."""


def results_of_graph(
    section: Compiled,
    arguments: Sequence[Quantity],
    algebra: Algebra,
    noise: Mapping[Place, Stream] = NO_NOISE,
) -> list[Quantity]:
    """Return what is known of the leaves of a section's result, given those of its parameter, and
    the `noise` in it that is followed from round to round.

    Raises:
      GraphError: the section is malformed.
    """
    content = read_section(section)
    walk = GraphWalk(algebra, Library(content.graph.library), arguments, noise)
    body = content.body()
    results = walk.results(body)
    holds = algebra.assertions.get(id(section), True) and walk.holds(body)
    algebra.assertions[id(section)] = holds
    type = section.type
    assert isinstance(type, FunctionType)
    return [
        shaped(result, leaf, algebra)
        for result, leaf in zip(results, leaf_types(type.result), strict=True)
    ]


def shaped(value: Quantity, leaf: TensorType | SequenceType, algebra: Algebra) -> Quantity:
    """Return a value with the shape that its type says."""
    if isinstance(leaf, SequenceType):
        return algebra.unknown([value])
    shape = shape_of(leaf)
    if shape is None or value.shape == shape:
        return value
    if value.shape is not None:
        # The type is what is checked when values are passed on.
        return algebra.unknown([value], shape=shape)
    # Parts whose sizes nobody knows are not looked at one by one.
    parts = () if any(part.size is None for part in value.parts) else value.parts
    return dataclasses.replace(value, shape=shape, noise=None, parts=parts)


def shape_of(leaf: Type) -> Shape | None:
    """Return the shape of a tensor's type, if it has all sizes."""
    if not isinstance(leaf, TensorType) or leaf.shape is None:
        return None
    sizes = tuple(size for size in leaf.shape if size is not None)
    return sizes if len(sizes) == len(leaf.shape) else None


class GraphWalk:
    """The evaluation of one section; `arguments` are all that it is given."""

    def __init__(
        self,
        algebra: Algebra,
        library: Library,
        arguments: Sequence[Quantity],
        noise: Mapping[Place, Stream] = NO_NOISE,
    ) -> None:
        self.algebra = algebra
        self._noise = noise
        self._path: tuple[str, ...] = ()
        self._library = library
        self._arguments = arguments
        self._call = algebra.place
        self._draws = algebra.begin_section()
        self._state = union(*(algebra.exposed(a, "is kept").provenance for a in arguments))
        """What any variable or other state of the section may hold, besides its draws."""
        self._steps = 0
        self._passes = 0
        self._is_in_loop = False
        self._asserted: dict[tuple[str, str], bool] = {}
        """Whether what assertions demand was always certain, by their functions and names."""

    def holds(self, body: Body) -> bool:
        """Tell whether all assertions that may run are about what is certain."""
        called = [name for node in body.nodes.values() for name in self._library.called_by(node)]
        functions = reached(called, self._library.calls_of)
        nodes = [(body.name, node) for node in body.nodes.values()]
        nodes += [(name, n) for name in functions for n in self._library.nodes(name).values()]
        return all(
            self._asserted.get((name, node.name), False)
            for name, node in nodes
            if node.op == "Assert"
        )

    def results(self, body: Body) -> list[Quantity]:
        """Return the results of the section's graph."""
        results = self.run(body, list(self._arguments), 0)
        self.algebra.end_section(self._draws)
        return results

    def run(self, body: Body, arguments: list[Quantity], depth: int) -> list[Quantity]:
        """Return the results of a graph or of a function for arguments."""
        values: dict[Edge, Quantity] = dict(zip(body.arguments, arguments, strict=False))
        anything = self._anything(arguments)
        path = self._path

        def at(edge: Edge) -> Quantity:
            """Return the value of an edge; those that are not known may differ from each other."""
            value = values.get(edge)
            if value is None:
                value = dataclasses.replace(anything, term=self.algebra.fresh())
            stream = self._noise.get((path, edge))
            if stream is None:
                return value
            tells = self.algebra.followed_draws & value.provenance.draws
            if not (len(stream.draws) or tells):
                return value
            return self.algebra.noise_of(stream, self._draws, path, edge)

        if body.has_loops or self._steps > MOST_STEPS:
            return list(map(at, body.results))
        replaced = {edge.node for edge in body.arguments}
        for name, node in body.nodes.items():
            if name in replaced and body.name == "":
                continue
            inputs = list(map(at, body.inputs[name]))
            self.algebra.place = f"{node.op} in {self._call}" if self._call else node.op
            self._steps += 1
            outputs = self._node(name, node, inputs, body, depth)
            values.update((Edge(name, port), value) for port, value in enumerate(outputs))
            if len(outputs) == 1:
                values[Edge(name, ANY_PORT)] = outputs[0]
        return list(map(at, body.results))

    def _anything(self, inputs: Sequence[Quantity]) -> Quantity:
        """Return what may be any function of the inputs, and of all state and draws of the
        section."""
        value = self.algebra.unknown(inputs)
        everything = union(
            value.provenance,
            self._state,
            Provenance(draws=self.algebra.followed_draws | {self._draws}),
        )
        return dataclasses.replace(value, provenance=everything)

    def _node(
        self, name: str, node: NodeView, inputs: list[Quantity], body: Body, depth: int
    ) -> list[Quantity]:
        operation = op_table.find(node.op)
        if operation is None and node.op in self._library.functions:
            before, self._noise = self._noise, NO_NOISE
            results = self._function(node.op, inputs, depth)
            self._noise = before
            return results
        if node.op == "Const":
            return [self.algebra.constant(constant_of_node(node))]
        if node.op == "Assert":
            content = inputs[0].content if inputs else None
            key = body.name, node.name
            is_certain = content is not None and bool(np.all(content))
            self._asserted[key] = self._asserted.get(key, True) and is_certain
        count = operation.output_count(node.attr) if operation is not None else None
        followed = self._followed(name, node, inputs, body, depth)
        if followed is not None:
            return followed
        effect = effect_of(node, body.nodes)
        functions = self._library.called_by(node)
        if functions and not _reaches_state(node):
            value = self._repeated(list(functions), inputs)
        elif effect is Effect.RANDOM:
            value = self._undescribed_draw(inputs)
        elif (
            operation is None
            or operation.names_functions
            or _reaches_state(node)
            or (effect is not None and node.op not in OVER_DATASETS)
        ):
            value = self._anything(inputs)
        else:
            value = self.algebra.unknown(inputs)
        count = 1 if count is None else count
        shapes = _checked_shapes(node, count)
        return [
            dataclasses.replace(value, term=self.algebra.fresh(), shape=shape) for shape in shapes
        ]

    def _followed(
        self, name: str, node: NodeView, inputs: list[Quantity], body: Body, depth: int
    ) -> list[Quantity] | None:
        """Return the outputs of a node that is described, or None."""
        if node.op in CALLS:
            before, self._path = self._path, (*self._path, name)
            results = self._function(function_named(node, "f"), inputs, depth)
            self._path = before
            return results
        if node.op in CONDITIONALS or node.op in LOOPS:
            # Nodes of their functions may have the names of others, whose noise is followed.
            before, self._noise = self._noise, NO_NOISE
            follow = self._conditional if node.op in CONDITIONALS else self._loop
            results = follow(node, inputs, depth)
            self._noise = before
            return results
        if node.op not in OPERATIONS:
            return None
        try:
            return OPERATIONS[node.op](NodeUse(self, node, inputs, body))
        except UNREADABLE:
            return None

    def _undescribed_draw(self, inputs: Sequence[Quantity]) -> Quantity:
        """Return random numbers of a distribution that nothing is known of."""
        draw = self.algebra.drawn("other", None)
        return self.algebra.unknown([*inputs, draw])

    def draw(
        self,
        node: NodeView,
        body: Body,
        distribution: str,
        shape: Shape | None,
        limits: bounds.Bounds = bounds.ANY,
    ) -> Quantity:
        """Return what an operation with seeds in its attributes draws."""
        if effect_of(node, body.nodes) is Effect.RANDOM:
            return self.algebra.drawn(distribution, shape, limits)
        text = f"{self.algebra.place} draws from a given seed"
        return Quantity(self.algebra.fresh(), Provenance(seeded=frozenset((text,))), limits, shape)

    # Functions.

    def _function(self, name: str, inputs: list[Quantity], depth: int) -> list[Quantity]:
        if name not in self._library.functions or depth >= DEEPEST:
            return [self._anything(inputs)]
        sampled = self._sampled(name, inputs)
        if sampled is not None:
            return [sampled]
        before = self.algebra.place
        results = self.run(self._library.body(name), inputs, depth + 1)
        self.algebra.place = before
        return results

    def _sampled(self, name: str, inputs: list[Quantity]) -> Quantity | None:
        """Return what a function draws that is a known sampler, or None if it is none."""
        if len(inputs) != 2 or not samplers.may_sample(self._library.body(name)):
            return None
        scale, shape = lines.number_of(inputs[0]), sizes_of(inputs[1])
        is_known = inputs[0].is_integer and inputs[0].is_scalar and shape is not None
        if not is_known or scale is None or not 1 <= scale <= samplers.LARGEST_SCALE:
            return None
        if samplers.form_of(name, self._library) not in samplers.DISCRETE_GAUSSIAN:
            return None
        drawn = self.algebra.drawn(noises.DISCRETE, shape)
        assert drawn.noise is not None
        noise = dataclasses.replace(drawn.noise, scale=bounds.constant(scale))
        return dataclasses.replace(drawn, noise=noise, is_integer=True)

    def _conditional(self, node: NodeView, inputs: list[Quantity], depth: int) -> list[Quantity]:
        condition, *rest = inputs
        then, otherwise = (
            self._function(function_named(node, name), rest, depth)
            for name in ("then_branch", "else_branch")
        )
        if len(then) != len(otherwise):
            return [self._anything(inputs)]
        return [
            self.algebra.branch(condition, first, second)
            for first, second in zip(then, otherwise, strict=True)
        ]

    def _loop(self, node: NodeView, inputs: list[Quantity], depth: int) -> list[Quantity]:
        """Return the results of a loop: what no iteration changes, and what is not known.

        Everything that is changed may be any function of all that the loop is given, and of all
        that it draws.  But the condition of the loop does not hold for it.
        """
        condition, repeated = function_named(node, "cond"), function_named(node, "body")
        body = self._library.body(repeated)
        unrolled = self._unrolled(condition, body, inputs, depth)
        if unrolled is not None:
            return unrolled
        same = {
            position
            for position, edge in enumerate(body.results)
            if position < len(body.arguments) and _origin(body, edge) == body.arguments[position]
        }
        everything = self._repeated([condition, repeated], inputs)
        is_outermost, self._is_in_loop = not self._is_in_loop, True
        results = [
            value
            if position in same
            else dataclasses.replace(everything, term=self.algebra.fresh(), shape=value.shape)
            for position, value in enumerate(inputs)
        ]
        if is_outermost:
            results = self._with_kept_shapes(repeated, results, same, depth)
            results = self._left(condition, results, same, depth)
            self._is_in_loop = False
            return results
        return [
            value if position in same else dataclasses.replace(value, shape=None)
            for position, value in enumerate(results)
        ]

    def _unrolled(
        self, condition: str, body: Body, inputs: list[Quantity], depth: int
    ) -> list[Quantity] | None:
        """Return the results of a short loop that has a known number of iterations; None if it is
        not known or the loop is none of those."""
        checked = self._library.body(condition)
        is_short = len(body.nodes) + len(checked.nodes) <= SHORTEST
        if not is_short or not all(node.op in STEPPED for node in body.nodes.values()):
            return None
        if not all(node.op in STEPPED for node in checked.nodes.values()):
            return None
        values = inputs
        for _ in range(MOST_ITERATIONS):
            holds = self.run(checked, values, depth + 1)
            if len(holds) != 1 or holds[0].content is None or not holds[0].is_scalar:
                return None
            if not holds[0].content:
                return values
            values = self.run(body, values, depth + 1)
            if len(values) != len(inputs):
                return None
        return None

    def _with_kept_shapes(
        self, body: str, results: list[Quantity], same: set[int], depth: int
    ) -> list[Quantity]:
        """Return what iterations may begin with, with the shapes that none of them changes.

        Shapes are supposed, and those that an iteration then does not keep are dropped, until all
        that are left are kept.
        """
        while True:
            asserted = dict(self._asserted)
            after = self._function(body, results, depth)
            self._asserted = asserted
            changed = [
                position
                for position, value in enumerate(results)
                if position not in same
                and value.shape is not None
                and (len(after) != len(results) or after[position].shape != value.shape)
            ]
            if not changed:
                return results
            everywhere = range(len(results)) if self._passes > MOST_PASSES else changed
            self._passes += 1
            for position in everywhere:
                if position not in same:
                    results[position] = dataclasses.replace(results[position], shape=None)

    def _left(
        self, condition: str, results: list[Quantity], same: set[int], depth: int
    ) -> list[Quantity]:
        """Return the results of a loop, for which its condition does not hold.

        They are products with a factor that is one.  If a norm of them is at most a number, so is
        the factor at most that number divided by the norm.
        """
        asserted = dict(self._asserted)
        (holds, *others) = self._function(condition, results, depth)
        self._asserted = asserted
        one = self.algebra.constant(1.0)
        if others or not holds.is_scalar:
            return results
        limits = choices.where(holds, one, False)
        ratios = [bound for bound in limits.above if not bound.is_public]
        if not ratios:
            return results
        # One is at most a number if it is at most a power of it.
        above = [r.power(power) for r in ratios for power in (Fraction(1), Fraction(1, 2))]
        limits = bounds.bounded([bounds.ONE, *above], [bounds.ZERO])
        factor = Quantity(self.algebra.fresh(), bounds=limits, shape=())
        return [
            value
            if position in same
            else dataclasses.replace(
                value,
                term=self.algebra.fresh(),
                elements=value.base,
                factor=factor,
                product=(value, factor),
            )
            for position, value in enumerate(results)
        ]

    def _repeated(self, names: list[str], inputs: list[Quantity]) -> Quantity:
        """Return what functions compute that run any number of times."""
        touched = reached(names, self._library.calls_of)
        nodes = [n for name in touched for n in self._library.nodes(name).values()]
        if any(map(_reaches_state, nodes)):
            return self._anything(inputs)
        draws = [self.algebra.drawn("other", None) for n in nodes if _draws(n)]
        result = self.algebra.unknown([*inputs, *draws])
        seeded = {n.op for n in nodes if n.op in STATELESS}
        if not seeded or result.provenance.draws:
            return result
        texts = frozenset(f"{op} in a loop draws from a seed that is given" for op in seeded)
        provenance = union(result.provenance, Provenance(seeded=texts))
        return dataclasses.replace(result, provenance=provenance)


def _checked_shapes(node: NodeView, count: int) -> list[Shape | None]:
    """Return the shapes of a node's outputs that its kernel checks when it runs."""
    if node.op != "ReduceDataset":
        return [None] * count
    shapes = [
        None
        if shape.unknown_rank or any(dim.size < 0 for dim in shape.dim)
        else tuple(dim.size for dim in shape.dim)
        for shape in node.attr["output_shapes"].list.shape
    ]
    return shapes if len(shapes) == count else [None] * count


def _reaches_state(node: NodeView) -> bool:
    """Tell whether an operation may use state that is not among its inputs."""
    operation = op_table.find(node.op)
    if operation is None:
        return False
    return operation.is_stateful and not (
        node.op in WITHOUT_STATE or node.op in OVER_DATASETS or _draws(node)
    )


def _draws(node: NodeView) -> bool:
    return is_seeded_by_attributes(node.op)


def function_named(node: NodeView, attribute: str) -> str:
    """Return the function that an attribute of a node names, or an empty text."""
    if attribute not in node.attr:
        return ""
    return next((call.name for call in named_functions({attribute: node.attr[attribute]})), "")


def _origin(body: Body, edge: Edge) -> Edge:
    """Return where an edge comes from, through nodes that pass their input on."""
    passed: set[str] = set()
    while edge.node in body.nodes and edge.node not in passed:
        if body.nodes[edge.node].op != "Identity":
            break
        passed.add(edge.node)
        edge = body.inputs[edge.node][0]
    return edge
