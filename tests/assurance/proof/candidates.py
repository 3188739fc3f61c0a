"""Rounds whose graphs hold what the prover must compare, and edits of any graph.

No edit here leaves a graph that computes the same wherever TensorFlow loads it, so none may be
proved.
"""

from __future__ import annotations

import dataclasses
import importlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

import tffc as tff
from tests.assurance.proof.edits import Draft
from tffc.graphs.proto import NodeDef
from tffc.language import Compiled

# Rounds.


def round_of(function: Callable[[Any], Any], kind: Any = np.float32) -> Any:
    """A round that maps a function over the clients' data and sums what it gives."""
    local = tff.tf_computation(function, kind)

    @tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(kind))
    def each(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(local, data))

    return each.node


def drawing(x: Any) -> Any:
    """Calls of functions whose kernels remember: two of one, and one of another."""

    @tf.function(experimental_attributes={"_noinline": True})
    def first(y: Any) -> Any:
        return y + tf.random.uniform([], seed=5)

    @tf.function(experimental_attributes={"_noinline": True})
    def second(y: Any) -> Any:
        return y + tf.random.uniform([], seed=6)

    one = first(x)
    with tf.control_dependencies([one]):
        two = first(one)
    with tf.control_dependencies([two]):
        return two * 100.0 + second(two)


def pooling(x: Any) -> Any:
    """Functions whose kernels keep the seed that they choose: two calls of one, one of another."""

    def drawn() -> Any:
        @tf.function(experimental_attributes={"_noinline": True})
        def draw(y: Any) -> Any:
            rows = tf.raw_ops.FractionalMaxPool(
                value=tf.reshape(tf.range(1600.0) + y, [1, 40, 40, 1]),
                pooling_ratio=[1.0, 1.44, 1.73, 1.0],
                deterministic=True,
            )[1]
            return tf.cast(tf.reduce_sum(rows * rows), tf.float32)

        return draw

    first, second = drawn(), drawn()
    return (first(x) - first(x)) * 10000.0 + second(x)


def calling_outside(x: Any) -> Any:
    """Functions that run modules of which nobody knows what they call and keep."""
    operations: Any = importlib.import_module("tensorflow.compiler.tf2xla.ops.gen_xla_ops")

    def calling() -> Any:
        @tf.function(experimental_attributes={"_noinline": True})
        def call(y: Any) -> Any:
            return operations.xla_call_module(
                args=[y],
                version=9,
                module=b"module",
                Sout=[[]],
                Tout=[tf.float32],
                platforms=["CPU"],
            )[0]

        return call

    first, second = calling(), calling()
    one = first(x)
    with tf.control_dependencies([one]):
        two = first(one)
    with tf.control_dependencies([two]):
        return two * 100.0 + second(two)


def assigning(x: Any) -> Any:
    """A function that assigns to a variable after its result is known."""
    variable = tf.Variable(tf.constant(2.0))

    @tf.function
    def add(y: Any) -> Any:
        before = variable.read_value()
        variable.assign_add(y)
        return before

    before = add(x)
    with tf.control_dependencies([before]):
        return variable.read_value() * 10.0 + before


def looking_up(x: Any) -> Any:
    """A table with keys of its own for what is missing."""
    table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, -1.0)
    key = tf.cast(x, tf.int64)
    with tf.control_dependencies([table.insert(key, x * 2.0)]):
        return table.lookup(key + 1) + table.lookup(key)


def checking(x: Any) -> Any:
    """Checks that something waits for, but that nothing uses."""
    index = tf.cast(x, tf.int32)
    with tf.control_dependencies(
        [tf.gather([1.0, 2.0], index), tf.ensure_shape(tf.fill([index], 1.0), [1])]
    ):
        return x + 1.0


def mapping(x: Any) -> Any:
    """Datasets with functions that capture values."""
    numbers = tf.data.Dataset.range(5).map(lambda n: tf.cast(n, tf.float32) * x)
    large = numbers.filter(lambda n: n > 1.0)
    return large.reduce(0.0, lambda total, n: total + n) + tf.cast(
        numbers.cardinality(), tf.float32
    )


