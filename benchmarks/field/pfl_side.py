"""pfl: federated averaging of its PyTorch models.  Its users' data is on the device throughout."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.internal.ops.pytorch_ops import get_default_device

from benchmarks.field.training import Federation, Options, Trained, Training
from benchmarks.rounds.pfl_averaging import ModelOfPfl, averaging


def pfl(federation: Federation, options: Options) -> Training:
    """Set up a training whose users are sampled as the cohorts say."""
    setting, device = federation.setting, get_default_device()
    network = ModelOfPfl(setting.workload)
    users = [
        Dataset(
            raw_data=[
                torch.from_numpy(x).to(device),
                torch.from_numpy(y.astype(np.int64)).to(device),
            ],
            user_id=str(number),
        )
        for number, (x, y) in enumerate(federation.clients)
    ]
    numbers = itertools.chain.from_iterable(federation.cohorts)
    data = FederatedDataset(users.__getitem__, numbers.__next__)
    train = averaging(network, setting.workload, data, setting.cohort)

    def advance(number: int) -> None:
        network.train()
        train()
        if device.type == "cuda":
            torch.cuda.synchronize()

    def scores(x: np.ndarray) -> np.ndarray:
        network.eval()
        with torch.no_grad():
            return network.scores(torch.from_numpy(x).to(device)).cpu().numpy()

    return Training(advance, network.arrays, scores)


def Side() -> Trained:
    return Trained({"pfl": pfl}, ["torch", "pfl"])
