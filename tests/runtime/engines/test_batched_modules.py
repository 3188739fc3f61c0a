"""Work in JAX and PyTorch is vectorised over clients, and gives what it gives one by one."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import tffc as tff
from tests.runtime.engines.batches import (
    LOOPED,
    Outcome,
    assert_alike,
    check_same,
    process_of,
    source_of,
)
from tffc.language.values.concrete import to_value
from tffc.runtime.batching import compilers
from tffc.runtime.batching.choices import PJRT
from tffc.runtime.batching.limits import Limits
from tffc.runtime.engines.process import Process

TOGETHER = Limits(most_numbers=10**9, most_kernels=2)
"""Models of any size are vectorised, and one kernel takes clients of all sizes."""

AT_ONCE, IN_TURN = "vectorised over the clients of a batch", "a loop over the clients of a batch"
RAGGED = f"{AT_ONCE}: sequences in steps of 1 elements"


@pytest.fixture(autouse=True)
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX compiles batches."""
    monkeypatch.setattr(compilers, "preferred", lambda: PJRT)


def round_in_jax(work: Callable[..., Any], data: Any, state: Any = ()) -> Process:
    """A round that sums what each client makes of the state and its data."""

    @tff.federated_computation(tff.types.at_server(state), tff.types.at_clients(data))
    def each_round(state: Any, data: Any) -> Any:
        made = tff.federated_map(work, (tff.federated_broadcast(state), data))
        return state, tff.federated_sum(made)

    return process_of(each_round, "mapreduce")


WEIGHTS = tff.StructType(
    [("dense", tff.TensorType(np.float32, [4, 3])), ("bias", tff.TensorType(np.float32, [3]))]
)
ROW = tff.StructType([("x", tff.TensorType(np.float32, [4])), ("y", np.int32)])
FIRST = {"dense": np.zeros((4, 3), np.float32), "bias": np.zeros(3, np.float32)}


def loss(weights: Any, row: Any) -> Any:
    return -jax.nn.log_softmax(row["x"] @ weights["dense"] + weights["bias"])[row["y"]]


@tff.jax_computation(WEIGHTS, ROW)
def step(weights: Any, row: Any) -> Any:
    slopes = jax.grad(loss)(weights, row)
    return jax.tree.map(lambda weight, slope: weight - 0.1 * slope, weights, slopes)


@tff.federated_computation(WEIGHTS, tff.SequenceType(ROW))
def train(weights: Any, rows: Any) -> Any:
    return tff.sequence_reduce(rows, weights, step)


def rows(count: int) -> list[Any]:
    draw = np.random.default_rng(count)
    return [
        {"x": draw.normal(size=4).astype(np.float32), "y": np.int32(draw.integers(3))}
        for _ in range(count)
    ]


def test_clients_of_several_sizes_train_at_once() -> None:
    process = round_in_jax(train, tff.SequenceType(ROW), WEIGHTS)
    state = to_value(FIRST, process.state_type)
    values = [rows(count) for count in (3, 1, 7, 0, 4)]
    found = check_same(process, values, state=state, limits=TOGETHER)
    assert RAGGED in found.decisions[-1]


