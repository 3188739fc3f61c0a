"""Running TensorFlow sections, each in its own graph and sessions.

Separate sessions keep variables, tables, random generators and functions of sections apart.  A
session that would remember something of a call is not used again; others are reused, which is
several times faster.

The graph is run as it is, unless the caller has it rewritten to run faster.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from tffc.graphs.node import all_nodes
from tffc.graphs.resources import ResourceNode, resources_among
from tffc.language.nodes import Compiled
from tffc.language.shapes import shape_is_assignable
from tffc.language.types import FunctionType, SequenceType, TensorType
from tffc.language.values.concrete import INFINITE, Endless, Stacked, layout
from tffc.language.values.resources import array_of
from tffc.runtime.frameworks.tensorflow.datasets import (
    components,
    open_dataset,
    parsed,
    seal_dataset,
    serialized,
    stacked,
    wire_order,
)
from tffc.runtime.frameworks.tensorflow.graph_content import GraphContent, read_graph
from tffc.runtime.frameworks.tensorflow.load import (
    Tensor,
    TensorFlow,
    find_devices,
    load_tensorflow,
    uses_accelerators,
)
from tffc.runtime.frameworks.tensorflow.quiet import quiet_if_loud
from tffc.runtime.frameworks.tensorflow.session_state import remembers, waits
from tffc.support.errors import ExecutionError, TffcError
from tffc.support.guards import Array

if TYPE_CHECKING:
    from tffc.graphs.proto import GraphDef


SCOPE = "section"
"""The name scope that a section's graph is imported into."""


Columns: TypeAlias = Mapping[str, Sequence[tuple[str, int]]]
"""The placeholders of a graph that hold the elements of its sequences, one stacked tensor each,
with their element types; by the name of the sequence."""

Rewrite: TypeAlias = Callable[["GraphDef", Columns], None]
"""A function that changes a TensorFlow GraphDef in place so that it runs faster."""


