"""JAX by hand: clients one after another in a compiled loop, and vectorised."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.rounds.jax_models import losses
from benchmarks.rounds.measured import Measured, Round
from benchmarks.rounds.workloads import WORKLOADS, Arrays, clients_of


def _padded(name: str) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the data of all clients, padded to the longest, and how many examples each has."""
    data = clients_of(name)
    counts = np.array([len(y) for _, y in data], np.int32)
    most = counts.max()
    x = np.stack([np.pad(x, ((0, most - len(x)), (0, 0))) for x, _ in data])
    y = np.stack([np.pad(y, (0, most - len(y))) for _, y in data])
    return jnp.asarray(x), jnp.asarray(y), jnp.asarray(counts)


def _step(name: str):
    """Return the weights after one step of a client, on its batch of that number."""
    workload = WORKLOADS[name]

    def loss(weights, x, y, counts):
        each = jnp.where(counts, losses(workload, weights, x, y), 0)
        return each.sum() / jnp.maximum(counts.sum(), 1)

    def step(number, weights, x, y, count):
        at = number * workload.batch + jnp.arange(workload.batch)
        rows = at % count
        gradients = jax.grad(loss)(weights, x[rows], y[rows], at < workload.epochs * count)
        return [w - workload.rate * g for w, g in zip(weights, gradients, strict=True)]

    return step


def _run(compiled, name: str) -> Round:
    data = _padded(name)

    def run(weights: Arrays) -> Arrays:
        return [np.asarray(each) for each in compiled(weights, *data)]

    return run


def scan(name: str) -> Round:
    """Loop over clients, and inside over the steps of each."""
    workload, step = WORKLOADS[name], _step(name)

    @jax.jit
    def each_round(weights, x, y, counts):
        def client(total, given):
            own_x, own_y, count = given
            steps = (workload.epochs * count + workload.batch - 1) // workload.batch
            trained = jax.lax.fori_loop(
                0, steps, lambda i, w: step(i, w, own_x, own_y, count), weights
            )
            return [
                t + count * (a - b) for t, a, b in zip(total, trained, weights, strict=True)
            ], None

        total, _ = jax.lax.scan(client, [jnp.zeros_like(w) for w in weights], (x, y, counts))
        return [w + t / counts.sum() for w, t in zip(weights, total, strict=True)]

    return _run(each_round, name)


def unrolled(name: str) -> Round:
    """Clients one call after another, and their steps without a loop, in which XLA would compute
    convolutions on one core and slowly."""
    workload, step = WORKLOADS[name], _step(name)
    steps = -(-workload.epochs * workload.size // workload.batch)

    @jax.jit
    def client(total, weights, x, y, count):
        trained = weights
        for number in range(steps):
            trained = step(number, trained, x, y, count)
        return [t + count * (a - b) for t, a, b in zip(total, trained, weights, strict=True)]

    def each_round(weights, x, y, counts):
        total = [jnp.zeros_like(w) for w in weights]
        for number in range(workload.clients):
            total = client(total, weights, x[number], y[number], counts[number])
        return [w + t / counts.sum() for w, t in zip(weights, total, strict=True)]

    return _run(each_round, name)


def vmap(name: str) -> Round:
    """Train all clients at once, each for as many steps as the longest; surplus steps do
    nothing."""
    workload, step = WORKLOADS[name], _step(name)
    most = max(len(y) for _, y in clients_of(name))
    steps = -(-workload.epochs * most // workload.batch)

    @jax.jit
    def each_round(weights, x, y, counts):
        def client(own_x, own_y, count):
            trained = jax.lax.fori_loop(
                0, steps, lambda i, w: step(i, w, own_x, own_y, count), weights
            )
            return [count * (a - b) for a, b in zip(trained, weights, strict=True)]

        changes = jax.vmap(client)(x, y, counts)
        return [w + c.sum(0) / counts.sum() for w, c in zip(weights, changes, strict=True)]

    return _run(each_round, name)


def Side() -> Measured:
    return Measured({"scan": scan, "unrolled": unrolled, "vmap": vmap}, ["jax", "jaxlib"])
