"""What is linked, run by TensorFlow, against the pieces run one by one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.linking.sections import graph_of, leaves, link, run, section_of, struct, tf, tf1, trace
from tffc.graphs import proto
from tffc.language.array import Array, to_array
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, SequenceType, StructType, TensorType, Type
from tffc.language.wire import TensorFlowSection, read_tensorflow, write_tensorflow
from tffc.linking.builder import GraphBuilder, Operand

INT = TensorType(DType.INT32)
FLOAT = TensorType(DType.FLOAT32)
STRING = TensorType(DType.STRING)
INTS = SequenceType(INT)
PAIR = StructType([INT, INT])


def content(section: Compiled) -> TensorFlowSection:
    return read_tensorflow(section.payload)


def ops(section: Compiled) -> list[str]:
    return [node.op for node in graph_of(section).node]


@pytest.fixture(scope="module")
def add() -> Compiled:
    return trace(lambda x, y: x + y, PAIR, INT)


@pytest.fixture(scope="module")
def double() -> Compiled:
    return trace(lambda x: 2 * x, INT, INT)


@pytest.fixture
def control_flow_v1() -> Iterator[None]:
    tf1.disable_control_flow_v2()
    yield
    tf1.enable_control_flow_v2()


def test_calls_in_sequence(add: Compiled, double: Compiled) -> None:
    linked = link(PAIR, INT, lambda b, p: b.call(double, b.call(add, (p[1], b.call(double, p[0])))))
    assert run(linked, (3, 4)) == 20
    assert linked.type == FunctionType(PAIR, INT)


def test_structure_of_arguments_and_results() -> None:
    nested = struct(("a", INT), ("b", struct(FLOAT, struct())))
    swap = trace(lambda a, b: (b[0], (a, a)), nested, struct(FLOAT, struct(INT, INT)))
    linked = link(
        nested, struct(struct(INT, INT), FLOAT), lambda b, p: tuple(reversed(b.call(swap, p)))
    )
    assert run(linked, (1, (2.5, ()))) == ((1, 1), 2.5)


def test_without_parameter_and_with_the_empty_struct(double: Compiled) -> None:
    seven = trace(lambda: tf.constant(7), None, INT)
    linked = link(None, INT, lambda b, _: b.call(double, b.call(seven, None)))
    assert run(linked) == 14
    assert content(linked).parameter is None
    nothing = link(struct(), struct(), lambda b, p: p)
    assert run(nothing) == ()
    assert graph_of(nothing).node == []
    assert leaves(content(nothing).parameter) == []


def test_names_of_parameters() -> None:
    parameter = struct(("a", INT), ("b c", struct(INT, INT)), ("b_c", INTS))
    linked = link(parameter, struct(), lambda b, p: ())
    assert leaves(content(linked).parameter) == [
        "arg_a:0",
        "arg_b_c_None:0",
        "arg_b_c_None_1:0",
        "arg_b_c:0",
    ]


def test_a_parameter_that_nothing_uses_keeps_its_placeholder(double: Compiled) -> None:
    linked = link(struct(INT, FLOAT), INT, lambda b, p: b.call(double, p[0]))
    placeholders = [node for node in graph_of(linked).node if node.op == "Placeholder"]
    assert [node.name for node in placeholders] == ["arg_None", "arg_None_1"]
    assert run(linked, (4, 0.0)) == 8


def test_a_feed_that_is_fetched_gets_an_identity() -> None:
    linked = link(INT, PAIR, lambda b, p: (p, p))
    assert leaves(content(linked).result) == ["Identity:0", "Identity_1:0"]
    assert run(linked, 5) == (5, 5)


def test_a_section_that_returns_its_parameter_as_it_is() -> None:
    """Tensors that are parameter and result at once come back as they were given."""
    with tf.Graph().as_default() as graph:
        tf1.placeholder(tf.int32, [], name="x")
    through = section_of(graph.as_graph_def(), INT, ["x:0"], INT, ["x:0"])
    linked = link(INT, INT, lambda b, p: b.call(through, b.call(through, p)))
    assert run(linked, 5) == 5
    assert ops(linked) == ["Placeholder", "Identity"]


@pytest.mark.parametrize(
    "value",
    [
        3,
        -1.5,
        True,
        1 + 2j,
        b"bytes",
        np.float16(0.1),
        np.uint64(2**64 - 1),
        np.arange(6, dtype=np.int8).reshape(2, 3),
        np.array([[b"a", b""], [b"cd", b"\xff"]], dtype=object),
        np.zeros((0, 2), np.float64),
    ],
)
def test_constants(value: Any) -> None:
    array = to_array(value)
    linked = link(None, array.type, lambda b, _: b.constant(array))
    found = run(linked)
    expected = array.numpy()
    assert np.asarray(found).dtype == np.asarray(expected).dtype or isinstance(expected, bytes)
    np.testing.assert_array_equal(found, expected)


def test_bfloat16_constants() -> None:
    array = Array(DType.BFLOAT16, (2,), bytes([0x80, 0x3F, 0x20, 0x40]))
    linked = link(None, array.type, lambda b, _: b.constant(array))
    np.testing.assert_array_equal(run(linked).astype(np.float32), [1.0, 2.5])


def test_equal_constants_are_one_node(add: Compiled) -> None:
    linked = link(
        None, INT, lambda b, _: b.call(add, (b.constant(to_array(2)), b.constant(to_array(2))))
    )
    assert ops(linked).count("Const") == 1
    assert run(linked) == 4


def test_what_no_result_needs_is_left_out(add: Compiled, double: Compiled) -> None:
    def body(builder: GraphBuilder, argument: Any) -> Operand:
        builder.call(double, builder.call(add, argument))
        builder.constant(to_array(3))
        return argument[0]

    assert ops(link(PAIR, INT, body)) == ["Placeholder", "Placeholder", "Identity"]


def test_only_the_part_of_a_section_that_is_needed_is_kept() -> None:
    both = trace(lambda x: (x + 1, tf.square(x)), INT, PAIR)
    linked = link(INT, INT, lambda b, p: b.call(both, p)[1])
    assert sorted(ops(linked)) == ["Identity", "Identity", "Placeholder", "Square"]
    assert run(linked, 3) == 9


def test_a_section_gains_nothing_by_being_linked() -> None:
    ints = SequenceType(INT)
    reduction = trace(lambda d, z: d.reduce(z, lambda a, x: a + x * x), struct(ints, INT), INT)
    branches = trace(lambda x: tf.cond(x > 1, lambda: x * x, lambda: x + x), INT, INT)
    for section, parameter in ((reduction, struct(ints, INT)), (branches, INT)):
        before = graph_of(section)
        after = graph_of(link(parameter, INT, lambda b, p, s=section: b.call(s, p)))
        # The result is an Identity of its own.
        assert len(after.node) <= len(before.node) + 1
        assert len(after.library.function) == len(before.library.function)


def test_control_edges_are_kept() -> None:
    def guarded(x: Any) -> Any:
        check = tf1.debugging.Assert(x > 0, ["not positive:", x])
        with tf.control_dependencies([check]):
            return tf.identity(x)

    positive = trace(guarded, INT, INT)
    linked = link(INT, INT, lambda b, p: b.call(positive, p))
    assert run(linked, 3) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="not positive"):
        run(linked, -3)


def test_control_edges_from_a_parameter_lead_from_what_takes_its_place(double: Compiled) -> None:
    def after(x: Any, y: Any) -> Any:
        with tf.control_dependencies([x]):
            return tf.identity(y)

    later = trace(after, PAIR, INT)
    linked = link(PAIR, INT, lambda b, p: b.call(later, (b.call(double, p[0]), p[1])))
    nodes = {node.name: list(node.input) for node in graph_of(linked).node}
    waiting = [edge for edges in nodes.values() for edge in edges if edge.startswith("^")]
    assert waiting == ["^c1/Identity"]
    assert run(linked, (1, 2)) == 2


def test_several_control_edges_that_become_one() -> None:
    def after(x: Any, y: Any, z: Any) -> Any:
        with tf.control_dependencies([x, y]):
            return tf.identity(z)

    later = trace(after, struct(INT, INT, INT), INT)
    linked = link(INT, INT, lambda b, p: b.call(later, (b.call(later, (p, p, p)),) * 3))
    assert run(linked, 5) == 5


def test_colocation_follows_the_names() -> None:
    def beside(x: Any) -> Any:
        with tf1.colocate_with(x):
            y = tf.add(x, 1, name="y")
        z = tf.negative(y, name="z")
        with tf1.colocate_with(z):
            return tf.multiply(z, -2)

    section = trace(beside, INT, INT)
    linked = link(INT, INT, lambda b, p: b.call(section, b.call(section, p)))
    classes = {
        node.name: list(node.attr["_class"].list.s)
        for node in graph_of(linked).node
        if "_class" in node.attr
    }
    assert classes["c2/y"] == [b"loc:@c1/Identity"]
    assert classes["c2/Mul"] == [b"loc:@c2/z"]
    assert run(linked, 3) == 18


def test_colocation_with_what_is_left_out_is_left_out() -> None:
    def beside(x: Any) -> Any:
        gone = tf.constant(1, name="gone")
        with tf1.colocate_with(gone):
            return tf.add(x, x, name="kept")

    linked = link(INT, INT, lambda b, p: b.call(trace(beside, INT, INT), p))
    (node,) = [node for node in graph_of(linked).node if node.name == "c1/kept"]
    assert "_class" not in node.attr
    assert run(linked, 3) == 6


@pytest.mark.usefixtures("control_flow_v1")
def test_loops_and_branches_of_v1_keep_apart() -> None:
    """TensorFlow's own importer lets two copies of a loop run into each other."""
    until = trace(lambda x: tf1.while_loop(lambda i: i < 50, lambda i: i + x, [x]), INT, INT)
    branch = trace(lambda x: tf1.cond(x > 3, lambda: x * 2, lambda: x * x), INT, INT)
    linked = link(
        INT,
        struct(INT, INT, INT, INT),
        lambda b, p: (
            b.call(until, p),
            b.call(until, b.call(branch, p)),
            b.call(branch, b.call(until, p)),
            b.call(branch, b.call(branch, p)),
        ),
    )
    assert run(linked, 3) == (51, 54, 102, 18)
    entries = [n.attr["frame_name"].s for n in graph_of(linked).node if n.op == "Enter"]
    assert len(set(entries)) == 3


