"""Random numbers in a form have the distribution that they have in the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.distribution import FAR, distance
from tffc.backends import compile_form
from tffc.runtime.interpreter.interpreter import run

RUNS = 1000
STATE, DATA = tff.types.at_server(np.float32), tff.types.at_clients(np.float32)


@tff.tf_computation
def draw() -> Any:
    return tf.random.normal([])


@tff.tf_computation
def draw_with_a_seed() -> Any:
    return tf.random.stateless_normal([], seed=(3, 4))


@tff.tf_computation(np.float32, np.float32)
def add(x: Any, y: Any) -> Any:
    return x + y


def noisy(source: Any) -> Any:
    """A round in which each client adds a draw to its value, and the server to the sum."""

    @tff.federated_computation(STATE, DATA)
    def round_with_noise(state: Any, data: Any) -> Any:
        own = tff.federated_eval(source, tff.CLIENTS)
        total = tff.federated_sum(tff.federated_map(add, (data, own)))
        return state, tff.federated_map(add, (total, tff.federated_eval(source, tff.SERVER)))

    return round_with_noise.node


def sample(program: Any, runs: int) -> list[Any]:
    return [run(program, (0.0, [1.0, 2.0, 3.0]))[1] for _ in range(runs)]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_a_form_draws_as_the_program_does(form: str) -> None:
    program = noisy(draw)
    drawn = sample(compile_form(program, form).decompile(), RUNS)
    assert distance(drawn, sample(program, RUNS)) < FAR
    # Four draws make it half as wide as one draw for all would.
    numbers = np.random.default_rng(0).standard_normal(RUNS)
    assert distance(drawn, 6 + 2 * numbers) < FAR
    assert distance(drawn, 6 + 4 * numbers) > FAR


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_a_form_draws_the_same_from_a_seed(form: str) -> None:
    program = noisy(draw_with_a_seed)
    assert sample(compile_form(program, form).decompile(), 1) == sample(program, 1)
