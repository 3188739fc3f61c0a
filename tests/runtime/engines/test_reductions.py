"""Reductions of datasets run as loops, wherever they stand, and give what they gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.language import Compiled, FunctionType
from tffc.language.values.concrete import to_python, to_value
from tffc.runtime.engines.sections import run_section
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.runtime.reductions.loops import loops_for_reductions
from tffc.support.errors import ExecutionError

pytestmark = pytest.mark.slow

INTS = tff.SequenceType(np.int32)


def rewritten(*types: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator like `tff.tf_computation`; what is called runs as the engines run it."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        section = tff.tf_computation(*types)(function).node
        assert isinstance(section, Compiled)
        assert isinstance(section.type, FunctionType)
        assert section.type.parameter is not None
        parameter, result = section.type.parameter, section.type.result

        def call(*arguments: Any) -> Any:
            value = to_value(arguments if len(types) > 1 else arguments[0], parameter)
            return to_python(run_section(section, value), result)

        return call

    return decorate


def functions(graph: Any) -> Any:
    """The functions that a GraphDef carries."""
    return graph.library.function


def reduced(inside: bool) -> Any:
    """A computation with a reduction that has captured values, inside a function or not."""
    tf = load_tensorflow()

    def run(data: Any, by: Any) -> Any:
        return data.reduce((0, tf.constant(1.0)), lambda s, x: (s[0] * by + x, s[1] / 2.0))

    @rewritten(INTS, np.int32)
    def computed(data: Any, by: Any) -> Any:
        return (tf.function(run) if inside else run)(data, by)

    return computed


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("length", [0, 1, 3])
def test_a_reduction_gives_what_it_gave(inside: bool, length: int) -> None:
    data = list(range(1, length + 1))
    total, half = reduced(inside)(data, 10)
    assert total == int("".join(map(str, data)) or 0)
    assert half == np.float32(0.5**length)


@pytest.mark.parametrize("inside", [False, True])
def test_no_reduction_is_left(inside: bool) -> None:
    tf = load_tensorflow()
    with tf.Graph().as_default() as graph:
        data = tf.data.Dataset.range(3)

        def run() -> Any:
            return data.reduce(tf.constant(0, tf.int64), lambda s, x: s + x)

        tf.function(run)() if inside else run()
    definition = graph.as_graph_def()
    loops_for_reductions(definition, {})
    bodies = [function.node_def for function in functions(definition)]
    operations = [node.op for nodes in [definition.node, *bodies] for node in nodes]
    assert "ReduceDataset" not in operations
    assert "While" in operations


def twice(element: Any) -> Any:
    """Each tensor of an element doubled, or an element that is a tensor."""
    return load_tensorflow().nest.map_structure(lambda tensor: tensor * 2, element)


def running_sums(data: Any) -> Any:
    """For each element the sum of all up to it, times ten."""
    tf = load_tensorflow()
    ten = tf.constant(10, tf.int64)

    def step(total: Any, element: Any) -> Any:
        total += sum(tf.reduce_sum(part) for part in tf.nest.flatten(element))
        return total, tf.nest.map_structure(lambda tensor: total * ten + tensor, element)

    return data.scan(tf.constant(0, tf.int64), step)


GATHERED: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda data: data,
    "repeated": lambda data: data.repeat(3),
    "cut": lambda data: data.skip(1).take(4),
    "cut beyond the end": lambda data: data.skip(5).take(100),
    "batched": lambda data: data.repeat(2).batch(3).prefetch(1),
    "whole batches": lambda data: data.batch(3, drop_remainder=True),
    "repeated batches": lambda data: data.take(5).batch(2).skip(1).repeat(2),
    "none": lambda data: data.take(0).batch(2),
    "mapped": lambda data: data.map(lambda element: twice(element)),
    "mapped batches": lambda data: data.batch(2).map(twice).prefetch(1).map(twice),
    "scanned": lambda data: running_sums(data.repeat(2)),
    "mapped and scanned": lambda data: running_sums(running_sums(data.map(twice)).map(twice)),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "batches of what is mapped": lambda data: data.map(twice).batch(2),
    "batches of what is scanned": lambda data: running_sums(data).batch(2),
    "without end": lambda data: data.repeat().take(10),
    "batches of batches": lambda data: data.take(4).batch(2).batch(2),
    "by a number that is computed": lambda data: data.batch(
        load_tensorflow().ones([], np.int64) * 2
    ),
}
PAIR = tff.SequenceType([("y", tff.TensorType(np.int64, [2])), ("x", np.int64)])


def fold(data: Any) -> Any:
    """A number that depends on every element and their order."""
    tf = load_tensorflow()
    zero = tf.constant(0, tf.int64)
    return data.reduce(
        (zero, zero),
        lambda s, e: (s[0] * 31 + tf.reduce_sum(e["x"]) * 7 + tf.reduce_sum(e["y"]), s[1] + 1),
    )


@pytest.mark.parametrize("length", [pytest.param(0, marks=pytest.mark.slow), 1, 7])
@pytest.mark.parametrize("name", [*GATHERED, *OTHERS])
def test_elements_come_in_their_order(name: str, length: int) -> None:
    tf = load_tensorflow()
    pipeline = {**GATHERED, **OTHERS}[name]

    @rewritten(PAIR)
    def computed(data: Any) -> Any:
        return fold(pipeline(data))

    columns = {"y": np.arange(2 * length).reshape(length, 2), "x": np.arange(length) + 5}
    expected = fold(pipeline(tf.data.Dataset.from_tensor_slices(columns)))
    elements = [{name: column[i] for name, column in columns.items()} for i in range(length)]
    assert computed(elements) == tuple(int(number) for number in expected)


@pytest.mark.parametrize("name", [*GATHERED, *OTHERS])
def test_which_elements_are_gathered(name: str) -> None:
    tf = load_tensorflow()
    with tf.Graph().as_default() as graph:
        variant = tf.compat.v1.placeholder(tf.variant, name="data")
        data = tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64))
        data = {**GATHERED, **OTHERS}[name](data)
        data.reduce(tf.constant(0, tf.int64), lambda s, x: s + tf.reduce_sum(x))
    definition = graph.as_graph_def()
    loops_for_reductions(definition, {"data": [("column", tf.int64.as_datatype_enum)]})
    has_iterator = any(node.op == "AnonymousIteratorV3" for node in definition.node)
    assert has_iterator == (name in OTHERS)


@pytest.mark.parametrize("stop", [None, 3])
def test_a_loop_of_python_over_a_dataset(stop: int | None) -> None:
    tf = load_tensorflow()

    @tf.function
    def run(data: Any, by: Any) -> Any:
        total = count = tf.constant(0)
        for x in data.map(lambda x: x + 1):
            total = total * by + x
            if stop is not None and x == stop:
                break
            count += 1
        return total, count

    @rewritten(INTS, np.int32)
    def computed(data: Any, by: Any) -> Any:
        return run(data, by)

    assert computed([], 10) == (0, 0)
    assert computed([1, 2, 3], 10) == ((234, 3) if stop is None else (23, 1))


def test_a_loop_of_python_scans_nothing() -> None:
    tf = load_tensorflow()

    @tf.function
    def run(data: Any) -> Any:
        total = tf.constant(0, tf.int64)
        for x in data:
            total += x
        return total

    with tf.Graph().as_default() as graph:
        run(tf.data.Dataset.range(3))
    definition = graph.as_graph_def()
    loops_for_reductions(definition, {})
    for function in functions(definition):
        scans = {node.name for node in function.node_def if node.op == "ScanDataset"}
        used = {edge.partition(":")[0] for node in function.node_def for edge in node.input}
        assert scans.isdisjoint(used)


def test_datasets_given_to_functions_are_gathered() -> None:
    tf = load_tensorflow()

    @tf.function
    def inner(data: Any) -> Any:
        return data.reduce(tf.constant(0, tf.int64), lambda s, x: s + x)

    with tf.Graph().as_default() as graph:
        variant = tf.compat.v1.placeholder(tf.variant, name="data")
        data = tf.data.experimental.from_variant(variant, tf.TensorSpec([], tf.int64))
        tf.function(lambda data: inner(data.repeat(2)))(data)
    definition = graph.as_graph_def()
    loops_for_reductions(definition, {"data": [("column", tf.int64.as_datatype_enum)]})
    operations = [node.op for node in definition.node]
    assert "While" in operations
    assert "AnonymousIteratorV3" not in operations


def test_a_function_of_a_dataset_with_effects() -> None:
    tf = load_tensorflow()

    @rewritten(INTS)
    def computed(data: Any) -> Any:
        total = tf.Variable(100)

        @tf.function
        def add(data: Any) -> Any:
            for x in data:
                total.assign_add(x)
            tf.debugging.Assert(total < 200, ["too large"])

        before = total.read_value()
        add(data)
        between = total.read_value()
        add(data.map(lambda x: x * 10))
        return before, between, total.read_value()

    for _ in range(2):
        assert computed([1, 2, 3]) == (100, 106, 166)
    with pytest.raises(ExecutionError, match="assertion failed"):
        computed([10])


def test_strings_are_gathered_too() -> None:
    @rewritten(tff.SequenceType(np.str_))
    def joined(data: Any) -> Any:
        tf = load_tensorflow()
        return data.batch(2).reduce(
            tf.constant(""), lambda s, x: s + "(" + tf.strings.reduce_join(x) + ")"
        )

    assert joined([b"a\0", b"b", "ä".encode()]) == "(a\0b)(ä)".encode()


def test_a_function_gives_all_outputs_of_its_loop() -> None:
    tf = load_tensorflow()

    @tf.function
    def sums() -> Any:
        zeros = tuple(tf.constant(0, tf.int64) for _ in range(40))
        return tf.data.Dataset.range(3).reduce(zeros, lambda s, x: tuple(part + x for part in s))

    with tf.Graph().as_default() as graph:
        sums()
    definition = graph.as_graph_def()
    for function in functions(definition):
        before = {f"{n.name}:output:0": n.input[0] for n in function.node_def if n.op == "Identity"}
        for name, edge in dict(function.ret).items():
            function.ret[name] = before.get(edge, edge)
    loops_for_reductions(definition, {})
    edges = [edge for f in functions(definition) for edge in f.ret.values()]
    assert sum(edge.startswith("ReduceDataset:output:") for edge in edges) == 40
    assert not any(":components:" in edge for edge in edges)


@pytest.mark.parametrize("pipeline", [lambda data: data, lambda data: data.map(lambda x: x)])
def test_reductions_in_reductions(pipeline: Callable[[Any], Any]) -> None:
    tf = load_tensorflow()

    @rewritten(INTS)
    def computed(data: Any) -> Any:
        def outer(total: Any, x: Any) -> Any:
            inner = tf.data.Dataset.range(3).map(lambda i: tf.cast(i, tf.int32))
            return inner.reduce(total * 10, lambda s, i: s + x * i)

        return pipeline(data).reduce(0, outer)

    assert computed([1, 2, 3]) == 3 * (100 + 2 * 10 + 3)


@pytest.mark.parametrize("calls", [True, False])
def test_what_a_step_does_beside_its_result_is_done(calls: bool) -> None:
    tf = load_tensorflow()

    def step(total: Any, x: Any) -> Any:
        tf.debugging.Assert(x < 3, ["too large"])
        return total + x

    @rewritten(INTS)
    def computed(data: Any) -> Any:
        return data.reduce(0, tf.function(step) if calls else step)

    assert computed([1, 2]) == 3
    with pytest.raises(ExecutionError, match="assertion failed"):
        computed([1, 2, 3])


def test_a_step_is_part_of_the_loop_unless_it_asks_not_to_be() -> None:
    tf = load_tensorflow()
    with tf.Graph().as_default() as graph:
        tf.data.Dataset.range(3).reduce(tf.constant(0, tf.int64), lambda s, x: s + x)
    plain, asking, general = (graph.as_graph_def() for _ in range(3))
    for function in functions(asking):
        function.attr["_noinline"].b = True
    for function in functions(general):
        function.signature.attr.add(name="T", type="type")
    for definition, calls in (plain, 0), (asking, 1), (general, 1):
        loops_for_reductions(definition, {})
        bodies = [f for f in functions(definition) if f.signature.name.endswith("_body")]
        operations = [node.op for body in bodies for node in body.node_def]
        assert operations.count("StatefulPartitionedCall") == calls