def test_functional_loops_and_branches() -> None:
    until = trace(lambda x: tf.while_loop(lambda i: i < 50, lambda i: [i + x], [x])[0], INT, INT)
    branch = trace(lambda x: tf.cond(x > 3, lambda: x * 2, lambda: x * x), INT, INT)
    linked = link(INT, PAIR, lambda b, p: (b.call(until, b.call(branch, p)), b.call(until, p)))
    assert run(linked, 3) == (54, 51)


def test_datasets_as_parameter_and_result() -> None:
    triple = trace(lambda d: d.map(lambda x: 3 * x).filter(lambda x: x > 3), INTS, INTS)
    total = trace(lambda d, z: d.reduce(z, lambda a, x: a + x), struct(INTS, INT), INT)

    def body(builder: GraphBuilder, argument: Any) -> Operand:
        tripled = builder.call(triple, argument[0])
        return (tripled, builder.call(total, (tripled, builder.call(total, argument))))

    linked = link(struct(INTS, INT), struct(INTS, INT), body)
    found, number = run(linked, (lambda: tf.data.Dataset.from_tensor_slices([1, 2, 3]), 10))
    assert found.tolist() == [6, 9]
    assert number == 31


def test_strings_and_partial_shapes() -> None:
    words = TensorType(DType.STRING, (None,))
    join = trace(lambda w: tf.strings.reduce_join(w, separator="-"), words, STRING)
    unknown = TensorType(DType.FLOAT32, None)
    flatten = trace(lambda x: tf.reshape(x, [-1]), unknown, TensorType(DType.FLOAT32, (None,)))
    linked = link(
        struct(words, unknown),
        struct(STRING, TensorType(DType.FLOAT32, (None,))),
        lambda b, p: (b.call(join, p[0]), b.call(flatten, p[1])),
    )
    joined, flat_values = run(linked, ([b"a", b"b"], [[1.0, 2.0], [3.0, 4.0]]))
    assert joined == b"a-b"
    assert flat_values.tolist() == [1, 2, 3, 4]
    shapes = {n.name: n.attr["shape"].shape for n in graph_of(linked).node if "shape" in n.attr}
    assert [dim.size for dim in shapes["arg_None"].dim] == [-1]
    assert shapes["arg_None_1"].unknown_rank


