"""LiteRT models compute what the interpreter computes, and list operations that need flex."""

from __future__ import annotations

import collections
import warnings
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.deploy.export.computations import counted
from tests.refusals import refusal
from tffc.deploy.export.lite_variables import VariablesError, hand_on_variables
from tffc.deploy.export.tflite import LiteModels, lite_models
from tffc.language import SequenceType, TensorType
from tffc.support.errors import ExportError


def convert(**components: Any) -> LiteModels:
    return lite_models({name: part.to_building_block() for name, part in components.items()})


def call(models: LiteModels, name: str, **feeds: Any) -> dict[str, Any]:
    """Return the result of two consecutive calls, which must be equal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(model_content=models.models[name])
    runner = interpreter.get_signature_runner(name)
    first, second = runner(**feeds), runner(**feeds)
    np.testing.assert_equal(first, second)
    return first


def test_plain_operations() -> None:
    @tff.tf_computation(TensorType(np.float32, [2]), np.float32)
    def part(x: Any, y: Any) -> Any:
        return tf.reduce_sum(x * y), x

    models = convert(part=part)
    assert (models.flex, models.left_out) == ({}, {})
    x = np.array([1.0, 2.0], np.float32)
    found = call(models, "part", arg_x=x, arg_y=np.float32(3.0))
    np.testing.assert_equal(found, {"result_0": np.float32(9.0), "result_1": x})


def test_variables() -> None:
    models = convert(counted=counted)
    assert models.flex == {}
    found = call(models, "counted", arg=np.float32(3.0))
    assert found == {"result_0": 4.0, "result_1": 9.0}


@pytest.mark.slow
def test_operations_that_need_flex_are_named() -> None:
    @tff.tf_computation(TensorType(np.int32, [2]))
    def draw(seed: Any) -> Any:
        return tf.random.stateless_uniform([2], seed)

    models = convert(draw=draw)
    assert models.flex == {"draw": ("StatelessRandomGetKeyCounter", "StatelessRandomUniformV2")}
    # An iterator is in neither, but a reduction of datasets that LiteRT's loops cannot read is left
    # to flex.
    models = convert(total=shuffled)
    assert "ReduceDataset" in models.flex["total"]


@tff.tf_computation(SequenceType(np.float32))
def shuffled(data: Any) -> Any:
    return data.filter(lambda x: x > 0.0).reduce(0.0, lambda x, y: x + y)


ROWS = SequenceType(collections.OrderedDict(x=TensorType(np.float32, [3]), y=TensorType(np.int32)))


@tff.tf_computation(ROWS, TensorType(np.float32, [3, 4]))
def train(data: Any, start: Any) -> Any:
    """Epochs of batches, a variable, metrics in the scan, and gradients of an activation and a loss
    that LiteRT has no operations for."""
    weights = tf.Variable(start)
    seen = tf.Variable(tf.constant(0))

    @tf.function
    def step(losses: Any, batch: Any) -> Any:
        with tf.GradientTape() as tape:
            scores = tf.nn.relu(batch["x"] @ weights)
            kinds = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["y"], scores)
            loss = tf.reduce_mean(kinds)
        gradient: Any = tape.gradient(loss, weights)
        weights.assign_sub(0.1 * gradient)
        seen.assign_add(tf.shape(batch["y"])[0])
        return losses + loss

    @tf.function
    def run(data: Any) -> Any:
        return data.repeat(2).batch(4).skip(1).reduce(0.0, step)

    losses = run(data)
    return weights.read_value(), seen.read_value(), losses


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 4, 7])
def test_training_in_loops_with_variables(rows: int) -> None:
    random = np.random.default_rng(rows)
    data = {
        "x": random.normal(size=[rows, 3]).astype(np.float32),
        "y": random.integers(0, 4, rows, dtype=np.int32),
    }
    start = random.normal(size=[3, 4]).astype(np.float32)
    models = convert(train=train)
    assert models.flex == {}
    found = call(models, "train", arg_data_x=data["x"], arg_data_y=data["y"], arg_start=start)
    each = [{name: column[row] for name, column in data.items()} for row in range(rows)]
    expected = train(each, start)
    for name, wanted in zip(("result_0", "result_1", "result_2"), expected, strict=True):
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_a_loop_with_a_variable() -> None:
    @tff.tf_computation(np.int32)
    def powers(count: Any) -> Any:
        value = tf.Variable(tf.constant(1.0))

        @tf.function
        def run(count: Any) -> Any:
            for _ in tf.range(count):
                value.assign(value * 2.0)
                value.assign_add(value.read_value())
            return value.read_value()

        return run(count)

    models = convert(powers=powers)
    assert models.flex == {}
    assert call(models, "powers", arg=np.int32(3)) == {"result": 64.0}
    assert call(models, "powers", arg=np.int32(0)) == {"result": 1.0}


def test_reads_that_no_edge_orders_are_refused() -> None:
    graph = tf.Graph()
    with graph.as_default():
        handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="v", name="v")
        first = tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(1.0))
        with tf.control_dependencies([first]):
            tf.raw_ops.AssignAddVariableOp(resource=handle, value=tf.constant(1.0))
            tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32, name="read")
    made = graph.as_graph_def()
    with pytest.raises(VariablesError, match="is read and changed in an undefined order"):
        hand_on_variables(made)


@pytest.mark.slow
def test_branches_with_variables() -> None:
    @tff.tf_computation(np.bool_, np.float32)
    def chosen(flag: Any, x: Any) -> Any:
        """One variable is changed in one branch, one in both, and one is only read."""
        first, second = tf.Variable(tf.constant(1.0)), tf.Variable(x)
        third = tf.Variable(x * 2.0)

        @tf.function
        def run(flag: Any) -> Any:
            if flag:
                first.assign_add(third)
                second.assign(second * 3.0)
                found = first + second
            else:
                second.assign_sub(1.0)
                found = third + 0.5
            return found, first.read_value(), second.read_value()

        return run(flag)

    models = convert(chosen=chosen)
    assert models.flex == {}
    for flag in (True, False):
        found = call(models, "chosen", arg_flag=np.bool_(flag), arg_x=np.float32(4.0))
        assert list(found.values()) == list(chosen(flag, 4.0))


@pytest.mark.slow
def test_branches_in_loops_and_loops_in_branches() -> None:
    @tff.tf_computation(np.int32)
    def collatz(start: Any) -> Any:
        steps = tf.Variable(tf.constant(0))
        value: Any = tf.Variable(start)

        @tf.function
        def run() -> Any:
            while value > 1:
                if tf.equal(value % 2, 0):
                    while tf.equal(value % 2, 0):
                        value.assign(value // 2)
                        steps.assign_add(1)
                else:
                    value.assign(3 * value + 1)
                    steps.assign_add(1)
            return steps.read_value()

        return run()

    models = convert(collatz=collatz)
    assert models.flex == {}
    for start in (1, 2, 6, 7):
        assert call(models, "collatz", arg=np.int32(start)) == {"result": collatz(start)}


def test_what_runs_functions_in_another_way_is_told() -> None:
    @tff.tf_computation(np.int32)
    def chosen(index: Any) -> Any:
        value = tf.Variable(tf.constant(1.0))

        @tf.function
        def run(index: Any) -> Any:
            tf.switch_case(index, [lambda: value.assign_add(1.0), lambda: value.assign(0.0)])
            return value.read_value()

        return run(index)

    with pytest.raises(ExportError) as caught:
        convert(chosen=chosen)
    assert caught.value.notes == ("chosen: LiteRT has no variables for Case",)


def handed(count: int) -> Any:
    """A graph in which branches have a variable `count` times, or share a function."""
    graph = tf.Graph()
    with graph.as_default():
        handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="v", name="v")
        first = tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(1.0))

        def body(*handles: Any) -> Any:
            return tf.raw_ops.ReadVariableOp(resource=handles[0], dtype=tf.float32)

        taken: Any = tf.function(body, [tf.TensorSpec([], tf.resource)] * count, autograph=False)
        function = taken.get_concrete_function()
        before = first
        for _ in range(3 - count):
            with tf.control_dependencies([before]):
                (result,) = tf.raw_ops.If(
                    cond=True,
                    input=[handle] * count,
                    Tout=[tf.float32],
                    then_branch=function,
                    else_branch=function,
                )
            before = result.op
    return graph.as_graph_def()


def test_variables_that_are_given_twice_are_refused() -> None:
    with pytest.raises(VariablesError, match="is given a variable twice"):
        hand_on_variables(handed(2))
    with pytest.raises(VariablesError, match="share a function"):
        hand_on_variables(handed(1))


@pytest.mark.slow
def test_gradients_of_shapes_that_are_not_known() -> None:
    @tff.tf_computation(TensorType(np.float32, [None, 3]), TensorType(np.float32, [3]))
    def slope(x: Any, bias: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(bias)
            loss = tf.reduce_mean(tf.square(x + bias))
        return tape.gradient(loss, bias)

    models = convert(slope=slope)
    assert models.flex == {}
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]], np.float32)
    bias = np.array([0.5, 0.0, 1.0], np.float32)
    found = call(models, "slope", arg_x=x, arg_bias=bias)["result"]
    np.testing.assert_allclose(found, slope(x, bias), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "activation", [tf.nn.relu, tf.nn.relu6, tf.nn.elu], ids=lambda f: f.__name__
)
def test_gradients_of_activations(activation: Any) -> None:
    @tff.tf_computation(TensorType(np.float32, [None]))
    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.square(activation(x)))
        return tape.gradient(y, x)

    models = convert(slope=slope)
    assert models.flex == {}
    x = np.array([-2.0, -0.5, 0.0, 0.5, 6.0, 7.0], np.float32)
    np.testing.assert_allclose(call(models, "slope", arg=x)["result"], slope(x), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["second batch", "leaky"])
def test_what_flex_has(kind: str) -> None:
    @tff.tf_computation(SequenceType(TensorType(np.float32, [2])))
    def total(data: Any) -> Any:
        if kind == "second batch":
            data = data.batch(2).batch(2)
        else:
            with tf.GradientTape() as tape:
                x = data.reduce(tf.zeros([2]), tf.add)
                tape.watch(x)
                y = tf.nn.leaky_relu(x)
            return tape.gradient(y, x)
        return data.reduce(0.0, lambda x, y: x + tf.reduce_sum(y))

    models = convert(total=total)
    assert models.left_out == {}
    assert models.flex["total"]


@pytest.mark.slow
def test_stitched_rows() -> None:
    @tff.tf_computation(TensorType(np.float32, [2, 2]), TensorType(np.float32, [2]))
    def stitch(rows: Any, row: Any) -> Any:
        return tf.dynamic_stitch([[2, 0], 2], [rows, row])

    models = convert(stitch=stitch)
    assert models.flex == {}
    rows, row = np.array([[1, 2], [3, 4]], np.float32), np.array([5, 6], np.float32)
    found = call(models, "stitch", arg_rows=rows, arg_row=row)["result"]
    np.testing.assert_equal(found, [[3, 4], [0, 0], [5, 6]])


@pytest.mark.slow
def test_components_that_cannot_be_converted_are_left_out() -> None:
    @tff.tf_computation(np.float32)
    def same(x: Any) -> Any:
        return x

    @tff.tf_computation
    def nothing() -> Any:
        return ()

    @tff.tf_computation(np.str_)
    def found(word: Any) -> Any:
        seen = tf.lookup.experimental.MutableHashTable(tf.string, tf.int32, 0)
        seen.insert([word], [1])
        return seen.size()

    models = convert(same=same, nothing=nothing, found=found)
    assert list(models.models) == ["same"]
    assert models.left_out == {
        "nothing": "it has no result",
        "found": "LiteRT has no AnonymousMutableHashTable, not even with flex",
    }
    assert refusal(ExportError, convert, nothing=nothing, found=found) == (
        "no component of the bundle can be converted for LiteRT [E870]\n"
        "  note: nothing: it has no result\n"
        "  note: found: LiteRT has no AnonymousMutableHashTable, not even with flex\n"
        "  help: export a SavedModel"
    )
