"""Operators on sequences, run by TensorFlow, against tf.data itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.linking.sections import calling, graph_of, link, run, section_of, struct, tf, tf1, trace
from tffc.graphs import proto
from tffc.graphs.state import ANONYMOUS
from tffc.language.array import to_array
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import SequenceType, TensorType
from tffc.linking import sequences
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.builder import GraphBuilder
from tffc.linking.sequences import sequence_of_slices
from tffc.support.errors import GraphError, LanguageTypeError

INT = TensorType(DType.INT32)
FLOAT = TensorType(DType.FLOAT32)
INTS = SequenceType(INT)
PAIR = struct(INT, INT)


def numbers(*values: Any) -> Any:
    return lambda: tf.data.Dataset.from_tensor_slices(list(values))


@pytest.fixture(scope="module")
def add() -> Compiled:
    return trace(lambda x, y: x + y, PAIR, INT)


@pytest.fixture(scope="module")
def counter() -> Compiled:
    """Counts on from ten, with a variable and a table."""

    def count(x: Any) -> Any:
        v = tf.Variable(10, name="v")
        entries = tf.lookup.KeyValueTensorInitializer(tf.constant([0]), tf.constant([5]))
        table = tf.lookup.StaticHashTable(entries, 7)
        return v.assign_add(x) + table.lookup(x)

    return trace(count, INT, INT, initialize=True)


def test_map_by_a_section() -> None:
    double = trace(lambda x: 2.5 * tf.cast(x, tf.float32), INT, FLOAT)
    linked = link(
        INTS, SequenceType(FLOAT), lambda b, p: sequences.sequence_map(b, calling(double), p, FLOAT)
    )
    assert run(linked, numbers(1, 2, 3)).tolist() == [2.5, 5, 7.5]


def test_reduce_by_a_section(add: Compiled) -> None:
    linked = link(
        struct(INTS, INT),
        INT,
        lambda b, p: sequences.sequence_reduce(b, calling(add), p[0], p[1], INT),
    )
    assert run(linked, (numbers(1, 2, 3), 10)) == 16

    # One expression, given to several calls.
    def empty() -> Any:
        return tf.data.Dataset.from_tensor_slices(tf.zeros([0], tf.int32))

    assert run(linked, (empty, 10)) == 10


def test_sum_of_structs() -> None:
    element = struct(("a", TensorType(DType.FLOAT64, (2,))), ("b", struct(INT)))
    linked = link(SequenceType(element), element, lambda b, p: sequences.sequence_sum(b, p))
    rows = {"a": np.array([[1.0, 2.0], [3.0, 4.0]]), "b": (np.array([5, 6], np.int32),)}
    first, (second,) = run(linked, lambda: tf.data.Dataset.from_tensor_slices(rows))
    assert first.tolist() == [4, 6]
    assert second == 11


def test_functions_built_from_operands(add: Compiled) -> None:
    def body(builder: GraphBuilder, argument: Any) -> Any:
        sequence, offset = argument

        def shifted(inner: Any, element: Any) -> Any:
            return inner.call(add, (element, inner.capture(offset)))

        mapped = sequences.sequence_map(builder, shifted, sequence, INT)

        def weigh(inner: Any, pair: Any) -> Any:
            total, element = pair
            product = GraphArithmetic(inner).multiply(element, inner.capture(offset))
            return GraphArithmetic(inner).plus(total, product)

        return sequences.sequence_reduce(builder, weigh, mapped, offset, INT)

    linked = link(struct(INTS, INT), INT, body)
    assert run(linked, (numbers(1, 2, 3), 10)) == 10 + 10 * (11 + 12 + 13)


def test_captured_structs_and_constants_inside() -> None:
    def body(builder: GraphBuilder, argument: Any) -> Any:
        sequence, rest = argument

        def function(inner: Any, element: Any) -> Any:
            (one, (two,)) = inner.capture(rest)
            three = inner.constant(to_array(3))
            return (GraphArithmetic(inner).multiply(element, three), (two, one, element))

        return sequences.sequence_map(builder, function, sequence, struct(INT, struct(*[INT] * 3)))

    result = struct(INT, struct(INT, INT, INT))
    linked = link(struct(INTS, struct(INT, struct(INT))), SequenceType(result), body)
    first, rest = run(linked, (numbers(1, 2), (7, (8,))))
    assert first.tolist() == [3, 6]
    assert [part.tolist() for part in rest] == [[8, 8], [7, 7], [1, 2]]


def test_names_are_taken_in_alphabetical_order() -> None:
    """As TensorFlow flattens the elements of a dataset."""
    element = struct(("b", INT), ("a", struct(("z", FLOAT), ("y", INT))))

    def body(builder: GraphBuilder, argument: Any) -> Any:
        def swap(_: Any, value: Any) -> Any:
            b, (z, y) = value
            return (y, (z, b))

        return sequences.sequence_map(builder, swap, argument, element)

    linked = link(SequenceType(element), SequenceType(element), body)
    rows = {"b": [1, 2], "a": {"z": [0.5, 1.5], "y": [3, 4]}}
    b, (z, y) = named(
        run(linked, lambda: tf.data.Dataset.from_tensor_slices(rows)), ("b", ("a", ("z", "y")))
    )
    assert (b.tolist(), z.tolist(), y.tolist()) == ([3, 4], [0.5, 1.5], [1, 2])


def named(value: Any, _: Any) -> Any:
    """The nested dictionary that TensorFlow returns, as tuples."""
    return value["b"], (value["a"]["z"], value["a"]["y"])


def test_state_in_functions_is_new_for_each_element(counter: Compiled) -> None:
    linked = link(
        INTS,
        INTS,
        lambda b, p: sequences.sequence_map(b, calling(counter), p, INT),
    )
    assert run(linked, numbers(0, 1, 2)).tolist() == [15, 18, 19]


def test_state_in_functions_is_apart_from_state_around_them(counter: Compiled) -> None:
    def body(builder: GraphBuilder, argument: Any) -> Any:
        sequence, number = argument

        def count(inner: Any, pair: Any) -> Any:
            return inner.call(counter, inner.call(counter, pair[1]))

        return (
            builder.call(counter, number),
            sequences.sequence_reduce(builder, count, sequence, number, INT),
            sequences.sequence_reduce(builder, count, sequence, number, INT),
            builder.call(counter, number),
        )

    linked = link(struct(INTS, INT), struct(INT, INT, INT, INT), body)
    assert run(linked, (numbers(1, 2), 3)) == (20, 36, 36, 20)
    inside = [n for f in graph_of(linked).library.function for n in f.node_def]
    names = {n.attr["shared_name"].s for n in inside if n.op == "VarHandleOp"}
    assert names == {ANONYMOUS}
    assert "HashTableV2" not in [n.op for n in inside]


def test_a_mapped_sequence_read_twice_at_a_time(counter: Compiled) -> None:
    interleave = trace(lambda d: tf.data.Dataset.zip((d, d)), INTS, SequenceType(PAIR))
    linked = link(
        INTS,
        SequenceType(PAIR),
        lambda b, p: b.call(interleave, sequences.sequence_map(b, calling(counter), p, INT)),
    )
    first, second = run(linked, lambda: tf.data.Dataset.range(500, output_type=tf.int32))
    assert first.tolist() == second.tolist() == [15, *range(18, 517)]


def test_tables_that_grow_are_new_for_each_element() -> None:
    def insert(x: Any) -> Any:
        table = tf.lookup.experimental.MutableHashTable(tf.int32, tf.int32, -1)
        with tf.control_dependencies([table.insert(x, x)]):
            return tf.cast(table.size(), tf.int32)

    section = trace(insert, INT, INT)
    linked = link(INTS, INTS, lambda b, p: sequences.sequence_map(b, calling(section), p, INT))
    assert run(linked, numbers(1, 2, 3)).tolist() == [1, 1, 1]


def test_equal_functions_are_one(add: Compiled) -> None:
    linked = link(
        struct(INTS, INT),
        PAIR,
        lambda b, p: (
            sequences.sequence_reduce(b, calling(add), p[0], p[1], INT),
            sequences.sequence_reduce(b, calling(add), p[0], b.constant(to_array(1)), INT),
        ),
    )
    assert len(graph_of(linked).library.function) == 1
    assert run(linked, (numbers(1, 2), 0)) == (3, 4)


def test_sequences_of_functions_in_sequences_of_functions() -> None:
    """A reduction for each element, which uses the element and what is around both."""

    def body(builder: GraphBuilder, argument: Any) -> Any:
        outer_sequence, offset = argument

        def outer(middle: Any, element: Any) -> Any:
            around = middle.capture((offset, outer_sequence))

            def inner(function: Any, pair: Any) -> Any:
                total, number = pair
                x, y = function.capture((element, around[0]))
                product = GraphArithmetic(function).multiply(number, x)
                return GraphArithmetic(function).plus(
                    GraphArithmetic(function).plus(total, product), y
                )

            return sequences.sequence_reduce(middle, inner, around[1], around[0], INT)

        return sequences.sequence_map(builder, outer, outer_sequence, INT)

    linked = link(struct(INTS, INT), INTS, body)
    found = run(linked, (numbers(1, 2, 3), 100))
    assert found.tolist() == [100 + x * (1 + 2 + 3) + 3 * 100 for x in (1, 2, 3)]


def test_operations_of_several_outputs() -> None:
    four = TensorType(DType.INT32, (4,))

    def shuffle(x: Any) -> Any:
        left, right = tf.split(x, 2)
        values, places = tf.math.top_k(tf.concat([right, left], 0), 2)
        return values, places, tf.unstack(x)[3]

    two = TensorType(DType.INT32, (2,))
    section = trace(shuffle, four, struct(two, two, INT))
    linked = link(
        SequenceType(four),
        SequenceType(struct(two, two, INT)),
        lambda b, p: sequences.sequence_map(b, calling(section), p, struct(two, two, INT)),
    )
    values, places, last = run(linked, numbers([1, 2, 3, 4], [8, 7, 6, 5]))
    assert values.tolist() == [[4, 3], [8, 7]]
    assert places.tolist() == [[1, 0], [2, 3]]
    assert last.tolist() == [4, 5]


def test_functions_that_call_functions_and_loop() -> None:
    @tf.function
    def power(x: Any) -> Any:
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, 1))[1]

    section = trace(power, INT, INT)
    linked = link(INTS, INTS, lambda b, p: sequences.sequence_map(b, calling(section), p, INT))
    assert run(linked, numbers(1, 2, 3)).tolist() == [1, 8, 27]


def test_loops_of_v1_in_functions() -> None:
    tf1.disable_control_flow_v2()
    try:
        until = trace(lambda x: tf1.while_loop(lambda i: i < 50, lambda i: i + x, [x]), INT, INT)
    finally:
        tf1.enable_control_flow_v2()

    def body(builder: GraphBuilder, argument: Any) -> Any:
        def twice(inner: Any, element: Any) -> Any:
            first = inner.call(until, element)
            return GraphArithmetic(inner).plus(first, inner.call(until, element))

        return sequences.sequence_map(builder, twice, argument, INT)

    assert run(link(INTS, INTS, body), numbers(20, 30)).tolist() == [120, 120]


def test_sections_of_functions_are_linked_again(add: Compiled, counter: Compiled) -> None:
    once = link(
        struct(INTS, INT),
        INT,
        lambda b, p: sequences.sequence_reduce(
            b, calling(add), sequences.sequence_map(b, calling(counter), p[0], INT), p[1], INT
        ),
    )
    twice = link(struct(INTS, INT), INT, lambda b, p: b.call(once, (p[0], b.call(once, p))))
    assert run(twice, (numbers(0, 1), 100)) == 100 + 2 * (15 + 18)


def test_strings_and_growing_shapes() -> None:
    words = TensorType(DType.STRING, (None,))
    string = TensorType(DType.STRING)
    join = trace(lambda a, x: tf.concat([a, [x]], 0), struct(words, string), words)

    def body(builder: GraphBuilder, argument: Any) -> Any:
        start = builder.constant(to_array_of_strings())
        return sequences.sequence_reduce(builder, calling(join), argument, start, words)

    linked = link(SequenceType(string), words, body)
    assert run(linked, numbers("a", "b")).tolist() == [b"start", b"a", b"b"]


def to_array_of_strings() -> Any:
    from tffc.language.array import Array

    return Array(DType.STRING, (1,), (b"start",))


def test_sequences_as_accumulators() -> None:
    append = trace(
        lambda d, x: d.concatenate(tf.data.Dataset.from_tensors(x)), struct(INTS, INT), INTS
    )

    def body(builder: GraphBuilder, argument: Any) -> Any:
        first, second = argument
        return sequences.sequence_reduce(builder, calling(append), first, second, INTS)

    linked = link(struct(INTS, INTS), INTS, body)
    assert run(linked, (numbers(1, 2), numbers(8, 9))).tolist() == [8, 9, 1, 2]


def test_the_session_token_in_functions() -> None:
    with tf.Graph().as_default() as graph:
        token = tf1.placeholder(tf.string, [], name="session_token_tensor")
        x = tf1.placeholder(tf.int32, [], name="x")
        tf.add(x, tf.strings.length(token), name="y")
    section = section_of(
        graph.as_graph_def(), INT, ["x:0"], INT, ["y:0"], session_token="session_token_tensor:0"
    )
    linked = link(INTS, INTS, lambda b, p: sequences.sequence_map(b, calling(section), p, INT))
    (call,) = [node for node in graph_of(linked).node if node.op == "MapDataset"]
    assert list(call.input) == ["arg", "session_token_tensor"]


def test_a_reduction_to_nothing(add: Compiled) -> None:
    linked = link(
        INTS,
        struct(),
        lambda b, p: sequences.sequence_reduce(b, lambda f, a: (), p, (), struct()),
    )
    assert run(linked, numbers(1)) == ()


def test_only_what_is_needed_is_captured() -> None:
    def body(builder: GraphBuilder, argument: Any) -> Any:
        def first(inner: Any, element: Any) -> Any:
            captured = inner.capture(argument[1])
            return GraphArithmetic(inner).plus(element, captured[0])

        return sequences.sequence_map(builder, first, argument[0], INT)

    linked = link(struct(INTS, PAIR), INTS, body)
    (call,) = [node for node in graph_of(linked).node if node.op == "MapDataset"]
    assert list(call.input) == ["arg_None", "arg_None_None"]
    assert run(linked, (numbers(1, 2), (10, 20))).tolist() == [11, 12]


def test_slices() -> None:
    rows = TensorType(DType.INT32, (None, 2))
    element = TensorType(DType.INT32, (2,))
    linked = link(rows, element, lambda b, p: sequences.sequence_sum(b, sequence_of_slices(b, p)))
    assert run(linked, [[1, 2], [3, 4], [5, 6]]).tolist() == [9, 12]


def refused(body: Any, parameter: Any = INTS) -> GraphError:
    builder = GraphBuilder()
    with pytest.raises(GraphError) as caught:
        body(builder, builder.parameter(parameter))
    return caught.value


def test_outputs_that_are_not_known() -> None:
    graph = proto.GraphDef()
    graph.node.add(name="x", op="Placeholder").attr["dtype"].type = 3
    graph.node.add(name="y", op="Custom", input=["x"])
    section = section_of(graph, INT, ["x:0"], INT, ["y:0"])
    error = refused(lambda b, p: sequences.sequence_map(b, calling(section), p, INT))
    assert error.code == "E318"
    assert error.message == (
        "the outputs of the operation Custom of node 'c1/y' are not known, so that it cannot be "
        "part of a function"
    )


def test_a_map_to_nothing() -> None:
    error = refused(lambda b, p: sequences.sequence_map(b, lambda f, x: (), p, struct()))
    assert error.code == "E319"
    assert error.help == "put at least one tensor into the elements"
    assert error.message == "there are no sequences of `<>`, which has no tensors"


def test_elements_with_a_name_for_some_parts() -> None:
    element = struct(("a", INT), INT)
    error = refused(
        lambda b, p: sequences.sequence_map(b, lambda f, x: x, p, element), SequenceType(element)
    )
    assert error.code == "E319"
    assert error.help == "name all elements of that part, or none"
    assert error.message == (
        "there are no sequences of `<a=int32,int32>` in TensorFlow, for a part of it has names for "
        "some of its elements and none for others"
    )


def test_results_of_another_type(add: Compiled) -> None:
    error = refused(lambda b, p: sequences.sequence_map(b, lambda f, x: x, p, FLOAT))
    assert error.code == "E301"
    assert error.message == "the mapped element has a `int32` where a `float32` is expected"


def test_a_zero_of_another_type(add: Compiled) -> None:
    error = refused(
        lambda b, p: sequences.sequence_reduce(b, calling(add), p, b.constant(to_array(1.0)), INT)
    )
    assert error.message == ("the zero of a reduction has a `float32` where a `int32` is expected")


def test_a_sum_of_no_definite_shape() -> None:
    error = refused(sequences.sequence_sum, SequenceType(TensorType(DType.INT32, (None,))))
    assert error.code == "E316"


def test_a_sum_of_strings() -> None:
    builder = GraphBuilder()
    sequence = builder.parameter(SequenceType(TensorType(DType.STRING)))
    with pytest.raises(LanguageTypeError):
        sequences.sequence_sum(builder, sequence)


def test_components_are_sorted_by_name_at_every_level() -> None:
    element = struct(
        ("zip", INT), ("age", INT), ("more", struct(("y", INT), ("x", struct(INT, INT))))
    )
    leaves = ["zip", "age", "y", "x0", "x1"]
    assert sequences.in_component_order(element, leaves) == ["age", "x0", "x1", "y", "zip"]


def test_columns_in_no_order_keep_their_names() -> None:
    """All columns are of one type, so that only their order tells them apart."""
    row = struct(("zip", INT), ("age", INT), ("sex", INT))
    use = trace(lambda z, a, s: 100 * z + 10 * a + s, struct(INT, INT, INT), INT)

    def shifted(row: Any) -> Any:
        return row[1], row[2], row[0]

    def body(builder: GraphBuilder, rows: Any) -> Any:
        mapped = sequences.sequence_map(builder, lambda inner, r: shifted(r), rows, row)

        def add(inner: Any, pair: Any) -> Any:
            return inner.call(use, pair[1])

        return sequences.sequence_reduce(builder, add, mapped, builder.constant(to_array(0)), INT)

    linked = link(SequenceType(row), INT, body)
    rows = {"zip": [7], "age": [2], "sex": [1]}
    assert run(linked, lambda: tf.data.Dataset.from_tensor_slices(rows)) == 217
