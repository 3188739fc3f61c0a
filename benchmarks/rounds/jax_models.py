"""The networks in JAX, for the sides that use it."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.rounds.workloads import Drop, Workload, keep

DIMENSIONS = ("NHWC", "HWIO", "NHWC")


def losses(workload: Workload, weights, x, y, drop: Drop = keep):
    """Return the cross entropy of each example."""
    outputs = scores(workload, weights, x, drop)
    if workload.kind == "logistic":
        return jax.nn.softplus(outputs[:, 0]) - y * outputs[:, 0]
    return -jnp.take_along_axis(jax.nn.log_softmax(outputs), y[:, None], 1)[:, 0]


def scores(workload: Workload, weights, x, drop: Drop = keep):
    """Return the outputs of the network for each example, before they are probabilities."""
    rest = list(weights)
    if workload.kind == "cnn":
        x = x.reshape(-1, *workload.image)
        for _ in range(2):
            kernel, bias, *rest = rest
            x = jax.lax.conv_general_dilated(
                x, kernel, (1, 1), "VALID", dimension_numbers=DIMENSIONS
            )
            x = jax.nn.relu(x + bias)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        x = drop(x.reshape(len(x), -1), 0)
    while rest:
        matrix, bias, *rest = rest
        x = x @ matrix + bias
        x = drop(jax.nn.relu(x), 1) if rest else x
    return x
