"""Compiled TensorFlow sections run on values: state, sequences, bindings, failures."""

from __future__ import annotations

import collections
import importlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.language import Compiled, FunctionType
from tffc.language.wire import (
    SectionBinding,
    StructBinding,
    TensorBinding,
    TensorFlowSection,
    write_tensorflow,
)
from tffc.runtime.frameworks.sections import run_section
from tffc.runtime.frameworks.tensorflow.graph_content import read_graph
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.runtime.frameworks.tensorflow.runner import SequenceOutput
from tffc.runtime.frameworks.tensorflow.session_state import remembers
from tffc.support.errors import ExecutionError

tf = load_tensorflow()
tfc = tff.tf_computation
INT, FLOAT, TEXT = np.int32, np.float32, np.str_
Sequence = tff.SequenceType


def section(
    build: Callable[[], Any],
    type: FunctionType,
    parameter: SectionBinding | None,
    result: SectionBinding,
    initialize_op: str = "",
) -> Compiled:
    """A section whose graph is what `build` adds to the default graph."""
    with tf.Graph().as_default() as graph:
        build()
    content = TensorFlowSection(
        graph.as_graph_def().SerializeToString(), parameter, result, initialize_op
    )
    return Compiled("tensorflow", write_tensorflow(content), type)


def placeholder(name: str, dtype: Any = tf.int32) -> Any:
    return tf.compat.v1.placeholder(dtype, [], name)


X = TensorBinding("x:0")
INT_TO_INT = FunctionType(INT, INT)


def test_a_parameter_that_is_the_result() -> None:
    passed = section(lambda: placeholder("x"), INT_TO_INT, X, X)
    assert run_section(passed, INT(3)) == 3


def test_a_tensor_that_is_the_result_twice() -> None:
    def build() -> None:
        tf.identity(placeholder("x") + 1, "y")

    y = TensorBinding("y:0")
    twice = section(build, FunctionType(INT, [INT, INT, INT]), X, StructBinding((y, X, y)))
    assert run_section(twice, INT(3)) == (4, 3, 4)


def test_a_result_that_is_no_output_of_an_identity() -> None:
    def build() -> None:
        tf.split(tf.constant([1, 2]), 2, name="parts")

    second = section(build, FunctionType(None, (INT, [1])), None, TensorBinding("parts:1"))
    assert run_section(second, None).tolist() == [2]


def test_an_input_that_is_no_placeholder() -> None:
    def build() -> None:
        tf.identity(tf.constant(1, name="x") + 1, "y")

    assert run_section(section(build, INT_TO_INT, X, TensorBinding("y:0")), INT(5)) == 6


def test_nothing_to_give() -> None:
    assert (
        run_section(section(lambda: None, FunctionType(None, ()), None, StructBinding(())), None)
        == ()
    )


def elements(sequence: Any) -> list[Any]:
    return list(sequence.as_numpy_iterator())


def run(computation: Any, *arguments: Any) -> list[Any]:
    return [computation(argument) for argument in arguments]


def test_variables_start_anew() -> None:
    def count(x: Any) -> Any:
        counter = tf.Variable(x, name="v")
        counter.assign_add(x)
        return counter.read_value()

    assert run(tfc(count, INT), 1, 2, 1) == [2, 4, 2]


def test_sections_with_variables_of_one_name() -> None:
    integer = tfc(lambda: tf.Variable(1, name="v") + 1)
    real = tfc(lambda: tf.Variable([2.5], name="v") + 1)
    assert integer() == 2
    assert real().tolist() == [3.5]
    assert integer() == 2


def lookup(keys: Any, word: Any) -> Any:
    entries = tf.lookup.KeyValueTensorInitializer(keys, [1, 2])
    return tf.lookup.StaticHashTable(entries, -1).lookup(word)


def test_tables() -> None:
    assert run(tfc(lambda word: lookup(["a", "b"], word), TEXT), "a", "b", "c") == [1, 2, -1]
    filled = tfc(lookup, (TEXT, [2]), TEXT)
    assert filled(["a", "b"], "b") == 2
    assert filled(["b", "c"], "b") == 1


