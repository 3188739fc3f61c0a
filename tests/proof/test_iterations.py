"""A sequence that differs between iterations is not proved to be what the program has once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tffc.backends import compile_form
from tffc.proof.prove import Answer, Proof, prove

NUMBERS = tff.SequenceType(np.int64)


def section(function: Callable[..., Any]) -> Any:
    return tff.tf_computation(function, NUMBERS)


def counted(data: Any) -> Any:
    counter = tf.Variable(tf.constant(0, tf.int64))
    return data.map(lambda x: x + counter.assign_add(1))


UNSTEADY = {
    "shuffled": lambda data: data.shuffle(5, seed=3),
    "shuffled before": lambda data: data.shuffle(5, seed=3).map(lambda x: x + 1).take(3),
    "drawn": lambda data: data.map(lambda x: x + tf.random.uniform([], 0, 9, tf.int64, seed=5)),
    "drawn without a seed": lambda data: data.map(
        lambda x: x + tf.random.uniform([], 0, 9, tf.int64)
    ),
    "counted": counted,
}
STEADY = {
    "mapped": lambda data: data.map(lambda x: 2 * x).filter(lambda x: x > 2).take(3),
    "new": lambda data: tf.data.Dataset.range(5).map(lambda x: x * x),
    "drawn before": lambda data: data.map(
        lambda x: x + tf.random.stateless_uniform([], (1, 2), 0, 9, tf.int64)
    ),
}


def ordered(data: Any) -> Any:
    return data.reduce(tf.constant(0, tf.int64), lambda total, x: 7 * total + x)


def backwards(data: Any) -> Any:
    return data.reduce(tf.constant(0, tf.int64), lambda total, x: 5 * total - x)


ONCE = {
    "reduced": lambda m: section(ordered)(m),
    "mapped and reduced": lambda m: section(
        lambda d: ordered(d.map(lambda x: x + 1).batch(2).map(lambda x: tf.reduce_sum(x)))
    )(m),
    "by another section": lambda m: section(ordered)(section(lambda d: d.map(lambda x: x - 1))(m)),
    "summed": lambda m: tff.sequence_sum(m),
}
AGAIN = {
    "by one section called twice": lambda m: (section(ordered)(m), section(ordered)(m)),
    "by two sections": lambda m: (section(ordered)(m), section(backwards)(m)),
    "twice in a section": lambda m: section(lambda d: ordered(d) - backwards(d))(m),
    "repeated": lambda m: section(lambda d: ordered(d.repeat(2)))(m),
    "with itself": lambda m: section(
        lambda d: ordered(tf.data.Dataset.zip((d, d)).map(lambda x, y: x - y))
    )(m),
    "in a function": lambda m: section(
        lambda d: ordered(tf.data.Dataset.range(2).flat_map(lambda _: d))
    )(m),
    "after another section": lambda m: (
        section(ordered)(section(lambda d: d.map(lambda x: x - 1))(m)),
        tff.sequence_sum(m),
    ),
    "summed twice": lambda m: (tff.sequence_sum(m), section(ordered)(m)),
}


def proof_of(make: Any, use: Any, form: str = "mapreduce") -> Proof:
    handed_on = section(make)

    @tff.federated_computation(NUMBERS)
    def work(data: Any) -> Any:
        return use(handed_on(data))

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(NUMBERS))
    def round_(state: Any, data: Any) -> Any:
        worked = tff.federated_map(work, data)
        if isinstance(work.type_signature.result, tff.StructType):
            return state, (tff.federated_sum(worked[0]), tff.federated_sum(worked[1]))
        return state, tff.federated_sum(worked)

    compiled = compile_form(round_.node, form)
    return prove(round_.node, form, dict(compiled.components()))


@pytest.mark.parametrize("use", AGAIN.values(), ids=AGAIN)
@pytest.mark.parametrize("make", UNSTEADY.values(), ids=UNSTEADY)
def test_an_iteration_that_may_give_other_elements(make: Any, use: Any) -> None:
    proof = proof_of(make, use)
    assert (proof.answer, proof.construct) == (
        Answer.UNDECIDED,
        "a sequence that may differ when it is iterated over again",
    )


@pytest.mark.parametrize("use", ONCE.values(), ids=ONCE)
@pytest.mark.parametrize("make", [*UNSTEADY.values(), *STEADY.values()], ids=[*UNSTEADY, *STEADY])
def test_one_iteration(make: Any, use: Any) -> None:
    assert proof_of(make, use).answer is Answer.PROVED


@pytest.mark.parametrize("use", AGAIN.values(), ids=AGAIN)
@pytest.mark.parametrize("make", STEADY.values(), ids=STEADY)
def test_iterations_that_give_the_same_elements(make: Any, use: Any) -> None:
    assert proof_of(make, use).answer is Answer.PROVED
