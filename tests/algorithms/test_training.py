"""Federated averaging and FedProx, against the same in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tffc
from tests.algorithms import lines
from tests.algorithms.lines import SIZES, check, clients, line

algorithms = tffc.algorithms
DATA = clients(*SIZES)


def rounds(training: Any, data: Any = DATA, count: int = 3) -> tffc.Run:
    return tffc.run(tffc.compile(training, "mapreduce"), data, count).finish()


def test_weights_are_means_by_examples() -> None:
    run = rounds(algorithms.federated_averaging(line(), 0.1, epochs=2, batch_size=3))
    weights = lines.first()
    before = weights
    for _ in range(3):
        update = lines.mean(lines.updates(weights, DATA, 0.1, 2, 3), SIZES)
        before, weights = weights, lines.moved(weights, update)
    check(run.state, weights)
    assert run.state["rounds"] == 3
    seen = [e for client in DATA for e in lines.train(before, client, 0.1, 2, 3)[1]]
    off = np.concatenate(seen)
    np.testing.assert_allclose(run.output["loss"], np.mean(off**2), rtol=1e-4)
    np.testing.assert_allclose(run.output["distance"], np.mean(np.abs(off)), rtol=1e-4)
    assert run.output["examples"] == sum(SIZES)


def test_uniform_means_count_clients_with_examples_alike() -> None:
    data = [*DATA, {"x": np.zeros([0, 2], np.float32), "y": np.zeros([0], np.float32)}]
    training = algorithms.federated_averaging(line(), 0.1, batch_size=4, weighting="uniform")
    weights = lines.first()
    update = lines.mean(lines.updates(weights, DATA, 0.1, 1, 4), None)
    check(rounds(training, data, 1).state, lines.moved(weights, update))


def test_a_round_without_examples_leaves_the_weights() -> None:
    empty = [{"x": np.zeros([0, 2], np.float32), "y": np.zeros([0], np.float32)}]
    for robust in (None, algorithms.Median(), algorithms.TrimmedMean(0.2)):
        training = algorithms.federated_averaging(line(), 0.1, robust=robust)
        run = rounds(training, empty, 1)
        check(run.state, lines.first())
        assert run.output["examples"] == 0


def test_updates_are_clipped() -> None:
    training = algorithms.federated_averaging(line(), 0.3, batch_size=2, clip_norm=0.2)
    weights = lines.first()
    clipped = []
    for update in lines.updates(weights, DATA, 0.3, 1, 2):
        norm = np.sqrt(sum(np.sum(value**2) for value in update.values()))
        clipped.append({n: value * min(1, 0.2 / norm) for n, value in update.items()})
    expected = lines.moved(weights, lines.mean(clipped, SIZES))
    check(rounds(training, count=1).state, expected)


def test_fedprox_pulls_towards_the_weights_of_the_server() -> None:
    run = rounds(algorithms.fedprox(line(), 0.1, 0.5, epochs=2, batch_size=3))
    weights = lines.first()
    for _ in range(3):
        update = lines.mean(lines.updates(weights, DATA, 0.1, 2, 3, 0.5), SIZES)
        weights = lines.moved(weights, update)
    check(run.state, weights)


def second_moment(kind: str, v: Any, square: Any) -> Any:
    """The formulas of Reddi et al. 2021, Algorithm 2."""
    if kind == "Adagrad":
        return v + square
    if kind == "Yogi":
        return v - 0.01 * square * np.sign(v - square)
    return 0.99 * v + 0.01 * square


@pytest.mark.parametrize("kind", ["Adam", "Yogi", "Adagrad"])
def test_adaptive_optimizers_at_the_server(kind: str) -> None:
    server = getattr(algorithms, kind)(0.1, beta_1=0.8, tau=0.01)
    training = algorithms.federated_averaging(line(), 0.1, batch_size=5, server_optimizer=server)
    weights = lines.first()
    m = {name: 0 * value for name, value in weights.items()}
    v = {name: 0 * value + 0.01**2 for name, value in weights.items()}
    for _ in range(3):
        update = lines.mean(lines.updates(weights, DATA, 0.1, 1, 5), SIZES)
        for name, delta in update.items():
            m[name] = 0.8 * m[name] + 0.2 * delta
            v[name] = second_moment(kind, v[name], delta**2)
            weights[name] = weights[name] + 0.1 * m[name] / (np.sqrt(v[name]) + 0.01)
    run = rounds(training)
    check(run.state, weights)
    for name in weights:
        np.testing.assert_allclose(run.state["optimizer"]["v"][name], v[name], rtol=1e-3)


def test_momentum_at_both_sides() -> None:
    server = algorithms.SGD(0.5, momentum=0.9)
    training = algorithms.federated_averaging(
        line(), algorithms.SGD(0.05, momentum=0.5), batch_size=2, server_optimizer=server
    )
    weights = lines.first()
    m = {name: 0 * value for name, value in weights.items()}
    for _ in range(3):
        updates = []
        for client in DATA:
            own, own_m = dict(weights), {name: 0 * value for name, value in weights.items()}
            for start in range(0, len(client["y"]), 2):
                slopes = lines.gradient(own, client["x"][start:][:2], client["y"][start:][:2])
                for name in own:
                    own_m[name] = 0.5 * own_m[name] - slopes[name]
                    own[name] = own[name] + 0.05 * own_m[name]
            updates.append({name: own[name] - weights[name] for name in own})
        for name, delta in lines.mean(updates, SIZES).items():
            m[name] = 0.9 * m[name] + delta
            weights[name] = weights[name] + 0.5 * m[name]
    check(rounds(training).state, weights)


@pytest.mark.parametrize("sizes", [SIZES, SIZES[:4]], ids=["odd", "even"])
def test_median(sizes: tuple[int, ...]) -> None:
    data = clients(*sizes)
    training = algorithms.federated_averaging(line(), 0.1, batch_size=3, robust=algorithms.Median())
    weights = lines.first()
    moves = lines.updates(weights, data, 0.1, 1, 3)
    median = {name: np.median([move[name] for move in moves], axis=0) for name in weights}
    check(rounds(training, data, 1).state, lines.moved(weights, median))


def test_trimmed_mean_leaves_out_both_ends() -> None:
    wild = {"x": np.full([6, 2], 50, np.float32), "y": np.full([6], -900, np.float32)}
    data = [*DATA, wild]
    training = algorithms.federated_averaging(
        line(), 0.001, batch_size=3, robust=algorithms.TrimmedMean(0.2)
    )
    weights = lines.first()
    moves = lines.updates(weights, data, 0.001, 1, 3)
    inner = {
        name: np.sort([move[name] for move in moves], axis=0)[1:-1].mean(axis=0) for name in weights
    }
    check(rounds(training, data, 1).state, lines.moved(weights, inner))


SEVERAL: dict[str, Any] = {
    "momentum": {"server_optimizer": algorithms.SGD(1.0, 0.9), "clip_norm": 1.0},
    "yogi": {"server_optimizer": algorithms.Yogi(0.1), "weighting": "uniform"},
    "median": {"robust": algorithms.Median()},
    "trimmed": {"robust": algorithms.TrimmedMean(0.2)},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_bundles_are_verified_and_proved(name: str) -> None:
    training = algorithms.fedprox(line(), 0.1, 0.5, batch_size=3, **SEVERAL[name])
    bundle = tffc.compile(training, "mapreduce")
    assert bundle.prove(training).is_proved
    bundle.verify()


def test_an_audit_says_that_a_median_sees_every_client() -> None:
    plain = algorithms.federated_averaging(line(), 0.1)
    robust = algorithms.federated_averaging(line(), 0.1, robust=algorithms.Median())
    for training, operator in ((plain, "federated_weighted_mean"), (robust, "federated_aggregate")):
        channels = tffc.audit(training, "mapreduce").audit.channels
        assert operator in {channel.operator for channel in channels}
