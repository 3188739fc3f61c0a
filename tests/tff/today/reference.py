"""Federated learning of a linear model in NumPy, as TFF's papers and documentation describe it.

A model is a kernel and a bias, the loss is the mean squared error of a batch.  An optimizer is a
function from its state, the parameters and their gradients to the next state and parameters; a
state is a dict, empty at first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

Parameters: TypeAlias = list[np.ndarray]
State: TypeAlias = dict[str, Any]
Optimizer: TypeAlias = Callable[[State, Parameters, Parameters], tuple[State, Parameters]]
Batch: TypeAlias = tuple[np.ndarray, np.ndarray]
Client: TypeAlias = Sequence[Batch]


def gradients(parameters: Parameters, batch: Batch) -> Parameters:
    """The gradients of the mean squared error."""
    kernel, bias = parameters
    x, y = batch
    error: np.ndarray = 2 * (x @ kernel + bias - y) / len(x)
    return [x.T @ error, error.sum(axis=0)]


def loss(parameters: Parameters, batch: Batch) -> float:
    kernel, bias = parameters
    x, y = batch
    return float(np.mean((x @ kernel + bias - y) ** 2))


def size(client: Client) -> int:
    return sum(len(x) for x, _ in client)


def weighted(values: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
    """The weighted mean of parameters."""
    parts = zip(*values, strict=True)
    return [np.average(np.stack(part), axis=0, weights=weights) for part in parts]


# Optimizers.


def sgd(rate: float, momentum: float = 0.0, *, nesterov: bool = False) -> Optimizer:
    def step(state: State, parameters: Parameters, grads: Parameters) -> tuple[State, Parameters]:
        if not momentum:
            return {}, [p - rate * g for p, g in zip(parameters, grads, strict=True)]
        before = state.get("velocity", [np.zeros_like(g) for g in grads])
        velocity = [momentum * v + g for v, g in zip(before, grads, strict=True)]
        used = velocity
        if nesterov:
            used = [g + momentum * v for v, g in zip(velocity, grads, strict=True)]
        stepped = [p - rate * u for p, u in zip(parameters, used, strict=True)]
        return {"velocity": velocity}, stepped

    return step


def adam(rate: float, *, decay: float = 0.0, is_yogi: bool = False) -> Optimizer:
    """Adam; AdamW with a decay of the weights; Yogi, whose second moment is added to."""
    beta_1, beta_2 = 0.9, 0.999
    epsilon, start = (1e-3, 1e-6) if is_yogi else (1e-7, 0.0)

    def step(state: State, parameters: Parameters, grads: Parameters) -> tuple[State, Parameters]:
        count = state.get("count", 0) + 1
        firsts = state.get("first", [np.zeros_like(g) for g in grads])
        seconds = state.get("second", [np.full_like(g, start) for g in grads])
        first = [beta_1 * m + (1 - beta_1) * g for m, g in zip(firsts, grads, strict=True)]
        if is_yogi:
            second = [
                v + (1 - beta_2) * np.sign(g * g - v) * g * g
                for v, g in zip(seconds, grads, strict=True)
            ]
        else:
            second = [
                beta_2 * v + (1 - beta_2) * g * g for v, g in zip(seconds, grads, strict=True)
            ]
        corrected = rate * np.sqrt(1 - beta_2**count) / (1 - beta_1**count)
        stepped = [
            p - corrected * m / (np.sqrt(v) + epsilon) - rate * decay * p
            for p, m, v in zip(parameters, first, second, strict=True)
        ]
        return {"count": count, "first": first, "second": second}, stepped

    return step


def adagrad(rate: float, start: float = 0.1, epsilon: float = 1e-7) -> Optimizer:
    def step(state: State, parameters: Parameters, grads: Parameters) -> tuple[State, Parameters]:
        before = state.get("sum", [np.full_like(g, start) for g in grads])
        total = [s + g * g for s, g in zip(before, grads, strict=True)]
        stepped = [
            p - rate * g / np.sqrt(s + epsilon)
            for p, g, s in zip(parameters, grads, total, strict=True)
        ]
        return {"sum": total}, stepped

    return step


def rmsprop(rate: float, decay: float = 0.9, epsilon: float = 1e-7) -> Optimizer:
    def step(state: State, parameters: Parameters, grads: Parameters) -> tuple[State, Parameters]:
        before = state.get("mean", [np.zeros_like(g) for g in grads])
        mean = [decay * s + (1 - decay) * g * g for s, g in zip(before, grads, strict=True)]
        stepped = [
            p - rate * g / (np.sqrt(s) + epsilon)
            for p, g, s in zip(parameters, grads, mean, strict=True)
        ]
        return {"mean": mean}, stepped

    return step


def adafactor(rate: float) -> Optimizer:
    """Adafactor with a fixed rate, scaled by the parameters."""
    tiny, least, clip = 1e-30, 1e-3, 1.0

    def step(state: State, parameters: Parameters, grads: Parameters) -> tuple[State, Parameters]:
        count = state.get("count", 0) + 1
        decay = 1 - count**-0.8
        rows = state.get("rows", [np.zeros(1) for _ in grads])
        columns = state.get("columns", [np.zeros(1) for _ in grads])
        kept_rows, kept_columns, stepped = [], [], []
        for p, g, row, column in zip(parameters, grads, rows, columns, strict=True):
            square = g * g + tiny
            if g.ndim < 2:
                row = decay * row + (1 - decay) * square
                second = row
            else:
                row = decay * row + (1 - decay) * square.mean(axis=-1, keepdims=True)
                column = decay * column + (1 - decay) * square.mean(axis=-2, keepdims=True)
                second = row * column / row.mean(axis=-2, keepdims=True)
            update = g / np.sqrt(second)
            update = update / max(1.0, np.sqrt(np.mean(update**2)) / clip)
            scale = max(least, np.sqrt(np.mean(p**2)))
            stepped.append(p - scale * rate * update)
            kept_rows.append(row)
            kept_columns.append(column)
        return {"count": count, "rows": kept_rows, "columns": kept_columns}, stepped

    return step


# Processes: what all clients together make of parameters.


@dataclasses.dataclass
class Averaging:
    """Federated averaging, also with a proximal term; the server steps against the mean change.

    In TFF, of 0.87 as of today, the proximal term of strength s is that of -s in the paper on
    FedProx: it pulls away from the server's parameters.
    """

    client: Optimizer
    server: Optimizer
    is_weighted: bool = True
    proximal: float = 0.0

    def train(self, parameters: Parameters, client: Client) -> Parameters:
        trained, state = parameters, {}
        for batch in client:
            grads = gradients(trained, batch)
            pulled = [
                g - self.proximal * (p - q)
                for g, p, q in zip(grads, trained, parameters, strict=True)
            ]
            state, trained = self.client(state, trained, pulled)
        return trained

    def run(self, parameters: Parameters, rounds: Sequence[Sequence[Client]]) -> Parameters:
        state: State = {}
        for clients in rounds:
            changes = [
                [p - q for p, q in zip(parameters, self.train(parameters, client), strict=True)]
                for client in clients
            ]
            weights = [float(size(client)) if self.is_weighted else 1.0 for client in clients]
            state, parameters = self.server(state, parameters, weighted(changes, weights))
        return parameters


@dataclasses.dataclass
class GradientDescent:
    """Federated SGD: one step with the mean gradient of all examples."""

    server: Optimizer

    def run(self, parameters: Parameters, rounds: Sequence[Sequence[Client]]) -> Parameters:
        state: State = {}
        for clients in rounds:
            state, parameters = self.server(state, parameters, full_gradient(parameters, clients))
        return parameters


def full_gradient(parameters: Parameters, clients: Sequence[Client]) -> Parameters:
    batches = [batch for client in clients for batch in client]
    sizes = [float(len(x)) for x, _ in batches]
    return weighted([gradients(parameters, batch) for batch in batches], sizes)


@dataclasses.dataclass
class MimeLite:
    """Clients step with the optimizer's state of the server, which the mean full gradient updates:
    that of all examples, or unweighted, that of clients."""

    base: Optimizer
    server: Optimizer
    is_weighted: bool = True

    def run(self, parameters: Parameters, rounds: Sequence[Sequence[Client]]) -> Parameters:
        state: State = {}
        server_state: State = {}
        for clients in rounds:
            changes = []
            for client in clients:
                trained = parameters
                for batch in client:
                    _, trained = self.base(state, trained, gradients(trained, batch))
                changes.append([p - q for p, q in zip(parameters, trained, strict=True)])
            weights = [float(size(client)) if self.is_weighted else 1.0 for client in clients]
            full = full_gradient(parameters, clients)
            if not self.is_weighted:
                alone = [full_gradient(parameters, [client]) for client in clients]
                full = weighted(alone, weights)
            state, _ = self.base(state, parameters, full)
            server_state, parameters = self.server(
                server_state, parameters, weighted(changes, weights)
            )
        return parameters