class TensorFlowRunner:
    """A loaded TensorFlow section, whose graph `rewrite` may have changed.

    `endless` has the positions of those parts of the parameter (its tensors and sequences) that are
    infinite sequences.
    """

    def __init__(
        self,
        section: Compiled,
        rewrite: Rewrite | None = None,
        endless: frozenset[int] = frozenset(),
    ) -> None:
        assert isinstance(section.type, FunctionType)
        self._tf = load_tensorflow()
        self._endless = endless

        def load_with(endless: frozenset[int]) -> TensorFlowRunner:
            return TensorFlowRunner(section, rewrite, endless)

        self._load_with = functools.lru_cache(load_with)
        find_devices(self._tf)
        self._type = section.type
        parameter = section.type.parameter
        self._parameter = None if parameter is None else layout(parameter)
        self._result = layout(section.type.result)
        self._graph = self._tf.Graph()
        self._idle: list[LoadedSession] = []
        try:
            content = read_graph(section)
            self._remembers = remembers(content)
            self._waits = waits(content)
            with self._graph.as_default():
                self._inputs = self._make_inputs(content)
                self._resources = self._make_resources(content)
                self._import(content, rewrite)
                self._outputs = self._make_outputs(content)
        except TffcError:
            raise
        # TensorFlow raises a KeyError for a name that the graph does not have.
        except (ValueError, KeyError, self._tf.errors.OpError) as error:
            refusal = ExecutionError(
                "E720",
                f"TensorFlow cannot load the graph of a section of type `{self._type}`",
                notes=(_first_line(str(error.args[0] if error.args else error)),),
                help="import the package that registers its operations, or trace the program again "
                "with this TensorFlow",
            )
            refusal.holds_values = False  # none was computed yet
            raise refusal from None

    def __call__(self, argument: Any) -> Any:
        feeds: list[Any] = []
        if self._parameter is not None:
            values = self._parameter.flatten(argument)
            endless = frozenset(i for i, v in enumerate(values) if isinstance(v, Endless))
            if endless != self._endless:
                return self._load_with(endless)(argument)
            for leaf, value in zip(self._inputs.values(), values, strict=True):
                feeds.extend(leaf.feed(value))
        try:
            results = self._compute(feeds)
        except self._tf.errors.OpError as error:
            _fail(error, self._graph.as_graph_def())
        return self._result.unflatten(iter(results))

    def _compute(self, feeds: list[Any]) -> list[Any]:
        """Return the parts of the result, computed in a session that no other thread uses
        meanwhile."""
        try:
            loaded = self._idle.pop()
        except IndexError:
            loaded = self._load()
        try:
            # Arrays of the store are where TensorFlow uses them as they are, without a copy.
            feeds = [*feeds, *(resource.array for resource in self._resources.values())]
            if loaded.initialize is not None:
                loaded.initialize(*feeds)
            fetched = iter(loaded.compute(*feeds))
            return [output.read(loaded.session, fetched) for output in self._outputs]
        finally:
            if self._remembers:
                loaded.session.close()
            else:
                self._idle.append(loaded)

    def _load(self) -> LoadedSession:
        session = self._new_session()
        feeds = [tensor.name for leaf in self._inputs.values() for tensor in leaf.tensors]
        feeds += [resource.tensor.name for resource in self._resources.values()]
        fetches = [fetch for output in self._outputs for fetch in output.fetches]
        tensors = [tensor.name for tensor in fetches if hasattr(tensor, "dtype")]
        operations = [tensor.name for tensor in fetches if not hasattr(tensor, "dtype")]
        initializer = self._initializer
        return LoadedSession(
            session=session,
            initialize=None
            if initializer is None
            else self._callable(session, feeds, [], [initializer.name]),
            compute=self._callable(session, feeds, tensors, operations),
        )

    def _callable(
        self, session: Any, feeds: list[str], fetches: list[str], targets: list[str]
    ) -> Callable[..., list[Any]]:
        """Return a function from fed values to results.

        It calls a private method, because `make_callable` takes half a millisecond longer for each
        call.
        """
        if not fetches and not targets:
            return lambda *values: []
        options = importlib.import_module("tensorflow.core.protobuf.config_pb2").CallableOptions(
            feed=feeds, fetch=fetches, target=targets
        )
        return session._make_callable_from_options(options)

    def _new_session(self) -> Any:
        v1 = self._tf.compat.v1
        # A negative number runs operations in the calling thread: passing most of them to another
        # thread takes longer than they do, and other clients keep the other cores busy.  But one
        # that waits there for another would wait for ever.
        threads = 0 if self._waits else -1
        config = v1.ConfigProto(allow_soft_placement=True, inter_op_parallelism_threads=threads)
        if not uses_accelerators():
            # Each operation is a launch and a wait there, which takes longer than small ones do.
            config.device_count["GPU"] = 0
        # The graph runs as it was traced: optimizing it costs more than it saves in a simulation.
        # Function calls are inlined all the same, because each would run as a graph of its own.
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
        config.graph_options.optimizer_options.do_function_inlining = True
        return v1.Session(graph=self._graph, config=config)

    def _make_inputs(self, content: GraphContent) -> dict[str, Any]:
        """Return the replacement of each tensor that the parameter is bound to."""
        return {
            name: self._make_input(type, index in self._endless)
            for index, (name, type) in enumerate(content.parameter)
        }

    def _make_input(self, type: TensorType | SequenceType, endless: bool) -> Any:
        if isinstance(type, TensorType):
            return TensorInput(self._tf, type)
        return EndlessInput(self._tf) if endless else SequenceInput(self._tf, type)

    def _make_resources(self, content: GraphContent) -> dict[ResourceNode, LoadedResource]:
        """Return the resources of the graph, each once.

        Raises:
          LoadError: one is not here, or damaged.
        """
        placeholder = self._tf.compat.v1.placeholder
        resources: dict[ResourceNode, LoadedResource] = {}
        for name, resource in resources_among(content.graph.node):
            if f"{name}:0" in self._inputs:
                continue
            if resource not in resources:
                tensor = placeholder(resource.dtype, resource.shape)
                resources[resource] = LoadedResource(array_of(resource), tensor)
            resources[resource].names.append(f"{name}:0")
        return resources

    def _operands(self) -> dict[str, Any]:
        """Return the tensors that replace those of the parameter and the resources, by name."""
        operands = {name: leaf.tensor for name, leaf in self._inputs.items()}
        for resource in self._resources.values():
            operands.update(dict.fromkeys(resource.names, resource.tensor))
        return operands

    def _import(self, content: GraphContent, rewrite: Rewrite | None) -> None:
        tf = self._tf
        operands = self._operands()
        if content.session_token:
            operands.setdefault(content.session_token, tf.constant(b""))
        edges = {f"^{name.partition(':')[0]}": tensor for name, tensor in operands.items()}
        graph_def = tf.compat.v1.GraphDef.FromString(content.graph.SerializeToString())
        if rewrite is not None:
            columns, placeholders = self._add_columns(graph_def)
            rewrite(graph_def, columns)
            operands.update(placeholders)
        with quiet_if_loud():
            tf.graph_util.import_graph_def(graph_def, input_map={**operands, **edges}, name=SCOPE)
        self._initializer = (
            self._graph.get_operation_by_name(f"{SCOPE}/{content.initialize_op}")
            if content.initialize_op
            else None
        )

    def _add_columns(self, graph_def: GraphDef) -> tuple[dict[str, Any], dict[str, Any]]:
        """Add placeholders for the stacked elements of sequences to a graph.

        Returns the columns of each sequence, as `Rewrite` takes them, and the replacement of each
        of their tensors.
        """
        columns: dict[str, list[tuple[str, int]]] = {}
        replaced: dict[str, Any] = {}
        names = {node.name for node in graph_def.node}
        for name, leaf in self._inputs.items():
            for stack in leaf.columns:
                column = f"column_{len(replaced)}"
                while column in names:
                    column += "_"
                node = graph_def.node.add(name=column, op="Placeholder")
                node.attr["dtype"].type = stack.dtype.as_datatype_enum
                replaced[f"{column}:0"] = stack
                columns.setdefault(name.removesuffix(":0"), []).append(
                    (column, node.attr["dtype"].type)
                )
        return columns, replaced

    def _make_outputs(self, content: GraphContent) -> list[Any]:
        operands = self._operands()
        outputs: list[Any] = []
        for name, type in content.result:
            if name in operands:
                tensor = self._tf.identity(operands[name])
            else:
                tensor = self._graph.get_tensor_by_name(f"{SCOPE}/{name}")
            outputs.append(
                SequenceOutput(self._tf, tensor, type)
                if isinstance(type, SequenceType)
                else TensorOutput(tensor, type)
            )
        return outputs


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedResource:
    """An array, the placeholder for it, and the tensors of the graph that the placeholder
    replaces."""

    array: Array
    tensor: Any
    names: list[str] = dataclasses.field(default_factory=list[str])


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedSession:
    """A session, and two functions of all fed values: one initialises it, the other computes the
    result."""

    session: Any
    initialize: Callable[..., Any] | None
    compute: Callable[..., list[Any]]


