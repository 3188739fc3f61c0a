"""The learning library of today's TFF computes over tffc what its algorithms are in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tff.today import reference
from tests.tff.today.sources import module, needs_checkout

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_checkout,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]

KINDS = ("keras", "functional_keras", "functions")
BUILDERS = (
    "fed_avg",
    "unweighted fed_avg",
    "fed_avg by a schedule",
    "fed_prox",
    "unweighted fed_prox",
    "fed_sgd",
    "mime_lite",
    "unweighted mime_lite",
    "mime_lite by a schedule",
)
OPTIMIZERS = ("momentum", "nesterov", "adam", "adamw", "adagrad", "rmsprop", "yogi")
NAMES = [
    *(f"{builder} of {kind}" for builder in BUILDERS for kind in KINDS),
    *(
        f"fed_avg with {name} at the {side}"
        for name in OPTIMIZERS
        for side in ("server", "clients")
    ),
]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_trained(name: str) -> None:
    learning = module("learning")
    program = learning.trained()[name]()
    parameters = learning.parameters_after(program.process)
    expected = program.expected.run(learning.first_parameters(), learning.ROUNDS)
    for one, other in zip(parameters, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_adafactor() -> None:
    learning = module("learning")
    step, (weights,) = reference.adafactor(0.1), [learning.KERNEL.astype(float)]
    state, (first,) = step({}, [weights], [3 * weights])
    _, (second,) = step(state, [first], [6 * weights])
    for one, other in zip(learning.adafactor_steps(), (first, second), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_all_programs_are_tried() -> None:
    assert set(module("learning").trained()) == set(NAMES)
