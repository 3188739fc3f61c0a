"""State in linked graphs: two calls of a section never share any."""

from __future__ import annotations

from typing import Any

import pytest

from tests.linking.sections import graph_of, link, run, section_of, struct, tf, tf1, trace
from tffc.graphs import proto
from tffc.graphs.state import ANONYMOUS
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import TensorType
from tffc.language.wire import read_tensorflow

INT = TensorType(DType.INT32)
PAIR = struct(INT, INT)


def initialize_op(section: Compiled) -> str:
    return read_tensorflow(section.payload).initialize_op


def both(section: Compiled) -> Compiled:
    """Two calls of a section on one argument."""
    return link(INT, PAIR, lambda b, p: (b.call(section, p), b.call(section, p)))


def count(x: Any) -> Any:
    """Counts on from ten."""
    v = tf.Variable(8, name="v")
    w = tf.Variable(2, name="w")
    return v.assign_add(x) + w


@pytest.fixture(scope="module")
def counter() -> Compiled:
    return trace(count, INT, INT, initialize=True)


def test_variables(counter: Compiled) -> None:
    linked = both(counter)
    assert initialize_op(linked) == "init"
    assert run(linked, 5) == (15, 15)
    names = [n.attr["shared_name"].s for n in graph_of(linked).node if n.op == "VarHandleOp"]
    assert names == [b"c1/v", b"c1/w", b"c2/v", b"c2/w"]


def test_state_lasts_from_run_to_run_of_a_session(counter: Compiled) -> None:
    assert run(both(counter), 5, times=3) == (25, 25)


def test_one_call_used_twice_counts_once(counter: Compiled) -> None:
    linked = link(INT, PAIR, lambda b, p: (b.call(counter, p),) * 2)
    assert run(linked, 5) == (15, 15)


def test_variables_initialized_by_the_argument() -> None:
    """Such a section is initialized where it is called, in between the others."""

    def twice(x: Any) -> Any:
        return tf.Variable(x, name="v").assign_add(x)

    section = trace(twice, INT, INT, initialize=True)
    assert initialize_op(section)
    linked = link(INT, PAIR, lambda b, p: (b.call(section, b.call(section, p)), b.call(section, p)))
    assert initialize_op(linked) == ""
    assert run(linked, 5) == (20, 10)
    assert run(linked, 5, times=3) == (20, 10)


def test_tables_initialized_by_the_argument() -> None:
    def own_table(x: Any) -> Any:
        entries = tf.lookup.KeyValueTensorInitializer(tf.stack([x]), tf.stack([x + 1]))
        return tf.lookup.StaticHashTable(entries, -1).lookup(x)

    section = trace(own_table, INT, INT, initialize=True)
    linked = link(INT, INT, lambda b, p: b.call(section, b.call(section, p)))
    with tf.Graph().as_default():
        given = tf1.placeholder(tf.int32, [])
        (found,) = tf.import_graph_def(graph_of(linked), {"arg:0": given}, ["Identity:0"])
        with tf1.Session() as session:
            assert [session.run(found, {given: x}) for x in (5, 6, 7)] == [7, 8, 9]


def test_initialization_by_the_result_of_a_section_with_variables(counter: Compiled) -> None:
    twice = trace(lambda x: tf.Variable(x).assign_add(x), INT, INT, initialize=True)
    linked = link(INT, INT, lambda b, p: b.call(twice, b.call(counter, p)))
    assert initialize_op(linked) == "init"
    assert run(linked, 5) == 30


def test_variables_in_a_loop_of_v1_initialized_by_the_argument() -> None:
    tf1.disable_control_flow_v2()
    try:

        def add_up(x: Any) -> Any:
            v = tf1.Variable(x, use_resource=True)

            def body(i: Any) -> Any:
                with tf.control_dependencies([v.assign_add(i)]):
                    return i + 1

            with tf.control_dependencies([tf1.while_loop(lambda i: i < 4, body, [0])]):
                return v.read_value()

        section = trace(add_up, INT, INT, initialize=True)
    finally:
        tf1.enable_control_flow_v2()
    linked = both(section)
    assert initialize_op(linked) == ""
    assert run(linked, 100) == (106, 106)


def test_only_what_is_needed_is_initialized(counter: Compiled) -> None:
    plain_and_counted = trace(lambda x: (x * x, count(x)), INT, PAIR, initialize=True)
    linked = link(INT, INT, lambda b, p: (b.call(counter, p), b.call(plain_and_counted, p)[0])[1])
    assert initialize_op(linked) == ""
    assert run(linked, 3) == 9
    assert "VarHandleOp" not in [node.op for node in graph_of(linked).node]