class TensorInput:
    """A placeholder for a tensor of the argument.

    `tensor` is what the section reads, `tensors` are the placeholders that `feed` returns values
    for.
    """

    columns = ()

    def __init__(self, tf: TensorFlow, type: TensorType) -> None:
        self.tensor = tf.compat.v1.placeholder(type.element_type.number, type.shape)
        self.tensors = (self.tensor,)

    def feed(self, value: Any) -> list[Any]:
        return [_array(value)]


class SequenceInput:
    """A dataset made from fed values.

    The leading elements that are shaped like the first one are fed as one stack for each component;
    the rest, from the first one of another shape on, is fed component by component, serialized.  If
    the type gives all shapes there is no rest, and `columns` are the stacks.
    """

    def __init__(self, tf: TensorFlow, type: SequenceType) -> None:
        self._tf = tf
        types = components(type)
        self._order = wire_order(type)
        self._types = [types[position] for position in self._order]
        self._element = layout(type.element)
        stacks = tuple(
            tf.compat.v1.placeholder(
                t.element_type.number, None if t.shape is None else (None, *t.shape)
            )
            for t in self._types
        )
        alike = tf.data.Dataset.from_tensor_slices(stacks).with_options(_plain_options(tf))
        if all(t.is_fully_defined() for t in self._types):
            self.tensors = self.columns = stacks
            self.tensor = tf.data.experimental.to_variant(alike)
            return
        self.columns = ()
        singles = tuple(tf.compat.v1.placeholder(tf.string, [None]) for _ in self._types)
        self.tensors = (*stacks, *singles)
        single = tf.data.Dataset.from_tensor_slices(singles)

        def with_singles() -> Any:
            return tf.data.experimental.to_variant(alike.concatenate(single.map(self._parse)))

        # A map over elements costs time to set up for every client, so it is skipped where there is
        # no rest.
        self.tensor = tf.cond(
            tf.size(singles[0]) > 0,
            with_singles,
            lambda: tf.data.experimental.to_variant(alike),
        )

    def _parse(self, *texts: Any) -> tuple[Any, ...]:
        return parsed(self._tf, texts, self._types)

    def feed(self, value: list[Any]) -> list[Any]:
        others: list[Any] = []
        if isinstance(value, Stacked):
            stacks = [value.columns[position] for position in self._order]
        else:
            rows = [self._row(element) for element in value]
            alike = len(rows) if self.columns else _count_alike(rows)
            stacks = [
                stacked([row[index][()] for row in rows[:alike]], type)
                for index, type in enumerate(self._types)
            ]
            others = rows[alike:]
        if self.columns:
            return stacks
        singles = (
            [serialized(self._tf, row[index], type) for row in others]
            for index, type in enumerate(self._types)
        )
        return stacks + [np.array(texts, dtype=object) for texts in singles]

    def _row(self, element: Any) -> list[Any]:
        leaves = [_array(leaf) for leaf in self._element.flatten(element)]
        return [leaves[position] for position in self._order]


