"""Proofs of discounts: wrong ones are not proved."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow

import tffc as tff
from tests.assurance.proof import edits
from tests.assurance.proof.edits import Draft
from tffc.assurance.proof.prove import Answer, prove_section
from tffc.backends.compiler import compile_discount

# Its annotations refuse what it takes.
tf: Any = tensorflow

pytestmark = pytest.mark.tensorflow


def traced(weight: Callable[[Any], Any]) -> Any:
    return tff.tf_computation(weight, np.int32).node


def of_inverse_root(age: Any) -> Any:
    return 1 / tf.sqrt(1 + tf.cast(age, tf.float32))


DISCOUNT = traced(of_inverse_root)

OTHERS = {
    "a steeper one": lambda age: 1 / (1 + tf.cast(age, tf.float32)),
    "another constant": lambda age: 1 / tf.sqrt(2 + tf.cast(age, tf.float32)),
    "none": lambda age: tf.constant(1.0),
    "of one age less": lambda age: of_inverse_root(age - 1),
    "negated": lambda age: -of_inverse_root(age),
}


def test_proved_without_a_fault() -> None:
    assert prove_section(DISCOUNT, compile_discount(DISCOUNT)).answer is Answer.PROVED


@pytest.mark.parametrize("name", OTHERS)
def test_another_discount_is_not_proved(name: str) -> None:
    section = compile_discount(traced(OTHERS[name]))
    assert prove_section(DISCOUNT, section).answer is Answer.DIFFERENT


@pytest.mark.parametrize("place", range(3))
def test_a_constant_that_is_another_is_not_proved(place: int) -> None:
    draft = Draft(compile_discount(DISCOUNT), random.Random(place))
    section = edits.other_constant(draft)
    assert section is not None
    assert prove_section(DISCOUNT, section).answer is not Answer.PROVED
