"""Discrete normal noise: what is known to draw it, and what its shares are worth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.assurance.privacy.derivations import NOTHING, VECTOR, nothing
from tests.assurance.privacy.programs import discrete_normal
from tffc.assurance.privacy.accounting import DiscreteGaussian, excess_of_shares
from tffc.assurance.privacy.graphs import samplers
from tffc.assurance.privacy.question import Neighbours, PrivacyQuestion
from tffc.graphs.functions import Library
from tffc.language.nodes import Compiled
from tffc.linking.section import read_section
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

tf: Any = load_tensorflow()

CLIP, SCALE, SIZE, SIGMA, CLIENTS = 3.0, 64.0, 4, 20, 30
LENGTH = CLIP * SCALE + 0.5 * math.sqrt(SIZE)
"""The length of a rounded contribution."""


def form(sampler: discrete_normal.Sampler) -> str:
    """Return the form of a sampler, as it is in the graph of a program."""
    program = tff.tf_computation(lambda: sampler(tf.constant(SIGMA), tf.constant([SIZE])))
    section = program.to_building_block()
    assert isinstance(section, Compiled)
    library = Library(read_section(section).graph.library)
    (name,) = (name for name in library.functions if samplers.may_sample(library.body(name)))
    return samplers.form_of(name, library)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the sampler of these tests among those that are known."""
    forms = {*samplers.DISCRETE_GAUSSIAN, form(discrete_normal.RIGHT)}
    monkeypatch.setattr(samplers, "DISCRETE_GAUSSIAN", frozenset(forms))


def clipped(x: Any) -> Any:
    return x * tf.minimum(1.0, CLIP / tf.norm(x))


def rounded(x: Any) -> Any:
    return tf.cast(tf.round(clipped(x) * SCALE), tf.int32)


def rounds(noise: Any, at_clients: bool = True, work: Any = rounded, scale: float = 1.0) -> Any:
    """Rounds that add up integers, with noise of clients or of the server."""

    def contribution(x: Any) -> Any:
        return work(x) + noise() if at_clients else work(x)

    def finish(total: Any) -> Any:
        whole = total if at_clients else total + noise()
        return tf.cast(whole, tf.float32) * scale

    each = tff.tf_computation(VECTOR)(contribution)
    last = tff.tf_computation(each.type_signature.result)(finish)

    @tff.federated_computation(NOTHING, tff.types.at_clients(VECTOR))
    def next_round(state: Any, values: Any) -> Any:
        total = tff.federated_sum(tff.federated_map(each, values))
        return state, tff.federated_map(last, total)

    return tff.templates.IterativeProcess(nothing, next_round)


def drawn(sampler: Any = discrete_normal.RIGHT, sigma: int = SIGMA) -> Any:
    return lambda: tf.ensure_shape(sampler(tf.constant(sigma), tf.constant([SIZE])), [SIZE])


def answer(process: Any, neighbours: Neighbours = Neighbours.ZERO_OUT, clients: int = 1) -> Any:
    question = PrivacyQuestion(neighbours=neighbours, least_clients=clients)
    return tff.audit(process, privacy=question).privacy


def epsilon_by_hand(ratio: float, excess: float, delta: float) -> float:
    """The smallest ε that a Rényi divergence of an order leads to."""
    best = math.inf
    for order in (*range(2, 64), 128, 256, 512, 1024):
        divergence = order * ratio**2 / 2 + excess * (2 * order - 1) / (2 * order - 2)
        spent = divergence + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)
        best = min(best, spent)
    return best


def test_noise_of_clients() -> None:
    result = answer(rounds(drawn()), clients=CLIENTS)
    assert result.derivation.is_shown, result.steps
    (part,) = result.derivation.parts
    assert isinstance(part, DiscreteGaussian)
    ratio = LENGTH / (SIGMA * math.sqrt(CLIENTS))
    assert part.l2 == pytest.approx(ratio, rel=1e-6)
    assert part.excess < 1e-200
    assert result.spending.epsilon == pytest.approx(epsilon_by_hand(ratio, 0.0, 1e-6), rel=1e-6)