class EndlessInput:
    """An infinite dataset, fed as its serialized graph."""

    columns = ()

    def __init__(self, tf: TensorFlow) -> None:
        self._tf = tf
        graph = tf.compat.v1.placeholder(tf.string, ())
        self.tensor = tf.raw_ops.DatasetFromGraph(graph_def=graph)
        self.tensors = (graph,)

    def feed(self, value: Endless) -> list[Any]:
        with self._tf.init_scope():
            variant, _ = seal_dataset(self._tf, value.dataset)
            return [_array(dataset_graph(self._tf, variant).numpy())]


def dataset_graph(tf: TensorFlow, variant: Any) -> Any:
    """Return the serialized graph of the dataset in a variant tensor."""
    return tf.raw_ops.DatasetToGraphV2(
        input_dataset=variant, external_state_policy=IGNORE_STATE, strip_device_assignment=True
    )


IGNORE_STATE = 1
"""Random numbers in datasets are drawn at each reading, so their state need not be kept."""


class TensorOutput:
    """A tensor of the result."""

    def __init__(self, tensor: Tensor, type: TensorType) -> None:
        self.fetches = (tensor,)
        self._type = type
        self._dtype = type.element_type.dtype

    def read(self, session: Any, fetched: Iterator[Any]) -> Any:
        value = next(fetched)
        # Fast path: an exact match needs no further check.
        if getattr(value, "dtype", None) == self._dtype and value.shape == self._type.shape:
            return value
        return _checked(value, self._type)


class SequenceOutput:
    """A dataset of the result, fetched as an iterator that is read to its end.

    An infinite dataset is fetched as a graph instead.
    """

    def __init__(self, tf: TensorFlow, tensor: Tensor, type: SequenceType) -> None:
        self._tf = tf
        self._type = type
        types = components(type)
        self._order = wire_order(type)
        self._types = [types[position] for position in self._order]
        self._element = layout(type.element)
        specs: dict[str, Any] = {
            "output_types": [tf.as_dtype(t.element_type.number) for t in self._types],
            "output_shapes": [tf.TensorShape(t.shape) for t in self._types],
        }
        iterator = tf.raw_ops.IteratorV2(shared_name="", container="", **specs)
        start = tf.raw_ops.MakeIterator(dataset=self._plain(tensor), iterator=iterator)
        cardinality = tf.raw_ops.DatasetCardinality(input_dataset=tensor)
        graph = tf.cond(
            tf.equal(cardinality, INFINITE),
            lambda: dataset_graph(tf, tensor),
            lambda: tf.constant(b""),
        )
        self.fetches = (start, graph)
        self._next = tf.raw_ops.IteratorGetNext(iterator=iterator, **specs)

    def _plain(self, tensor: Tensor) -> Any:
        """Return the dataset without autotuning, whose thread may keep the end of an iterator
        waiting for a minute."""
        tf = self._tf
        elements = tuple(tf.TensorSpec(t.shape, t.element_type.number) for t in self._types)
        dataset = tf.data.experimental.from_variant(tensor, elements)
        return tf.data.experimental.to_variant(dataset.with_options(_plain_options(tf)))

    def read(self, session: Any, fetched: Iterator[Any]) -> list[Any] | Endless:
        graph = next(fetched)
        if graph:
            with self._tf.init_scope():
                variant = self._tf.raw_ops.DatasetFromGraph(graph_def=graph)
                return Endless(open_dataset(self._tf, variant, self._type))
        elements: list[Any] = []
        while True:
            try:
                row = session.run(self._next)
            except self._tf.errors.OutOfRangeError:
                return elements
            leaves: list[Any] = [None] * len(row)
            for position, tensor, type in zip(self._order, row, self._types, strict=True):
                leaves[position] = _checked(tensor, type)
            elements.append(self._element.unflatten(iter(leaves)))