def insert(word: Any) -> Any:
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int32, -1)
    table.insert(word, table.lookup(word) + 5)
    return table.lookup(word), table.size()


def test_tables_that_change_start_anew() -> None:
    assert run(tfc(insert, TEXT), "a", "a", "b") == [(4, 1)] * 3


def test_random_numbers() -> None:
    unseeded = tfc(lambda: tf.random.uniform([4]))
    assert unseeded().tolist() != unseeded().tolist()
    seeded = tfc(lambda: tf.random.uniform([4], seed=1))
    assert seeded().tolist() == seeded().tolist()
    generator = tfc(lambda: tf.random.Generator.from_seed(1).normal([4]))
    assert generator().tolist() == generator().tolist()
    shuffled = tfc(lambda data: data.shuffle(9, seed=1), Sequence(INT))
    assert elements(shuffled(list(range(9)))) == elements(shuffled(list(range(9))))


REMEMBERS: dict[str, tuple[Callable[[], Any], bool]] = {
    "nothing": (lambda: 1, False),
    "variable": (lambda: tf.Variable(1), False),
    "random": (lambda: tf.random.uniform([]), False),
    "seeded": (lambda: tf.random.uniform([], seed=1), True),
    "stateless": (lambda: tf.random.stateless_uniform([], [1, 2]), False),
    "table": (lambda: lookup(["a", "b"], tf.constant("a")), False),
    "mutable table": (lambda: insert("a"), True),
    "queue in a function": (
        tf.function(lambda: tf.queue.FIFOQueue(1, tf.int32, shared_name="q").size()),
        True,
    ),
}


@pytest.mark.parametrize("name", REMEMBERS)
def test_what_a_session_would_remember(name: str) -> None:
    function, expected = REMEMBERS[name]
    assert remembers(read_graph(tfc(function).node)) is expected


def test_a_variable_that_nothing_initialises() -> None:
    def build() -> None:
        variable = tf.Variable(0, name="v")
        with tf.control_dependencies([variable.assign(placeholder("x"))]):
            tf.identity(variable.read_value(), "y")

    assigned = section(build, INT_TO_INT, X, TensorBinding("y:0"))
    assert remembers(read_graph(assigned))
    assert [run_section(assigned, INT(value)) for value in (1, 2)] == [1, 2]


@pytest.mark.parametrize("waits", [True, False])
def test_a_variable_that_the_graph_assigns_before_it_is_used(waits: bool) -> None:
    def build() -> None:
        variable = tf.raw_ops.VarHandleOp(dtype=tf.int32, shape=[], shared_name="v")
        assign = tf.raw_ops.AssignVariableOp(resource=variable, value=placeholder("x"))
        one = tf.constant(1)
        with tf.control_dependencies([assign] if waits else []):
            add = tf.raw_ops.AssignAddVariableOp(resource=variable, value=one)
        with tf.control_dependencies([assign, add]):
            tf.identity(tf.raw_ops.ReadVariableOp(resource=variable, dtype=tf.int32), "y")

    assigned = section(build, INT_TO_INT, X, TensorBinding("y:0"))
    assert remembers(read_graph(assigned)) is not waits
    if waits:
        assert [run_section(assigned, INT(value)) for value in (1, 2, 1)] == [2, 3, 2]


def test_threads() -> None:
    def count(x: Any) -> Any:
        counter = tf.Variable(0, name="v")
        for _ in range(20):
            counter.assign_add(x)
        return counter.read_value()

    computation = tfc(count, INT)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda x: found.append((x, computation(x))), args=(x,))
        for x in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(x, 20 * x) for x in range(8)]


ELEMENT = collections.OrderedDict(b=(INT, [None]), a=TEXT)


