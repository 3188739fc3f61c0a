"""No attack on private programs is better than the ε that is claimed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from tests.assurance.privacy.attack import Data, ReleasedRound, attack
from tests.assurance.privacy.derivations import derivation, round_by
from tests.assurance.privacy.planted_rounds import BOUND, skellam, tf, to_integers
from tests.assurance.privacy.programs import events
from tests.assurance.privacy.programs.rounds import SIZE
from tffc.assurance.privacy.accounting import Gaussian, spending
from tffc.assurance.privacy.question import ANY_COHORTS, Neighbours

DELTA = 1e-5
DRAWS = 1_000_000

pytest.importorskip("dp_accounting")


def vector(*values: float) -> list[np.ndarray]:
    return [np.array(values, np.float32)]


ZEROS = vector(*[0] * SIZE)
CORNER = vector(*[1e4] * SIZE)
AXIS = vector(1e4, *[0] * (SIZE - 1))
PAIR = [np.full([2, 3], 1e3, np.float32), np.full([3], -1e3, np.float32)]
PAIR_OF_ZEROS = [np.zeros_like(leaf) for leaf in PAIR]


class Case(NamedTuple):
    """What each client has, what the client has that is added or that takes the place of another,
    and the ε that an attack finds at least, which shows that it tries."""

    other: list[np.ndarray]
    client: list[np.ndarray]
    least: float
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE


CASES = {
    "sum_clip_by_norm": Case(ZEROS, AXIS, 1.0),
    "sum_where_formula": Case(ZEROS, CORNER, 1.0),
    "sum_clip_by_value": Case(ZEROS, CORNER, 0.6),
    "sum_laplace_by_inverse": Case(ZEROS, AXIS, 1.7),
    "sum_laplace_of_exponentials": Case(ZEROS, AXIS, 1.7),
    "sum_laplace_in_a_box": Case(ZEROS, CORNER, 5.0),
    "sum_clip_each_tensor": Case(PAIR_OF_ZEROS, PAIR, 1.6),
    "mean_private_denominator": Case(ZEROS, CORNER, 1.1),
    "several_channels": Case(ZEROS, CORNER, 1.2),
    "adaptive_clip": Case(ZEROS, CORNER, 0.9),
    "scale_in_state": Case(ZEROS, CORNER, 1.0),
    "aggregate_with_clip": Case(ZEROS, CORNER, 1.0),
    "sum_noise_at_clients": Case(ZEROS, CORNER, 1.7, Neighbours.REPLACE),
}
"""Of the programs of `events`."""


SLACK = 0.5
"""By how much an attack may have bad luck."""


def neighbouring(case: Case) -> tuple[Data, Data]:
    if case.neighbours is Neighbours.REPLACE:
        opposite = [-leaf for leaf in case.client]
        return [case.other, opposite], [case.other, case.client]
    return [case.other, case.other], [case.other, case.other, case.client]


def least_epsilon(process: object, case: Case) -> float:
    """The ε that an attack on a process finds at least."""
    rounds = ReleasedRound(process)
    first, second = (rounds.releases(data, DRAWS) for data in neighbouring(case))
    return attack(first, second, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_attacks(name: str) -> None:
    case, process = CASES[name], events.program(name)
    shown = derivation(process, case.neighbours)
    assert shown.is_shown
    claimed = spending(shown.parts, 1, DELTA, ANY_COHORTS, case.neighbours).epsilon
    assert SLACK * case.least <= least_epsilon(process, case) <= claimed


@pytest.mark.slow
def test_attack_on_integers() -> None:
    process = round_by(
        lambda x: to_integers(tf.constant(BOUND), [x])[0],
        lambda total: total + skellam(total.shape),
    )
    shown = derivation(process)
    assert shown.is_shown
    claimed = spending(shown.parts, 1, DELTA, ANY_COHORTS, shown.neighbours).epsilon
    assert SLACK <= least_epsilon(process, Case(ZEROS, AXIS, 1.0)) <= claimed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sum_clip_by_norm", "scale_in_state"])
def test_an_attack_finds_a_wrong_claim(name: str) -> None:
    case, process = CASES[name], events.program(name)
    shown = derivation(process, case.neighbours)
    (part,) = shown.parts
    assert isinstance(part, Gaussian)
    wrong = [Gaussian(4 * part.multiplier)]
    claimed = spending(wrong, 1, DELTA, ANY_COHORTS, case.neighbours).epsilon
    assert least_epsilon(process, case) > claimed
