"""SCAFFOLD, against the same in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tffc
from tests.algorithms import lines
from tests.algorithms.lines import SIZES, check, clients, line
from tffc.support.errors import TffcError

RATE, SERVER_RATE, EPOCHS, BATCH = 0.05, 0.7, 2, 3
DATA = clients(*SIZES)
NOBODY = {"x": np.zeros([0, 2], np.float32), "y": np.zeros([0], np.float32)}


def training(clients: int = len(SIZES)) -> Any:
    return tffc.algorithms.scaffold(
        line(),
        RATE,
        clients,
        server_learning_rate=SERVER_RATE,
        epochs=EPOCHS,
        batch_size=BATCH,
    )


def step(weights: Any, mean: Any, own: Any, client: Any) -> Any:
    """A client's weights and its new control."""
    start, steps = weights, 0
    for _ in range(EPOCHS):
        for at in range(0, len(client["y"]), BATCH):
            slopes = lines.gradient(weights, client["x"][at:][:BATCH], client["y"][at:][:BATCH])
            weights = {n: w - RATE * (slopes[n] - own[n] + mean[n]) for n, w in weights.items()}
            steps += 1
    control = {n: own[n] - mean[n] + (start[n] - weights[n]) / (steps * RATE) for n in weights}
    return weights, control


def test_clients_correct_their_drift() -> None:
    weights = lines.first()
    mean = {name: 0 * value for name, value in weights.items()}
    own = [mean] * len(DATA)
    run = tffc.run(training(), DATA, 4, clients_per_round=3, seed=2)
    for finished in run:
        took_part = [int(name) for name in finished.clients]
        done = [step(weights, mean, own[client], DATA[client]) for client in took_part]
        moved = {n: np.mean([w[n] - weights[n] for w, _ in done], 0) for n in weights}
        weights = {n: w + SERVER_RATE * moved[n] for n, w in weights.items()}
        for client, (_, control) in zip(took_part, done, strict=True):
            mean = {n: mean[n] + (control[n] - own[client][n]) / len(DATA) for n in mean}
            own[client] = control
        check(finished.state, weights)
        for name in mean:
            np.testing.assert_allclose(
                finished.state["control"][name], mean[name], rtol=1e-3, atol=1e-5
            )
    assert run.client_states is not None
    for name, control in run.client_states.items():
        for part in control:
            np.testing.assert_allclose(control[part], own[int(name)][part], rtol=1e-3, atol=1e-5)


def test_clients_without_examples_change_nothing() -> None:
    both = tffc.run(training(2), [DATA[0], NOBODY], 2).finish()
    alone = tffc.run(training(2), [DATA[0]], 2).finish()
    for name, value in alone.state["model"].items():
        np.testing.assert_allclose(both.state["model"][name], value)
    assert both.client_states is not None
    assert not any(np.any(value) for value in both.client_states["1"].values())


def test_it_is_verified_and_proved() -> None:
    bundle = tffc.compile(training())
    assert bundle.form == "client-state"
    assert bundle.prove().is_proved
    bundle.verify()


def test_settings_are_checked() -> None:
    with pytest.raises(TffcError, match="clients is 0"):
        training(0)