def test_sequences_of_structs() -> None:
    def more(data: Any) -> Any:
        return data.map(lambda e: collections.OrderedDict(b=e["b"] + 1, a=e["a"])), 3

    computation = tfc(more, Sequence(ELEMENT))
    given = [{"b": [1, 2], "a": "x"}, {"b": [3, 4], "a": b"y\0"}, {"b": [5], "a": "z"}]
    data, number = computation(given)
    assert number == 3
    assert [(e["b"].tolist(), e["a"]) for e in elements(data)] == [
        ([2, 3], b"x"),
        ([4, 5], b"y\0"),
        ([6], b"z"),
    ]
    data, number = computation([])
    assert (elements(data), number) == ([], 3)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[1.0], [2.0]],
        [[1.0], [2.0, 3.0]],
        [[1.0, 2.0], [3.0], [4.0, 5.0]],
        [[], [1.0]],
    ],
    ids=str,
)
def test_sequences_of_tensors_of_several_shapes(rows: list[Any]) -> None:
    computation = tfc(lambda data: data, Sequence((FLOAT, [None])))
    assert [row.tolist() for row in elements(computation(rows))] == rows


def test_sequences_of_tensors_of_unknown_rank() -> None:
    computation = tfc(lambda data: data, Sequence((INT, None)))
    scalar, vector, matrix = elements(computation([1, [2, 3], [[4]]]))
    assert (scalar, vector.tolist(), matrix.tolist()) == (1, [2, 3], [[4]])


def test_a_smaller_last_batch() -> None:
    computation = tfc(lambda data: data.batch(2), Sequence(INT))
    assert [batch.tolist() for batch in elements(computation([1, 2, 3]))] == [[1, 2], [3]]


