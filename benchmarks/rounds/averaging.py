"""A round of federated averaging as a user writes it, against a module `tff`: tffc's or TFF's."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from benchmarks.rounds.workloads import WORKLOADS, Drop, Workload, keep


def build(tff: Any, name: str) -> Any:
    """Return the round, `(<weights@SERVER,{<x,y>*}@CLIENTS> ->
    <weights@SERVER,float32@SERVER>)`."""
    workload = WORKLOADS[name]
    names = [f"w{number:02}" for number in range(len(workload.shapes))]
    tensors = [tff.TensorType(np.float32, shape) for shape in workload.shapes]
    model = tff.StructType(list(zip(names, tensors, strict=True)))
    features = tff.TensorType(np.float32, [workload.features])
    examples = tff.SequenceType(collections.OrderedDict(x=features, y=tff.TensorType(np.int32, [])))

    @tff.tensorflow.computation(model, examples)
    def work(weights: Any, data: Any) -> Any:
        import tensorflow as tf

        first = [getattr(weights, each) for each in names]

        def step(state: Any, batch: Any) -> Any:
            *current, count = state
            with tf.GradientTape() as tape:
                tape.watch(current)
                loss = tf.reduce_mean(losses(workload, current, batch["x"], batch["y"]))
            gradients = tape.gradient(loss, current)
            moved = [w - workload.rate * g for w, g in zip(current, gradients, strict=True)]
            return (*moved, count + tf.cast(tf.shape(batch["y"])[0], tf.float32))

        batches = data.repeat(workload.epochs).batch(workload.batch)
        *trained, count = batches.reduce((*first, tf.constant(0.0)), step)
        changes = [after - before for after, before in zip(trained, first, strict=True)]
        return collections.OrderedDict(
            change=collections.OrderedDict(zip(names, changes, strict=True)), count=count
        )

    @tff.tensorflow.computation(model, model)
    def update(weights: Any, change: Any) -> Any:
        return collections.OrderedDict(
            (each, getattr(weights, each) + getattr(change, each)) for each in names
        )

    @tff.federated_computation(
        tff.FederatedType(model, tff.SERVER), tff.FederatedType(examples, tff.CLIENTS)
    )
    def each_round(state: Any, data: Any) -> Any:
        trained = tff.federated_map(work, (tff.federated_broadcast(state), data))
        mean = tff.federated_mean(trained.change, weight=trained.count)
        return tff.federated_map(update, (state, mean)), tff.federated_sum(trained.count)

    return each_round


def losses(workload: Workload, weights: Any, x: Any, y: Any, drop: Drop = keep) -> Any:
    """Return the cross entropy of each example."""
    import tensorflow as tf

    outputs = scores(workload, weights, x, drop)
    if workload.kind == "logistic":
        return tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(y, tf.float32), outputs[:, 0])
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=outputs)


def scores(workload: Workload, weights: Any, x: Any, drop: Drop = keep) -> Any:
    """Return the outputs of the network for each example, before they are probabilities."""
    import tensorflow as tf

    rest = list(weights)
    if workload.kind == "cnn":
        x = tf.reshape(x, [-1, *workload.image])
        for _ in range(2):
            kernel, bias, *rest = rest
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "VALID") + bias)
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = drop(tf.reshape(x, [-1, workload.widths[0]]), 0)
    while rest:
        matrix, bias, *rest = rest
        x = x @ matrix + bias
        x = drop(tf.nn.relu(x), 1) if rest else x
    return x
