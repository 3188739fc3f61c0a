"""FedJAX's federated averaging, with its JIT backend."""

from __future__ import annotations

import jax
import numpy as np

jax.tree_map = jax.tree_util.tree_map  # which FedJAX 0.0.17 asks for, and JAX no longer has

import fedjax  # noqa: E402  # after JAX has the name again
from fedjax.algorithms import fed_avg  # noqa: E402  # after JAX has the name again

from benchmarks.rounds.jax_models import losses  # noqa: E402  # after JAX has the name again
from benchmarks.rounds.measured import Measured, Round  # noqa: E402  # after JAX has the name again
from benchmarks.rounds.workloads import WORKLOADS, Arrays, clients_of  # noqa: E402  # after JAX has the name again


def fedjax_jit(name: str) -> Round:
    """Its algorithm as it is.  A last batch that is smaller it fills up with the first examples,
    so that where there is one weights differ a little."""
    workload = WORKLOADS[name]

    def loss(weights, batch):
        return losses(workload, weights, batch["x"], batch["y"]).mean()

    gradient = jax.grad(loss)
    algorithm = fed_avg.federated_averaging(
        lambda weights, batch, _: gradient(weights, batch),
        fedjax.optimizers.sgd(workload.rate),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(
            batch_size=workload.batch, num_epochs=workload.epochs, skip_shuffle=True
        ),
    )
    key = jax.random.PRNGKey(0)
    clients = [
        (str(number).encode(), fedjax.ClientDataset({"x": x, "y": y}), key)
        for number, (x, y) in enumerate(clients_of(name))
    ]

    def run(weights: Arrays) -> Arrays:
        with fedjax.for_each_client_backend("jit"):
            state, _ = algorithm.apply(algorithm.init(weights), clients)
        return [np.asarray(each) for each in state.params]

    return run


def Side() -> Measured:
    return Measured({"fedjax": fedjax_jit}, ["fedjax", "jax"])