DTYPES = [
    tf.bool, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64,
    tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64, tf.complex128,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_element_types(dtype: Any) -> None:
    computation = tfc(lambda x, data: (x, data), dtype, Sequence((dtype, [None])))
    value = tf.cast(tf.constant([0, 1]), dtype)
    scalar, sequence = computation(value[1], [value, value[:1]])
    first, second = elements(sequence)
    assert scalar.dtype == first.dtype == second.dtype == dtype.as_numpy_dtype
    assert scalar == 1
    assert first.tolist() == [0, 1]
    assert second.tolist() == [0]


def test_strings() -> None:
    computation = tfc(lambda x: (x, tf.strings.length(x)), (TEXT, [None]))
    kept, lengths = computation(["é", b"a\0"])
    assert kept.tolist() == ["é".encode(), b"a\0"]
    assert lengths.tolist() == [2, 2]


def test_integers_wrap_around() -> None:
    assert tfc(lambda x: x + 1, INT)(2**31 - 1) == -(2**31)


@tf.function
def collatz(x: Any) -> Any:
    steps = 0
    while x > 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    return steps


def test_control_flow() -> None:
    assert run(tfc(collatz, INT), 1, 6, 27) == [0, 8, 111]
    looped = tfc(lambda x: tf.while_loop(lambda i: i < 10, lambda i: [i * 2], [x])[0], INT)
    assert looped(3) == 12


def test_tensors_made_of_several() -> None:
    ragged = tfc(lambda: tf.ragged.constant([[1, 2], [3]]))()
    assert isinstance(ragged, tf.RaggedTensor)
    assert ragged.to_list() == [[1, 2], [3]]
    sparse = tfc(lambda: tf.SparseTensor([[0, 1]], [5], [2, 2]))()
    assert isinstance(sparse, tf.SparseTensor)
    assert tf.sparse.to_dense(sparse).numpy().tolist() == [[0, 5], [0, 0]]


# Failures.


def refusal(attempt: Callable[[], Any]) -> str:
    with pytest.raises(ExecutionError) as caught:
        attempt()
    caught.value.span = None
    return str(caught.value)


def test_failures_of_tensorflow() -> None:
    assert refusal(lambda: tfc(lambda x: 1 // x, INT)(0)) == (
        "TensorFlow could not carry out a computation: Integer division by zero [E722]\n"
        "  note: it is of the kind 'invalid argument'"
        "\n  help: run the function in TensorFlow alone, on the values it was given, to "
        "see where"
    )
    gather = tfc(lambda x: tf.gather(tf.constant([1, 2]), x), INT)
    assert refusal(lambda: gather(5)) == (
        "TensorFlow could not carry out a computation: indices = 5 is not in [0, 2) [E722]\n"
        "  note: it is of the kind 'invalid argument'"
        "\n  help: run the function in TensorFlow alone, on the values it was given, to "
        "see where"
    )
    assert gather(1) == 2


def test_failures_while_a_sequence_is_read() -> None:
    computation = tfc(lambda data: data.map(lambda x: 1 // x), Sequence(INT))
    assert "Integer division by zero [E722]" in refusal(lambda: computation([1, 0]))
    assert elements(computation([1])) == [1]


def test_graphs_that_tensorflow_does_not_load() -> None:
    with tf.Graph().as_default() as graph:
        tf.identity(placeholder("x"), "y")
    graph_def = graph.as_graph_def()
    graph_def.node[1].op = "NoSuchOperation"
    content = TensorFlowSection(graph_def.SerializeToString(), X, TensorBinding("y:0"))
    unknown = Compiled("tensorflow", write_tensorflow(content), INT_TO_INT)
    text = refusal(lambda: run_section(unknown, INT(1)))
    assert text.startswith(
        "TensorFlow cannot load the graph of a section of type `(int32 -> int32)` [E720]\n"
        "  note: Op type not registered 'NoSuchOperation'"
    )
    assert text.endswith(
        "\n  help: import the package that registers its operations, or trace the program again "
        "with this TensorFlow"
    )


def test_results_of_another_shape() -> None:
    computation = tfc(lambda x: tf.py_function(lambda: [1, 2, 3], [], tf.int32))
    claimed = section(
        lambda: tf.compat.v1.placeholder(tf.int32, None, "x"),
        FunctionType((INT, None), (INT, [2])),
        X,
        X,
    )
    assert computation is not None
    assert refusal(lambda: run_section(claimed, np.array([1, 2, 3], INT))) == (
        "a section gave a tensor of int32 of shape [3] where its type promises `int32[2]` [E721]"
    )


def test_bindings_are_checked() -> None:
    missing = section(lambda: placeholder("x"), INT_TO_INT, X, TensorBinding("y:0"))
    assert refusal(lambda: run_section(missing, INT(1))).startswith(
        "TensorFlow cannot load the graph of a section of type `(int32 -> int32)` [E720]\n"
        "  note: it is bound to 'y:0', which the graph does not have\n"
    )


def test_a_control_edge_from_the_parameter() -> None:
    def build() -> None:
        with tf.control_dependencies([placeholder("x")]):
            tf.constant(7, name="seven")

    made = section(build, INT_TO_INT, X, TensorBinding("seven:0"))
    assert run_section(made, INT(3)) == 7


def taken_from_a_barrier(x: Any) -> Any:
    raw = tf.raw_ops
    barrier = raw.Barrier(component_types=[tf.float32], shapes=[[]])
    insert = raw.BarrierInsertMany(
        handle=barrier, keys=["k"], values=tf.reshape(x, [1]), component_index=0
    )
    with tf.control_dependencies([insert]):
        one = tf.constant(1)
    taken = raw.BarrierTakeMany(handle=barrier, num_elements=one, component_types=[tf.float32])
    return taken.values[0][0]


@pytest.mark.parametrize(
    "body",
    [taken_from_a_barrier, tf.function(taken_from_a_barrier, autograph=False)],
    ids=["graph", "function"],
)
def test_operations_that_wait_for_others(body: Callable[[Any], Any]) -> None:
    computation = tff.tf_computation(body, tff.TensorType(FLOAT))
    results: list[Any] = []
    run = threading.Thread(target=lambda: results.append(computation(FLOAT(2))), daemon=True)
    run.start()
    run.join(60)
    assert results == [2.0]


def test_iterators_have_no_thread_that_tunes_them() -> None:
    """TensorFlow may wait for such a thread for a minute when an iterator ends."""
    with tf.Graph().as_default() as graph:
        dataset = tf.data.experimental.to_variant(tf.data.Dataset.range(3))
        SequenceOutput(tf, dataset, Sequence(np.int64))
    (start,) = (each for each in graph.get_operations() if each.type == "MakeIterator")
    options = start.inputs[0].op
    assert options.type == "OptionsDataset"
    messages = importlib.import_module("tensorflow.core.framework.dataset_options_pb2")
    read = messages.Options.FromString(options.get_attr("serialized_options"))
    assert read.autotune_options.HasField("enabled")
    assert not read.autotune_options.enabled