def collatz(number: Any) -> Any:
    """The steps from a number to one."""

    def following(pair: Any) -> Any:
        value, steps = pair
        return jnp.where(value % 2 == 0, value // 2, value * 3 + 1), steps + 1

    return lax.while_loop(lambda pair: pair[0] > 1, following, (number, np.int32(0)))[1]


def to_zero(number: Any) -> Any:
    """A loop that does not end for a number below 0."""
    return lax.while_loop(lambda n: n != 0, lambda n: n - 1, number)


@tff.jax_computation((), np.int32)
def steps_to_one(state: Any, number: Any) -> Any:
    return collatz(number)


@tff.jax_computation(np.int32, np.int32)
def counted_down(total: Any, number: Any) -> Any:
    return total + number + to_zero(number)


@tff.federated_computation((), tff.SequenceType(np.int32))
def counted_down_each(state: Any, numbers: Any) -> Any:
    return tff.sequence_reduce(numbers, np.int32(0), counted_down)


def test_a_loop_takes_as_many_steps_as_the_client_needs() -> None:
    process = round_in_jax(steps_to_one, np.int32)
    found = check_same(process, [np.int32(number) for number in (27, 1, 6, 97, 2)])
    assert AT_ONCE in found.decisions[-1]


def test_loops_in_the_steps_of_clients_of_several_sizes_are_computed_in_turn() -> None:
    """For a client without a further number, the loop would not end."""
    process = round_in_jax(counted_down_each, tff.SequenceType(np.int32))
    values = [[np.int32(9)] * 2, [np.int32(5)], [np.int32(7)] * 3]
    found = check_same(process, values, limits=TOGETHER)
    reason = "a module has a loop that might not end for clients not in it"
    assert any(each.endswith(reason) for each in found.decisions)
    assert IN_TURN in found.decisions[-1]


@tff.jax_computation((), tff.TensorType(np.float32, [4]))
def in_another_order(state: Any, x: Any) -> Any:
    return x + lax.dot(x, x, precision=lax.DotAlgorithmPreset.F32_F32_F32)


def test_what_is_not_translated_is_computed_one_by_one_and_says_why() -> None:
    process = round_in_jax(in_another_order, tff.TensorType(np.float32, [4]))
    values = [np.arange(4, dtype=np.float32) + client for client in range(5)]
    source = source_of(process, values)
    found, alone = Outcome(process, source), Outcome(process, source, 1)
    assert found.together == 0
    reason = "stablehlo.dot_general is computed by an algorithm that not every device has"
    assert any(each.endswith(reason) for each in found.decisions)
    np.testing.assert_array_equal(found.output[0], alone.output[0])


QUICK = ("conv2d",)
SLOW = ("activations", "batch_norm", "conv1d", "encoder", "gru", "lstm", "mlp", "norms", "rnn")
"""One of each kind of layer; the other models are left to the long tests."""


def zoo_models() -> list[Any]:
    """The models of the zoo, if PyTorch is installed."""
    if not all(map(importlib.util.find_spec, ("torch", "torchax"))):
        return [pytest.param("mlp", marks=pytest.mark.skip(reason="PyTorch is not installed"))]
    from tests.frontend.torch import zoo

    def marks(name: str) -> Sequence[pytest.MarkDecorator]:
        if name in QUICK:
            return ()
        return [pytest.mark.slow] if name in SLOW else [pytest.mark.slow, pytest.mark.long]

    return [pytest.param(name, marks=marks(name)) for name in zoo.MODELS]


@pytest.mark.slow
@pytest.mark.parametrize("name", zoo_models())
def test_clients_train_models_of_pytorch_at_once(name: str) -> None:
    from tests.frontend.torch import zoo
    from tests.frontend.torch.zoo_training import batch_of, trainer

    each = trainer(zoo.MODELS[name])
    parameter = each.compiled.type_signature.parameter
    assert isinstance(parameter, tff.StructType)
    trained, averaged, batch = (parameter[place] for place in range(3))

    @tff.federated_computation((trained, averaged), batch)
    def step(weights: Any, batch: Any) -> Any:
        after = each.compiled(weights[0], weights[1], batch)
        return after.trained, after.averaged

    @tff.federated_computation((trained, averaged), tff.SequenceType(batch))
    def train(weights: Any, batches: Any) -> Any:
        return tff.sequence_reduce(batches, weights, step)

    process = round_in_jax(train, tff.SequenceType(batch), (trained, averaged))
    state = to_value((each.weights.trained, each.weights.averaged), process.state_type)
    values = [
        [[part.numpy() for part in batch_of(each.model, client, number)] for number in range(count)]
        for client, count in enumerate((2, 1, 3))
    ]
    source = source_of(process, values)
    alone = Outcome(process, source, 1, state=state)
    found = Outcome(process, source, state=state, limits=TOGETHER)
    assert RAGGED in found.decisions[-1]
    assert found.together == len(values)
    for one, other in zip(found.output, alone.output, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


FOUR = tff.TensorType(np.float32, [4])


@tff.jax_computation((), FOUR)
def extremes(state: Any, x: Any) -> Any:
    return {
        "greatest": jnp.max(x),
        "least": jnp.min(x),
        "of two": jnp.maximum(x, 2),
        "running": lax.cummax(x),
        "slope": jax.grad(lambda x: jnp.max(x))(x),
    }


@pytest.mark.parametrize("limits", [TOGETHER, LOOPED], ids=["vectorised", "looped"])
def test_extremes_keep_what_is_not_a_number(limits: Limits) -> None:
    values = [np.array([np.nan, 1, 2, 3], np.float32), np.array([1, 2, 3, 4], np.float32)]
    found = check_same(round_in_jax(extremes, FOUR), values, limits=limits)
    assert np.isnan(found.output[0])


@tff.jax_computation((), [tff.TensorType(np.float32, [300]), np.uint8])
def written(state: Any, pair: Any) -> Any:
    x, place = pair
    dimensions = lax.ScatterDimensionNumbers((), (0,), (0,))
    return lax.scatter_add(x, place[None], jnp.float32(1), dimensions)


def test_indices_of_a_type_that_is_too_small_are_those_of_one_by_one() -> None:
    process = round_in_jax(written, [tff.TensorType(np.float32, [300]), np.uint8])
    values = [(np.zeros(300, np.float32), np.uint8(place)) for place in (100, 251)]
    source = source_of(process, values)
    alone, found = Outcome(process, source, 1), Outcome(process, source)
    assert_alike(process, found, alone)
    assert found.together == 0
    assert "indices of type uint8" in found.decisions[-1]
