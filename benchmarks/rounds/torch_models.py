"""The networks in PyTorch, for the sides that use it."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from benchmarks.rounds.workloads import Arrays, Workload


class Network(torch.nn.Module):
    """The network of a workload.  Kernels of convolutions are kept as PyTorch has them."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        self._workload = workload
        self.weights = torch.nn.ParameterList()
        for each in self._workload.first_weights():
            self.weights.append(torch.nn.Parameter(_to_torch(each)))

    def put(self, weights: Arrays) -> None:
        """Take these weights."""
        with torch.no_grad():
            for own, each in zip(self.weights, weights, strict=True):
                own.copy_(_to_torch(each))

    def arrays(self) -> Arrays:
        """Return the weights as arrays."""
        return [_to_numpy(each) for each in self.weights]

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the mean cross entropy of some examples."""
        outputs = self.scores(x)
        if self._workload.kind == "logistic":
            return functional.binary_cross_entropy_with_logits(outputs[:, 0], y.float())
        return functional.cross_entropy(outputs, y)

    def scores(self, x: torch.Tensor) -> torch.Tensor:
        """Return the outputs for each example, before they are probabilities."""
        rest, rates = list(self.weights), self._workload.dropout
        if self._workload.kind == "cnn":
            x = x.reshape(-1, *self._workload.image).permute(0, 3, 1, 2)
            for _ in range(2):
                kernel, bias, *rest = rest
                x = functional.relu(functional.conv2d(x, kernel, bias))
            x = functional.max_pool2d(x, 2).permute(0, 2, 3, 1).flatten(1)
            x = self._drop(x, rates[0])
        while rest:
            matrix, bias, *rest = rest
            x = x @ matrix + bias
            x = self._drop(functional.relu(x), rates[1]) if rest else x
        return x

    def _drop(self, x: torch.Tensor, rate: float) -> torch.Tensor:
        return functional.dropout(x, rate, self.training) if rate else x


def _to_torch(each: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(each.transpose(3, 2, 0, 1).copy() if each.ndim == 4 else each.copy())


def _to_numpy(each: torch.Tensor) -> np.ndarray:
    found = each.detach().cpu().numpy().copy()
    return found.transpose(2, 3, 1, 0).copy() if found.ndim == 4 else found
