"""Rounds of training in PyTorch itself, written by hand, and modules and clients for them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

Weights = OrderedDict[str, Any]
Client = dict[str, np.ndarray[Any, Any]]


def network() -> Any:
    """Return a network of vectors of three numbers, with the same weights each time."""
    import torch

    torch.manual_seed(4)
    return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))


def images(norm: Any) -> Any:
    """Return a network of images of 6 by 6 pixels, with a layer after its convolution."""
    import torch

    torch.manual_seed(5)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, padding=1),
        norm,
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(36, 3),
    )


def texts() -> Any:
    """Return a network of six words each, which are numbers below 11."""
    import torch

    class Text(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Embedding(11, 4)
            self.memory = torch.nn.LSTM(4, 5, batch_first=True)
            self.scores = torch.nn.Linear(5, 3)

        def forward(self, words: Any) -> Any:
            return self.scores(self.memory(self.words(words))[0][:, -1])

    torch.manual_seed(6)
    return Text()


def clients(shape: tuple[int, ...], *sizes: int, words: bool = False) -> list[Client]:
    """Return clients with examples of a shape; the last batches of most are not full."""
    random = np.random.default_rng(3)

    def inputs(size: int) -> np.ndarray[Any, Any]:
        if words:
            return random.integers(0, 11, (size, *shape))
        return random.normal(size=(size, *shape)).astype(np.float32)

    return [{"x": inputs(size), "y": random.integers(0, 3, size)} for size in sizes]


def state_of(module: Any) -> Weights:
    return OrderedDict((name, w.detach().clone()) for name, w in module.state_dict().items())


def train(
    module: Any,
    weights: Weights,
    client: Client,
    optimizer: Any,
    *,
    epochs: int,
    batch_size: int,
    mu: float = 0.0,
    correction: Weights | None = None,
    drop_last: bool = False,
) -> int:
    """Train a module from weights on, by an optimizer of PyTorch; return how many steps it took."""
    import torch

    module.load_state_dict(weights)
    module.train()
    moving, steps = optimizer(module.parameters()), 0
    for _ in range(epochs):
        for start in range(0, len(client["y"]), batch_size):
            rows = slice(start, start + batch_size)
            x, y = torch.as_tensor(client["x"][rows]), torch.as_tensor(client["y"][rows])
            if drop_last and len(y) < batch_size:
                continue
            moving.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(x), y)
            for name, parameter in module.named_parameters():
                loss = loss + mu / 2 * ((parameter - weights[name]) ** 2).sum()
                if correction is not None:
                    loss = loss + (parameter * correction[name]).sum()
            loss.backward()
            moving.step()
            steps += 1
    return steps


def updates(
    module: Any, weights: Weights, data: list[Client], optimizer: Any, **settings: Any
) -> list[Weights]:
    """Return how far the weights of each client move."""
    found = []
    for client in data:
        train(module, weights, client, optimizer, **settings)
        after = module.state_dict()
        found.append(OrderedDict((name, after[name] - w) for name, w in weights.items()))
    return found


def mean(updates: list[Weights], data: list[Client], batch_size: int = 1) -> Weights:
    """Return the mean of updates, by how many examples of clients are in full batches."""
    counts = [len(client["y"]) // batch_size * batch_size for client in data]
    return OrderedDict(
        (name, sum(n * u[name] for n, u in zip(counts, updates, strict=True)) / sum(counts))
        for name in updates[0]
    )


def moved(weights: Weights, update: Weights, rate: float = 1.0) -> Weights:
    return OrderedDict((name, w + rate * update[name]) for name, w in weights.items())


def check(found: Weights, expected: Weights, most: float = 1e-6) -> None:
    """Check that weights are these, of the same names in the same order."""
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_allclose(found[name].numpy(), value.detach().numpy(), 0, most)