def _plain_options(tf: TensorFlow) -> Any:
    """Return options that leave datasets unoptimized: optimizing one costs more than it saves
    here."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.apply_default_optimizations = False
    return options


def _array(value: Any) -> Any:
    """Return a tensor as an array; strings as an object array, which keeps their bytes
    unchanged."""
    return np.array(value, dtype=object) if isinstance(value, bytes) else np.asarray(value)


def _count_alike(rows: list[Any]) -> int:
    """Return how many leading elements have tensors shaped like those of the first one."""
    shapes = ([array.shape for array in row] for row in rows)
    first = next(shapes, None)
    return next((i for i, other in enumerate(shapes, 1) if other != first), len(rows))


SCALARS: Any = (bytes, np.generic)
"""The types that TensorFlow returns for scalars when it does not return arrays."""


def _checked(value: Any, type: TensorType) -> Any:
    """Return a tensor from TensorFlow after checking that it is of the type that the section
    declares."""
    array = _array(value)
    if array.dtype != type.element_type.dtype or not shape_is_assignable(type.shape, array.shape):
        shape = f" of shape {list(array.shape)}" if array.shape else ""
        raise ExecutionError(
            "E721",
            f"a section gave a tensor of {array.dtype}{shape} where its type promises `{type}`",
        )
    if isinstance(value, SCALARS):
        return value
    return array if array.shape else array[()]


def _fail(error: Any, graph: GraphDef) -> NoReturn:
    """Raise our error for TensorFlow's, without its stack traces and node names.

    The message may hold values; what is public is of the graph and of TensorFlow alone.
    """
    # The session appends a report to the error and keeps the original as its context.
    original = getattr(error.__context__, "message", error.message)
    name = re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__.removesuffix("Error")).lower()
    kind = f"it is of the kind {name!r}"
    failure = ExecutionError(
        "E722",
        f"TensorFlow could not carry out a computation: {_first_line(original)}",
        notes=(kind,),
        help="run the function in TensorFlow alone, on the values it was given, to see where",
    )
    failure.public = (*_failed_node(original, graph), kind)
    raise failure from None


def _failed_node(message: str, graph: GraphDef) -> Iterator[str]:
    """Yield the name and operation of the node that a message of TensorFlow names, if the graph or
    a function of it has the node.

    A message may quote any text, so nothing of it is repeated but the name of a node.
    """
    match = re.search(r"\{\{node ([^{}]*)\}\}", message)
    if match is None:
        return
    operations = {node.name: node.op for node in all_nodes(graph)}
    # The nodes of an inlined function are named below its call.
    parts = match[1].split("/")
    for name in ("/".join(parts[start:]) for start in range(len(parts))):
        if name in operations:
            yield f"the node {name.removeprefix(f'{SCOPE}/')!r} failed, a {operations[name]}"
            return


def _first_line(message: str) -> str:
    """Return the first line of a TensorFlow message, without its markup for node names."""
    text = re.sub(r"\{\{[^{}]*\}\}", "", message).strip()
    return text.partition("\n")[0].strip()
