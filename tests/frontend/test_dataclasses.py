"""Dataclasses as arguments, results and states of computations."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tffc as tff

tf = pytest.importorskip("tensorflow")


@dataclasses.dataclass(frozen=True)
class Model:
    weight: Any
    bias: Any = 0.0


@dataclasses.dataclass(kw_only=True)
class State:
    rounds: Any = 0
    model: Any


STATE = tff.to_type(State(rounds=np.int32, model=Model(np.float32, np.float32)))


@tff.tf_computation(STATE, np.float32)
def moved(state: State, step: Any) -> State:
    model = dataclasses.replace(state.model, weight=state.model.weight + step)
    return State(model=model, rounds=state.rounds + 1)


@tff.federated_computation
def first() -> Any:
    return tff.federated_eval(tff.tf_computation(lambda: State(model=Model(0.0, 1.0))), tff.SERVER)


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(np.float32))
def train(state: Any, steps: Any) -> Any:
    new = tff.federated_map(moved, (state, tff.federated_mean(steps)))
    return new, State(rounds=new.rounds, model=state.model.bias)


def test_a_process_with_a_dataclass_as_its_state() -> None:
    process = tff.templates.IterativeProcess(first, train)
    assert first.type_signature.result.member.container is State
    state, output = process.next(process.initialize(), [1.0, 3.0])
    assert state == State(rounds=1, model=Model(2.0, 1.0))
    assert output == State(rounds=1, model=1.0)
    assert type(process.next(state, [1.0])[0].model) is Model


def test_arguments_of_no_declared_type() -> None:
    double = tff.tf_computation(lambda model: Model(model.weight * 2, model.bias))
    assert double(Model(np.float32(2), np.float32(3))) == Model(4.0, 3.0)


def test_elements_of_a_sequence_become_dictionaries() -> None:
    @tff.tf_computation(tff.SequenceType(Model(np.float32, np.float32)))
    def total(models: Any) -> Any:
        return models.reduce(0.0, lambda sum, model: sum + model["weight"] * model["bias"])

    assert total([Model(2.0, 3.0), Model(1.0, 1.0)]) == 7.0


def test_jax_takes_a_dataclass_that_it_knows() -> None:
    jax = pytest.importorskip("jax")

    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Known:
        weight: Any
        bias: Any

    double = tff.jax_computation(
        lambda model: Known(model.weight * 2, model.bias), Known(np.float32, np.float32)
    )
    assert double(Known(2.0, 3.0)) == Known(4.0, 3.0)


def test_structures() -> None:
    model = Model(1.0, 2.0)
    assert tff.structure.map_structure(lambda x: x + 1, model) == Model(2.0, 3.0)
    assert tff.structure.update_struct(model, bias=5.0) == Model(1.0, 5.0)
    assert tff.structure.from_container(model) == tff.structure.Struct.named(weight=1.0, bias=2.0)
