"""A function bound to a part of a trained state computes the same as when it is called with it."""

from __future__ import annotations

import collections
import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tffc.deploy.export.saved_model import DEFAULT, FILE, saved_model
from tffc.deploy.export.trained import StatePart, bind_part, find_part
from tffc.language import Compiled, Node, StructType, TensorType, Type
from tffc.language.values.concrete import to_value
from tffc.runtime.frameworks.sections import run_section
from tffc.support.errors import ExportError

MODEL = collections.OrderedDict(
    kernel=TensorType(np.float32, [2, 3]), bias=TensorType(np.float32, [3])
)
STATE = tff.to_type(collections.OrderedDict(model=MODEL, velocity=MODEL, round=np.int32))
KERNEL = np.arange(6, dtype=np.float32).reshape(2, 3)
WEIGHTS = (KERNEL, np.ones(3, np.float32))
ZEROS = (0 * KERNEL, np.zeros(3, np.float32))


def state_of(type: Type, value: Any) -> StatePart:
    return StatePart("", "", type, value)


STATE_VALUE = state_of(STATE, (WEIGHTS, ZEROS, np.int32(7)))


@tff.tf_computation(MODEL, TensorType(np.float32, [None, 2]))
def predict(model: Any, batch: Any) -> Any:
    scores = batch @ model["kernel"] + model["bias"]
    return collections.OrderedDict(scores=scores, best=tf.argmax(scores, axis=1))


def node(computation: Any) -> Node:
    return computation.to_building_block()


def refusal(computation: Any, part: StatePart, state: StatePart = STATE_VALUE) -> str:
    with pytest.raises(ExportError) as caught:
        bind_part(node(computation), part, state)
    return str(caught.value)


@pytest.mark.parametrize("path", ["model", "0"])
def test_a_part_is_the_first_argument(path: str) -> None:
    part = find_part(STATE_VALUE, path)
    bound = bind_part(node(predict), part, STATE_VALUE)
    assert str(bound.type) == "(<batch=float32[?,2]> -> <scores=float32[?,3],best=int64[?]>)"
    batch = np.array([[1, 2], [-1, 0]], np.float32)
    whole = node(predict)
    assert isinstance(whole, Compiled)
    np.testing.assert_equal(run_section(bound, (batch,)), run_section(whole, (WEIGHTS, batch)))


def test_a_saved_model_has_the_names_of_the_users(tmp_path: pathlib.Path) -> None:
    bound = bind_part(node(predict), find_part(STATE_VALUE, "model"), STATE_VALUE)
    content, linked = saved_model({DEFAULT: bound}, bare_names=True)
    assert list(linked.signatures[DEFAULT].inputs) == ["batch"]
    assert list(linked.signatures[DEFAULT].outputs) == ["scores", "best"]
    (tmp_path / FILE).write_bytes(content)
    # Made by TensorFlow, whose stubs do not say what.
    model: Any = tf.saved_model.load(str(tmp_path))
    given = model.signatures[DEFAULT](batch=tf.constant([[1.0, 2.0]]))
    np.testing.assert_equal(given["scores"].numpy(), [[7, 10, 13]])
    np.testing.assert_equal(given["best"].numpy(), [2])


def test_the_state_may_be_the_only_argument() -> None:
    @tff.tf_computation(STATE)
    def rounds(state: Any) -> Any:
        return state["round"], state["model"]["bias"]

    bound = bind_part(node(rounds), STATE_VALUE, STATE_VALUE)
    assert str(bound.type) == "( -> <int32,float32[3]>)"
    np.testing.assert_equal(run_section(bound, None), (np.int32(7), WEIGHTS[1]))