def branching(x: Any) -> Any:
    """A condition and a loop in functions."""

    @tf.function
    def grown(y: Any) -> Any:
        if y > 2.0:
            return y - 1.0
        return tf.while_loop(lambda z: z < 9.0, lambda z: z * 2.0 + 1.0, [y])[0]

    return grown(x)


def switching(x: Any) -> Any:
    """A condition of TensorFlow 1, whose branches wait for pivots."""
    off, on = tf.raw_ops.Switch(data=x > 2.0, pred=x > 2.0)
    with tf.control_dependencies([tf.identity(on)]):
        large = tf.constant(10.0)
    with tf.control_dependencies([tf.identity(off)]):
        small = tf.constant(20.0)
    return tf.raw_ops.Merge(inputs=[small, large]).output + x


def writing(x: Any) -> Any:
    """An effect that a result waits for."""
    written = tf.io.write_file(f"{tempfile.gettempdir()}/tffc-candidate", tf.as_string(x))
    with tf.control_dependencies([written]):
        return x * 3.0


def bits(x: Any) -> Any:
    """Constants of several encodings."""
    names = tf.constant(["a", "b", "b"])
    table = tf.constant([[1.5, 2.5], [3.5, 4.5]])
    return (
        x
        + table[1, 0]
        + tf.cast(tf.size(names), tf.float32)
        + tf.cast(tf.bitcast(tf.constant(1, tf.int32), tf.float32), tf.float32)
    )


ROUNDS = {
    each.__name__: each
    for each in (
        drawing,
        pooling,
        calling_outside,
        assigning,
        looking_up,
        checking,
        mapping,
        branching,
        switching,
        writing,
        bits,
    )
}

# Edits of the graph of a component.

Change = Callable[[Draft], "dict[str, Any] | None"]
"""An edit, which returns other parts of the section that change, or None if it does not apply."""


def nodes_of(draft: Draft) -> Iterator[Any]:
    """The nodes of the graph and its functions that are not parameters."""
    for body in draft.bodies():
        yield from (node for node in body if node.op not in ("Placeholder", "NoOp", "Identity"))


def functions_of(draft: Draft) -> list[Any]:
    return list(draft.graph.library.function)


def _first(items: Any) -> Any:
    return next(iter(items), None)


def on_function(change: Callable[[Any], Any]) -> Change:
    """An edit of the first function that it applies to; False tells that it does not apply."""

    def edit(draft: Draft) -> dict[str, Any] | None:
        return next(({} for each in functions_of(draft) if change(each) is not False), None)

    return edit


def on_node(change: Callable[[Any], Any]) -> Change:
    """An edit of the first node that it applies to."""

    def edit(draft: Draft) -> dict[str, Any] | None:
        return next(({} for each in nodes_of(draft) if change(each) is not False), None)

    return edit


def on_graph(change: Callable[[Any], Any]) -> Change:
    """An edit of the graph."""

    def edit(draft: Draft) -> dict[str, Any] | None:
        return None if change(draft.graph) is False else {}

    return edit


def flip_noinline(function: Any) -> Any:
    if function.attr["_noinline"].b:
        del function.attr["_noinline"]
    else:
        function.attr["_noinline"].b = True


def drop_control_return(function: Any) -> Any:
    if not function.control_ret:
        return False
    function.control_ret.clear()
    del function.signature.control_output[:]
    return None


def other_control_return(function: Any) -> Any:
    """Callers wait for something else than an assignment."""
    ops = {node.name: node.op for node in function.node_def}
    for key in sorted(function.control_ret):
        if ops[function.control_ret[key]].startswith("Assign"):
            function.control_ret[key] = next(name for name in ops if ops[name][:3] != "Ass")
            return None
    return False


def unnamed_control_return(function: Any) -> Any:
    if not function.control_ret:
        return False
    del function.signature.control_output[:]
    return None


def other_state(function: Any) -> Any:
    function.signature.is_stateful = not function.signature.is_stateful


def wrong_argument_shape(function: Any) -> Any:
    if not function.signature.input_arg:
        return False
    shapes = function.arg_attr[0].attr["_output_shapes"].list
    del shapes.shape[:]
    shapes.shape.add().dim.add().size = 7
    return None


