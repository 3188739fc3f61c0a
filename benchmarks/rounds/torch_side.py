"""PyTorch: a loop over clients by hand, and pfl's federated averaging."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset

from benchmarks.rounds.measured import Measured, Round
from benchmarks.rounds.pfl_averaging import ModelOfPfl, averaging
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
    workload, data = WORKLOADS[name], _repeated(name)
    network = Network(workload)
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


def pfl(name: str) -> Round:
    """Run federated averaging of pfl in its simulated backend."""
    workload = WORKLOADS[name]
    network = ModelOfPfl(workload)
    users = [
        Dataset(raw_data=list(data), user_id=str(number))
        for number, data in enumerate(_repeated(name))
    ]
    numbers = itertools.cycle(range(len(users)))
    federated = FederatedDataset(users.__getitem__, numbers.__next__)
    train = averaging(network, workload, federated, len(users))

    def run(before: Arrays) -> Arrays:
        network.put(before)
        train()
        return network.arrays()

    return run


def Side() -> Measured:
    torch.set_num_threads(1)  # more take longer for networks of this size
    return Measured({"loop": loop, "pfl": pfl}, ["torch", "pfl"])
