"""The round of `averaging` by hand, which shows how little time TensorFlow needs for it.

A client is one call of a session in which a loop takes slices of the client's arrays.  There are no
datasets, no programs and no forms; threads take clients, and NumPy adds up what they give.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from benchmarks.averaging import BATCH, EPOCHS, FEATURES, RATE, SHAPES


class ByHand:
    """Trains clients with one graph, and runs rounds."""

    def __init__(self) -> None:
        v1 = tf.compat.v1
        with tf.Graph().as_default() as graph:
            weights = [v1.placeholder(tf.float32, shape) for shape in SHAPES]
            examples = v1.placeholder(tf.float32, [None, FEATURES])
            labels = v1.placeholder(tf.int32, [None])
            results = _trained(weights, examples, labels)
        config = v1.ConfigProto(inter_op_parallelism_threads=-1)
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
        options = config_pb2.CallableOptions(
            feed=[tensor.name for tensor in (*weights, examples, labels)],
            fetch=[tensor.name for tensor in results],
        )
        session = v1.Session(graph=graph, config=config)
        # What TensorFlow documents, `make_callable`, takes longer.
        self._train: Callable[..., Any] = session._make_callable_from_options(options)

    def round(self, weights: Sequence[Any], clients: Sequence[tuple[Any, Any]]) -> Any:
        """Return the weights after a round and the mean loss."""
        workers = len(os.sched_getaffinity(0))
        shares = [clients[start::workers] for start in range(workers)]
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            sums = list(pool.map(lambda share: self._sum(weights, share), shares))
        *changes, losses, count = (sum(parts) for parts in zip(*sums, strict=True))
        moved = [w + change / count for w, change in zip(weights, changes, strict=True)]
        return moved, losses / count

    def _sum(self, weights: Sequence[Any], clients: Iterable[tuple[Any, Any]]) -> list[Any]:
        total: list[Any] = [0.0] * (len(SHAPES) + 2)
        for examples, labels in clients:
            *changes, loss = self._train(*weights, examples, labels)
            count = np.float32(EPOCHS * len(labels))
            weighted = [*(change * count for change in changes), loss * count, count]
            total = [before + more for before, more in zip(total, weighted, strict=True)]
        return total


def _trained(weights: Sequence[Any], examples: Any, labels: Any) -> list[Any]:
    """Return the change of each weight, and the mean loss."""
    size = tf.shape(labels)[0]
    steps = EPOCHS * size

    def step(start: Any, losses: Any, *current: Any) -> tuple[Any, ...]:
        rows = tf.range(start, tf.minimum(start + BATCH, steps)) % size
        with tf.GradientTape() as tape:
            tape.watch(current)
            w1, b1, w2, b2 = current
            logits = tf.nn.relu(tf.gather(examples, rows) @ w1 + b1) @ w2 + b2
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.gather(labels, rows), logits)
            loss = tf.reduce_mean(each)
        gradients = tape.gradient(loss, current)
        moved = [w - RATE * g for w, g in zip(current, gradients, strict=True)]
        return start + BATCH, losses + tf.reduce_sum(each), *moved

    first = (0, 0.0, *weights)
    _, losses, *trained = tf.while_loop(
        lambda start, *_: start < steps, step, first, parallel_iterations=1
    )
    changes = [after - before for after, before in zip(trained, weights, strict=True)]
    return [*changes, losses / tf.cast(steps, tf.float32)]
