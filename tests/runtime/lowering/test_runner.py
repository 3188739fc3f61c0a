"""Sections that JAX compiles give what TensorFlow gives, or say why they cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType
from tffc.language.values.concrete import flatten, to_value
from tffc.runtime.frameworks.tensorflow.runner import TensorFlowRunner
from tffc.runtime.lowering.runner import LoweredRunner
from tffc.support.errors import ExecutionError

VECTOR = tff.TensorType(np.float32, [3])
ANY = tff.TensorType(np.float32, [None])
INTS = tff.SequenceType(np.int32)
PAIRS = tff.SequenceType([("y", VECTOR), ("x", np.int32)])


def section_of(work: Callable[..., Any], *types: Any) -> Compiled:
    node = tff.tf_computation(*types)(work).node
    assert isinstance(node, Compiled)
    return node


def trained(data: Any) -> Any:
    """Variables, a loop of Python, an If and an order of their own."""
    weights, steps = tf.Variable(tf.ones([3])), tf.Variable(tf.constant(0))

    @tf.function
    def train(batches: Any) -> Any:
        for batch in batches:
            if tf.reduce_sum(weights) > 3.5:
                weights.assign_sub(tf.reduce_mean(batch["y"], 0))
            else:
                weights.assign_add(tf.cast(batch["x"][0], tf.float32) * tf.ones([3]))
            steps.assign_add(tf.size(batch["x"]))
        return weights.read_value(), steps.read_value()

    return train(data.repeat(2).batch(2))


def doubled(number: Any) -> Any:
    return tf.while_loop(lambda n: n < 100, lambda n: (n * 2,), (number,))


def pairs(count: int) -> list[Any]:
    return [
        {"y": np.array([n, 0.5, -n], np.float32), "x": np.int32(n - 2)} for n in range(1, count + 1)
    ]


KINDS: dict[str, tuple[Callable[..., Any], Any, list[Any]]] = {
    "tensors": (
        lambda a, b: {"sum": a + tf.cast(b, tf.float32), "size": tf.shape(a)},
        (VECTOR, np.int32),
        [(np.ones(3, np.float32), np.int32(2)), (np.full(3, np.nan, np.float32), np.int32(-1))],
    ),
    "tensors of any length": (
        lambda a: (tf.reduce_sum(a), a * 2.0, tf.shape(a)[0]),
        (ANY,),
        [np.zeros(length, np.float32) + 3 for length in (0, 1, 5)],
    ),
    "booleans and small integers": (
        lambda a, b: (tf.logical_not(a), b + np.uint8(250)),
        (np.bool_, np.uint8),
        [(np.bool_(True), np.uint8(9)), (np.bool_(False), np.uint8(0))],
    ),
    "sequences": (
        lambda data: data.batch(2).reduce(1, lambda s, x: s * 3 + tf.reduce_sum(x) * tf.size(x)),
        (INTS,),
        [[], [4], [1, 2, 3, 4, 5], list(range(12))],
    ),
    "sequences of any shape": (
        lambda data: data.reduce(np.float32(1), lambda s, x: s * 2 + tf.reduce_sum(x)),
        (tff.SequenceType(ANY),),
        [[], [np.zeros(3, np.float32)], [np.ones(2, np.float32)] * 3],
    ),
    "scanned and mapped sequences": (
        lambda data: (
            data.skip(1)
            .batch(2, drop_remainder=True)
            .map(lambda x: x + 1)
            .reduce(0, lambda s, x: s * 5 + x[0] - x[1])
        ),
        (INTS,),
        [[], [1], [1, 2, 4], [9, 8, 7, 6, 5, 4, 3]],
    ),
    "two sequences": (
        lambda a, b: a.reduce(0, lambda s, x: s + x) - b.reduce(1, lambda s, x: s * x),
        (INTS, INTS),
        [([1, 2], [3, 4, 5]), ([], [7])],
    ),
    "variables": (trained, (PAIRS,), [pairs(0), pairs(1), pairs(5), pairs(8)]),
    "ifs": (
        lambda x: tf.cond(x > 2, lambda: x * 2, lambda: tf.cond(x < 0, lambda: -x, lambda: x)),
        (np.int32,),
        [np.int32(n) for n in (-3, 1, 5)],
    ),
    "loops": (doubled, (np.int64,), [np.int64(n) for n in (1, 7, 200)]),
    "no argument": (lambda: tf.linspace(0.0, 1.0, 5), (), [None]),
    "draws under a seed": (
        lambda seed: (
            tf.random.stateless_uniform([4], seed),
            tf.random.stateless_uniform([3], seed, -9, 9, tf.int64),
        ),
        (tff.TensorType(np.int32, [2]),),
        [np.array([1, n], np.int32) for n in (-5, 0, 10**6)],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_gives_what_tensorflow_gives(kind: str) -> None:
    work, types, arguments = KINDS[kind]
    section = section_of(work, *types)
    assert isinstance(section.type, FunctionType)
    lowered, plain = LoweredRunner(section), TensorFlowRunner(section)
    for argument in arguments:
        value = None
        if section.type.parameter is not None:
            value = to_value(argument, section.type.parameter)
        result, expected = (
            flatten(runner(value), section.type.result) for runner in (lowered, plain)
        )
        for one, other in zip(result, expected, strict=True):
            assert np.asarray(one).dtype == np.asarray(other).dtype
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_error_function_of_infinity(dtype: type) -> None:
    large = np.array(
        [np.inf, -np.inf, np.finfo(dtype).max, np.sqrt(np.finfo(dtype).max) * 2], dtype
    )
    limits = [1, -1, 1, 1]
    section = section_of(lambda x: tf.math.erf(x), tff.TensorType(dtype, [4]))
    assert LoweredRunner(section)(large).tolist() == limits
    assert tf.function(tf.math.erf, jit_compile=True)(large).numpy().tolist() == limits
    # On a processor, the code of TensorFlow for float64 squares them.
    plain = TensorFlowRunner(section)(large)
    assert ((plain == limits) | ((dtype == np.float64) & np.isnan(plain))).all()


def test_draws_anew_in_each_call() -> None:
    runner = LoweredRunner(section_of(lambda: tf.random.normal([1000])))
    (one,), (other,) = (flatten(runner(None), VECTOR) for _ in range(2))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.25
    assert abs(np.std(one) - 1) < 0.2


def test_reads_resources() -> None:
    held = tff.resource({"a": np.array([1, 2, 3], np.float32)})
    section = section_of(lambda x: held()["a"] * x, VECTOR)
    (result,) = flatten(LoweredRunner(section)(np.array([1, 10, 100], np.float32)), VECTOR)
    assert result.tolist() == [1, 20, 300]


def refused(section: Compiled, argument: Any = None) -> ExecutionError:
    assert isinstance(section.type, FunctionType)
    assert section.type.parameter is not None
    value = to_value(argument, section.type.parameter)
    with pytest.raises(ExecutionError) as caught:
        LoweredRunner(section)(value)
    return caught.value


REFUSED: dict[str, tuple[Callable[..., Any], Any, Any, str]] = {
    "takes strings": (
        lambda x: tf.strings.length(x),
        (np.str_,),
        b"abc",
        "it takes or gives strings",
    ),
    "gives strings": (
        lambda x: tf.strings.as_string(x),
        (np.int32,),
        np.int32(1),
        "it takes or gives strings",
    ),
    "gives a sequence": (
        lambda data: data.map(lambda x: x + 1),
        (INTS,),
        [1, 2],
        "it gives a sequence",
    ),
    "strings in between": (
        lambda x: tf.strings.length(tf.strings.as_string(x)),
        (np.int32,),
        np.int32(1),
        "it has the operation AsString",
    ),
    "elements of several shapes": (
        lambda data: data.reduce(np.float32(0), lambda s, x: s + tf.reduce_sum(x)),
        (tff.SequenceType(ANY),),
        [np.zeros(2, np.float32), np.zeros(3, np.float32)],
        "a sequence of type `float32[?]*` cannot be kept in one array, for its elements are of "
        "shapes [2] and [3]",
    ),
    "shuffled sequences": (
        lambda data: data.shuffle(5).reduce(0, lambda s, x: s + x),
        (INTS,),
        [1, 2],
        "it has the operation ShuffleDataset of a dataset or a variable",
    ),
    "more numbers than can be counted": (
        lambda x: tf.zeros([2**62]) + x,
        (np.float32,),
        np.float32(1),
        "Fill gives more numbers than any memory holds",
    ),
    "results of a shape that depends on values": (
        lambda x: tf.unique(x)[0],
        (tff.TensorType(np.int32, [3]),),
        np.array([1, 1, 2], np.int32),
        "it has the operation Unique",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refuses_with_the_reason(kind: str) -> None:
    work, types, argument, reason = REFUSED[kind]
    error = refused(section_of(work, *types), argument)
    assert error.code == "E701"
    assert error.message == "TensorFlow is not installed, and a part of the program needs it"
    assert error.notes == (f"it cannot be compiled without TensorFlow: {reason}",)
    assert error.help == "pip install tensorflow"


FAILING: dict[str, tuple[Callable[..., Any], Any, Any, Any]] = {
    "an index": (lambda x: tf.gather([5, 6, 7], x), np.int32, np.int32(2), np.int32(3)),
    "a division by 0": (lambda x: 12 // x, np.int32, np.int32(5), np.int32(0)),
    "an assertion": (
        lambda x: _less(x, 5),
        np.int32,
        np.int32(4),
        np.int32(5),
    ),
    "a number that is none": (
        lambda x: tf.debugging.check_numerics(x, "bad"),
        VECTOR,
        np.zeros(3, np.float32),
        np.array([0, np.inf, 0], np.float32),
    ),
    "a label, in a loop": (
        lambda data: data.reduce(
            np.float32(0),
            lambda s, x: (
                s
                + tf.nn.sparse_softmax_cross_entropy_with_logits([x], tf.constant([[0.5, 0.5]]))[0]
            ),
        ),
        INTS,
        [0, 1] * 4,
        [0, 1] * 4 + [2],
    ),
    "an assertion in a branch": (
        lambda x: tf.cond(x > 3, lambda: _less(x, 5), lambda: x),
        np.int32,
        np.int32(4),
        np.int32(6),
    ),
}


def _less(x: Any, limit: int) -> Any:
    with tf.control_dependencies([tf.debugging.Assert(x < limit, [x])]):
        return tf.identity(x)


@pytest.mark.parametrize("kind", FAILING)
def test_tells_of_checks_that_fail(kind: str) -> None:
    work, type, good, bad = FAILING[kind]
    section = section_of(work, type)
    assert isinstance(section.type, FunctionType)
    assert section.type.parameter is not None
    runner = LoweredRunner(section)
    result, expected = (
        each(to_value(good, section.type.parameter)) for each in (runner, TensorFlowRunner(section))
    )
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    for each in (TensorFlowRunner(section), runner):
        with pytest.raises(ExecutionError) as caught:
            each(to_value(bad, section.type.parameter))
    assert caught.value.code == "E722"
    assert caught.value.message.startswith("a check does not hold in a computation: an index or")


def test_tells_what_xla_says(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = LoweredRunner(section_of(lambda x: x + 1, np.float32))

    def compute(*_: Any) -> Any:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nin a long story")

    monkeypatch.setattr(runner, "_compute", compute)
    with pytest.raises(ExecutionError) as caught:
        runner(np.float32(1))
    assert caught.value.code == "E722"
    assert caught.value.message == (
        "XLA could not carry out a computation: RESOURCE_EXHAUSTED: Out of memory"
    )


@pytest.mark.parametrize(
    ("work", "type", "reason"),
    [
        (lambda d: d.reduce(0, lambda s, x: s + 1), tff.SequenceType(np.str_), "gives strings"),
        (
            lambda d: d.reduce(0, lambda s, e: s + e["x"]),
            tff.SequenceType([("text", np.str_), ("x", np.int32)]),
            "gives strings",
        ),
        (lambda x: x + tf.strings.length("text"), np.int32, "the operation StringLength"),
    ],
)
def test_strings_anywhere_need_tensorflow(work: Any, type: Any, reason: str) -> None:
    with pytest.raises(ExecutionError) as caught:
        LoweredRunner(section_of(work, type))(np.int32(1))
    assert caught.value.code == "E701"
    assert reason in caught.value.notes[0]
