"""Sums with discrete noise: what they add up, and what privacy is shown of them."""

from __future__ import annotations

import collections
import math
from typing import Any

import numpy as np
import pytest

import tffc
from tffc.assurance.privacy.accounting import Skellam
from tffc.assurance.privacy.question import Neighbours, PrivacyQuestion
from tffc.support.errors import LanguageTypeError, LanguageValueError

VALUE = tffc.to_type(
    collections.OrderedDict(
        narrow=tffc.TensorType(np.float32, [3]), wide=tffc.TensorType(np.float64, [2, 2])
    )
)
CLIP, NOISE, LEVELS = 2.0, 1.5, 4096


def rounds(**settings: Any) -> Any:
    @tffc.federated_computation(tffc.types.at_server(()), tffc.types.at_clients(VALUE))
    def following(state: Any, value: Any) -> Any:
        return state, tffc.algorithms.private_sum(value, CLIP, NOISE, levels=LEVELS, **settings)

    return following


CENTRAL, SHARED = rounds(), rounds(least_clients=20)


def client(number: float) -> Any:
    return collections.OrderedDict(
        narrow=np.full(3, number, np.float32), wide=np.full((2, 2), number)
    )


@pytest.mark.parametrize("following", [CENTRAL, SHARED], ids=["server", "clients"])
def test_clipped_sum(following: Any) -> None:
    clients = [client(9.0)] * 20
    sums = np.array([following((), clients)[1]["narrow"] for _ in range(20)])
    assert sums.dtype == np.float32
    each = CLIP / math.sqrt(7)
    assert abs(sums.mean() - 20 * each) < 4 * NOISE * CLIP / math.sqrt(sums.size) + 20 / LEVELS
    assert 0.5 < sums.std() / (NOISE * CLIP) < 1.5


def test_negative_sums_and_numbers_that_are_not_finite() -> None:
    clients = [client(-9.0)] * 20 + [client(math.nan), client(math.inf)]
    total = SHARED((), clients)[1]
    assert total["wide"].dtype == np.float64
    assert np.all(total["wide"] < 0)


def test_values_are_multiples_of_a_step() -> None:
    total = CENTRAL((), [client(0.1)] * 3)[1]["wide"]
    assert np.array_equal(total / (CLIP / LEVELS), np.round(total / (CLIP / LEVELS)))


@pytest.mark.parametrize(
    ("following", "neighbours", "clients"),
    [(CENTRAL, Neighbours.ADD_OR_REMOVE, 1), (SHARED, Neighbours.ZERO_OUT, 20)],
    ids=["server", "clients"],
)
def test_privacy(following: Any, neighbours: Neighbours, clients: int) -> None:
    question = PrivacyQuestion(neighbours=neighbours, least_clients=clients)
    answer = tffc.audit(following, privacy=question).privacy
    assert answer is not None
    (part,) = answer.derivation.parts
    assert isinstance(part, Skellam)
    assert math.isclose(part.deviation, NOISE * LEVELS)
    assert math.isclose(part.l2, 1 / NOISE)
    assert math.isclose(part.l1, math.sqrt(7) / NOISE)


def test_fewer_clients_have_less_noise() -> None:
    question = PrivacyQuestion(neighbours=Neighbours.ZERO_OUT, least_clients=5)
    answer = tffc.audit(SHARED, privacy=question).privacy
    assert answer is not None
    (part,) = answer.derivation.parts
    assert isinstance(part, Skellam)
    assert math.isclose(part.l2, 2 / NOISE)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"clip": 0.0}, "clip is 0.0"),
        ({"noise_multiplier": -1.0}, "noise_multiplier is -1.0"),
        ({"levels": 0}, "levels is 0"),
        ({"least_clients": 1.5}, "least_clients is 1.5"),
    ],
)
def test_settings(setting: dict[str, Any], message: str) -> None:
    arguments = {"clip": 1.0, "noise_multiplier": 1.0, **setting}
    with pytest.raises(LanguageValueError, match=message):

        @tffc.federated_computation(tffc.types.at_clients(VALUE))
        def _(value: Any) -> Any:
            return tffc.algorithms.private_sum(value, **arguments)


def test_integers_are_refused() -> None:
    with pytest.raises(LanguageTypeError, match="cannot add up a value of type `int32`"):

        @tffc.federated_computation(tffc.types.at_clients(np.int32))
        def _(value: Any) -> Any:
            return tffc.algorithms.private_sum(value, 1.0, 1.0)
