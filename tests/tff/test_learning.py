"""TFF's own libraries over tffc: what they compute, held against TFF's results and plain NumPy.

They run from the files of the installed wheel; without it, and what it imports, nothing is tried.
"""

from __future__ import annotations

import collections
import pathlib
import warnings
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.corpus.cases import MISSING, ROOT, Case
from tests.tff.linear import linear_model
from tests.tff.wheel import needs_wheel
from tffc.tff.backends import mapreduce

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module", autouse=True)
def libraries() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _ = tff.learning  # type: ignore[attr-defined]  # missing on purpose


def library(name: str) -> Any:
    return getattr(tff, name)


def federated_averaging(features: int = 3, momentum: float | None = None) -> Any:
    learning = library("learning")
    return learning.algorithms.build_weighted_fed_avg(
        linear_model(learning.models, features),
        client_optimizer_fn=learning.optimizers.build_sgdm(0.1),
        server_optimizer_fn=learning.optimizers.build_sgdm(1.0, momentum),
    )


@pytest.mark.skipif(ROOT is None, reason=MISSING)
def test_federated_averaging_computes_what_it_does_on_tff() -> None:
    assert ROOT is not None
    case = Case(pathlib.Path(ROOT) / "fedavg_linreg_functional")
    process = federated_averaging()
    assert str(process.next.type_signature) == (case.folder / "type.txt").read_text().strip()
    for recorded in case.rounds().rounds:
        found = process.next(*recorded.arg.values())
        expected = recorded.result["state"]["global_model_weights"]["trainable"]
        for one, other in zip(found.state.global_model_weights.trainable, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        np.testing.assert_allclose(
            found.metrics["client_work"]["train"]["mae"],
            recorded.result["metrics"]["client_work"]["train"]["mae"],
            rtol=1e-6,
        )


def test_federated_averaging_learns_and_compiles() -> None:
    process = federated_averaging(features=1, momentum=0.5)
    x = np.arange(4, dtype=np.float32)[:, None]
    batch = collections.OrderedDict(x=x / 4, y=x / 2 + 1)
    state, losses = process.initialize(), []
    for _ in range(4):
        state, metrics = process.next(state, [[batch], [batch, batch]])
        losses.append(metrics["client_work"]["train"]["mae"])
    assert losses == sorted(losses, reverse=True)
    assert isinstance(process, tff.templates.IterativeProcess)
    form = mapreduce.get_map_reduce_form_for_computation(process.next)
    assert str(form.type_signature.result) == str(process.next.type_signature.result)


ARRAYS = [np.array(each, np.float32) for each in ([1.0, 2.0], [3.0, 4.0], [8.0, 0.0])]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda a: a.SumFactory(), [12.0, 6.0]),
        (lambda a: a.UnweightedMeanFactory(), [4.0, 2.0]),
        (lambda a: a.SecureSumFactory(10.0), [12.0, 6.0]),
        (lambda a: a.clipping_factory(5.0, a.SumFactory()), [9.0, 6.0]),
    ],
    ids=["sum", "mean", "secure", "clipping"],
)
def test_aggregators(make: Any, expected: list[float]) -> None:
    factory = make(library("aggregators"))
    process = factory.create(tff.TensorType(np.float32, [2]))
    output = process.next(process.initialize(), ARRAYS)
    np.testing.assert_allclose(output.result, expected, rtol=1e-4)


def test_an_aggregator_of_structs() -> None:
    aggregators = library("aggregators")
    factory = aggregators.concat_factory(aggregators.SumFactory())
    member = tff.to_type(collections.OrderedDict(b=(np.float32, [2]), a=(np.float32, [2])))
    process = factory.create(member)
    values = [collections.OrderedDict(b=each, a=-each) for each in ARRAYS]
    found = process.next(process.initialize(), values).result
    assert list(found) == ["b", "a"]
    np.testing.assert_allclose(found["b"], [12.0, 6.0])
    np.testing.assert_allclose(found["a"], [-12.0, -6.0])


def test_evaluation() -> None:
    learning = library("learning")
    process = learning.algorithms.build_fed_eval(linear_model(learning.models, 1))
    batch = collections.OrderedDict(x=np.ones((2, 1), np.float32), y=np.full((2, 1), 3, np.float32))
    output = process.next(process.initialize(), [[batch], [batch, batch]])
    assert output.metrics["client_work"]["eval"]["current_round_metrics"] == {"mae": 3.0}


def test_analytics() -> None:
    histogram = library("analytics").build_hierarchical_histogram_process(
        lower_bound=0.0,
        upper_bound=4.0,
        num_bins=4,
        clip_mechanism="distinct",
        max_records_per_user=4,
    )
    assert isinstance(histogram, tff.templates.IterativeProcess)