def other_argument_type(function: Any) -> Any:
    kinds = [each for each in function.signature.input_arg if each.type == 1]
    if not kinds:
        return False
    kinds[0].type = 2
    return None


def second_result(function: Any) -> Any:
    function.ret["another"] = function.node_def[0].name + ":output:0"


def missing_result(function: Any) -> Any:
    function.ret.clear()


def argument_ids(function: Any) -> Any:
    function.resource_arg_unique_id[99] = 1


def repeated_name(function: Any) -> Any:
    if len(function.node_def) < 2:
        return False
    function.node_def[1].name = function.node_def[0].name
    return None


def wrong_shape(node: Any) -> Any:
    shapes = node.attr["_output_shapes"].list
    shapes.shape.add().dim.add().size = 7


def other_device(node: Any) -> Any:
    node.device = "/device:CPU:7"


def other_process(node: Any) -> Any:
    node.device = "/job:worker/task:3"


def far_neighbour(node: Any) -> Any:
    node.attr["_class"].list.s.append(b"loc:@nowhere")


def unknown_field(node: Any) -> Any:
    node.MergeFromString(b"\xca\xbb\x04\x01x")


def unknown_in_attribute(node: Any) -> Any:
    names = [name for name in node.attr if name in ("dtype", "T", "value")]
    if not names:
        return False
    node.attr[names[0]].MergeFromString(b"\xca\xbb\x04\x01x")
    return None


def another_attribute(node: Any) -> Any:
    node.attr["another"].i = 1


def no_control(node: Any) -> Any:
    edges = [edge for edge in node.input if not edge.startswith("^")]
    if len(edges) == len(node.input):
        return False
    node.input[:] = edges
    return None


def input_after_control(node: Any) -> Any:
    if not node.input or node.input[0].startswith("^"):
        return False
    node.input.insert(0, "^" + node.input[0].partition(":")[0])
    return None


def no_such_output(node: Any) -> Any:
    places = [i for i, edge in enumerate(node.input) if ":" not in edge and edge[0] != "^"]
    if not places:
        return False
    node.input[places[0]] += ":9"
    return None


def repeated_function(graph: Any) -> Any:
    if not graph.library.function:
        return False
    graph.library.function.add().CopyFrom(graph.library.function[0])
    return None


def repeated_node(graph: Any) -> Any:
    graph.node.add().CopyFrom(graph.node[-1])


def gradient(graph: Any) -> Any:
    if not graph.library.function:
        return False
    name = graph.library.function[0].signature.name
    graph.library.gradient.add(function_name=name, gradient_func="nothing")
    return None


def registered_gradient(graph: Any) -> Any:
    graph.library.registered_gradients.add(gradient_func="g", registered_op_type="Add")


def newer_reader(graph: Any) -> Any:
    graph.versions.min_consumer = 100_000


def bad_reader(graph: Any) -> Any:
    graph.versions.bad_consumers.extend(range(1500, 3000))


def old_writer(graph: Any) -> Any:
    graph.versions.producer = 5


def invalid_name(graph: Any) -> Any:
    node = graph.node[-1]
    used = any(edge.partition(":")[0] == node.name for n in graph.node for edge in n.input)
    if used:
        return False
    node.name = "a b"
    return None


def wrong_parameter_shape(graph: Any) -> Any:
    for node in graph.node:
        if node.op == "Placeholder" and node.attr["dtype"].type == 1:
            node.attr["shape"].shape.dim.add().size = 3
            return None
    return False


def unknown_in_graph(graph: Any) -> Any:
    graph.MergeFromString(b"\xca\xbb\x04\x01x")


def unknown_in_library(graph: Any) -> Any:
    graph.library.MergeFromString(b"\xca\xbb\x04\x01x")


