"""NumPy by hand: gradients written out, one client after another, and vectorised where that is
plain."""

from __future__ import annotations

import numpy as np

from benchmarks.rounds.measured import Measured, Round
from benchmarks.rounds.workloads import WORKLOADS, Arrays, clients_of


def loop(name: str) -> Round:
    """Train clients one after another, with layers as matrices."""
    workload, data = WORKLOADS[name], clients_of(name)

    def train(weights: Arrays, x: np.ndarray, y: np.ndarray) -> Arrays:
        steps = workload.epochs * len(y)
        for start in range(0, steps, workload.batch):
            rows = np.arange(start, min(start + workload.batch, steps)) % len(y)
            gradients = _gradients(workload.kind, weights, x[rows], y[rows])
            weights = [w - workload.rate * g for w, g in zip(weights, gradients, strict=True)]
        return weights

    def run(weights: Arrays) -> Arrays:
        total = [np.zeros_like(w) for w in weights]
        for x, y in data:
            for sum_, after, before in zip(total, train(weights, x, y), weights, strict=True):
                sum_ += np.float32(len(y)) * (after - before)
        count = np.float32(sum(len(y) for _, y in data))
        return [w + t / count for w, t in zip(weights, total, strict=True)]

    return run


def _gradients(kind: str, weights: Arrays, x: np.ndarray, y: np.ndarray) -> Arrays:
    layers = len(weights) // 2
    inputs = [x]
    for number in range(layers):
        z = inputs[-1] @ weights[2 * number] + weights[2 * number + 1]
        inputs.append(np.maximum(z, 0) if number < layers - 1 else z)
    scores = inputs.pop()
    if kind == "logistic":
        error = (1 / (1 + np.exp(-scores)) - y[:, None]) / np.float32(len(y))
    else:
        error = np.exp(scores - scores.max(1, keepdims=True))
        error /= error.sum(1, keepdims=True)
        error[np.arange(len(y)), y] -= 1
        error /= np.float32(len(y))
    found: Arrays = []
    for number in reversed(range(layers)):
        found = [inputs[number].T @ error, error.sum(0), *found]
        if number:
            error = (error @ weights[2 * number].T) * (inputs[number] > 0)
    return found


def vectorised(name: str) -> Round:
    """Train all clients of the logistic regression at once."""
    workload, data = WORKLOADS[name], clients_of(name)
    x = np.stack([x for x, _ in data])
    y = np.stack([y for _, y in data]).astype(np.float32)
    size = np.float32(x.shape[1])

    def run(weights: Arrays) -> Arrays:
        first = weights[0][:, 0], weights[1]
        w = np.repeat(first[0][None], len(x), 0)
        b = np.repeat(first[1], len(x))
        for _ in range(workload.epochs):
            scores = np.matmul(x, w[:, :, None])[:, :, 0] + b[:, None]
            error = (1 / (1 + np.exp(-scores)) - y) / size
            w = w - workload.rate * np.matmul(error[:, None], x)[:, 0]
            b = b - workload.rate * error.sum(1)
        return [w.mean(0)[:, None].astype(np.float32), b.mean(keepdims=True).astype(np.float32)]

    return run


def Side() -> Measured:
    return Measured({"loop": loop, "vectorised": vectorised}, ["numpy"])
