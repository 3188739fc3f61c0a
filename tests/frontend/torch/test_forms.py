"""Models of many kinds in every form: compiled, proved, and run by engines as PyTorch trains
them."""

from __future__ import annotations

import importlib.util
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
import torch

import tffc as tff
from tests.frontend.torch import zoo
from tests.frontend.torch.zoo_training import (
    CLIENTS,
    STEPS,
    Trainer,
    batch_of,
    difference,
    function_step,
    rounds,
    trainer,
    typed,
)

FORMS = ("mapreduce", "distribute-aggregate", "mergeable")
QUICK, SLOW = ("mlp",), ("conv2d",)
ENGINES = ("local", "ray")
BOUND = 1e-6


def mark(name: str) -> Any:
    """How long a model takes."""
    if name in QUICK:
        return ()
    return pytest.mark.slow if name in SLOW else pytest.mark.long


NAMES = [pytest.param(name, marks=mark(name)) for name in (*zoo.MODELS, *zoo.HUGGING_FACE)]


def process(each: Trainer) -> Any:
    """Return plain averaging of the model over clients, each with a sequence of batches."""
    weights = OrderedDict(trained=each.weights.trained, averaged=each.weights.averaged)
    state = OrderedDict((part, tff.torch.types(arrays)) for part, arrays in weights.items())
    batch = tff.to_type([typed(tensor) for tensor in (*each.model.inputs, *each.model.targets)])

    @tff.torch.computation
    def first() -> Any:
        return OrderedDict(
            (part, OrderedDict((name, torch.from_numpy(array)) for name, array in arrays.items()))
            for part, arrays in weights.items()
        )

    @tff.federated_computation(state, batch)
    def step(state: Any, batch: Any) -> Any:
        after = each.compiled(state.trained, state.averaged, batch)
        return OrderedDict(trained=after.trained, averaged=after.averaged)

    @tff.federated_computation(state, tff.SequenceType(batch))
    def train(state: Any, batches: Any) -> Any:
        return tff.sequence_reduce(batches, state, step)

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_eval(first, tff.SERVER)

    @tff.tf_computation(np.int32)
    def one(count: Any) -> Any:
        return count

    @tff.federated_computation(
        tff.types.at_server(state), tff.types.at_clients(tff.SequenceType(batch))
    )
    def round_of(state: Any, batches: Any) -> Any:
        after = tff.federated_map(train, (tff.federated_broadcast(state), batches))
        count = tff.federated_sum(tff.federated_value(1, tff.CLIENTS))
        return tff.federated_mean(after), tff.federated_map(one, count)

    return tff.templates.IterativeProcess(initialize_fn=initialize, next_fn=round_of)


def data(each: Trainer) -> list[Any]:
    """Return the batches of all clients in the first round of `zoo_training.rounds`."""
    return [
        [[part.numpy() for part in batch_of(each.model, client, step)] for step in range(STEPS)]
        for client in range(CLIENTS)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_forms(name: str) -> None:
    if name in zoo.HUGGING_FACE:
        pytest.importorskip("transformers")
    if name == "llama":
        pytest.importorskip("peft")
    each = trainer({**zoo.MODELS, **zoo.HUGGING_FACE}[name])
    training = process(each)
    [expected] = [state for state, _ in zip(rounds(each, function_step), range(1), strict=False)]
    for form in FORMS:
        bundle = tff.compile(training, form)
        assert tff.prove(bundle, training).is_proved
        state = tff.run(training, data(each), 1, form=form).finish().state
        assert difference((state["trained"], state["averaged"]), expected) <= BOUND, form


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["conv2d", pytest.param("lstm", marks=pytest.mark.long)])
def test_engines(name: str, engine: str) -> None:
    if engine == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install '.[ray]'")
    each = trainer(zoo.MODELS[name])
    [expected] = [state for state, _ in zip(rounds(each, function_step), range(1), strict=False)]
    for batching in ("off", 3):
        run = tff.run(process(each), data(each), 1, engine=engine, batching=batching)
        state = run.finish().state
        assert difference((state["trained"], state["averaged"]), expected) <= BOUND