def failing_initialization(draft: Draft) -> dict[str, Any]:
    """A check that always fails is run first, besides what was."""
    graph = draft.graph
    false = graph.node.add(name="false", op="Const")
    false.attr["dtype"].type = 10
    tensor = false.attr["value"].tensor
    tensor.dtype = 10
    tensor.tensor_shape.SetInParent()
    tensor.bool_val.append(False)
    check = graph.node.add(name="check", op="Assert", input=["false", "false"])
    check.attr["T"].list.type.append(10)
    check.attr["summarize"].i = 3
    before = draft.content.initialize_op
    waits = ["^check", *([f"^{before}"] if before else [])]
    graph.node.append(NodeDef(name="all", op="NoOp", input=waits))
    return {"initialize_op": "all"}


def result_initializes(draft: Draft) -> dict[str, Any] | None:
    """The node of a result is run first too."""
    if draft.content.initialize_op:
        return None
    node = _first(n for n in draft.graph.node if n.op in ("WriteFile", "Assert", "GatherV2"))
    return None if node is None else {"initialize_op": node.name}


def promised_result(draft: Draft) -> dict[str, Any] | None:
    """The node of a result promises a wrong shape."""
    for node in draft.graph.node:
        if node.op == "Identity" and not any(node.name in each.input for each in draft.graph.node):
            wrong_shape(node)
            return {}
    return None


REMEMBERING = frozenset({"FractionalMaxPool", "RandomUniform", "XlaCallModule"})
"""Operations of the rounds whose kernels remember."""


def split_function(draft: Draft) -> dict[str, Any] | None:
    """A call of a function that remembers calls a copy of it."""
    return _exchanged(draft, copies=True)


def joined_function(draft: Draft) -> dict[str, Any] | None:
    """All calls of functions that remember call one of them."""
    return _exchanged(draft, copies=False)


def _exchanged(draft: Draft, *, copies: bool) -> dict[str, Any] | None:
    functions = {
        each.signature.name: each
        for each in functions_of(draft)
        if any(node.op in REMEMBERING for node in each.node_def)
    }
    calls = [
        node.attr["f"].func
        for node in draft.graph.node
        if "f" in node.attr and node.attr["f"].func.name in functions
    ]
    if len(calls) < 2:
        return None
    if copies:
        name = calls[0].name
        copy = draft.graph.library.function.add()
        copy.CopyFrom(functions[name])
        copy.signature.name = calls[0].name = "copy_of_it"
    else:
        others = {call.name for call in calls} - {calls[0].name}
        for call in calls:
            call.name = calls[0].name
        left = [each for each in functions_of(draft) if each.signature.name not in others]
        left = [type(each).FromString(each.SerializeToString()) for each in left]
        if not others:
            return None
        del draft.graph.library.function[:]
        draft.graph.library.function.extend(left)
    return {}


EDITS: dict[str, Change] = {
    **{
        change.__name__: on_function(change)
        for change in (
            flip_noinline,
            drop_control_return,
            other_control_return,
            unnamed_control_return,
            other_state,
            wrong_argument_shape,
            other_argument_type,
            second_result,
            missing_result,
            argument_ids,
            repeated_name,
        )
    },
    **{
        change.__name__: on_node(change)
        for change in (
            wrong_shape,
            other_device,
            other_process,
            far_neighbour,
            unknown_field,
            unknown_in_attribute,
            another_attribute,
            no_control,
            input_after_control,
            no_such_output,
        )
    },
    **{
        change.__name__: on_graph(change)
        for change in (
            repeated_function,
            repeated_node,
            gradient,
            registered_gradient,
            newer_reader,
            bad_reader,
            old_writer,
            invalid_name,
            wrong_parameter_shape,
            unknown_in_graph,
            unknown_in_library,
        )
    },
    "failing_initialization": failing_initialization,
    "result_initializes": result_initializes,
    "promised_result": promised_result,
    "split_function": split_function,
    "joined_function": joined_function,
    "cache_key": lambda draft: {"cache_key": 7},
}


def edited(section: Compiled, edit: Change, choose: Any) -> Compiled | None:
    """The section after an edit, or None if it does not apply."""
    draft = Draft(section, choose)
    changes = edit(draft)
    return None if changes is None else draft.finish(**changes)


def with_unknown_field(section: Compiled) -> Compiled:
    """The section with a field of its own message that no description has."""
    return dataclasses.replace(section, payload=section.payload + b"\xca\xbb\x04\x01x")
