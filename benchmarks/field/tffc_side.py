"""tffc: a program with the clients' work in TensorFlow, and one with it in JAX."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

import tffc
from benchmarks.field import programs
from benchmarks.field.training import Federation, Options, Trained, Training
from benchmarks.rounds import averaging
from benchmarks.rounds.workloads import Arrays, Client, Workload
from tffc.runtime.engines.cores import share_cores
from tffc.runtime.engines.engine import Batching

Images = Callable[[Workload, Client], Any]
"""Gives the images of a client in the way that a program takes them."""


def _images(workload: Workload, client: Client) -> Any:
    x, y = client
    return collections.OrderedDict(x=x, y=y)


def _batches(workload: Workload, client: Client) -> Any:
    """Return full batches, the last of which may have images of the label -1."""
    x, y = client
    more = -len(y) % workload.batch
    x, y = np.pad(x, ((0, more), (0, 0))), np.pad(y, (0, more), constant_values=-1)
    shape = (-1, workload.batch)
    return collections.OrderedDict(x=x.reshape(*shape, workload.features), y=y.reshape(shape))


def _trained(program_of: Callable[[Workload], Any], images: Images) -> Any:
    def make(federation: Federation, options: Options) -> Training:
        setting = federation.setting
        workload = setting.workload
        # As `tffc run` does, before TensorFlow computes anything.
        batching = options.get("batching", "off")
        share_cores(setting.cohort, options.get("workers"), Batching.parse(batching))
        bundle = tffc.compile(program_of(workload), "mapreduce")
        data = {
            name: collections.OrderedDict(number=np.int32(number), images=images(workload, client))
            for number, (name, client) in enumerate(
                zip(setting.names, federation.clients, strict=True)
            )
        }
        first = _model(workload.first_weights())
        state = collections.OrderedDict(round=np.int32(0), model=first)
        run = tffc.run(
            bundle,
            data,
            setting.rounds,
            state=state,
            clients_per_round=setting.cohort,
            **options,
        )

        def advance(number: int) -> None:
            clients = [int(each) for each in next(run).clients]
            if clients != list(federation.cohorts[number]):
                raise AssertionError(f"round {number} has the clients {clients}")

        def weights() -> Arrays:
            return [np.asarray(each) for each in run.state["model"].values()]

        def scores(x: np.ndarray) -> np.ndarray:
            return averaging.scores(workload, weights(), x).numpy()

        return Training(advance, weights, scores)

    return make


def _model(weights: Arrays) -> Any:
    return collections.OrderedDict((f"w{i:02}", each) for i, each in enumerate(weights))


def Side() -> Trained:
    ways = {
        "tensorflow": _trained(programs.in_tensorflow, _images),
        "jax": _trained(programs.in_jax, _batches),
    }
    return Trained(ways, ["tensorflow", "numpy"])
