"""Evaluations, against the same in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tffc
from tests.algorithms import lines
from tests.algorithms.lines import SIZES, clients, line

algorithms = tffc.algorithms
DATA = clients(*SIZES)


@pytest.fixture(scope="module")
def training() -> tffc.templates.IterativeProcess:
    return algorithms.federated_averaging(
        line(), 0.1, server_optimizer=algorithms.Adam(0.1), batch_size=3
    )


def test_evaluation(training: tffc.templates.IterativeProcess) -> None:
    evaluation = algorithms.federated_evaluation(line(), training, batch_size=4)
    run = tffc.run(training, DATA, 2, evaluate=evaluation, evaluate_data=DATA)
    for finished in run:
        weights = {name: np.asarray(w) for name, w in finished.state["model"].items()}
        off = np.concatenate([lines.errors(weights, c["x"], c["y"]) for c in DATA])
        measured = finished.evaluation
        np.testing.assert_allclose(measured["loss"], np.mean(off**2), rtol=1e-4)
        np.testing.assert_allclose(measured["distance"], np.mean(np.abs(off)), rtol=1e-4)
        assert measured["examples"] == sum(SIZES)


def test_personalised_evaluation(training: tffc.templates.IterativeProcess) -> None:
    personal = algorithms.personalised_evaluation(
        line(), training, 0.1, share=0.6, epochs=2, batch_size=3
    )
    state = training.initialize()
    finished = next(tffc.run(tffc.compile(personal, "mapreduce"), DATA, 1, state=state))
    before, after = [], []
    for client in DATA:
        cut = int(len(client["y"]) * 0.6)
        own = {name: rows[:cut] for name, rows in client.items()}
        rest = client["x"][cut:], client["y"][cut:]
        before.append(lines.errors(lines.first(), *rest))
        after.append(lines.errors(lines.train(lines.first(), own, 0.1, 2, 3)[0], *rest))
    for when, off in (("before", before), ("after", after)):
        measured, off = finished.output[when], np.concatenate(off)
        np.testing.assert_allclose(measured["loss"], np.mean(off**2), rtol=1e-4)
        np.testing.assert_allclose(measured["distance"], np.mean(np.abs(off)), rtol=1e-4)
        assert measured["examples"] == len(off)
    np.testing.assert_allclose(finished.state["model"]["slope"], lines.FIRST["slope"])


@pytest.mark.slow
def test_evaluations_are_verified_and_proved(training: tffc.templates.IterativeProcess) -> None:
    for evaluation in (
        algorithms.federated_evaluation(line(), training),
        algorithms.personalised_evaluation(line(), training, 0.1, epochs=2, batch_size=3),
    ):
        bundle = tffc.compile(evaluation, "mapreduce")
        assert bundle.prove(evaluation).is_proved
        bundle.verify()