def test_initialization_through_two_levels(counter: Compiled) -> None:
    linked = both(counter)
    again = link(
        INT,
        struct(PAIR, PAIR),
        lambda b, p: (b.call(linked, p), b.call(linked, b.call(counter, p))),
    )
    assert run(again, 5) == ((15, 15), (25, 25))
    names = [n.attr["shared_name"].s for n in graph_of(again).node if n.op == "VarHandleOp"]
    assert len(set(names)) == len(names) == 10


def test_handles_of_one_name_in_a_call_stay_together() -> None:
    def two_handles(x: Any) -> Any:
        options = {"dtype": tf.int32, "shape": [], "shared_name": "v", "container": ""}
        first, second = (tf.raw_ops.VarHandleOp(**options) for _ in range(2))
        write = tf.raw_ops.AssignVariableOp(resource=first, value=x)
        with tf.control_dependencies([write]):
            return tf.raw_ops.ReadVariableOp(resource=second, dtype=tf.int32) + 1

    linked = both(trace(two_handles, INT, INT))
    assert run(linked, 5) == (6, 6)
    assert {n.attr["shared_name"].s for n in graph_of(linked).node if n.op == "VarHandleOp"} == {
        b"c1/v",
        b"c2/v",
    }


def test_variables_without_a_name_are_one_in_a_call() -> None:
    """TensorFlow takes the empty name of a variable for a name."""
    graph = proto.GraphDef()
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = 3
    for name in ("v", "w"):
        node = graph.node.add(name=name, op="VarHandleOp")
        node.attr["dtype"].type = 3
        node.attr["shape"].shape.SetInParent()
    graph.node.add(name="set", op="AssignVariableOp", input=["v", "x"]).attr["dtype"].type = 3
    graph.node.add(name="get", op="ReadVariableOp", input=["w", "^set"]).attr["dtype"].type = 3
    section = section_of(graph, INT, ["x:0"], INT, ["get:0"])
    linked = link(INT, PAIR, lambda b, p: (first := b.call(section, p), b.call(section, first)))
    assert run(linked, 5) == (5, 5)
    names = [n.attr["shared_name"].s for n in graph_of(linked).node if n.op == "VarHandleOp"]
    assert names == [b"c1/", b"c1/", b"c2/", b"c2/"]


def test_anonymous_state_stays_anonymous() -> None:
    def fresh(x: Any) -> Any:
        handle = tf.raw_ops.VarHandleOp(
            dtype=tf.int32, shape=[], shared_name=ANONYMOUS, container=""
        )
        write = tf.raw_ops.AssignVariableOp(resource=handle, value=x)
        with tf.control_dependencies([write]):
            return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int32)

    linked = both(trace(fresh, INT, INT))
    assert run(linked, 5) == (5, 5)
    names = {n.attr["shared_name"].s for n in graph_of(linked).node if n.op == "VarHandleOp"}
    assert names == {ANONYMOUS}


def test_reference_variables() -> None:
    def old_counter(x: Any) -> Any:
        with tf1.variable_scope("scope", use_resource=False):
            v = tf1.get_variable("v", initializer=tf.constant(10), use_resource=False)
            return tf1.assign_add(v, x)

    section = trace(old_counter, INT, INT, initialize=True)
    assert "VariableV2" in [node.op for node in graph_of(section).node]
    assert run(both(section), 5) == (15, 15)


def test_temporary_variables() -> None:
    def gather(x: Any) -> Any:
        return tf1.accumulate_n([x, x, x]) + temporary(x)

    def temporary(x: Any) -> Any:
        variable = tf.raw_ops.TemporaryVariable(shape=[], dtype=tf.int32, var_name="t")
        filled = tf1.assign(variable, x)
        return tf.raw_ops.DestroyTemporaryVariable(ref=filled, var_name="t")

    assert run(both(trace(gather, INT, INT)), 5) == (20, 20)


def test_static_tables() -> None:
    def lookup(x: Any) -> Any:
        keys, values = tf.constant([1, 2, 3]), tf.constant([10, 20, 30])
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
        return table.lookup(x)

    linked = both(trace(lookup, INT, INT, initialize=True))
    assert initialize_op(linked) == "init"
    assert run(linked, 2) == (20, 20)


def test_tables_named_by_their_nodes() -> None:
    def insert(x: Any) -> Any:
        table = tf.lookup.experimental.MutableHashTable(tf.int32, tf.int32, -1, name="table")
        with tf.control_dependencies([table.insert(x, 2 * x)]):
            return table.lookup(x) + 100 * tf.cast(table.size(), tf.int32)

    section = trace(insert, INT, INT)
    linked = link(INT, PAIR, lambda b, p: (first := b.call(section, p), b.call(section, first)))
    assert run(linked, 2) == (104, 308)


