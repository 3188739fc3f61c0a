"""Ways in which a client's data reaches a channel that are easy to overlook, by their kind.

Each program's result is different for the two values, so its channel has to name what differs.
"""

from __future__ import annotations

import collections
import itertools
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import tffc as tff
from tests.assurance.audit.ways import done, old_control_flow, plain
from tffc.assurance.audit.audit import Depends, audit
from tffc.language import Compiled
from tffc.language.values.concrete import to_value
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.runtime.frameworks.tensorflow.runner import SCOPE, TensorFlowRunner

tf: Any = load_tensorflow()
ops: Any = tf.raw_ops

ROW = tff.to_type(collections.OrderedDict(user=np.int32, score=np.int32))
LINE = tff.TensorType(np.float32, [None])
ROWS = tff.SequenceType(collections.OrderedDict(zip=np.int32, age=np.int32, sex=np.int32))
NESTED = tff.SequenceType(
    collections.OrderedDict(
        y=collections.OrderedDict(q=np.int32, c=np.int32), b=np.int32, a=(np.int32, np.int32)
    )
)


def floats(elements: list[float]) -> Any:
    return np.array(elements, np.float32)


class Case(NamedTuple):
    """A client's work, the type of its data, two values, and what has to be named."""

    kind: str
    work: Callable[[Any], Any]
    type: Any
    values: tuple[Any, Any]
    named: str
    only: bool

    def __str__(self) -> str:
        return f"{self.kind}: {self.work.__name__}"


CASES: list[Case] = []

USERS = ((0, 1), (3, 1))
"""Two rows that differ in the user."""