def test_a_less_known_shape_for_a_better_known_one() -> None:
    """The operand's static shape is lost, the parameter's is known; the program still runs."""
    vector = TensorType(DType.INT32, (3,))
    blur = trace(lambda x: tf1.placeholder_with_default(x, None), vector, vector)
    total = trace(lambda x: tf.add_n(tf.unstack(x)), vector, INT)
    linked = link(vector, INT, lambda b, p: b.call(total, b.call(blur, p)))
    assert run(linked, [1, 2, 3]) == 6


def test_seeded_random_numbers_are_drawn_once_for_each_call() -> None:
    draw = trace(lambda: tf.random.uniform([], seed=7), None, FLOAT)
    linked = link(None, struct(FLOAT, FLOAT), lambda b, _: (b.call(draw, None),) * 2)
    first, second = run(linked)
    assert first == second
    assert ops(linked).count("RandomUniform") == 1


def test_the_session_token_is_shared() -> None:
    with tf.Graph().as_default() as graph:
        token = tf1.placeholder(tf.string, [], name="session_token_tensor")
        tf1.placeholder(tf.int32, [], name="x")
        tf.identity(token, name="y")
    tokens = section_of(
        graph.as_graph_def(), INT, ["x:0"], STRING, ["y:0"], session_token="session_token_tensor:0"
    )
    linked = link(INT, struct(STRING, STRING), lambda b, p: (b.call(tokens, p), b.call(tokens, p)))
    assert content(linked).session_token_tensor_name == "session_token_tensor:0"
    assert ops(linked).count("Placeholder") == 2
    with tf.Graph().as_default():
        found = tf.import_graph_def(
            graph_of(linked),
            {"session_token_tensor:0": tf.constant("t"), "arg:0": tf.constant(1)},
            leaves(content(linked).result),
        )
        with tf1.Session() as session:
            assert session.run(found) == [b"t", b"t"]


