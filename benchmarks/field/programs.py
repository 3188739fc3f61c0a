"""A round as a user writes it in tffc's language, with the clients' work in TensorFlow or in JAX.

The server sends its weights and the number of the round.  A client draws what dropout leaves by the
number of the round, its own number and the number of the batch, so that a round can be repeated.
"""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

import tffc as tff
from benchmarks.rounds import averaging, jax_models
from benchmarks.rounds.workloads import Drop, Workload, keep

BATCHES = 4096
"""More batches than any client has."""


def model_type(workload: Workload) -> Any:
    """Return the type of the weights."""
    return tff.to_type(
        collections.OrderedDict(
            (f"w{number:02}", tff.TensorType(np.float32, shape))
            for number, shape in enumerate(workload.shapes)
        )
    )


def _round(workload: Workload, data: Any, work: Any) -> Any:
    """Return the round whose clients do this work, `(<round,model> and data -> <change,count>)`."""
    model = model_type(workload)
    state = tff.to_type(collections.OrderedDict(round=np.int32, model=model))

    @tff.tensorflow.computation(state, model)
    def update(state: Any, change: Any) -> Any:
        moved = collections.OrderedDict(
            (name, state["model"][name] + change[name]) for name in state["model"]
        )
        return collections.OrderedDict(round=state["round"] + 1, model=moved)

    @tff.federated_computation(tff.types.at_server(state), tff.types.at_clients(data))
    def each_round(state: Any, data: Any) -> Any:
        trained = tff.federated_map(work, (tff.federated_broadcast(state), data))
        mean = tff.federated_mean(trained.change, weight=trained.count)
        return tff.federated_map(update, (state, mean)), tff.federated_sum(trained.count)

    return each_round


def in_tensorflow(workload: Workload) -> Any:
    """Return the round for clients that hold their number and a sequence of images, which they
    divide into batches; the last may be smaller."""
    import tensorflow as tf

    model = model_type(workload)
    state = collections.OrderedDict(round=np.int32, model=model)
    image = tff.TensorType(np.float32, [workload.features])
    images = tff.SequenceType(collections.OrderedDict(x=image, y=np.int32))
    data = tff.to_type(collections.OrderedDict(number=np.int32, images=images))

    @tff.tensorflow.computation(state, data)
    def work(state: Any, data: Any) -> Any:
        names, first = list(state["model"]), list(state["model"].values())

        def drop_of(number: Any) -> Drop:
            def drop(values: Any, place: int) -> Any:
                seed = tf.stack([2 * state["round"] + place, BATCHES * data["number"] + number])
                rate = workload.dropout[place]
                return tf.nn.experimental.stateless_dropout(values, rate, seed)

            return drop if any(workload.dropout) else keep

        def step(carried: Any, batch: Any) -> Any:
            *current, count, number = carried
            with tf.GradientTape() as tape:
                tape.watch(current)
                x, y = batch["x"], batch["y"]
                losses = averaging.losses(workload, current, x, y, drop_of(number))
                loss = tf.reduce_mean(losses)
            gradients: Any = tape.gradient(loss, current)
            moved = [w - workload.rate * g for w, g in zip(current, gradients, strict=True)]
            return (*moved, count + tf.cast(tf.shape(y)[0], tf.float32), number + 1)

        batches = data["images"].batch(workload.batch)
        *trained, count, _ = batches.reduce((*first, tf.constant(0.0), tf.constant(0)), step)
        changes = [after - before for after, before in zip(trained, first, strict=True)]
        return collections.OrderedDict(
            change=collections.OrderedDict(zip(names, changes, strict=True)), count=count
        )

    return _round(workload, data, work)


def in_jax(workload: Workload) -> Any:
    """Return the round for clients that hold their number and a sequence of batches of one size,
    of which the last is filled up with images of the label -1, because XLA needs known shapes."""
    import jax
    import jax.numpy as jnp

    state = tff.to_type(collections.OrderedDict(round=np.int32, model=model_type(workload)))
    x = tff.TensorType(np.float32, [workload.batch, workload.features])
    batch = tff.to_type(collections.OrderedDict(x=x, y=tff.TensorType(np.int32, [workload.batch])))
    data = tff.to_type(collections.OrderedDict(number=np.int32, images=tff.SequenceType(batch)))

    @tff.jax.computation(state, np.int32)
    def start(state: Any, number: Any) -> Any:
        return collections.OrderedDict(
            state=state, client=number, batch=jnp.int32(0), count=jnp.float32(0)
        )

    @tff.jax.computation(start.type_signature.result, batch)
    def step(work: Any, batch: Any) -> Any:
        state = work["state"]
        names, current = list(state["model"]), list(state["model"].values())
        draw = drop_of(workload, state["round"], work["client"], work["batch"])
        counts = batch["y"] >= 0

        def loss(weights: Any) -> Any:
            labels = jnp.maximum(batch["y"], 0)
            losses = jax_models.losses(workload, weights, batch["x"], labels, draw)
            return jnp.where(counts, losses, 0).sum() / counts.sum()

        gradients = jax.grad(loss)(current)
        moved = [w - workload.rate * g for w, g in zip(current, gradients, strict=True)]
        model = collections.OrderedDict(zip(names, moved, strict=True))
        return collections.OrderedDict(
            state=collections.OrderedDict(round=state["round"], model=model),
            client=work["client"],
            batch=work["batch"] + 1,
            count=work["count"] + counts.sum().astype(jnp.float32),
        )

    @tff.jax.computation(start.type_signature.result, state)
    def finish(work: Any, state: Any) -> Any:
        change = jax.tree.map(lambda a, b: a - b, work["state"]["model"], state["model"])
        return collections.OrderedDict(change=change, count=work["count"])

    @tff.federated_computation(state, data)
    def work(state: Any, data: Any) -> Any:
        trained = tff.sequence_reduce(data.images, start(state, data.number), step)
        return finish(trained, state)

    return _round(workload, data, work)


def drop_of(workload: Workload, round: Any, client: Any, batch: Any) -> Drop:
    """Return dropout in JAX, drawn by these numbers; none if the workload has none."""
    import jax
    import jax.numpy as jnp

    def drop(values: Any, place: int) -> Any:
        key = jax.random.key(round)
        for each in (client, batch, place):
            key = jax.random.fold_in(key, each)
        rest = 1 - workload.dropout[place]
        return jnp.where(jax.random.bernoulli(key, rest, values.shape), values / rest, 0)

    return drop if any(workload.dropout) else keep
