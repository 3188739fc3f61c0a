"""Rounds whose clients use frozen weights: as a resource, or as constants of their graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff

BASE = (np.arange(12, dtype=np.float32).reshape(4, 3) - 5) / 8
BIAS = np.array([1, 0, -1], np.float32)
VALUES = {"base": BASE, "bias": BIAS}
WEIGHTS = tff.TensorType(np.float32, [3, 2])
BATCH = tff.to_type(
    {"x": tff.TensorType(np.float32, [2, 4]), "y": tff.TensorType(np.float32, [2, 2])}
)
DATA = tff.SequenceType(BATCH)
ZEROS = np.zeros((3, 2), np.float32)
FORMS = ("mapreduce", "distribute-aggregate", "mergeable", "broadcast", "client-state")


def clients(count: int = 4, batches: int = 3) -> list[list[dict[str, Any]]]:
    """The batches of some clients."""
    draw = np.random.default_rng(7)
    return [
        [
            {
                "x": draw.normal(size=(2, 4)).astype(np.float32),
                "y": draw.normal(size=(2, 2)).astype(np.float32),
            }
            for _ in range(batches)
        ]
        for _ in range(count)
    ]


def resource(values: Any = VALUES) -> Any:
    """The weights as a resource."""
    return tff.resource(values)


def constants(values: Any = VALUES) -> Any:
    """The weights as constants of a graph."""
    return tff.tf_computation(lambda: tf.nest.map_structure(tf.constant, values))


def in_tensorflow(frozen: Any) -> Any:
    """Training that calls the weights inside of the function of a dataset's reduction."""

    @tff.tf_computation(WEIGHTS, DATA)
    def train(weights: Any, batches: Any) -> Any:
        def step(weights: Any, batch: Any) -> Any:
            fixed = frozen()
            features = tf.tanh(batch["x"] @ fixed["base"] + fixed["bias"])
            error = features @ weights - batch["y"]
            return weights - tf.transpose(features) @ error / 10

        return batches.reduce(weights, step)

    return train


def in_jax(frozen: Any) -> Any:
    """Training whose step is written in JAX, and gets the weights as an argument."""
    import jax.numpy as jnp

    @tff.jax_computation(frozen.type_signature.result, WEIGHTS, BATCH)
    def step(fixed: Any, weights: Any, batch: Any) -> Any:
        features = jnp.tanh(batch["x"] @ fixed["base"] + fixed["bias"])
        error = features @ weights - batch["y"]
        return weights - features.T @ error / 10

    return _by_steps(frozen, step)


def in_torch(frozen: Any) -> Any:
    """Training whose step is written in PyTorch, and gets the weights as an argument."""
    torch = pytest.importorskip("torch")

    @tff.torch_computation(frozen.type_signature.result, WEIGHTS, BATCH)
    def step(fixed: Any, weights: Any, batch: Any) -> Any:
        features = torch.tanh(batch["x"] @ fixed["base"] + fixed["bias"])
        error = features @ weights - batch["y"]
        return weights - features.T @ error / 10

    return _by_steps(frozen, step)


def _by_steps(frozen: Any, step: Any) -> Any:
    """Training by a step that takes the frozen weights, the trained ones and a batch."""

    @tff.federated_computation(WEIGHTS, BATCH)
    def following(weights: Any, batch: Any) -> Any:
        return step(frozen(), weights, batch)

    @tff.federated_computation(WEIGHTS, DATA)
    def train(weights: Any, batches: Any) -> Any:
        return tff.sequence_reduce(batches, weights, following)

    return train


def round_of(form: str, train: Any) -> Any:
    """A round of training in a form."""
    state, data = tff.types.at_server(WEIGHTS), tff.types.at_clients(DATA)

    if form == "broadcast":

        @tff.federated_computation(state, data)
        def personal(weights: Any, batches: Any) -> Any:
            return tff.federated_map(train, (tff.federated_broadcast(weights), batches))

        return personal
    if form == "client-state":
        add = tff.tf_computation(lambda x, y: x + y, WEIGHTS, WEIGHTS)

        @tff.federated_computation(state, tff.types.at_clients((DATA, WEIGHTS)))
        def own(weights: Any, kept: Any) -> Any:
            batches, before = kept[0], kept[1]
            start = tff.federated_map(add, (tff.federated_broadcast(weights), before))
            trained = tff.federated_map(train, (start, batches))
            return tff.federated_mean(trained), trained, tff.federated_sum(trained)

        return own

    @tff.federated_computation(state, data)
    def together(weights: Any, batches: Any) -> Any:
        trained = tff.federated_map(train, (tff.federated_broadcast(weights), batches))
        count = tff.federated_sum(tff.federated_value(1, tff.CLIENTS))
        return tff.federated_mean(trained), count

    return together


def results(program: Any, **options: Any) -> list[Any]:
    """What two rounds of a program or bundle give: outputs, clients' own results and the state."""
    data = {f"{i}": own for i, own in enumerate(clients())}
    delivered: dict[str, Any] = {}
    if getattr(program, "form", "") == "client-state":
        options["client_states"] = {}
    run = tff.run(program, data, 2, state=ZEROS, deliver=delivered.__setitem__, **options)
    outputs = [each.output for each in run]
    own = [delivered[name] for name in sorted(delivered)]
    return [np.asarray(leaf) for leaf in tf.nest.flatten([outputs, own, run.state])]
