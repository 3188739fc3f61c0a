"""Lines through points: a model in TensorFlow, clients, and the algorithms again in NumPy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import tensorflow as tf

import tffc

Array = np.ndarray[Any, Any]
Weights = dict[str, Array]

COLUMNS = {"x": (np.float32, [2]), "y": np.float32}
FIRST = {"slope": np.array([0.5, -1.0], np.float32), "height": np.float32(0.25)}


def losses(weights: Any, batch: Any) -> Any:
    errors = tf.linalg.matvec(batch["x"], weights["slope"]) + weights["height"] - batch["y"]
    return errors**2, {"distance": tf.abs(errors)}


@functools.cache
def line() -> tffc.algorithms.Model:
    return tffc.algorithms.Model.from_functions(FIRST, losses, COLUMNS)


def clients(*sizes: int) -> list[Weights]:
    """Clients with points near a line; the last batches of most are not full."""
    random = np.random.default_rng(3)
    inputs = [random.normal(size=(size, 2)).astype(np.float32) for size in sizes]
    return [{"x": x, "y": (x @ [2.0, 1.0] + 1).astype(np.float32)} for x in inputs]


SIZES = (7, 4, 1, 10, 5)


def errors(weights: Weights, x: Array, y: Array) -> Array:
    return x @ weights["slope"] + weights["height"] - y


def gradient(weights: Weights, x: Array, y: Array) -> Weights:
    """The gradient of the mean square of the errors."""
    off = errors(weights, x, y)
    return {"slope": 2 * off @ x / len(off), "height": np.array(2 * off.mean())}


def train(
    weights: Weights, client: Weights, rate: float, epochs: int, batch_size: int, mu: float = 0.0
) -> tuple[Weights, list[Array]]:
    """A client's weights after gradient descent, and its errors before each step."""
    before, seen = weights, []
    for _ in range(epochs):
        for start in range(0, len(client["y"]), batch_size):
            x, y = client["x"][start:][:batch_size], client["y"][start:][:batch_size]
            seen.append(errors(weights, x, y))
            slopes = gradient(weights, x, y)
            weights = {
                name: w - rate * (slopes[name] + mu * (w - before[name]))
                for name, w in weights.items()
            }
    return weights, seen


def updates(weights: Weights, data: list[Weights], *settings: Any) -> list[Weights]:
    """How far the weights of each client move."""
    return [
        {
            name: after - weights[name]
            for name, after in train(weights, client, *settings)[0].items()
        }
        for client in data
    ]


def mean(updates: list[Weights], weights: Any) -> Weights:
    return {name: np.average([u[name] for u in updates], 0, weights) for name in updates[0]}


def moved(weights: Weights, update: Weights, rate: float = 1.0) -> Weights:
    return {name: w + rate * update[name] for name, w in weights.items()}


def first() -> Weights:
    return {name: np.array(value, np.float64) for name, value in FIRST.items()}


def check(state: Any, weights: Weights) -> None:
    """Check that a state has these weights."""
    for name, value in weights.items():
        np.testing.assert_allclose(state["model"][name], value, rtol=1e-4, atol=1e-5)