@pytest.mark.parametrize("shared_name", ["", "line"])
def test_queues(shared_name: str) -> None:
    def through(x: Any) -> Any:
        queue = tf.queue.FIFOQueue(10, tf.int32, [[]], shared_name=shared_name or None)
        with tf.control_dependencies([queue.enqueue(x), queue.enqueue(x + 1)]):
            first = queue.dequeue()
        with tf.control_dependencies([first]):
            second = queue.dequeue()
        with tf.control_dependencies([second]):
            return first + second + 100 * queue.size()

    assert run(both(trace(through, INT, INT)), 5) == (11, 11)


def test_stages_and_maps() -> None:
    def stage(x: Any) -> Any:
        put = tf.raw_ops.Stage(values=[x], shared_name="stage")
        with tf.control_dependencies([put]):
            (value,) = tf.raw_ops.Unstage(dtypes=[tf.int32], shared_name="stage")
        with tf.control_dependencies([value]):
            return value + 100 * tf.raw_ops.StageSize(dtypes=[tf.int32], shared_name="stage")

    assert run(both(trace(stage, INT, INT)), 5) == (5, 5)


def test_sparse_tensors_in_a_map_find_it_by_the_name_of_a_node() -> None:
    def through(x: Any) -> Any:
        handle = tf.raw_ops.AddSparseToTensorsMap(
            sparse_indices=[[0]],
            sparse_values=tf.stack([x]),
            sparse_shape=tf.constant([1], tf.int64),
            name="add",
        )
        back = tf.raw_ops.TakeManySparseFromTensorsMap(
            sparse_handles=tf.stack([handle]), dtype=tf.int32, shared_name="add"
        )
        return back.sparse_values[0]

    assert run(both(trace(through, INT, INT)), 5) == (5, 5)


def test_iterators() -> None:
    def second(x: Any) -> Any:
        dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3]).map(lambda e: e * 10)
        iterator = tf1.data.make_initializable_iterator(dataset, shared_name="iterator")
        with tf.control_dependencies([iterator.initializer]):
            first = iterator.get_next()
        with tf.control_dependencies([first]):
            return x + iterator.get_next()

    assert run(both(trace(second, INT, INT)), 5) == (25, 25)


def test_state_in_functions() -> None:
    """A queue in a function's body has the body's name for it, so each call gets a function."""

    @tf.function
    def through(x: Any) -> Any:
        handle = tf.raw_ops.FIFOQueueV2(component_types=[tf.int32], shapes=[[]], name="queue")
        enqueue = tf.raw_ops.QueueEnqueueV2(handle=handle, components=[x])
        with tf.control_dependencies([enqueue]):
            (value,) = tf.raw_ops.QueueDequeueV2(handle=handle, component_types=[tf.int32])
        with tf.control_dependencies([value]):
            return value + 100 * tf.raw_ops.QueueSizeV2(handle=handle)

    section = trace(through, INT, INT)
    linked = link(INT, PAIR, lambda b, p: (b.call(section, p), b.call(section, p)))
    library = graph_of(linked).library.function
    nodes = [n.name for f in library for n in f.node_def if n.op == "FIFOQueueV2"]
    assert sorted(nodes) == ["c1/queue", "c2/queue"]
    assert run(linked, 5) == (5, 5)


def test_a_function_with_much_state() -> None:
    @tf.function
    def queues() -> Any:
        return [
            tf.raw_ops.FIFOQueueV2(component_types=[tf.int32], name=f"queue_{number}")
            for number in range(40)
        ]

    def sizes(x: Any) -> Any:
        return x + tf.add_n([tf.raw_ops.QueueSizeV2(handle=queue) for queue in queues()])

    linked = both(trace(sizes, INT, INT))
    for function in graph_of(linked).library.function:
        nodes = {node.name for node in function.node_def}
        assert nodes.issuperset(function.control_ret.values())
    assert run(linked, 5) == (5, 5)


def test_variables_in_functions() -> None:
    @tf.function
    def remember(x: Any) -> Any:
        handle = tf.raw_ops.VarHandleOp(dtype=tf.int32, shape=[], shared_name="v", container="")
        unset = tf.logical_not(tf.raw_ops.VarIsInitializedOp(resource=handle))
        start = tf.cond(
            unset, lambda: 0, lambda: tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int32)
        )
        tf.raw_ops.AssignVariableOp(resource=handle, value=start + x)
        return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int32)

    linked = link(
        INT,
        PAIR,
        lambda b, p: (b.call(section := trace(remember, INT, INT), p), b.call(section, p)),
    )
    assert run(linked, 5, times=2) == (10, 10)
