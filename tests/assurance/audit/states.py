"""Kinds of state that TensorFlow keeps between operations of one run: how one is made, written
and read with raw operations.

`create` returns a handle whose initial content does not depend on any argument; a name makes it
differ from others.  `write` puts a number into it, `read` returns what it holds.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()
ops: Any = tf.raw_ops
plain = tf.autograph.experimental.do_not_convert


class State(NamedTuple):
    """A kind of state; `is_reference` if its handle cannot pass into functions, `is_once` if it
    takes one write only, and `waits` if a read waits until there is one."""

    create: Callable[[str], Any]
    write: Callable[[Any, Any], Any]
    read: Callable[[Any], Sequence[Any]]
    is_reference: bool = False
    is_once: bool = False
    waits: bool = False


NUMBERS = itertools.count()


def fresh() -> str:
    """Return a name that no other state of this process has."""
    return f"state{next(NUMBERS)}"


def after(operations: Sequence[Any] | Any) -> Any:
    """Return the context in which what is made runs after these."""
    listed = operations if isinstance(operations, list | tuple) else [operations]
    if tf.executing_eagerly():
        return tf.control_dependencies([])
    return tf.control_dependencies([each for each in listed if each is not None])


def held(handle: Any, operation: Any) -> Any:
    """Return the handle; TensorFlow orders the operations on a resource as they were added.

    It is not made an Identity after the operation: TensorFlow's automatic control dependencies
    never end if a dataset's function uses one.
    """
    del operation
    return handle


def whole(x: Any) -> Any:
    return tf.cast(x, tf.int64)


# Variables.


def variable(dtype: Any, shape: Sequence[int], first: float = 0.0) -> State:
    def create(name: str) -> Any:
        handle = ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=name)
        value = tf.fill(shape, tf.cast(first, dtype))
        return held(handle, ops.AssignVariableOp(resource=handle, value=value))

    def write(handle: Any, x: Any) -> Any:
        value = tf.fill(shape, tf.cast(x, dtype))
        return ops.AssignVariableOp(resource=handle, value=value)

    return State(create, write, lambda h: [ops.ReadVariableOp(resource=h, dtype=dtype)])


def updated(update: Callable[[Any, Any], Any]) -> State:
    """Return a variable of two numbers that another operation writes."""
    return variable(tf.float32, [2], 6.5)._replace(write=update)


def pair(x: Any) -> Any:
    return tf.stack([x, x])


def reference(make: Callable[[], Any], write: Callable[[Any, Any], Any]) -> State:
    def create(name: str) -> Any:
        handle = make()
        return ops.Assign(ref=handle, value=tf.constant([6.5, 6.5]))

    def read(handle: Any) -> Sequence[Any]:
        return [tf.identity(handle)]

    return State(create, write, read, is_reference=True)


def v2() -> Any:
    return ops.VariableV2(shape=[2], dtype=tf.float32)


# Tables.


def table(make: Callable[[str], Any], insert: Callable[[Any, Any], Any], **options: Any) -> State:
    value = options.pop("value", tf.float32)

    def read(handle: Any) -> Sequence[Any]:
        entry = ops.LookupTableFindV2(
            table_handle=handle,
            keys=tf.constant([1], tf.int64),
            default_value=tf.constant(-7, value) if value != tf.string else tf.constant("-"),
        )
        return [entry, ops.LookupTableSizeV2(table_handle=handle)]

    return State(make, insert, read, **options)


def insert(handle: Any, x: Any) -> Any:
    keys = tf.constant([1], tf.int64)
    return ops.LookupTableInsertV2(table_handle=handle, keys=keys, values=tf.reshape(x, [1]))


def insert_text(handle: Any, x: Any) -> Any:
    keys = tf.constant([1], tf.int64)
    values = tf.reshape(tf.strings.as_string(x), [1])
    return ops.LookupTableInsertV2(table_handle=handle, keys=keys, values=values)


def insert_key(handle: Any, x: Any) -> Any:
    keys = tf.reshape(whole(x), [1])
    return ops.LookupTableInsertV2(table_handle=handle, keys=keys, values=tf.constant([3.0]))


def import_all(handle: Any, x: Any) -> Any:
    keys = tf.constant([1, 2], tf.int64)
    return ops.LookupTableImportV2(table_handle=handle, keys=keys, values=pair(x))


def mutable(name: str) -> Any:
    return ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.float32, shared_name=name)


def filled(name: str) -> Any:
    handle = mutable(name)
    return held(handle, insert(handle, tf.constant(5.0)))


def remove(handle: Any, x: Any) -> Any:
    return ops.LookupTableRemoveV2(table_handle=handle, keys=tf.reshape(whole(x), [1]))


def dense(name: str) -> Any:
    return ops.MutableDenseHashTableV2(
        empty_key=tf.constant(-1, tf.int64),
        deleted_key=tf.constant(-2, tf.int64),
        value_dtype=tf.float32,
        value_shape=[],
        shared_name=name,
    )


def vectors(name: str) -> Any:
    return ops.MutableHashTableOfTensorsV2(
        key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[2], shared_name=name
    )


def initialize(handle: Any, x: Any) -> Any:
    keys = tf.constant([1], tf.int64)
    return ops.InitializeTableV2(table_handle=handle, keys=keys, values=tf.reshape(x, [1]))


def of_dataset(handle: Any, x: Any) -> Any:
    pairs = ops.TensorSliceDataset(
        components=[tf.constant([1], tf.int64), tf.reshape(x, [1])], output_shapes=[[], []]
    )
    return ops.InitializeTableFromDataset(table_handle=handle, dataset=pairs)


def export(handle: Any) -> Sequence[Any]:
    entries = ops.LookupTableExportV2(table_handle=handle, Tkeys=tf.int64, Tvalues=tf.float32)
    return [entries.values, entries.keys]


# Queues.


def queue(operation: str, many: bool = False, **attributes: Any) -> State:
    """Return a queue of numbers that holds one at first; a priority queue has priorities too."""
    has_priority = operation.startswith("Priority")

    def components(x: Any) -> list[Any]:
        return [tf.constant(4, tf.int64), x] if has_priority else [x]

    def create(name: str) -> Any:
        handle = getattr(ops, operation)(shared_name=name, **attributes)
        first = ops.QueueEnqueueV2(handle=handle, components=components(tf.constant(-1.0)))
        return held(handle, first)

    def write(handle: Any, x: Any) -> Any:
        if many:
            rows = [pair(each) for each in components(x)]
            return ops.QueueEnqueueManyV2(handle=handle, components=rows)
        return ops.QueueEnqueueV2(handle=handle, components=components(x))

    def read(handle: Any) -> Sequence[Any]:
        size = ops.QueueSizeV2(handle=handle)
        with after(size):
            close = ops.QueueCloseV2(handle=handle)
        types = [tf.int64, tf.float32] if has_priority else [tf.float32]
        with after(close):
            closed = ops.QueueIsClosedV2(handle=handle)
            take = ops.QueueDequeueManyV2 if has_priority else ops.QueueDequeueUpToV2
            taken = take(handle=handle, n=size, component_types=types)
        return [size, closed, *taken]

    return State(create, write, read)


def dequeued(handle: Any, x: Any) -> Any:
    """Take as many elements as a number says, one at most."""
    count = tf.cast(tf.clip_by_value(x, 0.0, 1.0), tf.int32)
    return ops.QueueDequeueManyV2(handle=handle, n=count, component_types=[tf.float32])


FIFO = {"component_types": [tf.float32], "shapes": [[]], "capacity": 20}


# Stacks, arrays, stages.


def stack(name: str) -> Any:
    handle = ops.StackV2(max_size=tf.constant(20), elem_type=tf.float32, stack_name=name)
    return held(handle, ops.StackPushV2(handle=handle, elem=tf.constant(-1.0)))


class Array(NamedTuple):
    """A tensor array: its handle, and its flow."""

    handle: Any
    flow: Any


def array(name: str) -> Array:
    handle_and_flow = ops.TensorArrayV3(
        size=tf.constant(3), dtype=tf.float32, element_shape=[], tensor_array_name=name,
        clear_after_read=False, dynamic_size=True,
    )  # fmt: skip
    return Array(*handle_and_flow)


def write_array(held: Array, x: Any) -> Any:
    return ops.TensorArrayWriteV3(
        handle=held.handle, index=tf.constant(0), value=x, flow_in=held.flow
    )


def scatter_array(held: Array, x: Any) -> Any:
    return ops.TensorArrayScatterV3(
        handle=held.handle, indices=tf.constant([0, 1]), value=pair(x), flow_in=held.flow
    )


def split_array(held: Array, x: Any) -> Any:
    return ops.TensorArraySplitV3(
        handle=held.handle, value=pair(x), lengths=tf.constant([1, 1], tf.int64),
        flow_in=held.flow,
    )  # fmt: skip


def read_array(held: Array) -> Sequence[Any]:
    one = ops.TensorArrayReadV3(
        handle=held.handle, index=tf.constant(0), flow_in=held.flow, dtype=tf.float32
    )
    return [one, ops.TensorArraySizeV3(handle=held.handle, flow_in=held.flow)]


def gather_array(held: Array) -> Sequence[Any]:
    return [
        ops.TensorArrayGatherV3(
            handle=held.handle, indices=tf.constant([0]), flow_in=held.flow, dtype=tf.float32
        )
    ]


def write_gradient(held: Array, x: Any) -> Any:
    handle_and_flow = ops.TensorArrayGradV3(handle=held.handle, flow_in=held.flow, source="g")
    return write_array(Array(*handle_and_flow), x)


def read_gradient(held: Array) -> Sequence[Any]:
    handle_and_flow = ops.TensorArrayGradV3(handle=held.handle, flow_in=held.flow, source="g")
    return read_array(Array(*handle_and_flow))


class Named(NamedTuple):
    """State that operations find by its name; its first content is written after `ready`."""

    name: str
    ready: Any


def stage(prefix: str) -> State:
    def options(name: str) -> dict[str, Any]:
        return {"shared_name": name, "dtypes": [tf.float32]}

    def put(name: str, key: int, x: Any) -> Any:
        if prefix == "":
            return ops.Stage(values=[x], shared_name=name)
        operation = getattr(ops, f"{prefix}Stage")
        return operation(
            key=tf.constant(key, tf.int64), indices=tf.constant([0]), values=[x],
            dtypes=[tf.float32], shared_name=name,
        )  # fmt: skip

    def create(name: str) -> Any:
        return Named(name, put(name, 7, tf.constant(-1.0)))

    def write(held: Named, x: Any) -> Any:
        with after(held.ready):
            return put(held.name, 3, x)

    def read(held: Named) -> Sequence[Any]:
        size = getattr(ops, f"{prefix}Size" if prefix else "StageSize")(**options(held.name))
        return [size]

    return State(create, write, read, is_once=bool(prefix))


def peeked(prefix: str) -> State:
    """Return a stage that is empty at first, and is read by a peek."""
    base = stage(prefix)

    def read(held: Named) -> Sequence[Any]:
        options = {"shared_name": held.name, "dtypes": [tf.float32]}
        if prefix == "":
            return [ops.StagePeek(index=tf.constant(0), **options), ops.Unstage(**options)]
        key = {"key": tf.constant(3, tf.int64), "indices": tf.constant([0])}
        peek = getattr(ops, f"{prefix}Peek")(**key, **options)
        with after(peek):
            return [*peek, *getattr(ops, f"{prefix}Unstage")(**key, **options)]

    return base._replace(create=lambda name: Named(name, None), read=read, is_once=True, waits=True)


# Iterators.


def endless(start: Any, step: Any) -> Any:
    return ops.RangeDataset(
        start=tf.cast(start, tf.int64), stop=tf.constant(1 << 40, tf.int64),
        step=tf.cast(step, tf.int64), output_types=[tf.int64], output_shapes=[[]],
    )  # fmt: skip


ELEMENT: dict[str, Any] = {"output_types": [tf.int64], "output_shapes": [[]]}


def iterator(make: Callable[[str], Any]) -> Callable[[str], Any]:
    def create(name: str) -> Any:
        handle = make(name)
        return held(handle, ops.MakeIterator(dataset=endless(0, 1), iterator=handle))

    return create


named_iterator = iterator(lambda name: ops.IteratorV2(shared_name=name, container="", **ELEMENT))


def advance(handle: Any, x: Any) -> Any:
    return ops.IteratorGetNext(iterator=handle, **ELEMENT)


def remade(handle: Any, x: Any) -> Any:
    return ops.MakeIterator(dataset=endless(x, 1), iterator=handle)


def next_of(handle: Any) -> Sequence[Any]:
    return ops.IteratorGetNext(iterator=handle, **ELEMENT)


def next_of_optional(handle: Any) -> Sequence[Any]:
    optional = ops.IteratorGetNextAsOptional(iterator=handle, **ELEMENT)
    return ops.OptionalGetValue(optional=optional, **ELEMENT)


def saved_iterator(handle: Any) -> Sequence[Any]:
    """Return what a second iterator gives that takes the state of the first."""
    state = ops.SerializeIterator(resource_handle=handle)
    other = ops.IteratorV2(shared_name=fresh(), container="", **ELEMENT)
    with after(ops.MakeIterator(dataset=endless(0, 1), iterator=other)):
        restored = ops.DeserializeIterator(resource_handle=other, serialized=state)
    with after(restored):
        return ops.IteratorGetNext(iterator=other, **ELEMENT)


def by_text(handle: Any) -> Sequence[Any]:
    text = ops.IteratorToStringHandle(resource_handle=handle)
    again = ops.IteratorFromStringHandleV2(string_handle=text, **ELEMENT)
    return ops.IteratorGetNextSync(iterator=again, **ELEMENT)


def one_shot(name: str) -> Any:
    @tf.function
    def dataset() -> Any:
        return endless(0, 1)

    factory = dataset.get_concrete_function()
    factory.add_to_graph(tf.compat.v1.get_default_graph())
    return ops.OneShotIterator(dataset_factory=factory, shared_name=name, **ELEMENT)


# Generators and draws.


def generator(name: str) -> Any:
    handle = ops.VarHandleOp(dtype=tf.int64, shape=[3], shared_name=name)
    first = ops.AssignVariableOp(resource=handle, value=tf.constant([1, 2, 3], tf.int64))
    return held(handle, first)


def drawn(handle: Any) -> Sequence[Any]:
    return [
        ops.StatefulUniformFullInt(
            resource=handle, algorithm=tf.constant(1, tf.int64), shape=tf.constant([2]),
            dtype=tf.uint64,
        )
    ]  # fmt: skip


def normal(handle: Any) -> Sequence[Any]:
    return [
        ops.StatefulStandardNormalV2(
            resource=handle, algorithm=tf.constant(1, tf.int64), shape=tf.constant([2])
        )
    ]


def skip(handle: Any, x: Any) -> Any:
    return ops.RngReadAndSkip(
        resource=handle, alg=tf.constant(1), delta=tf.cast(tf.abs(x), tf.uint64)
    )


def skip_old(handle: Any, x: Any) -> Any:
    return ops.RngSkip(resource=handle, algorithm=tf.constant(1, tf.int64), delta=whole(x))


def seeded(draw: Callable[[], Any]) -> State:
    """Return the generator inside the kernel of a seeded draw in a function."""

    def create(name: str) -> Any:
        @tf.function(experimental_attributes={"_noinline": True})
        def function() -> Any:
            return draw()

        return function

    return State(create, lambda function, x: function(), lambda function: [function()])


def random_seeds(name: str) -> Any:
    generator_and_deleter = ops.AnonymousSeedGenerator(
        seed=tf.constant(3, tf.int64), seed2=tf.constant(4, tf.int64), reshuffle=True
    )
    return generator_and_deleter[0]


def shuffled(handle: Any) -> Any:
    return ops.ShuffleDatasetV3(
        input_dataset=ops.TakeDataset(
            input_dataset=endless(0, 1), count=tf.constant(9, tf.int64), **ELEMENT
        ),
        buffer_size=tf.constant(9, tf.int64), seed=tf.constant(0, tf.int64),
        seed2=tf.constant(0, tf.int64), seed_generator=handle, reshuffle_each_iteration=True,
        **ELEMENT,
    )  # fmt: skip


def summed(dataset: Any) -> Any:
    spec = tf.TensorSpec([], tf.int64)
    typed = tf.data.experimental.from_variant(dataset, spec)
    return typed.reduce(tf.constant(0, tf.int64), plain(lambda total, each: total * 3 + each))


# Memory of datasets.


def cached(handle: Any, start: Any) -> Any:
    rows = ops.TakeDataset(
        input_dataset=endless(start, 1), count=tf.constant(3, tf.int64), **ELEMENT
    )
    return ops.CacheDatasetV2(input_dataset=rows, filename=tf.constant(""), cache=handle, **ELEMENT)


# Accumulators.


def accumulator(handle: Any) -> Sequence[Any]:
    count = ops.ResourceAccumulatorNumAccumulated(handle=handle)
    with after(count):
        mean = ops.ResourceAccumulatorTakeGradient(
            handle=handle, num_required=tf.constant(1), dtype=tf.float32
        )
    return [count, mean]


def accumulate(handle: Any, x: Any) -> Any:
    return ops.ResourceAccumulatorApplyGradient(
        handle=handle, local_step=tf.constant(0, tf.int64), gradient=x
    )


def a_resource_accumulator(name: str) -> Any:
    handle = ops.ResourceConditionalAccumulator(dtype=tf.float32, shape=[], shared_name=name)
    return held(handle, accumulate(handle, tf.constant(1.0)))


def a_conditional_accumulator(name: str) -> Any:
    handle = ops.ConditionalAccumulator(dtype=tf.float32, shape=[], shared_name=name)
    first = accumulate_reference(handle, tf.constant(1.0))
    return Named(name, (handle, first))


def accumulate_reference(handle: Any, x: Any) -> Any:
    return ops.AccumulatorApplyGradient(
        handle=handle, local_step=tf.constant(0, tf.int64), gradient=x
    )


def write_accumulator(held: Named, x: Any) -> Any:
    handle, first = held.ready
    with after(first):
        return accumulate_reference(handle, x)


def take_accumulator(held: Named) -> Sequence[Any]:
    handle, _ = held.ready
    count = ops.AccumulatorNumAccumulated(handle=handle)
    with after(count):
        return [
            count,
            ops.AccumulatorTakeGradient(
                handle=handle, num_required=tf.constant(1), dtype=tf.float32
            ),
        ]


# References to queues, tables, stacks of TensorFlow 1.


def old_queue(operation: str) -> State:
    def create(name: str) -> Any:
        handle = getattr(ops, operation)(shared_name=name, **FIFO)
        first = ops.QueueEnqueue(handle=handle, components=[tf.constant(-1.0)])
        return Named(name, (handle, first))

    def write(held: Named, x: Any) -> Any:
        handle, first = held.ready
        with after(first):
            return ops.QueueEnqueue(handle=handle, components=[x])

    def read(held: Named) -> Sequence[Any]:
        handle, first = held.ready
        with after(first):
            size = ops.QueueSize(handle=handle)
        with after(size):
            return [
                size,
                *ops.QueueDequeueMany(handle=handle, n=size, component_types=[tf.float32]),
            ]

    return State(create, write, read, is_reference=True)


def old_table(name: str) -> Any:
    return ops.MutableHashTable(key_dtype=tf.int64, value_dtype=tf.float32, shared_name=name)


def insert_old(handle: Any, x: Any) -> Any:
    keys = tf.constant([1], tf.int64)
    return ops.LookupTableInsert(table_handle=handle, keys=keys, values=tf.reshape(x, [1]))


def find_old(handle: Any) -> Sequence[Any]:
    keys = tf.constant([1], tf.int64)
    return [
        ops.LookupTableFind(table_handle=handle, keys=keys, default_value=tf.constant(-7.0)),
        ops.LookupTableSize(table_handle=handle),
    ]


def old_stack(name: str) -> Any:
    handle = ops.Stack(elem_type=tf.float32, stack_name=name)
    return Named(name, (handle, ops.StackPush(handle=handle, elem=tf.constant(-1.0))))


def push_old(held: Named, x: Any) -> Any:
    handle, first = held.ready
    with after(first):
        return ops.StackPush(handle=handle, elem=x)


def pop_old(held: Named) -> Sequence[Any]:
    return [ops.StackPop(handle=held.ready[0], elem_type=tf.float32)]


def barrier(name: str) -> Any:
    return ops.Barrier(component_types=[tf.float32], shapes=[[]], shared_name=name)


def insert_barrier(handle: Any, x: Any) -> Any:
    return ops.BarrierInsertMany(
        handle=handle, keys=tf.constant(["k"]), values=tf.reshape(x, [1]), component_index=0
    )


def take_barrier(handle: Any) -> Sequence[Any]:
    size = ops.BarrierReadySize(handle=handle)
    with after(size):
        taken = ops.BarrierTakeMany(
            handle=handle, num_elements=tf.constant(1), component_types=[tf.float32],
            allow_small_batch=True,
        )  # fmt: skip
    return [size, ops.BarrierIncompleteSize(handle=handle), *taken.values]


def sizes_of_barrier(handle: Any) -> Sequence[Any]:
    return [ops.BarrierReadySize(handle=handle)]


# Files.


def file(name: str) -> Any:
    path = tf.constant(f"{tempfile.gettempdir()}/tffc-trial-{name}")
    return Named(name, ops.WriteFile(filename=path, contents=tf.constant("first")))


def path_of(held: Named) -> Any:
    return tf.constant(f"{tempfile.gettempdir()}/tffc-trial-{held.name}")


def write_file(held: Named, x: Any) -> Any:
    with after(held.ready):
        return ops.WriteFile(filename=path_of(held), contents=tf.strings.as_string(x))


def checkpoint(held: Named, x: Any) -> Any:
    with after(held.ready):
        return ops.SaveV2(
            prefix=path_of(held), tensor_names=["t"], shape_and_slices=[""], tensors=[x]
        )


def first_checkpoint(name: str) -> Any:
    bare = Named(name, None)
    return Named(name, checkpoint(bare, tf.constant(-1.0)))


def restored(held: Named) -> Sequence[Any]:
    return ops.RestoreV2(
        prefix=path_of(held), tensor_names=["t"], shape_and_slices=[""], dtypes=[tf.float32]
    )


def old_checkpoint(held: Named, x: Any) -> Any:
    with after(held.ready):
        return ops.Save(filename=path_of(held), tensor_names=["t"], data=[x])


def old_restored(held: Named) -> Sequence[Any]:
    return [ops.Restore(file_pattern=path_of(held), tensor_name=tf.constant("t"), dt=tf.float32)]


def lines(held: Named) -> Sequence[Any]:
    rows = ops.TextLineDataset(
        filenames=path_of(held), compression_type=tf.constant(""),
        buffer_size=tf.constant(0, tf.int64),
    )  # fmt: skip
    typed = tf.data.experimental.from_variant(rows, tf.TensorSpec([], tf.string))
    return [typed.reduce(tf.constant(""), plain(lambda total, each: total + each))]


def whole_file(held: Named) -> Sequence[Any]:
    names = FIFO | {"component_types": [tf.string]}
    waiting = ops.FIFOQueueV2(shared_name=fresh(), **names)
    with after(ops.QueueEnqueueV2(handle=waiting, components=[path_of(held)])):
        reader = ops.WholeFileReaderV2(shared_name=fresh())
    return [ops.ReaderReadV2(reader_handle=reader, queue_handle=waiting).value]


# Sparse tensors kept by a name.


def add_sparse(held: Named, x: Any) -> Any:
    with after(held.ready):
        return ops.AddSparseToTensorsMap(
            sparse_indices=tf.constant([[0]], tf.int64), sparse_values=tf.reshape(x, [1]),
            sparse_shape=tf.constant([1], tf.int64), shared_name=held.name,
        )  # fmt: skip


def put_sparse(name: str) -> Any:
    return Named(name, None)


def take_sparse(held: Named) -> Sequence[Any]:
    taken = ops.TakeManySparseFromTensorsMap(
        sparse_handles=tf.constant([0], tf.int64), dtype=tf.float32, shared_name=held.name
    )
    return [taken.sparse_values]


def nd(operation: str) -> Callable[[Any, Any], Any]:
    def write(handle: Any, x: Any) -> Any:
        return getattr(ops, operation)(
            ref=handle, indices=tf.constant([[0]]), updates=tf.reshape(x, [1])
        )

    return write


def scattered(operation: str) -> Callable[[Any, Any], Any]:
    def write(handle: Any, x: Any) -> Any:
        return getattr(ops, operation)(
            resource=handle, indices=tf.constant([0]), updates=tf.reshape(x, [1])
        )

    return write


def chosen(operation: str) -> Callable[[Any, Any], Any]:
    """Return a write of a constant at a place that is the secret."""

    def write(handle: Any, x: Any) -> Any:
        place = tf.reshape(tf.cast(tf.clip_by_value(x, 0.0, 1.0), tf.int32), [1])
        return getattr(ops, operation)(resource=handle, indices=place, updates=tf.constant([3.0]))

    return write


STATES: dict[str, State] = {
    "variable": variable(tf.float32, [2], 0.5),
    "number": variable(tf.float32, [], 0.5),
    "matrix": variable(tf.float32, [3, 2], 0.5),
    "whole number": variable(tf.int64, []),
    "variable added to": updated(
        lambda h, x: ops.AssignAddVariableOp(resource=h, value=pair(x))
    ),
    "variable subtracted from": updated(
        lambda h, x: ops.AssignSubVariableOp(resource=h, value=pair(x))
    ),
    **{
        f"variable, {operation}": updated(scattered(operation))
        for operation in (
            "ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterMul", "ResourceScatterDiv",
            "ResourceScatterMin", "ResourceScatterMax", "ResourceScatterUpdate",
        )
    },
    **{
        f"variable, {operation}": updated(nd(operation))
        for operation in (
            "ResourceScatterNdAdd", "ResourceScatterNdSub", "ResourceScatterNdUpdate",
            "ResourceScatterNdMin", "ResourceScatterNdMax",
        )
    },
    "place in a variable": updated(chosen("ResourceScatterUpdate")),
    "slice of a variable": updated(
        lambda h, x: ops.ResourceStridedSliceAssign(
            ref=h, begin=[0], end=[1], strides=[1], value=tf.reshape(x, [1])
        )
    ),
    "variable read by gather": variable(tf.float32, [2])._replace(
        read=lambda h: [
            ops.ResourceGather(resource=h, indices=tf.constant([1]), dtype=tf.float32),
            ops.ResourceGatherNd(resource=h, indices=tf.constant([[0]]), dtype=tf.float32),
        ]
    ),
    "counter": variable(tf.int64, [])._replace(
        write=lambda h, x: ops.ResourceCountUpTo(resource=h, limit=50, T=tf.int64)
    ),
    "gradient descent": updated(
        lambda h, x: ops.ResourceApplyGradientDescent(var=h, alpha=x, delta=pair(1.0))
    ),
    "reference": reference(v2, lambda h, x: ops.Assign(ref=h, value=pair(x))),
    "reference added to": reference(v2, lambda h, x: ops.AssignAdd(ref=h, value=pair(x))),
    "reference subtracted from": reference(v2, lambda h, x: ops.AssignSub(ref=h, value=pair(x))),
    "old reference": reference(
        lambda: ops.Variable(shape=[2], dtype=tf.float32),
        lambda h, x: ops.Assign(ref=h, value=pair(x)),
    ),
    "temporary": reference(
        lambda: ops.TemporaryVariable(shape=[2], dtype=tf.float32),
        lambda h, x: ops.AssignAdd(ref=h, value=pair(x)),
    ),
    **{
        f"reference, {operation}": reference(
            v2,
            lambda h, x, operation=operation: getattr(ops, operation)(
                ref=h, indices=tf.constant([0]), updates=tf.reshape(x, [1])
            ),
        )
        for operation in (
            "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMin", "ScatterMax",
            "ScatterUpdate",
        )
    },
    **{
        f"reference, {operation}": reference(v2, nd(operation))
        for operation in (
            "ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate", "ScatterNdMin", "ScatterNdMax",
        )
    },
    "slice of a reference": reference(
        v2,
        lambda h, x: ops.StridedSliceAssign(
            ref=h, begin=[0], end=[1], strides=[1], value=tf.reshape(x, [1])
        ),
    ),
    "reference, descent": reference(
        v2, lambda h, x: ops.ApplyGradientDescent(var=h, alpha=x, delta=pair(1.0))
    ),
    "table": table(mutable, insert),
    "key of a table": table(mutable, insert_key),
    "table of texts": table(
        lambda name: ops.MutableHashTableV2(
            key_dtype=tf.int64, value_dtype=tf.string, shared_name=name
        ),
        insert_text, value=tf.string,
    ),
    "table, exported": table(mutable, insert)._replace(read=export),
    "table, imported": table(mutable, import_all),
    "table, removed from": table(filled, remove),
    "dense table": table(dense, insert),
    "table of vectors": table(
        vectors,
        lambda h, x: ops.LookupTableInsertV2(
            table_handle=h, keys=tf.constant([1], tf.int64), values=tf.reshape(pair(x), [1, 2])
        ),
    )._replace(
        read=lambda h: [
            ops.LookupTableFindV2(
                table_handle=h, keys=tf.constant([1], tf.int64),
                default_value=tf.constant([-7.0, -7.0]),
            )
        ]
    ),
    "anonymous table": table(
        lambda name: ops.AnonymousMutableHashTable(key_dtype=tf.int64, value_dtype=tf.float32),
        insert,
    ),
    "anonymous dense table": table(
        lambda name: ops.AnonymousMutableDenseHashTable(
            empty_key=tf.constant(-1, tf.int64), deleted_key=tf.constant(-2, tf.int64),
            value_dtype=tf.float32, value_shape=[],
        ),
        insert,
    ),
    "fixed table": table(
        lambda name: ops.HashTableV2(
            key_dtype=tf.int64, value_dtype=tf.float32, shared_name=name
        ),
        initialize, is_once=True,
    ),
    "fixed table of a dataset": table(
        lambda name: ops.HashTableV2(
            key_dtype=tf.int64, value_dtype=tf.float32, shared_name=name
        ),
        of_dataset, is_once=True,
    ),
    "anonymous fixed table": table(
        lambda name: ops.AnonymousHashTable(key_dtype=tf.int64, value_dtype=tf.float32),
        initialize, is_once=True,
    ),
    "old table": State(old_table, insert_old, find_old, is_reference=True),
    "queue": queue("FIFOQueueV2", **FIFO),
    "queue of many": queue("FIFOQueueV2", many=True, **FIFO),
    "padding queue": queue("PaddingFIFOQueueV2", **FIFO),
    "priority queue": queue(
        "PriorityQueueV2", component_types=[tf.float32], shapes=[[]], capacity=20
    ),
    "random queue": queue("RandomShuffleQueueV2", seed=87654321, seed2=4, **FIFO),
    "queue taken from": queue("FIFOQueueV2", **FIFO)._replace(write=dequeued, is_once=True),
    "old queue": old_queue("FIFOQueue"),
    "old random queue": old_queue("RandomShuffleQueue"),
    "stack": State(
        stack,
        lambda h, x: ops.StackPushV2(handle=h, elem=x),
        lambda h: [ops.StackPopV2(handle=h, elem_type=tf.float32)],
    ),
    "stack popped": State(
        stack,
        lambda h, x: ops.StackPushV2(handle=h, elem=x),
        lambda h: [ops.StackPopV2(handle=h, elem_type=tf.float32)],
    ),
    "old stack": State(old_stack, push_old, pop_old, is_reference=True),
    "array": State(array, write_array, read_array, is_once=True),
    "array scattered": State(array, scatter_array, read_array, is_once=True),
    "array split": State(array, split_array, gather_array, is_once=True),
    "gradient of an array": State(array, write_gradient, read_gradient),
    "stage": stage(""),
    "stage by key": stage("Map"),
    "ordered stage": stage("OrderedMap"),
    "stage, peeked": peeked(""),
    "stage by key, peeked": peeked("Map"),
    "ordered stage, peeked": peeked("OrderedMap"),
    "iterator": State(
        named_iterator,
        advance, next_of,
    ),
    "iterator of TensorFlow 1": State(
        iterator(lambda name: ops.Iterator(shared_name=name, container="", **ELEMENT)),
        advance, next_of_optional,
    ),
    "anonymous iterator": State(
        iterator(lambda name: ops.AnonymousIteratorV3(**ELEMENT)), advance, next_of
    ),
    "anonymous iterator with deleter": State(
        iterator(lambda name: ops.AnonymousIteratorV2(**ELEMENT)[0]), advance, next_of
    ),
    "iterator made again": State(
        named_iterator,
        remade, next_of,
    ),
    "saved iterator": State(
        named_iterator,
        advance, saved_iterator,
    ),
    "iterator by its text": State(
        named_iterator,
        advance, by_text,
    ),
    "one-shot iterator": State(one_shot, advance, next_of),
    "generator": State(generator, skip, drawn),
    "old generator": State(generator, skip_old, normal),
    "draws of a generator": State(generator, lambda h, x: drawn(h)[0], drawn),
    "seeded draw": seeded(
        lambda: ops.RandomUniform(shape=[2], dtype=tf.float32, seed=87654321, seed2=4)
    ),
    "seeded normal": seeded(
        lambda: ops.RandomStandardNormal(shape=[2], dtype=tf.float32, seed=87654321, seed2=4)
    ),
    "seeded truncated normal": seeded(
        lambda: ops.TruncatedNormal(shape=[2], dtype=tf.float32, seed=87654321, seed2=4)
    ),
    "seeded whole number": seeded(
        lambda: ops.RandomUniformInt(shape=[2], minval=0, maxval=1 << 30, seed=87654321, seed2=4)
    ),
    "seeded order": seeded(
        lambda: ops.RandomShuffle(value=tf.range(20), seed=87654321, seed2=4)
    ),
    "seeded multinomial": seeded(
        lambda: ops.Multinomial(logits=tf.zeros([1, 9]), num_samples=9, seed=87654321, seed2=4)
    ),
    "seeded gamma": seeded(
        lambda: ops.RandomGamma(shape=[2], alpha=tf.constant(1.0), seed=87654321, seed2=4)
    ),
    "seeded Poisson": seeded(
        lambda: ops.RandomPoissonV2(shape=[9], rate=tf.constant(9.0), seed=87654321, seed2=4)
    ),
    "seeded sampler": seeded(
        lambda: ops.UniformCandidateSampler(
            true_classes=tf.constant([[1]], tf.int64), num_true=1, num_sampled=5, unique=False,
            range_max=1000, seed=87654321, seed2=4,
        ).sampled_candidates
    ),
    "seeds of a data set's orders": State(
        random_seeds, lambda h, x: summed(shuffled(h)), lambda h: [summed(shuffled(h))]
    ),
    "memory of a data set": State(
        lambda name: ops.AnonymousMemoryCache()[0],
        lambda h, x: summed(cached(h, x)),
        lambda h: [summed(cached(h, 77))],
        is_once=True,
    ),
    "accumulator": State(a_resource_accumulator, accumulate, accumulator),
    "conditional accumulator": State(
        a_conditional_accumulator, write_accumulator, take_accumulator, is_reference=True
    ),
    "barrier": State(
        barrier, insert_barrier, take_barrier, is_reference=True, is_once=True, waits=True
    ),
    "size of a barrier": State(
        barrier, insert_barrier, sizes_of_barrier, is_reference=True, is_once=True
    ),
    "file": State(file, write_file, lambda h: [ops.ReadFile(filename=path_of(h))]),
    "file, by lines": State(file, write_file, lines),
    "file, by a reader": State(file, write_file, whole_file),
    "checkpoint": State(first_checkpoint, checkpoint, restored),
    "old checkpoint": State(lambda name: Named(name, None), old_checkpoint, old_restored),
    "sparse tensors": State(put_sparse, add_sparse, take_sparse),
}  # fmt: skip
"""The kinds of state, by their names."""