def test_names_without_a_name_begin_with_the_root() -> None:
    @tff.tf_computation(np.int32, [np.int32, np.int32])
    def both(first: Any, rest: Any) -> Any:
        return first + rest[0], rest[1]

    state = state_of(TensorType(np.int32), np.int32(3))
    bound = bind_part(node(both), state, state)
    _, linked = saved_model({DEFAULT: bound}, bare_names=True)
    assert list(linked.signatures[DEFAULT].inputs) == ["rest_0", "rest_1"]
    assert list(linked.signatures[DEFAULT].outputs) == ["result_0", "result_1"]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (TensorType(np.str_, [2]), np.array([b"a\0", b""], dtype=object)),
        (TensorType(np.float32, [None]), np.ones(3, np.float32)),
        (TensorType(np.bool_), np.bool_(True)),
        (StructType([]), ()),
    ],
)
def test_values_of_other_types(kind: Type, value: Any) -> None:
    @tff.tf_computation(kind, np.int32)
    def same(state: Any, number: Any) -> Any:
        return state, number

    state = state_of(kind, value)
    bound = bind_part(node(same), state, state)
    np.testing.assert_equal(run_section(bound, (np.int32(1),)), (value, np.int32(1)))


def test_a_part_that_there_is_not() -> None:
    with pytest.raises(ExportError) as caught:
        find_part(STATE_VALUE, "modle")
    assert str(caught.value) == (
        "the state has no part 'modle' [E803]\n"
        f"  note: the state is of type `{STATE}`\n"
        "  help: its parts are model, model/kernel, model/bias, velocity, velocity/kernel, "
        "velocity/bias, round"
    )
    with pytest.raises(ExportError, match="leave the part out"):
        find_part(state_of(TensorType(np.int32), np.int32(1)), "0")


def test_a_function_of_another_part() -> None:
    assert refusal(predict, STATE_VALUE) == (
        f"the function cannot be given the state, which is of type `{STATE}` [E853]\n"
        "  note: its parameter is of type `<model=<kernel=float32[2,3],bias=float32[3]>,"
        "batch=float32[?,2]>`\n"
        "  help: name the part of the state to give it: model, velocity"
    )

    @tff.tf_computation
    def nothing() -> Any:
        return 1

    assert refusal(nothing, find_part(STATE_VALUE, "model/bias")) == (
        "the function cannot be given the part model/bias of the state, which is of type "
        "`float32[3]` [E853]\n"
        "  note: it has none\n"
        "  help: give the function's first parameter the type of the state or of a part of it"
    )


def test_a_function_in_pytorch() -> None:
    torch = pytest.importorskip("torch")

    @tff.torch.computation(MODEL, TensorType(np.float32, [2, 2]))
    def scores(model: Any, batch: Any) -> Any:
        return torch.relu(batch @ model["kernel"] + model["bias"])

    bound = bind_part(node(scores), find_part(STATE_VALUE, "model"), STATE_VALUE)
    assert str(bound.type) == "(<batch=float32[2,2]> -> float32[2,3])"
    batch = np.array([[1, 2], [-1, 0]], np.float32)
    found = run_section(bound, (batch,))
    np.testing.assert_allclose(found, np.maximum(batch @ KERNEL + 1, 0))


def test_a_federated_function() -> None:
    @tff.federated_computation(STATE)
    def same(state: Any) -> Any:
        return state

    assert refusal(same, STATE_VALUE) == (
        "expected a computation of TensorFlow, JAX or PyTorch, found one of another kind, of "
        f"type `({STATE} -> {STATE})` [E873]\n"
        "  help: decorate a function of the model and its input with "
        "@tff.tf_computation(MODEL, BATCH)"
    )


def test_what_a_graph_cannot_keep() -> None:
    data = tff.SequenceType(np.int32)

    @tff.tf_computation(data)
    def total(rows: Any) -> Any:
        return rows.reduce(0, lambda x, y: x + y)

    state = state_of(data, to_value([1, 2], data))
    assert refusal(total, state, state) == (
        "the state cannot be kept in a graph: it contains sequences, expected only tensors "
        "[E875]\n"
        "  help: name a part of the state that has only what the function needs"
    )
    large = TensorType(np.float32, [2**20, 2**10])

    @tff.tf_computation(large)
    def first(x: Any) -> Any:
        return x[0, 0]

    # An array that takes no memory, for all of its elements are one.
    state = state_of(large, np.broadcast_to(np.float32(1), (2**20, 2**10)))
    assert "it has 4,294,967,296 bytes, and a graph takes less than 2 GiB [E875]" in refusal(
        first, state, state
    )
