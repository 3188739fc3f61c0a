"""`tffc.resource`: what it takes, and where the computation that it returns can be called."""

from __future__ import annotations

import collections
import functools
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.refusals import error_without_place
from tffc.language.wire.resources import resources_of
from tffc.linking.section import read_section
from tffc.support.errors import LanguageTypeError, LanguageValueError

BASE = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("values", "type"),
    [
        (BASE, "float32[2,3]"),
        ([BASE, (1, 2.5, True)], "<float32[2,3],<int32,float32,bool>>"),
        ({"b": np.int8(3), "a": BASE[:, ::2]}, "<b=int8,a=float32[2,2]>"),
        (collections.OrderedDict(z=np.zeros((0, 4), np.float64)), "<z=float64[0,4]>"),
        (tff.Struct([("w", BASE), (None, BASE)]), "<w=float32[2,3],float32[2,3]>"),
        (tf.constant([1, 2], tf.bfloat16), "bfloat16[2]"),
        (np.array([1, 2], ">i4"), "int32[2]"),
        (np.array([1j], np.complex64), "complex64[1]"),
    ],
)
def test_values(values: Any, type: str) -> None:
    frozen = tff.resource(values)
    assert str(frozen.type_signature) == f"( -> {type})"
    given, kept = frozen(), values
    if isinstance(values, tff.Struct):
        given, kept = list(given), list(values)
    for one, other in zip(tf.nest.flatten(given), tf.nest.flatten(kept), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_arrays_of_other_frameworks() -> None:
    jax = pytest.importorskip("jax")
    np.testing.assert_array_equal(tff.resource(jax.numpy.asarray(BASE))(), BASE)
    np.testing.assert_array_equal(tff.resource(tf.Variable(tf.constant(BASE)))(), BASE)
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(tff.resource(torch.tensor(BASE))(), BASE)


def test_values_are_copied() -> None:
    array = BASE.copy()
    frozen = tff.resource(array)
    array[:] = 0
    np.testing.assert_array_equal(frozen(), BASE)
    with pytest.raises(ValueError, match="read-only"):
        frozen()[0, 0] = 1


def test_equal_values_are_one_computation() -> None:
    assert tff.resource([BASE, BASE]) == tff.resource((BASE.copy(), BASE))
    assert tff.resource(BASE) != tff.resource(BASE + 1)
    assert tff.resource(BASE) != tff.resource(BASE.reshape(3, 2))
    assert tff.resource(BASE) != tff.resource(BASE.view(np.int32))
    assert str(tff.resource(BASE).node) != str(tff.resource(BASE + 1).node)
    assert len(resources_of([tff.resource([BASE, BASE]).node])) == 1


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ("text", "an object of class 'str'"),
        ({"a": [BASE, None]}, "None"),
        (np.array(["a"]), "an object of class 'ndarray'"),
        (np.array([object()]), "an object of class 'ndarray'"),
        (tf.data.Dataset.range(2), "an object of class '_RangeDataset'"),
        (CIRCLE, "a container that contains itself"),
    ],
)
def test_other_values(values: Any, what: str) -> None:
    assert str(error_without_place(LanguageTypeError, lambda: tff.resource(values))) == (
        f"a resource is made of arrays of numbers, not of {what} [E342]\n"
        "  help: give an array, or a mapping, list, tuple or struct of arrays"
    )


def test_in_tensorflow_it_is_one_node_whatever_calls_it() -> None:
    frozen = tff.resource({"w": BASE})

    @tff.tf_computation(np.float32)
    def nested(x: Any) -> Any:
        @tf.function
        def inner(y: Any) -> Any:
            return tf.cond(y > 0, lambda: tf.reduce_sum(frozen()["w"]), lambda: y)

        rows = tf.data.Dataset.range(2).map(lambda i: frozen()["w"][i, 1])
        return inner(x) + rows.reduce(np.float32(0), lambda a, b: a + b) + frozen()["w"][1, 2]

    assert nested(1.0) == 15 + (1 + 4) + 5
    assert nested(-1.0) == -1 + (1 + 4) + 5
    graph = read_section(nested.node).graph
    named = [node for node in graph.node if "_resource" in node.attr]
    assert len(named) == 1
    assert not any("_resource" in n.attr for f in graph.library.function for n in f.node_def)

    @tff.tf_computation
    def outer() -> Any:
        return nested(1.0), frozen()

    assert outer()[0] == 25
    named = [node for node in read_section(outer.node).graph.node if "_resource" in node.attr]
    assert len(named) == 1


def test_variables_may_begin_with_it() -> None:
    frozen = tff.resource(BASE)

    @tff.tf_computation
    def raised() -> Any:
        variable: Any = tf.Variable(frozen())
        variable.assign_add(tf.ones([2, 3]))
        return variable.read_value()

    for _ in range(2):
        np.testing.assert_array_equal(raised(), BASE + 1)
    np.testing.assert_array_equal(frozen(), BASE)


@pytest.mark.parametrize("placement", [tff.CLIENTS, tff.SERVER])
def test_at_both_placements(placement: Any) -> None:
    frozen = tff.resource(BASE)
    everywhere = tff.federated_computation(lambda: tff.federated_eval(frozen, placement))
    given = everywhere()
    for each in given if placement is tff.CLIENTS else [given]:
        np.testing.assert_array_equal(each, BASE)


def test_it_runs_without_a_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = tff.resource(BASE)
    monkeypatch.setitem(sys.modules, "tffc.runtime.frameworks.tensorflow.runner", None)
    assert frozen() is frozen()


def test_a_trace_of_jax_is_told_to_take_it_as_an_argument() -> None:
    pytest.importorskip("jax")
    frozen = tff.resource(BASE)

    def shifted(x: Any) -> Any:
        return x + frozen()

    trace = functools.partial(tff.jax_computation(np.float32), shifted)
    said = str(error_without_place(LanguageValueError, trace))
    assert said == (
        "a computation of type `( -> float32[2,3])` is called inside a jax.computation, but only "
        "TensorFlow computations can be called, and only by one another [E430]\n"
        "  help: call it in a federated computation and pass on what it gives"
    )
