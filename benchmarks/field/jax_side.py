"""JAX by hand: the clients of a round at once, one after another, and a call for each batch.

All data is on the device from the beginning, padded to the largest client.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.field.training import Federation, Options, Trained, Training, Way
from benchmarks.rounds import jax_models
from benchmarks.rounds.workloads import Arrays, Drop, Workload, keep

Data = tuple[jax.Array, jax.Array, jax.Array]
Train = Callable[[Any, Any, Any, Data], Any]
"""Gives the weights after a round from those before, the number of the round, its clients and the
data of all clients."""


def _padded(federation: Federation) -> Data:
    """Return the images and labels of all clients, and how many each has."""
    data, features = federation.clients, federation.setting.workload.features
    counts = np.array([len(y) for _, y in data], np.int32)
    x = np.zeros((len(data), counts.max(), features), np.float32)
    y = np.zeros((len(data), counts.max()), np.int32)
    for number, (own_x, own_y) in enumerate(data):
        x[number, : len(own_y)], y[number, : len(own_y)] = own_x, own_y
    return jax.device_put(x), jax.device_put(y), jax.device_put(counts)


def drop_of(workload: Workload, key: Any, batch: Any) -> Drop:
    """Return dropout, drawn by a client's key and the number of the batch."""

    def drop(values: Any, place: int) -> Any:
        rest = 1 - workload.dropout[place]
        own = jax.random.fold_in(jax.random.fold_in(key, batch), place)
        return jnp.where(jax.random.bernoulli(own, rest, values.shape), values / rest, 0)

    return drop if any(workload.dropout) else keep


def _step(workload: Workload):
    """Return the weights after a client's batch of that number; beyond its images, they stay."""

    def loss(weights, x, y, counts, drop):
        each = jnp.where(counts, jax_models.losses(workload, weights, x, y, drop), 0)
        return each.sum() / jnp.maximum(counts.sum(), 1)

    def step(weights, number, key, x, y, count):
        at = number * workload.batch + jnp.arange(workload.batch)
        rows = jnp.minimum(at, count - 1)
        drop = drop_of(workload, key, number)
        gradients = jax.grad(loss)(weights, x[rows], y[rows], at < count, drop)
        return [w - workload.rate * g for w, g in zip(weights, gradients, strict=True)]

    return step


def _keys(round, cohort):
    return jax.vmap(functools.partial(jax.random.fold_in, jax.random.key(round)))(cohort)


def _batches(workload: Workload, counts):
    return (counts + workload.batch - 1) // workload.batch


def _moved(weights, total, counts):
    return [w + t / counts.sum() for w, t in zip(weights, total, strict=True)]


def vmap(workload: Workload) -> Train:
    """Train the clients at once, each for as many steps as the largest of the round needs."""
    step = _step(workload)

    @jax.jit
    def train(weights, round, cohort, data):
        x, y, counts = (each[cohort] for each in data)
        steps = _batches(workload, counts).max()

        def client(key, own_x, own_y, count):
            trained = jax.lax.fori_loop(
                0, steps, lambda number, w: step(w, number, key, own_x, own_y, count), weights
            )
            return [count * (a - b) for a, b in zip(trained, weights, strict=True)]

        changes = jax.vmap(client)(_keys(round, cohort), x, y, counts)
        return _moved(weights, [each.sum(0) for each in changes], counts)

    return train


def scan(workload: Workload) -> Train:
    """Loop over the clients, and inside over the batches of each, in one call."""
    step = _step(workload)

    @jax.jit
    def train(weights, round, cohort, data):
        def client(total, drawn):
            number, key = drawn
            x, y, count = (each[number] for each in data)
            steps = _batches(workload, count)
            trained = jax.lax.fori_loop(
                0, steps, lambda batch, w: step(w, batch, key, x, y, count), weights
            )
            return [
                t + count * (a - b) for t, a, b in zip(total, trained, weights, strict=True)
            ], None

        zero = [jnp.zeros_like(each) for each in weights]
        total, _ = jax.lax.scan(client, zero, (cohort, _keys(round, cohort)))
        return _moved(weights, total, data[2][cohort])

    return train


def calls(workload: Workload) -> Train:
    """Call a compiled step for each batch: outside of loops, XLA computes convolutions on a CPU in
    several threads."""
    compiled, keys = jax.jit(_step(workload)), jax.jit(_keys)

    @jax.jit
    def add(total, trained, weights, count):
        return [t + count * (a - b) for t, a, b in zip(total, trained, weights, strict=True)]

    def train(weights, round, cohort, data):
        total = [jnp.zeros_like(each) for each in weights]
        counts = np.asarray(data[2])[cohort]
        for client, key, count in zip(cohort, keys(round, cohort), counts, strict=True):
            x, y, trained = data[0][client], data[1][client], weights
            for number in range(_batches(workload, count)):
                trained = compiled(trained, number, key, x, y, count)
            total = add(total, trained, weights, count)
        return _moved(weights, total, counts)

    return train


def _trained(build: Callable[[Workload], Train]) -> Way:
    def make(federation: Federation, options: Options) -> Training:
        workload = federation.setting.workload
        data, train = _padded(federation), build(workload)
        present = [[jnp.asarray(each) for each in workload.first_weights()]]
        outputs = jax.jit(functools.partial(jax_models.scores, workload))

        def advance(number: int) -> None:
            cohort = np.asarray(federation.cohorts[number], np.int32)
            present[0] = jax.block_until_ready(train(present[0], number, cohort, data))

        def weights() -> Arrays:
            return [np.asarray(each) for each in present[0]]

        return Training(advance, weights, lambda x: np.asarray(outputs(present[0], x)))

    return make


def Side() -> Trained:
    ways = {"vmap": _trained(vmap), "scan": _trained(scan), "calls": _trained(calls)}
    return Trained(ways, ["jax", "jaxlib"])