def test_little_noise_of_many_clients_is_not_discrete_normal_together() -> None:
    result = answer(rounds(drawn(sigma=1)), clients=CLIENTS)
    (part,) = result.derivation.parts
    terms = [10 * math.exp(-2 * math.pi**2 * k / (k + 1)) for k in range(1, CLIENTS)]
    excess = SIZE * math.fsum(terms)
    assert part.excess == pytest.approx(excess, rel=1e-9)
    expected = epsilon_by_hand(LENGTH / math.sqrt(CLIENTS), excess, 1e-6)
    assert result.spending.epsilon == pytest.approx(expected, rel=1e-6)


def test_noise_of_the_server() -> None:
    result = answer(rounds(drawn(), at_clients=False), Neighbours.ADD_OR_REMOVE)
    (part,) = result.derivation.parts
    assert part.l2 == pytest.approx(LENGTH / SIGMA, rel=1e-6)
    assert part.excess < 1e-200


def test_neighbours() -> None:
    process = rounds(drawn())
    (part,) = answer(process, Neighbours.REPLACE, CLIENTS).derivation.parts
    assert part.l2 == pytest.approx(2 * LENGTH / (SIGMA * math.sqrt(CLIENTS)), rel=1e-6)
    assert not answer(process, Neighbours.ADD_OR_REMOVE, CLIENTS).derivation.is_shown


@pytest.mark.slow
@pytest.mark.parametrize("name", discrete_normal.WRONG)
def test_wrong_samplers(name: str) -> None:
    sampler = discrete_normal.WRONG[name]
    assert form(sampler) != form(discrete_normal.RIGHT)
    assert not answer(rounds(drawn(sampler)), clients=CLIENTS).derivation.is_shown


def of_a_count() -> Any:
    """A deviation that is drawn."""
    sigma = tf.random.uniform([], 1, 9, tf.int32)
    return tf.ensure_shape(discrete_normal.RIGHT(sigma, tf.constant([SIZE])), [SIZE])


FAULTS = {
    "twice": lambda: rounds(lambda: 2 * drawn()()),
    "less": lambda: rounds(lambda: drawn()() // 2),
    "for all elements": lambda: rounds(
        lambda: tf.ensure_shape(discrete_normal.RIGHT(SIGMA, tf.constant([1])), [1])
    ),
    "one of many": lambda: rounds(
        lambda: tf.ensure_shape(discrete_normal.RIGHT(SIGMA, tf.constant([9])), [9])[:4]
    ),
    "nothing": lambda: rounds(drawn(sigma=0)),
    "deviation that is drawn": lambda: rounds(of_a_count),
    "no integers": lambda: rounds(
        lambda: tf.cast(drawn()(), tf.float32), work=lambda x: clipped(x) * SCALE
    ),
    "no clip": lambda: rounds(drawn(), work=lambda x: tf.cast(tf.round(x), tf.int32)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    assert not answer(FAULTS[name](), clients=CLIENTS).derivation.is_shown


def exact(sigma: float, places: Any) -> Any:
    weights = np.exp(-(places**2) / (2 * sigma**2))
    return weights / weights.sum()


@pytest.mark.parametrize("sigma", [1, 2, 5])
def test_what_the_sampler_draws(sigma: int) -> None:
    """The counts of a million draws are as far from those expected as chance has it."""
    drawn = discrete_normal.RIGHT(sigma, [1_000_000]).numpy()
    places = np.arange(-12 * sigma, 12 * sigma + 1)
    expected = len(drawn) * exact(sigma, places)
    counts = np.bincount(drawn + 12 * sigma, minlength=len(places))
    common = expected > 20
    squares = np.sum((counts - expected)[common] ** 2 / expected[common])
    assert squares < common.sum() + 6 * math.sqrt(2 * common.sum())
    assert counts[~common].sum() < 1000


@pytest.mark.parametrize("sigma", [0.5, 0.75, 1.0])
@pytest.mark.parametrize("shares", [2, 3, 7, 20])
def test_how_far_shares_are_from_one_draw(sigma: float, shares: int) -> None:
    places = np.arange(-400, 401)
    one = exact(sigma, places)
    total = one
    for _ in range(shares - 1):
        total = np.convolve(total, one)[400:-400]
    near = np.abs(places) <= 12 * sigma * math.sqrt(shares)
    away = np.log(total[near] / exact(sigma * math.sqrt(shares), places)[near])
    assert np.max(np.abs(away)) <= excess_of_shares(sigma, shares) / 2