def test_a_session_token_that_nothing_reads_is_left_out(double: Compiled) -> None:
    with tf.Graph().as_default() as graph:
        tf1.placeholder(tf.string, [], name="session_token_tensor")
        tf.identity(tf1.placeholder(tf.int32, [], name="x"), name="y")
    section = section_of(
        graph.as_graph_def(), INT, ["x:0"], INT, ["y:0"], session_token="session_token_tensor:0"
    )
    linked = link(INT, INT, lambda b, p: b.call(section, p))
    assert content(linked).session_token_tensor_name == ""
    assert ops(linked) == ["Placeholder", "Identity", "Identity"]


def test_versions_are_merged() -> None:
    sections = []
    for producer, consumer, bad in ((1300, 12, [3]), (1987, 5, [3, 2])):
        graph = proto.GraphDef()
        graph.node.add(name="x", op="Placeholder").attr["dtype"].type = 3
        graph.versions.producer = producer
        graph.versions.min_consumer = consumer
        graph.versions.bad_consumers.extend(bad)
        sections.append(section_of(graph, INT, ["x:0"], INT, ["x:0"]))
    linked = link(INT, INT, lambda b, p: b.call(sections[1], b.call(sections[0], p)))
    versions = graph_of(linked).versions
    assert (versions.producer, versions.min_consumer) == (1987, 12)
    assert list(versions.bad_consumers) == [2, 3]


def test_unknown_operations_are_copied_as_they_are() -> None:
    graph = proto.GraphDef()
    graph.node.add(name="x", op="Placeholder")
    graph.node.add(name="y", op="Vendor>Custom", input=["x:0", "^x"]).attr["k"].s = b"v"
    section = section_of(graph, INT, ["x:0"], PAIR, ["y:0", "y:3"])
    linked = link(INT, PAIR, lambda b, p: b.call(section, p))
    encoded = proto.GraphDef.FromString(content(linked).graph_def)
    (node,) = [node for node in encoded.node if node.op == "Vendor>Custom"]
    assert (node.name, list(node.input), node.attr["k"].s) == ("c1/y", ["arg", "^arg"], b"v")


