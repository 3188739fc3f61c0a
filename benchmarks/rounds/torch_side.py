"""PyTorch: a loop over clients by hand, and pfl's federated averaging."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByDatapoints
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam import NNTrainHyperParams
from pfl.model.pytorch import PyTorchModel

from benchmarks.rounds.measured import Measured, Round
from benchmarks.rounds.torch_models import Network
from benchmarks.rounds.workloads import WORKLOADS, Arrays, clients_of


def _repeated(name: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the examples of each client as often as it trains on them: batches reach over the
    end."""
    epochs = WORKLOADS[name].epochs
    return [
        (
            torch.from_numpy(np.tile(x, (epochs, 1))),
            torch.from_numpy(np.tile(y, epochs).astype(np.int64)),
        )
        for x, y in clients_of(name)
    ]


def loop(name: str) -> Round:
    """Train clients one after another, with autograd."""
    workload, data, network = WORKLOADS[name], _repeated(name), Network(name)
    weights = list(network.weights)

    def run(before: Arrays) -> Arrays:
        network.put(before)
        first = [w.detach().clone() for w in weights]
        total = [torch.zeros_like(w) for w in first]
        for x, y in data:
            with torch.no_grad():
                for own, each in zip(weights, first, strict=True):
                    own.copy_(each)
            for start in range(0, len(y), workload.batch):
                part = slice(start, start + workload.batch)
                gradients = torch.autograd.grad(network.loss(x[part], y[part]), weights)
                with torch.no_grad():
                    for own, gradient in zip(weights, gradients, strict=True):
                        own.sub_(gradient, alpha=workload.rate)
            with torch.no_grad():
                for sum_, own, each in zip(total, weights, first, strict=True):
                    sum_.add_(own - each, alpha=len(y))
        count = sum(len(y) for _, y in data)
        with torch.no_grad():
            for own, each, sum_ in zip(weights, first, total, strict=True):
                own.copy_(each + sum_ / count)
        return network.arrays()

    return run


class _Model(Network):
    """The network with the interface that pfl needs."""

    def metrics(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, float]:
        """Measure nothing, like the other sides."""
        return {}


def pfl(name: str) -> Round:
    """Run federated averaging of pfl in its simulated backend."""
    workload, network = WORKLOADS[name], _Model(name)
    users = [
        Dataset(raw_data=list(data), user_id=str(number))
        for number, data in enumerate(_repeated(name))
    ]
    numbers = itertools.cycle(range(len(users)))
    federated = FederatedDataset(users.__getitem__, numbers.__next__)
    model = PyTorchModel(
        network,
        local_optimizer_create=torch.optim.SGD,
        central_optimizer=torch.optim.SGD(network.parameters(), lr=1.0),
    )
    backend = SimulatedBackend(
        training_data=federated, val_data=None, postprocessors=[WeightByDatapoints()]
    )
    training = NNTrainHyperParams(
        local_learning_rate=workload.rate, local_num_epochs=1, local_batch_size=workload.batch
    )
    parameters = NNAlgorithmParams(
        central_num_iterations=2,
        evaluation_frequency=2,
        train_cohort_size=len(users),
        val_cohort_size=None,
    )

    def run(before: Arrays) -> Arrays:
        network.put(before)
        algorithm = FederatedAveraging()
        algorithm._current_central_iteration = (
            1  # the first one is evaluated, as no other side does
        )
        algorithm.run(
            algorithm_params=parameters,
            backend=backend,
            model=model,
            model_train_params=training,
            model_eval_params=None,
            callbacks=[],
            send_metrics_to_platform=False,
        )
        return network.arrays()

    return run


def Side() -> Measured:
    torch.set_num_threads(1)  # more take longer for networks of this size
    return Measured({"loop": loop, "pfl": pfl}, ["torch", "pfl"])
