"""TensorFlow Federated, in its own runtime."""

from __future__ import annotations

import atexit
import collections
import os
import signal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from benchmarks.rounds import averaging
from benchmarks.rounds.measured import Measured, Round, children
from benchmarks.rounds.workloads import Arrays, clients_of


def runtime(name: str) -> Round:
    """Return the round in TFF's local runtime, with a dataset for each client."""
    each_round = averaging.build(tff, name)
    data = [
        tf.data.Dataset.from_tensor_slices(collections.OrderedDict(x=x, y=y))
        for x, y in clients_of(name)
    ]

    def run(weights: Arrays) -> Arrays:
        state = collections.OrderedDict((f"w{i:02}", each) for i, each in enumerate(weights))
        state, _ = each_round(state, data)
        return [np.asarray(each) for each in state.values()]

    return run


def _end_children() -> None:
    """End the process that TFF works in, which would stay."""
    for child in children():
        os.kill(child, signal.SIGKILL)


def Side() -> Measured:
    atexit.register(_end_children)
    return Measured({"runtime": runtime}, ["tensorflow_federated", "tensorflow-cpu"])