def test_a_parameter_fed_into_the_middle_of_a_graph() -> None:
    """A feed may take the place of any tensor, not only of a placeholder."""
    with tf.Graph().as_default() as graph:
        parts = tf.split(tf.constant([1, 2, 3, 4]), 2, name="parts")
        tf.concat([parts[1], parts[0]], 0, name="y")
    two = TensorType(DType.INT32, (2,))
    four = TensorType(DType.INT32, (4,))
    section = section_of(graph.as_graph_def(), two, ["parts:0"], four, ["y:0"])
    linked = link(two, four, lambda b, p: b.call(section, p))
    assert run(linked, [8, 9]).tolist() == [3, 4, 8, 9]


def test_linked_sections_are_linked_again(add: Compiled) -> None:
    section = add
    for _ in range(4):
        inner = section
        section = link(PAIR, INT, lambda b, p, s=inner: b.call(s, (b.call(s, p), p[1])))
    assert run(section, (0, 1)) == 16


def test_the_same_input_gives_the_same_bytes(add: Compiled, double: Compiled) -> None:
    def body(builder: GraphBuilder, argument: Any) -> Operand:
        return builder.call(add, (builder.call(double, argument[0]), argument[1]))

    assert link(PAIR, INT, body).payload == link(PAIR, INT, body).payload


def test_bytes_are_those_that_protobuf_would_write(double: Compiled) -> None:
    until = trace(lambda x: tf.while_loop(lambda i: i < 9, lambda i: [i + x], [x])[0], INT, INT)
    linked = link(INT, INT, lambda b, p: b.call(double, b.call(until, p)))
    encoded = content(linked).graph_def
    again = proto.GraphDef.FromString(encoded).SerializeToString(deterministic=True)
    assert again == encoded


def test_growth_is_linear(add: Compiled) -> None:
    def size(count: int) -> int:
        def body(builder: GraphBuilder, argument: Any) -> Operand:
            value = argument[0]
            for _ in range(count):
                value = builder.call(add, (value, argument[1]))
            return value

        return len(link(PAIR, INT, body).payload)

    small, medium, large = (size(100 * n) for n in (1, 2, 4))
    assert large - medium < 2.1 * (medium - small)


@pytest.mark.slow
def test_ten_thousand_levels_of_structs() -> None:
    kind: Type = INT
    for _ in range(10_000):
        kind = StructType([kind])
    linked = link(kind, kind, lambda b, p: p)
    again = link(kind, kind, lambda b, p: b.call(linked, p))
    assert len(graph_of(again).node) == 3


def test_no_tensorflow_and_no_numpy() -> None:
    program = """
import sys
from tffc.linking import inspect, sequences
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.builder import GraphBuilder
from tffc.language.dtypes import DType
from tffc.language.types import SequenceType, TensorType

kind = TensorType(DType.INT32)
builder = GraphBuilder()
sequence = builder.parameter(SequenceType(kind))
total = sequences.sequence_sum(builder, sequence)
by = GraphArithmetic(builder)
section = builder.finish(by.plus(total, by.constant_ones(kind)), kind)
again = GraphBuilder()
section = again.finish(again.call(section, again.parameter(SequenceType(kind))), kind)
assert inspect.is_pure(section)
found = {"tensorflow", "numpy"} & set(sys.modules)
assert not found, found
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_classes_that_are_no_text_are_kept() -> None:
    section = trace(lambda x: tf.add(x, 1, name="y"), INT, INT)
    graph = graph_of(section)
    (node,) = [node for node in graph.node if node.name == "y"]
    node.attr["_class"].list.s.extend([b"\xe9", b"loc:@\xe9"])
    made = content(section)._replace(graph_def=graph.SerializeToString())
    odd = Compiled("tensorflow", write_tensorflow(made), section.type)
    linked = link(INT, INT, lambda b, p: b.call(odd, p))
    (node,) = [node for node in graph_of(linked).node if node.name == "c1/y"]
    assert node.attr["_class"].list.s == [b"\xe9"]