def case(
    kind: str, type: Any = ROW, values: Any = USERS, named: str = "data d.user", only: bool = False
) -> Callable[[Any], Any]:
    """Add a client's work to the cases."""

    def add(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        CASES.append(Case(kind, work, type, values, named, only))
        return work

    return add


def computation(each: Case) -> Any:
    """Return a client's work, whose result is one number."""

    def function(d: Any) -> Any:
        result = each.work(d)
        return tf.ensure_shape(result, []) if result.shape.rank is None else result

    return tff.tf_computation(function, each.type)


def depends_of(each: Case) -> Depends:
    """Return what the channel of a round with this work may depend on."""
    work = computation(each)

    @tff.federated_computation(
        tff.FederatedType([], tff.SERVER), tff.FederatedType(each.type, tff.CLIENTS)
    )
    def round_of(s: Any, d: Any) -> Any:
        return s, tff.federated_sum(tff.federated_map(work, d))

    (channel,) = audit(round_of.node, "mapreduce").channels
    return channel.depends


def names(each: Case) -> tuple[str, ...]:
    """Return all that the channel names of the client's data."""
    depends = depends_of(each)
    return tuple(
        f"{word} {path}"
        for word, paths in (
            ("data", depends.elements),
            ("how many", depends.counts),
            ("shape of", depends.shapes),
        )
        for path in paths
    )


@pytest.mark.slow
@pytest.mark.parametrize("each", CASES, ids=str)
def test_channel_names_what_changes_it(each: Case) -> None:
    listed = names(each)
    # Elements include their shape.
    assert {each.named, each.named.replace("shape of", "data")} & set(listed)
    if each.only:
        assert [name for name in listed if name.startswith("data")] == [each.named]


@pytest.mark.slow
@pytest.mark.parametrize("each", CASES, ids=str)
def test_value_changes_the_result(each: Case) -> None:
    node = computation(each).node
    assert isinstance(node, Compiled)
    values = [to_value(value, tff.to_type(each.type)) for value in each.values]
    one, again, other = (
        np.asarray(TensorFlowRunner(node)(value)) for value in (values[0], *values)
    )
    np.testing.assert_array_equal(one, again)
    assert one.tobytes() != other.tobytes()


def test_each_kind_has_five_cases() -> None:
    counts = collections.Counter(each.kind for each in CASES)
    assert len(counts) == 12
    assert min(counts.values()) >= 5, counts


# State that the cases use.


def number(name: str = "", dtype: Any = tf.int32) -> Any:
    """Return a variable of one number, 0 at first."""
    handle = ops.VarHandleOp(dtype=dtype, shape=[], shared_name=name)
    ops.AssignVariableOp(resource=handle, value=tf.cast(0, dtype))
    return handle


def assign(handle: Any, value: Any) -> Any:
    return ops.AssignVariableOp(resource=handle, value=value)


def add_one(handle: Any) -> Any:
    return ops.AssignAddVariableOp(resource=handle, value=tf.constant(1))


def read(handle: Any, after: Any = (), dtype: Any = tf.int32) -> Any:
    with tf.control_dependencies(tf.nest.flatten(after)):
        return ops.ReadVariableOp(resource=handle, dtype=dtype)


def integers(name: str = "") -> Any:
    """Return a table of whole numbers."""
    return ops.MutableHashTableV2(key_dtype=tf.int32, value_dtype=tf.int32, shared_name=name)


def insert(table: Any, key: Any, value: Any) -> Any:
    keys, values = tf.reshape(key, [1]), tf.reshape(value, [1])
    return ops.LookupTableInsertV2(table_handle=table, keys=keys, values=values)


def find(table: Any, key: Any, after: Any = ()) -> Any:
    with tf.control_dependencies(tf.nest.flatten(after)):
        return ops.LookupTableFindV2(table_handle=table, keys=key, default_value=-1)


def queue(name: str = "") -> Any:
    return ops.FIFOQueueV2(component_types=[tf.int32], shapes=[[]], shared_name=name)


def put(handle: Any, value: Any) -> Any:
    return ops.QueueEnqueueV2(handle=handle, components=[value])


def size(handle: Any, after: Any = ()) -> Any:
    with tf.control_dependencies(tf.nest.flatten(after)):
        return ops.QueueSizeV2(handle=handle)


NUMBERS: dict[str, Any] = {"output_types": [tf.int64], "output_shapes": [[]]}


def iterator(name: str = "", first: int = 0) -> Any:
    """Return an iterator over 0, 1, 2, and so on."""
    handle = ops.IteratorV2(shared_name=name, container="", **NUMBERS)
    ops.MakeIterator(dataset=counting(first), iterator=handle)
    return handle


def counting(first: int) -> Any:
    start, stop, step = (tf.constant(n, tf.int64) for n in (first, 1000, 1))
    return ops.RangeDataset(start=start, stop=stop, step=step, **NUMBERS)


def next_of(handle: Any) -> Any:
    return tf.cast(ops.IteratorGetNext(iterator=handle, **NUMBERS)[0], tf.int32)


def zero() -> Any:
    return tf.constant(0)


# Decisions that reach state.

DECISION = "a decision that reaches state"


@case(DECISION)
def assigned_in_a_case(row: Any) -> Any:
    handle = number()
    branches = [lambda n=n: done(assign(handle, n + 5), 0) for n in range(4)]
    return read(handle, tf.switch_case(row["user"], branches))


@case(DECISION)
def assigned_in_an_if_of_a_function(row: Any) -> Any:
    variable = tf.Variable(0)

    @tf.function
    def step(user: Any) -> Any:
        if user > 2:
            variable.assign(7)
        return 1

    with tf.control_dependencies([step(row["user"])]):
        return variable.read_value()


@case(DECISION)
def inserted_in_a_branch(row: Any) -> Any:
    table = integers()
    chosen = tf.cond(row["user"] > 1, lambda: done(insert(table, 4, 8), 1), zero)
    return find(table, 4, chosen)


@case(DECISION)
def put_in_a_branch(row: Any) -> Any:
    handle = queue()
    return size(handle, tf.cond(row["user"] > 1, lambda: done(put(handle, 3), 1), zero))


@case(DECISION)
def assigned_in_a_while_loop(row: Any) -> Any:
    handle = number()
    loop = tf.while_loop(lambda i: i < row["user"], lambda i: [done(add_one(handle), i + 1)], [0])
    return read(handle, loop)


@case(DECISION)
def assigned_in_a_branch_of_a_branch(row: Any) -> Any:
    handle = number()

    def inner() -> Any:
        return tf.cond(row["score"] > 0, lambda: done(assign(handle, 2), 1), zero)

    return read(handle, tf.cond(row["user"] > 1, inner, zero))


@case(DECISION)
def metric_updated_in_a_branch(row: Any) -> Any:
    total, count = tf.Variable(0.0), tf.Variable(0.0)

    def update() -> Any:
        return done([total.assign_add(2.0), count.assign_add(1.0)], 1)

    with tf.control_dependencies([tf.cond(row["user"] > 1, update, zero)]):
        return total.read_value() / (1.0 + count.read_value())


@case(DECISION)
def assigned_where_a_test_decided_earlier(row: Any) -> Any:
    flag, handle = number(), number()
    first = tf.cond(row["user"] > 1, lambda: done(assign(flag, 1), 1), zero)
    is_set = read(flag, first) > 0
    return read(handle, tf.cond(is_set, lambda: done(assign(handle, 6), 1), zero))


@case(DECISION)
def assigned_in_a_branch_with_strings(row: Any) -> Any:
    text = tf.Variable("no")
    chosen = tf.cond(row["user"] > 1, lambda: done(text.assign("maybe").op, 1), zero)
    with tf.control_dependencies([chosen]):
        return tf.strings.length(text.read_value())


# How often a function with an effect runs.

OFTEN = "how often a function runs"
LONGER = ([(1, 2, 3)] * 2, [(1, 2, 3)] * 3)
COUNTED: dict[str, Any] = {"type": ROWS, "values": LONGER, "named": "how many d"}


@case(OFTEN, **COUNTED)
def counted_by_a_reduce(rows: Any) -> Any:
    handle = number()
    return read(handle, rows.reduce(0, plain(lambda n, row: done(add_one(handle), n))))


@case(OFTEN, **COUNTED)
def counted_by_a_map(rows: Any) -> Any:
    handle = number()
    written = rows.map(plain(lambda row: done(add_one(handle), 1)))
    return read(handle, written.reduce(0, plain(lambda n, one: n)))


@case(OFTEN)
def counted_by_a_range(row: Any) -> Any:
    handle = number()
    counted = tf.data.Dataset.range(tf.cast(row["user"], tf.int64))
    return read(handle, counted.reduce(0, plain(lambda n, each: done(add_one(handle), n))))


@case(OFTEN)
def counted_by_a_filter(row: Any) -> Any:
    handle = number()
    passed = tf.data.Dataset.range(5).filter(plain(lambda n: tf.cast(n, tf.int32) < row["user"]))
    return read(handle, passed.reduce(0, plain(lambda n, each: done(add_one(handle), n))))


@case(OFTEN)
def counted_by_take(row: Any) -> Any:
    table = integers()
    some = tf.data.Dataset.range(9).take(tf.cast(row["user"], tf.int64))
    inserted = plain(lambda n, each: done(insert(table, tf.cast(each, tf.int32), 1), n))
    with tf.control_dependencies([some.reduce(0, inserted)]):
        return tf.cast(ops.LookupTableSizeV2(table_handle=table), tf.int32)


@case(OFTEN)
def counted_by_repeat(row: Any) -> Any:
    handle = queue()
    often = tf.data.Dataset.from_tensors(3).repeat(tf.cast(row["user"], tf.int64))
    return size(handle, often.reduce(0, plain(lambda n, each: done(put(handle, each), n))))


@case(OFTEN)
def counted_by_flat_map(row: Any) -> Any:
    handle = number()
    inner = tf.data.Dataset.range(2).flat_map(
        plain(lambda _: tf.data.Dataset.range(tf.cast(row["user"], tf.int64)))
    )
    return read(handle, inner.reduce(0, plain(lambda n, each: done(add_one(handle), n))))


@case(OFTEN)
def counted_by_map_fn(row: Any) -> Any:
    handle = number()
    each = tf.map_fn(plain(lambda n: done(add_one(handle), n)), tf.range(row["user"]))
    return read(handle, tf.size(each))


# Shapes.

SHAPE = "shapes"
SIZES = (floats([1, 1]), floats([1, 1, 1, 1, 1]))
SHAPED: dict[str, Any] = {"type": LINE, "values": SIZES, "named": "shape of d"}


@case(SHAPE, **SHAPED)
def first_size(x: Any) -> Any:
    return tf.shape(x)[0]


@case(SHAPE, **SHAPED)
def sum_of_ones(x: Any) -> Any:
    return tf.reduce_sum(tf.ones_like(x))


@case(SHAPE, **SHAPED)
def size_of_zeros(x: Any) -> Any:
    return tf.size(tf.zeros_like(x))


@case(SHAPE, **SHAPED)
def count_of_slices(x: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(x).reduce(0, plain(lambda n, each: n + 1))


@case(SHAPE, **SHAPED)
def loop_over_the_size(x: Any) -> Any:
    return tf.while_loop(lambda i: i < tf.size(x), lambda i: [i + 1], [0])[0]


@case(SHAPE, **SHAPED)
def branch_on_the_size(x: Any) -> Any:
    return tf.cond(tf.size(x) > 3, lambda: tf.constant(1), zero)


@case(SHAPE, **SHAPED)
def size_of_a_list(x: Any) -> Any:
    tensors = ops.TensorListFromTensor(tensor=x, element_shape=tf.constant([], tf.int32))
    return ops.TensorListLength(input_handle=tensors)


@case(SHAPE, **SHAPED)
def size_of_a_range_of_an_array(x: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
    return array.size()


@case(
    SHAPE,
    tff.SequenceType(tff.TensorType(np.float32, [None])),
    ([floats([1, 1])] * 2, [floats([1, 1, 1])] * 2),
    "shape of d",
)
def sizes_in_a_sequence(rows: Any) -> Any:
    return rows.reduce(0, plain(lambda n, row: n + tf.size(row)))


@case(SHAPE, tff.TensorType(np.str_, [None]), (np.array(["a"]), np.array(["a", "a"])), "shape of d")
def number_of_texts(x: Any) -> Any:
    return tf.size(x)


# Control flow of TensorFlow 1.

OLD = "control flow of TensorFlow 1"


@case(OLD)
def constants_behind_a_switch(row: Any) -> Any:
    sides = ops.Switch(data=tf.constant(0), pred=row["user"] > 1)
    with tf.control_dependencies([tf.identity(sides.output_true)]):
        yes = tf.constant(5)
    with tf.control_dependencies([tf.identity(sides.output_false)]):
        no = tf.constant(6)
    return ops.Merge(inputs=[yes, no]).output


@case(OLD)
def which_side_was_taken(row: Any) -> Any:
    sides = ops.Switch(data=tf.constant(0), pred=row["user"] > 1)
    return ops.Merge(inputs=[sides.output_false, sides.output_true]).value_index


@case(OLD)
def write_behind_a_switch(row: Any) -> Any:
    handle = number()
    sides = ops.Switch(data=tf.constant(0), pred=row["user"] > 1)
    with tf.control_dependencies([tf.identity(sides.output_true)]):
        yes = done(assign(handle, 5), 1)
    merged = ops.Merge(inputs=[yes, tf.identity(sides.output_false)])
    return read(handle, merged.output)


@case(OLD)
def old_branch(row: Any) -> Any:
    with old_control_flow():
        return tf.compat.v1.cond(row["user"] > 1, lambda: tf.constant(1), zero)


@case(OLD)
def write_in_an_old_branch(row: Any) -> Any:
    handle = number()
    with old_control_flow():
        chosen = tf.compat.v1.cond(row["user"] > 1, lambda: done(assign(handle, 4), 1), zero)
    return read(handle, chosen)


@case(OLD)
def write_in_an_old_loop(row: Any) -> Any:
    handle = number()
    with old_control_flow():
        loop = tf.compat.v1.while_loop(
            lambda i: i < row["user"], lambda i: [done(add_one(handle), i + 1)], [0]
        )
    return read(handle, loop)


@case(OLD)
def carried_by_an_old_loop(row: Any) -> Any:
    with old_control_flow():
        return tf.compat.v1.while_loop(
            lambda i, n: i < row["user"], lambda i, n: [i + 1, n + 2], [0, 0]
        )[1]


@case(OLD)
def put_behind_a_switch(row: Any) -> Any:
    handle = queue()
    sides = ops.Switch(data=tf.constant(3), pred=row["user"] > 1)
    written = done(put(handle, sides.output_true), 1)
    return size(handle, ops.Merge(inputs=[written, tf.identity(sides.output_false)]).output)


# State made by operations that have inputs.

WITH_INPUTS = "state made by an operation with inputs"


@case(WITH_INPUTS)
def pushed_on_a_stack(row: Any) -> Any:
    stack = ops.StackV2(max_size=tf.constant(5), elem_type=tf.int32)
    with tf.control_dependencies([ops.StackPushV2(handle=stack, elem=row["user"])]):
        return tf.reshape(ops.StackPopV2(handle=stack, elem_type=tf.int32), [])


@case(WITH_INPUTS)
def written_to_an_array(row: Any) -> Any:
    array = ops.TensorArrayV3(size=tf.constant(1), dtype=tf.int32, element_shape=[])
    index = tf.constant(0)
    written = ops.TensorArrayWriteV3(
        handle=array.handle, index=index, value=row["user"], flow_in=array.flow
    )
    with tf.control_dependencies([written]):
        return ops.TensorArrayReadV3(
            handle=array.handle, index=index, flow_in=array.flow, dtype=tf.int32
        )


@case(WITH_INPUTS)
def scattered_into_an_array(row: Any) -> Any:
    array = ops.TensorArrayV3(size=tf.constant(2), dtype=tf.int32, element_shape=[])
    written = ops.TensorArrayScatterV3(
        handle=array.handle, indices=[0, 1], value=tf.stack([row["user"], 1]), flow_in=array.flow
    )
    with tf.control_dependencies([written]):
        return tf.reduce_sum(
            ops.TensorArrayGatherV3(
                handle=array.handle, indices=[0, 1], flow_in=array.flow, dtype=tf.int32
            )
        )


@case(WITH_INPUTS)
def kept_in_a_dense_table(row: Any) -> Any:
    table = ops.MutableDenseHashTableV2(
        empty_key=tf.constant(-1), deleted_key=tf.constant(-2), value_dtype=tf.int32,
        value_shape=[],
    )  # fmt: skip
    return find(table, 4, insert(table, 4, row["user"]))


@case(WITH_INPUTS)
def kept_in_an_anonymous_dense_table(row: Any) -> Any:
    table = ops.AnonymousMutableDenseHashTable(
        empty_key=tf.constant(-1), deleted_key=tf.constant(-2), value_dtype=tf.int32,
        value_shape=[],
    )  # fmt: skip
    return find(table, 4, insert(table, 4, row["user"]))


@case(WITH_INPUTS)
def pushed_on_a_stack_in_a_branch(row: Any) -> Any:
    stack = ops.StackV2(max_size=tf.constant(5), elem_type=tf.int32)
    first = ops.StackPushV2(handle=stack, elem=tf.constant(1))
    with tf.control_dependencies([first]):
        is_large = row["user"] > 1
    chosen = tf.cond(
        is_large,
        lambda: ops.StackPushV2(handle=stack, elem=tf.constant(2)),
        zero,
    )
    with tf.control_dependencies([chosen]):
        return tf.reshape(ops.StackPopV2(handle=stack, elem_type=tf.int32), [])


@case(WITH_INPUTS)
def order_of_seeds(row: Any) -> Any:
    """Each iteration over a shuffled data set advances the generator of its orders."""
    seeds = tf.constant(3, tf.int64), tf.constant(4, tf.int64)
    generator, _ = ops.AnonymousSeedGenerator(seed=seeds[0], seed2=seeds[1], reshuffle=True)

    def total() -> Any:
        shuffled = ops.ShuffleDatasetV3(
            input_dataset=ops.TakeDataset(
                input_dataset=counting(0), count=tf.constant(9, tf.int64), **NUMBERS
            ),
            buffer_size=tf.constant(9, tf.int64), seed=seeds[0], seed2=seeds[1],
            seed_generator=generator, reshuffle_each_iteration=True, **NUMBERS,
        )  # fmt: skip
        typed = tf.data.experimental.from_variant(shuffled, tf.TensorSpec([], tf.int64))
        return typed.reduce(tf.constant(0, tf.int64), plain(lambda n, each: n * 3 + each))

    chosen = tf.cond(row["user"] > 1, total, lambda: tf.constant(0, tf.int64))
    with tf.control_dependencies([chosen]):
        return total()


# Names of state.

NAMES = "names of state"


@case(NAMES)
def two_handles_without_a_name(row: Any) -> Any:
    """Variables with an empty name have the name of their container's empty entry."""
    one = ops.VarHandleOp(dtype=tf.int32, shape=[], name="one")
    other = ops.VarHandleOp(dtype=tf.int32, shape=[], name="other")
    return read(other, assign(one, row["user"]))


@case(NAMES)
def one_name_for_two_nodes(row: Any) -> Any:
    one, other = number("shared_variable"), ops.VarHandleOp(
        dtype=tf.int32, shape=[], shared_name="shared_variable"
    )  # fmt: skip
    return read(other, assign(one, row["user"]))


@case(NAMES)
def table_named_like_another(row: Any) -> Any:
    one, other = integers("shared_table"), integers("shared_table")
    return find(other, 4, insert(one, 4, row["user"]))


@case(NAMES)
def queue_named_like_another(row: Any) -> Any:
    one, other = queue("shared_queue"), queue("shared_queue")
    often = tf.while_loop(lambda i: i < row["user"], lambda i: [done(put(one, i), i + 1)], [0])
    return size(other, often)


def by_node(name: str) -> Any:
    """Return a table that has the name of its node."""
    return ops.MutableHashTableV2(
        key_dtype=tf.int32, value_dtype=tf.int32, use_node_name_sharing=True, name=name
    )


@case(NAMES)
def shared_name_that_is_a_node_name(row: Any) -> Any:
    one = by_node("a_node")
    other = integers(f"{SCOPE}/{one.op.name}")
    return find(other, 4, insert(one, 4, row["user"]))


@case(NAMES)
def node_name_in_a_function(row: Any) -> Any:
    @tf.function(autograph=False, experimental_attributes={"_noinline": True})
    def fill(user: Any) -> Any:
        return done(insert(by_node("inside"), 4, user), 1)

    return find(integers("inside"), 4, fill(row["user"]))


@case(NAMES)
def one_name_in_two_functions(row: Any) -> Any:
    @tf.function
    def write(user: Any) -> Any:
        return done(assign(ops.VarHandleOp(dtype=tf.int32, shape=[], shared_name="w"), user), 1)

    @tf.function
    def look(_: Any) -> Any:
        return read(ops.VarHandleOp(dtype=tf.int32, shape=[], shared_name="w"))

    return look(write(row["user"]))


@case(NAMES)
def stage_by_its_name(row: Any) -> Any:
    written = ops.Stage(values=[row["user"]], shared_name="stage")
    with tf.control_dependencies([written]):
        return ops.Unstage(dtypes=[tf.int32], shared_name="stage")[0]


@case(NAMES)
def nameless_in_a_function_and_outside(row: Any) -> Any:
    @tf.function(experimental_attributes={"_noinline": True})
    def write(user: Any) -> Any:
        return done(assign(ops.VarHandleOp(dtype=tf.int32, shape=[]), user), 1)

    outside = ops.VarHandleOp(dtype=tf.int32, shape=[])
    return read(outside, write(row["user"]))


@case(NAMES)
def nameless_in_two_functions(row: Any) -> Any:
    @tf.function(autograph=False)
    def write(user: Any) -> Any:
        return done(assign(ops.VarHandleOp(dtype=tf.int32, shape=[], name="mine"), user), 1)

    @tf.function(autograph=False)
    def look(_: Any) -> Any:
        return read(ops.VarHandleOp(dtype=tf.int32, shape=[], name="yours"))

    return look(write(row["user"]))


# The order of a sequence's components.

ORDER = "the order of a sequence's components"
FIRST = ([(1, 2, 3)], [(9, 2, 3)])


def of_rows(named: str, values: Any = FIRST, type: Any = ROWS) -> Callable[[Any], Any]:
    return case(ORDER, type, values, f"data {named}", only=True)


@of_rows("d.zip")
def sum_of_one_column(rows: Any) -> Any:
    return rows.reduce(0, plain(lambda n, row: n + row["zip"]))


@of_rows("d.age", ([(1, 2, 3)], [(1, 9, 3)]))
def sum_of_another_column(rows: Any) -> Any:
    return rows.reduce(0, plain(lambda n, row: n + row["age"]))


@of_rows("d.zip")
def column_of_batches(rows: Any) -> Any:
    return rows.batch(2).reduce(0, plain(lambda n, row: n + tf.reduce_sum(row["zip"])))


@of_rows("d.sex", ([(1, 2, 3)], [(1, 2, 9)]))
def column_of_a_map(rows: Any) -> Any:
    renamed = rows.map(plain(lambda row: {"z": row["sex"], "a": row["age"]}))
    return renamed.reduce(0, plain(lambda n, row: n + row["z"]))


@of_rows("d.zip")
def column_of_a_kept_dict(rows: Any) -> Any:
    dicts = rows.map(plain(lambda row: collections.OrderedDict(b=row["zip"], a=row["sex"])))
    return dicts.batch(3).reduce(0, plain(lambda n, row: n + row["b"][0]))


@of_rows("d.sex", ([(1, 2, 3)], [(1, 2, 9)]))
def column_through_an_iterator(rows: Any) -> Any:
    @tf.function
    def total(rows: Any) -> Any:
        n = 0
        for row in rows:
            n += row["sex"]
        return n

    return total(rows)


@of_rows("d.y.q", ([((1, 2), 3, (4, 5))], [((9, 2), 3, (4, 5))]), NESTED)
def column_of_a_nested_dict(rows: Any) -> Any:
    return rows.reduce(0, plain(lambda n, row: n + row["y"]["q"]))


@of_rows("d.b", ([((1, 2), 3, (4, 5))], [((1, 2), 9, (4, 5))]), NESTED)
def column_beside_a_nested_dict(rows: Any) -> Any:
    return rows.batch(4).reduce(0, plain(lambda n, row: n + tf.reduce_sum(row["b"])))


@of_rows("d.a[1]", ([((1, 2), 3, (4, 5))], [((1, 2), 3, (4, 9))]), NESTED)
def column_of_a_tuple_beside_dicts(rows: Any) -> Any:
    return rows.reduce(0, plain(lambda n, row: n + row["a"][1]))


@of_rows(
    "d.rows.zip",
    ((1, [(1, 2, 3)]), (1, [(9, 2, 3)])),
    tff.to_type(collections.OrderedDict(z=np.int32, rows=ROWS)),
)
def column_of_a_sequence_in_a_struct(d: Any) -> Any:
    return d["rows"].reduce(0, plain(lambda n, row: n + row["zip"]))


# Resources in functions.

IN_FUNCTIONS = "resources in functions"


@case(IN_FUNCTIONS)
def written_through_an_argument(row: Any) -> Any:
    handle = number()

    @tf.function(experimental_attributes={"_noinline": True})
    def write(target: Any, value: Any) -> Any:
        return done(assign(target, value), 1)

    return read(handle, write(handle, row["user"]))


@case(IN_FUNCTIONS)
def written_through_a_capture_under_a_decision(row: Any) -> Any:
    handle = number()

    @tf.function(autograph=False)
    def write(user: Any) -> Any:
        return tf.cond(user > 1, lambda: done(assign(handle, 5), 1), zero)

    return read(handle, write(row["user"]))


@case(IN_FUNCTIONS)
def returned_by_a_function(row: Any) -> Any:
    handle = number()

    @tf.function(autograph=False)
    def same(target: Any) -> Any:
        return tf.identity(target)

    return read(handle, assign(same(handle), row["user"]))


@case(IN_FUNCTIONS)
def made_in_a_function(row: Any) -> Any:
    @tf.function(autograph=False)
    def kept(user: Any) -> Any:
        handle = number("made_in_a_function")
        chosen = tf.cond(user > 1, lambda: done(assign(handle, 5), 1), zero)
        return read(handle, chosen)

    return kept(row["user"])


@case(IN_FUNCTIONS)
def passed_into_a_branch(row: Any) -> Any:
    one, other = number("passed_one"), number("passed_other")

    @tf.function(autograph=False)
    def write(target: Any) -> Any:
        return done(assign(target, 5), 1)

    chosen = tf.cond(row["user"] > 1, lambda: write(one), lambda: write(other))
    return read(one, chosen)


@case(IN_FUNCTIONS)
def draws_of_one_kernel(row: Any) -> Any:
    """The kernel of a seeded draw in a function goes on where its last call stopped."""

    @tf.function(autograph=False, experimental_attributes={"_noinline": True})
    def draw() -> Any:
        return ops.RandomUniform(shape=tf.constant([1]), dtype=tf.float32, seed=87654321, seed2=4)[
            0
        ]

    chosen = tf.cond(row["user"] > 1, draw, lambda: tf.constant(0.0))
    with tf.control_dependencies([chosen]):
        return draw()


@case(IN_FUNCTIONS)
def queue_filled_by_a_function_of_a_function(row: Any) -> Any:
    handle = queue()

    @tf.function(autograph=False)
    def inner(often: Any) -> Any:
        return tf.while_loop(lambda i: i < often, lambda i: [done(put(handle, i), i + 1)], [0])[0]

    @tf.function(autograph=False)
    def outer(often: Any) -> Any:
        return inner(often)

    return size(handle, outer(row["user"]))


@case(IN_FUNCTIONS)
def counted_by_a_function_that_a_loop_calls(row: Any) -> Any:
    handle = number("counted_by_a_function")

    @tf.function(autograph=False, experimental_attributes={"_noinline": True})
    def count(i: Any) -> Any:
        return done(add_one(handle), i + 1)

    return read(handle, tf.while_loop(lambda i: i < row["user"], lambda i: [count(i)], [0]))


# Files between operations.

FILES = "files between operations"


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder of the test, where the cases put their files."""
    monkeypatch.chdir(tmp_path)


def write_file(text: Any, name: str = "a-file") -> Any:
    return ops.WriteFile(filename=tf.constant(name), contents=text)


def number_in(text: Any) -> Any:
    return tf.strings.to_number(text, tf.int32)


@case(FILES)
def written_and_read(row: Any) -> Any:
    with tf.control_dependencies([write_file(tf.strings.as_string(row["user"]))]):
        return number_in(ops.ReadFile(filename=tf.constant("a-file")))


@case(FILES)
def written_in_a_branch(row: Any) -> Any:
    with tf.control_dependencies([write_file(tf.constant("1"))]):
        is_large = tf.identity(row["user"] > 1)
    chosen = tf.cond(is_large, lambda: done(write_file(tf.constant("2")), 1), zero)
    with tf.control_dependencies([chosen]):
        return number_in(ops.ReadFile(filename=tf.constant("a-file")))


@case(FILES)
def written_and_read_as_lines(row: Any) -> Any:
    with tf.control_dependencies([write_file(tf.strings.as_string(row["user"]))]):
        name = tf.identity(tf.constant("a-file"))
    lines = tf.data.TextLineDataset(name)
    return lines.reduce(0, plain(lambda n, line: n + number_in(line)))


@case(FILES)
def saved_and_restored(row: Any) -> Any:
    saved = ops.SaveV2(
        prefix=tf.constant("saved"), tensor_names=["t"], shape_and_slices=[""],
        tensors=[row["user"]],
    )  # fmt: skip
    with tf.control_dependencies([saved]):
        return ops.RestoreV2(
            prefix=tf.constant("saved"), tensor_names=["t"], shape_and_slices=[""],
            dtypes=[tf.int32],
        )[0]  # fmt: skip


@case(FILES)
def name_of_a_file(row: Any) -> Any:
    """The name of the file that is written is the secret."""
    name = tf.strings.join(["named-", tf.strings.as_string(row["user"])])
    with tf.control_dependencies([ops.WriteFile(filename=name, contents=tf.constant("1"))]):
        return tf.size(ops.MatchingFiles(pattern=tf.constant("named-[1-9]")))


@case(FILES)
def read_by_a_reader(row: Any) -> Any:
    with tf.control_dependencies([write_file(tf.strings.as_string(row["user"]))]):
        waiting = ops.FIFOQueueV2(component_types=[tf.string], shapes=[[]])
        named = ops.QueueEnqueueV2(handle=waiting, components=[tf.constant("a-file")])
    with tf.control_dependencies([named]):
        reader = ops.WholeFileReaderV2()
        return number_in(ops.ReaderReadV2(reader_handle=reader, queue_handle=waiting).value)


# Effects of a dataset's functions, which happen where it is consumed.

DEFERRED = "effects of a data set's functions"


@case(DEFERRED)
def written_when_the_map_is_consumed(row: Any) -> Any:
    handle = number()
    mapped = tf.data.Dataset.range(2).map(plain(lambda n: done(assign(handle, row["user"]), n)))
    return read(handle, mapped.reduce(tf.constant(0, tf.int64), plain(lambda n, each: n)))


@case(DEFERRED)
def consumed_under_a_decision(row: Any) -> Any:
    handle = number()
    mapped = tf.data.Dataset.range(2).map(plain(lambda n: done(add_one(handle), n)))

    def consume() -> Any:
        return mapped.reduce(tf.constant(0, tf.int64), plain(lambda n, each: n + each))

    chosen = tf.cond(row["user"] > 1, consume, lambda: tf.constant(0, tf.int64))
    return read(handle, chosen)


@case(DEFERRED)
def consumed_as_often_as_a_number_says(row: Any) -> Any:
    handle = number()
    mapped = tf.data.Dataset.range(9).map(plain(lambda n: done(add_one(handle), n)))
    some = mapped.take(tf.cast(row["user"], tf.int64))
    return read(handle, some.reduce(tf.constant(0, tf.int64), plain(lambda n, each: n)))


@case(DEFERRED)
def consumed_by_an_iterator_in_a_loop(row: Any) -> Any:
    handle = number()
    mapped = tf.data.Dataset.range(9).map(plain(lambda n: done(add_one(handle), n)))
    variant = tf.data.experimental.to_variant(mapped)
    iterator = ops.IteratorV2(shared_name="deferred", container="", **NUMBERS)
    ready = ops.MakeIterator(dataset=variant, iterator=iterator)
    with tf.control_dependencies([ready]):
        first = tf.constant(0)
    loop = tf.while_loop(
        lambda i: i < row["user"], lambda i: [i + 1 + 0 * next_of(iterator)], [first]
    )
    return read(handle, loop)


@case(DEFERRED)
def written_by_a_predicate(row: Any) -> Any:
    table = integers()

    def predicate(n: Any) -> Any:
        return done(insert(table, 1, row["user"]), n > 0)

    passed = tf.data.Dataset.range(3).filter(plain(predicate))
    return find(table, 1, passed.reduce(tf.constant(0, tf.int64), plain(lambda n, each: n)))


@case(DEFERRED)
def written_by_a_key_of_a_group(row: Any) -> Any:
    handle = number()

    def key(n: Any) -> Any:
        return done(assign(handle, row["user"]), n % 2)

    grouped = tf.data.Dataset.range(4).group_by_window(
        key_func=plain(key), reduce_func=plain(lambda _, window: window.batch(2)), window_size=2
    )
    consumed = grouped.reduce(tf.constant(0, tf.int64), plain(lambda n, each: n))
    return read(handle, consumed)


@case(DEFERRED)
def consumed_in_a_function(row: Any) -> Any:
    handle = number()
    mapped = tf.data.Dataset.range(3).map(plain(lambda n: done(assign(handle, row["user"]), n)))

    @tf.function(autograph=False)
    def consume(dataset: Any) -> Any:
        return dataset.reduce(tf.constant(0, tf.int64), plain(lambda n, each: n + each))

    return read(handle, consume(mapped))


@case(DEFERRED)
def consumed_in_a_case(row: Any) -> Any:
    table = integers()
    mapped = tf.data.Dataset.range(3).map(
        plain(lambda n: done(insert(table, tf.cast(n, tf.int32), 1), n))
    )

    def consume(count: int) -> Any:
        return mapped.take(count).reduce(tf.constant(0, tf.int64), plain(lambda n, each: n))

    chosen = tf.switch_case(row["user"], [lambda n=n: consume(n) for n in range(4)])
    with tf.control_dependencies([chosen]):
        return tf.cast(ops.LookupTableSizeV2(table_handle=table), tf.int32)


@case(DEFERRED)
def one_element_taken_in_a_branch(row: Any) -> Any:
    handle = number()
    mapped = tf.data.Dataset.range(9).map(plain(lambda n: done(add_one(handle), n)))
    iterator = ops.IteratorV2(shared_name="deferred_too", container="", **NUMBERS)
    ready = ops.MakeIterator(dataset=tf.data.experimental.to_variant(mapped), iterator=iterator)
    with tf.control_dependencies([ready]):
        is_large = tf.identity(row["user"] > 1)
    return read(handle, tf.cond(is_large, lambda: next_of(iterator), zero))


# Handles that are chosen.

CHOSEN = "handles chosen by a secret"


def two_numbers() -> tuple[Any, Any]:
    one, other = number("chosen_one"), number("chosen_other")
    with tf.control_dependencies([assign(one, 10), assign(other, 20)]):
        return tf.identity(one), tf.identity(other)


@case(CHOSEN)
def read_of_a_chosen_handle(row: Any) -> Any:
    one, other = two_numbers()
    return read(tf.cond(row["user"] > 1, lambda: one, lambda: other))


@case(CHOSEN)
def write_to_a_chosen_handle(row: Any) -> Any:
    one, other = two_numbers()
    chosen = tf.cond(row["user"] > 1, lambda: one, lambda: other)
    return read(one, assign(chosen, 7))


@case(CHOSEN)
def read_of_a_handle_in_a_case(row: Any) -> Any:
    one, other = two_numbers()
    handle = tf.switch_case(tf.minimum(row["user"], 1), [lambda: one, lambda: other])
    return read(handle)


@case(CHOSEN)
def queue_of_a_chosen_handle(row: Any) -> Any:
    one, other = queue("chosen_queue"), queue("another_queue")
    handle = tf.cond(row["user"] > 1, lambda: tf.identity(one), lambda: tf.identity(other))
    return size(one, put(handle, 3))


@case(CHOSEN)
def table_of_a_chosen_handle(row: Any) -> Any:
    one, other = integers("chosen_table"), integers("another_table")
    handle = tf.cond(row["user"] > 1, lambda: tf.identity(one), lambda: tf.identity(other))
    return find(other, 2, insert(handle, 2, 9))


@case(CHOSEN)
def handle_behind_a_switch(row: Any) -> Any:
    one, other = two_numbers()
    is_large = row["user"] > 1
    yes = ops.Switch(data=one, pred=is_large).output_true
    no = ops.Switch(data=other, pred=is_large).output_false
    return read(ops.Merge(inputs=[yes, no]).output)


@case(CHOSEN)
def iterator_of_a_chosen_handle(row: Any) -> Any:
    one, other = iterator("chosen_iterator"), iterator("another_iterator")
    handle = tf.cond(row["user"] > 1, lambda: tf.identity(one), lambda: tf.identity(other))
    with tf.control_dependencies([next_of(handle)]):
        return next_of(one)


# Iterators that are advanced under a decision.

ADVANCED = "iterators advanced under a decision"


@case(ADVANCED)
def advanced_in_a_branch(row: Any) -> Any:
    handle = iterator("advanced")
    with tf.control_dependencies([tf.cond(row["user"] > 1, lambda: next_of(handle), zero)]):
        return next_of(handle)


@case(ADVANCED)
def advanced_in_a_loop(row: Any) -> Any:
    handle = iterator("advanced_often")
    loop = tf.while_loop(lambda i: i < row["user"], lambda i: [i + 1 + 0 * next_of(handle)], [0])
    with tf.control_dependencies(tf.nest.flatten(loop)):
        return next_of(handle)


@case(ADVANCED)
def advanced_in_a_function(row: Any) -> Any:
    handle = iterator("advanced_there")

    @tf.function(autograph=False)
    def advance(user: Any) -> Any:
        return tf.cond(user > 1, lambda: next_of(handle), zero)

    with tf.control_dependencies([advance(row["user"])]):
        return next_of(handle)


@case(ADVANCED)
def made_again_in_a_branch(row: Any) -> Any:
    handle = iterator("made_again")

    def again() -> Any:
        return done(ops.MakeIterator(dataset=counting(50), iterator=handle), 1)

    with tf.control_dependencies([tf.cond(row["user"] > 1, again, zero)]):
        return next_of(handle)


@case(ADVANCED)
def advanced_behind_a_switch(row: Any) -> Any:
    handle = iterator("advanced_old")
    sides = ops.Switch(data=tf.constant(0), pred=row["user"] > 1)
    with tf.control_dependencies([tf.identity(sides.output_true)]):
        yes = next_of(handle)
    merged = ops.Merge(inputs=[yes, tf.identity(sides.output_false)])
    with tf.control_dependencies([merged.output]):
        return next_of(handle)


@case(ADVANCED)
def advanced_by_a_reduce(row: Any) -> Any:
    handle = iterator("advanced_by_a_reduce")
    often = tf.data.Dataset.range(tf.cast(row["user"], tf.int64))
    total = often.reduce(0, plain(lambda n, each: n + next_of(handle)))
    with tf.control_dependencies([total]):
        return next_of(handle)


def test_cases_have_names_of_their_own() -> None:
    twice = [
        name
        for name, group in itertools.groupby(sorted(each.work.__name__ for each in CASES))
        if len(list(group)) > 1
    ]
    assert twice == []
