"""What is said of sections without running them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.linking.sections import calling, link, section_of, struct, tf, tf1, trace
from tffc.graphs import proto
from tffc.graphs.operations.effects import Effect
from tffc.graphs.proto.encoding import content_field, string_field
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, SequenceType, TensorType
from tffc.language.wire import TensorBinding, XlaSection, write_xla
from tffc.linking import sequences
from tffc.linking.inspect import inspect, is_pure, result_dependencies
from tffc.support.errors import GraphError

INT = TensorType(DType.INT32)
FLOAT = TensorType(DType.FLOAT32)
STRING = TensorType(DType.STRING)
INTS = SequenceType(INT)
PAIR = struct(INT, INT)


def effects(function: Any, parameter: Any = INT, result: Any = INT, **options: Any) -> list[Effect]:
    """The effects of a traced function, but for state of its own."""
    found = inspect(trace(function, parameter, result, **options)).effects.values()
    return sorted({e for e in found if e is not Effect.OWN_STATE}, key=lambda effect: effect.name)


def test_operations_are_counted() -> None:
    section = trace(lambda x: x * x + 1, INT, INT)
    facts = inspect(section)
    assert facts.operations == {"AddV2": 1, "Const": 1, "Identity": 1, "Mul": 1}
    assert facts.effects == {}
    assert is_pure(section)


def test_operations_in_functions_are_counted() -> None:
    @tf.function
    def square(x: Any) -> Any:
        return x * x

    facts = inspect(trace(lambda x: square(x) + square(x), INT, INT))
    assert facts.operations["Mul"] == 1
    assert facts.operations["PartitionedCall"] == 2


def test_what_is_not_needed_is_not_counted() -> None:
    def unused(x: Any) -> Any:
        tf1.Print(x, [x])
        tf.random.uniform([])
        return x

    assert inspect(trace(unused, INT, INT)).operations == {"Identity": 1}


def test_variables_and_tables_are_the_sections_own() -> None:
    def count(x: Any) -> Any:
        v = tf.Variable(10)
        entries = tf.lookup.KeyValueTensorInitializer(tf.constant([1]), tf.constant([2]))
        return v.assign_add(x) + tf.lookup.StaticHashTable(entries, 0).lookup(x)

    section = trace(count, INT, INT, initialize=True)
    facts = inspect(section)
    assert set(facts.effects) >= {"VarHandleOp", "AssignAddVariableOp", "HashTableV2"}
    assert set(facts.effects.values()) == {Effect.OWN_STATE}
    assert is_pure(section)
    assert is_pure(link(INT, INT, lambda b, p: b.call(section, b.call(section, p))))
    assert is_pure(
        link(INTS, INTS, lambda b, p: sequences.sequence_map(b, calling(section), p, INT))
    )


def test_datasets_and_loops_are_pure() -> None:
    def total(dataset: Any, x: Any) -> Any:
        mapped = dataset.map(lambda e: e * x).batch(2).prefetch(1)
        return mapped.reduce(0, lambda a, e: a + tf.reduce_sum(e))

    assert effects(total, struct(INTS, INT)) == []

    # One expression, given to several calls.
    def loop(x: Any) -> Any:
        return tf.while_loop(lambda i: i < 9, lambda i: [i + x], [x])[0]

    assert effects(loop) == []
    assert effects(lambda x: tf.cond(x > 0, lambda: x, lambda: -x)) == []


def test_random_numbers() -> None:
    draw = tf.random.uniform
    assert effects(lambda: draw([]), None, FLOAT) == [Effect.RANDOM]
    assert effects(lambda: draw([], seed=7), None, FLOAT) == []
    assert effects(lambda: tf.random.normal([]), None, FLOAT) == [Effect.RANDOM]
    assert effects(lambda x: tf.random.shuffle([x, x])[0]) == [Effect.RANDOM]

    # One expression, given to several calls.
    def stateless() -> Any:
        return tf.random.stateless_uniform([], [1, 2])

    assert effects(stateless, None, FLOAT) == []


def test_random_numbers_in_functions() -> None:
    def noisy(dataset: Any) -> Any:
        return dataset.map(lambda e: e + tf.random.uniform([], 0, 9, tf.int32))

    assert effects(noisy, INTS, INTS) == [Effect.RANDOM]


def test_shuffled_datasets() -> None:
    assert effects(lambda d: d.shuffle(10), INTS, INTS) == [Effect.RANDOM]
    assert effects(lambda d: d.shuffle(10, seed=3), INTS, INTS) == []


def test_cached_datasets() -> None:
    assert effects(lambda d: d.cache(), INTS, INTS) == []
    assert effects(lambda d: d.cache("folder/cache"), INTS, INTS) == [Effect.FILES]


def test_datasets_in_no_fixed_order() -> None:
    def unordered(dataset: Any) -> Any:
        return dataset.map(lambda e: e + 1, num_parallel_calls=2, deterministic=False)

    assert effects(unordered, INTS, INTS) == [Effect.ORDER]


def test_clock_files_output_and_python() -> None:
    assert effects(tf.timestamp, None, TensorType(DType.FLOAT64)) == [Effect.CLOCK]
    assert effects(lambda: tf.io.read_file("name"), None, STRING) == [Effect.FILES]
    assert effects(lambda x: tf1.Print(x, [x])) == [Effect.OUTPUT]

    # One expression, given to several calls.
    def called(x: Any) -> Any:
        return tf.numpy_function(lambda y: y, [x], tf.int32)

    assert effects(called) == [Effect.PYTHON]


def test_generators_of_random_numbers() -> None:
    def seeded() -> Any:
        return tf.random.Generator.from_seed(3).uniform([])

    def unseeded() -> Any:
        return tf.random.Generator.from_non_deterministic_state().uniform([])

    assert effects(seeded, None, FLOAT, initialize=True) == []
    assert effects(unseeded, None, FLOAT, initialize=True) == [Effect.RANDOM]


def test_unknown_operations_are_not_pure() -> None:
    graph = proto.GraphDef()
    graph.node.add(name="x", op="Placeholder")
    graph.node.add(name="y", op="Custom", input=["x"])
    section = section_of(graph, INT, ["x:0"], INT, ["y:0"])
    assert inspect(section).effects == {"Custom": Effect.OTHER}
    assert not is_pure(section)


def test_malformed_sections_are_refused() -> None:
    graph = proto.GraphDef()
    with pytest.raises(GraphError):
        is_pure(section_of(graph, None, [], INT, ["y:0"]))


def xla(*opcodes: str) -> Compiled:
    instructions = b"".join(content_field(2, string_field(2, opcode)) for opcode in opcodes)
    module = content_field(3, instructions)
    payload = write_xla(XlaSection(module, TensorBinding(0), TensorBinding(0)))
    return Compiled("xla", payload, FunctionType(INT, INT))


def test_xla() -> None:
    assert inspect(xla("parameter", "add", "add")).operations == {"add": 2, "parameter": 1}
    assert is_pure(xla("parameter", "add"))
    assert not is_pure(xla("parameter", "rng"))
    assert result_dependencies(xla("parameter")) == [{0}]


def test_result_dependencies() -> None:
    section = trace(lambda x, y, z: (x + y, z, y * 2, tf.constant(1)), struct(*[INT] * 3), PAIR4)
    assert result_dependencies(section) == [{0, 1}, {2}, {1}, set()]
    swapped = link(struct(*[INT] * 3), PAIR4, lambda b, p: b.call(section, (p[2], p[0], p[1])))
    assert result_dependencies(swapped) == [{0, 2}, {1}, {0}, set()]


PAIR4 = struct(INT, INT, INT, INT)


def test_result_dependencies_through_control_edges_and_functions() -> None:
    @tf.function
    def first(x: Any, y: Any) -> Any:
        return x

    def body(x: Any, y: Any, z: Any) -> Any:
        with tf.control_dependencies([tf1.debugging.Assert(z > 0, [z])]):
            return tf.identity(x), first(x, y), y, y

    section = trace(body, struct(*[INT] * 3), PAIR4)
    assert result_dependencies(section) == [{0, 2}, {0, 1, 2}, {1}, {1}]


def test_result_dependencies_through_loops() -> None:
    tf1.disable_control_flow_v2()
    try:
        section = trace(
            lambda x, y: (
                *tf1.while_loop(lambda i, j: i < 50, lambda i, j: (i + j, j), [x, y]),
                y,
                y,
            ),
            PAIR,
            PAIR4,
        )
    finally:
        tf1.enable_control_flow_v2()
    assert result_dependencies(section) == [{0, 1}, {0, 1}, {1}, {1}]


def test_every_result_depends_on_the_initialization() -> None:
    def body(x: Any, y: Any) -> Any:
        v = tf.Variable(x)
        return v.read_value(), y + 1

    section = trace(body, PAIR, PAIR, initialize=True)
    assert result_dependencies(section) == [{0}, {0, 1}]


@pytest.mark.skipif("TFFC_CORPUS" not in os.environ, reason="needs the corpus in TFFC_CORPUS")
def test_no_operation_of_the_corpus_is_unknown() -> None:
    from tests.linking.corpus import sections

    found = {e for s in sections() for e in inspect(s).effects.values()}
    assert Effect.OTHER not in found
