"""Clients that take part with a probability: who they are, and what rounds make of them."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import math
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import tffc as tff
from tests.refusals import refusal
from tests.runtime.engines.client_state_rounds import check_states
from tests.runtime.engines.programs import (
    adding_up,
    every_aggregation,
    process_of,
    scaled,
    tallied,
)
from tests.runtime.engines.sources import SomeBad, Values
from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.delays import Delays
from tffc.runtime.engines.engine import Batching
from tffc.runtime.engines.groups import GroupedEngine
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.rounds import Round, run_rounds
from tffc.runtime.engines.sampling import Sampling, sample_by_rate
from tffc.runtime.engines.state import State
from tffc.support.errors import ExecutionError, LanguageValueError

NAMES = tuple(f"client_{number:02}" for number in range(40))
ROUNDS = 4000
RARELY = Sampling(rate=1e-12, seed=1)
"""Draws nobody in the rounds of these tests."""

PAIRS = [(np.float32(n), np.int32(n)) for n in range(9)]


def taking_part(rate: float, rounds: int = ROUNDS, seed: int = 3) -> np.ndarray[Any, Any]:
    """Whether each client takes part in each round."""
    sampling = Sampling(rate=rate, seed=seed)
    drawn = (frozenset(sampling.draw(NAMES, number)) for number in range(1, rounds + 1))
    return np.array([[name in names for name in NAMES] for names in drawn])


def test_the_clients_of_a_rate_stay_as_they_are() -> None:
    def drawn(seed: int, number: int) -> list[int]:
        return [NAMES.index(name) for name in sample_by_rate(NAMES, 0.125, seed, number)]

    # Fixed for ever: a state that was saved is resumed with the clients it would have had.
    assert drawn(0, 1) == [3, 10, 21]
    assert drawn(0, 2) == [12, 15, 18, 23, 31, 33, 36]
    assert drawn(2**127 + 1, 1) == [0, 14, 21, 22, 24, 26, 35]


@given(
    st.floats(0, 1, exclude_min=True),
    st.integers(-(2**64) + 1, 2**128 - 1),
    st.integers(1, 10**6),
)
def test_a_client_takes_part_if_its_hash_is_below_the_rate(
    rate: float, seed: int, number: int
) -> None:
    def fraction(name: str) -> Fraction:
        keyed = hmac.new(str(seed).encode(), f"{number}/{name}".encode(), hashlib.sha256)
        return Fraction(int(keyed.hexdigest(), 16), 2**256)

    expected = tuple(name for name in NAMES if fraction(name) < Fraction(rate))
    assert sample_by_rate(NAMES, rate, seed, number) == expected


@pytest.mark.parametrize("rate", [1.0, 1, 0.5, 0.1, 2.0**-60, 2.0**-255])
def test_the_threshold_is_exact(rate: float) -> None:
    limit = Fraction(rate) * 2**256
    assert limit.denominator == 1
    for value in (0, int(limit) - 1, int(limit), 2**256 - 1):
        if 0 <= value < 2**256:
            digest = value.to_bytes(32, "big")
            with mock.patch.object(hmac, "digest", return_value=digest):
                assert bool(sample_by_rate(("ada",), rate, 0, 1)) == (value < limit)


def test_names_of_files_that_are_no_text_are_drawn() -> None:
    assert sample_by_rate(("\udcff",), 1.0, 0, 1) == ("\udcff",)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.02, 0.25, 0.9])
def test_clients_take_part_as_often_as_the_rate_says(rate: float) -> None:
    counts = taking_part(rate).sum(axis=0)
    # Of forty binomial counts, none is off by more than 4.5 deviations.
    deviation = math.sqrt(ROUNDS * rate * (1 - rate))
    assert abs(counts - ROUNDS * rate).max() < 4.5 * deviation
    assert abs(counts.sum() - len(NAMES) * ROUNDS * rate) < 4 * deviation * math.sqrt(len(NAMES))


def test_clients_take_part_independently_of_each_other() -> None:
    rate = 0.25
    there = taking_part(rate)
    both = ROUNDS * rate**2
    deviation = math.sqrt(both * (1 - rate**2))
    for one, other in itertools.combinations(range(len(NAMES)), 2):
        assert abs((there[:, one] & there[:, other]).sum() - both) < 5 * deviation
    sizes = there.sum(axis=1)
    # Without replacement all rounds have the same size: its variance would be 0.
    assert np.var(sizes) == pytest.approx(len(NAMES) * rate * (1 - rate), rel=0.1)
    # The sizes are those of a binomial distribution.
    for size in range(5, 16):
        expected = math.comb(40, size) * rate**size * (1 - rate) ** (40 - size)
        error = 4.5 * math.sqrt(expected * (1 - expected) / ROUNDS)
        assert np.mean(sizes == size) == pytest.approx(expected, abs=error)


def test_rounds_and_seeds_are_independent_of_each_other() -> None:
    rate = 0.25
    there, other = taking_part(rate), taking_part(rate, seed=4)
    count = there.size
    deviation = math.sqrt(rate**2 * (1 - rate**2) / count)
    assert np.mean(there & other) == pytest.approx(rate**2, abs=5 * deviation)
    assert np.mean(there[1:] & there[:-1]) == pytest.approx(rate**2, abs=5 * deviation)


def test_seeds_are_secret_where_none_is_given() -> None:
    drawn = [Sampling.of(None, 0.5, None) for _ in range(50)]
    assert all(each.seed_is_secret for each in drawn)
    assert len({each.seed for each in drawn}) == 50
    assert 2**120 < max(each.seed for each in drawn) < 2**128
    assert Sampling.of(None, 0.5, 7) == Sampling(None, 7, 0.5)
    assert Sampling.of(3, None, None) == Sampling(3, 0)
    assert Sampling.of(None, None, None) == Sampling()
    kinds = [Sampling.of(*each, None).kind for each in ((None, 0.5), (3, None), (None, None))]
    assert kinds == ["poisson", "fixed", "all"]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "rate": (
        {"rate": 1.5},
        "cannot sample clients with probability 1.5 [E706]\n"
        "  help: give a number above 0, of at most 1, or None for all clients",
    ),
    "both": (
        {"clients": 3, "rate": 0.5},
        "a round cannot have both 3 clients and each client with probability 0.5 [E706]\n"
        "  help: give a number of clients or a sampling rate",
    ),
    "seed": (
        {"rate": 0.5, "seed": 2**64},
        "the seed for sampling clients has more than 64 bits [E706]\n"
        "  help: give a smaller one; a sampling rate without a seed gets a secret one",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_samplings_that_are_refused(case: str) -> None:
    fields, text = REFUSED[case]
    assert refusal(LanguageValueError, lambda: Sampling(**fields)) == text


@pytest.mark.parametrize("rate", [0, -0.5, 1.0001, math.nan, math.inf, True, "0.5"])
def test_rates_that_are_none(rate: Any) -> None:
    with pytest.raises(LanguageValueError, match="cannot sample clients with probability"):
        Sampling(rate=rate)


@pytest.mark.parametrize("size", [1, 4])
def test_workers_and_batches_have_the_same_clients(size: int) -> None:
    process = process_of(adding_up)
    source = Values([np.int32(2**n) for n in range(20)])
    state = State(np.int32(-1), process.program, 0)
    seen: list[list[Any]] = []
    for workers in (1, 2, 5):
        engine = LocalEngine(process, workers, Batching(size))
        rounds = run_rounds(engine, state, source, 5, Sampling(rate=0.3, seed=7))
        seen.append([(each.clients, int(each.state.value)) for each in rounds])
    assert seen[0] == seen[1] == seen[2]
    assert len({clients for clients, _ in seen[0]}) == 5
    for clients, total in seen[0]:
        assert total == sum(2 ** int(name) for name in clients)


def test_rounds_go_on_with_the_clients_they_would_have_had() -> None:
    process = process_of(adding_up)
    source = Values([np.int32(2**n) for n in range(20)])
    sampling = Sampling.of(None, 0.3, None)
    engine = LocalEngine(process)
    whole = list(run_rounds(engine, State(np.int32(0), "", 0), source, 6, sampling))
    (*_, third) = run_rounds(engine, State(np.int32(0), "", 0), source, 3, sampling)
    rest = list(run_rounds(engine, third.state, source, 3, sampling))
    assert [each.clients for each in rest] == [each.clients for each in whole[3:]]


def rounds_of_nobody(engine: Any, value: Any, **options: Any) -> list[Round]:
    source = Values(PAIRS)
    state = State(value, engine.process.program, 0)
    rounds = list(run_rounds(engine, state, source, 3, RARELY, **options))
    assert [(each.number, each.clients, each.skipped) for each in rounds] == [
        (number, (), ()) for number in (1, 2, 3)
    ]
    return rounds


@pytest.mark.parametrize("size", [1, 4, None])
@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate", "mergeable"])
def test_a_round_for_which_nobody_is_drawn(form: str, size: int | None) -> None:
    engine = LocalEngine(process_of(every_aggregation, form), 2, Batching(size))
    for each in rounds_of_nobody(engine, (), delays=Delays.parse("lognormal:1,1")):
        assert [int(each.output[at]) for at in (2, 5, 6)] == [0, 0, 0]
        assert np.isnan(each.output[0])
        assert each.simulated == 0
    assert engine.explain_speed()


def test_a_round_of_nobody_does_not_set_the_size_of_batches() -> None:
    planner = LocalEngine(process_of(every_aggregation), 1, Batching(4)).planner
    assert list(planner.windows(())) == []
    assert planner.first_count == 0
    assert [len(window) for window in planner.windows(NAMES)] == [32, 8]
    assert planner.first_count == len(NAMES)


def test_groups_and_masked_sums_of_nobody() -> None:
    pytest.importorskip("cryptography", reason="needs tffc[masking]")
    process = process_of(every_aggregation, "mergeable")
    grouped = GroupedEngine(process, ClientGroups(3), LocalEngine)
    for engine in (grouped, LocalEngine(process, masks_sums=True)):
        for each in rounds_of_nobody(engine, ()):
            assert [int(each.output[at]) for at in (2, 5, 6)] == [0, 0, 0]


def test_clients_keep_their_states_where_nobody_is_drawn() -> None:
    process = process_of(tallied, "client-state")
    source = Values([np.int32(10**n) for n in range(5)])
    engine = LocalEngine(process)
    first = State(np.int32(3), process.program, 0)
    (before,) = run_rounds(engine, first, source, 1)
    (after,) = run_rounds(
        engine, before.state, source, 1, RARELY, client_states=before.client_states
    )
    assert before.client_states is not None
    assert after.client_states is not None
    assert (int(after.state.value), list(map(int, after.output))) == (5, [0, 0])
    assert after.client_states.held == before.client_states.held
    check_states(LocalEngine)


def test_a_round_without_aggregation_for_which_nobody_is_drawn() -> None:
    engine = LocalEngine(process_of(scaled, "broadcast"))
    delivered: list[str] = []
    state = State(np.int32(7), "", 0)
    (only,) = run_rounds(
        engine, state, Values([np.int32(1)]), 1, RARELY, deliver=lambda c, _: delivered.append(c)
    )
    assert (int(only.state.value), only.clients, delivered) == (7, (), [])


@tff.tf_computation(np.float32)
def noisy(total: Any) -> Any:
    return total + tf.random.normal(())


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.float32))
def noised(state: Any, data: Any) -> Any:
    return state, tff.federated_map(noisy, tff.federated_sum(data))


def test_noise_is_released_where_nobody_is_drawn() -> None:
    engine = LocalEngine(process_of(noised))
    outputs = [float(each.output) for each in rounds_of_nobody(engine, ())]
    assert len(set(outputs)) == 3
    assert 0 not in outputs


def test_fewer_clients_than_are_needed_end_the_run() -> None:
    engine = LocalEngine(process_of(every_aggregation))
    state = State((), "", 0)
    assert refusal(
        ExecutionError,
        lambda: list(run_rounds(engine, state, Values(PAIRS), 1, RARELY, least_clients=1)),
    ) == (
        "round 1 is not released: it aggregates 0 clients, and 1 are needed [E746]\n"
        "  note: 0 of 0 clients were left out\n"
        "  help: let more clients take part, or need fewer"
    )


def test_clients_that_are_left_out_were_drawn() -> None:
    source = SomeBad(PAIRS)
    sampling = Sampling(rate=0.5, seed=2)
    engine = LocalEngine(process_of(every_aggregation))
    rounds = list(run_rounds(engine, State((), "", 0), source, 5, sampling, skip_bad_clients=True))
    for each in rounds:
        drawn = sampling.draw(source.clients, each.number)
        assert each.clients == tuple(name for name in drawn if int(name) % 2 == 0)
        assert each.skipped == tuple(name for name in drawn if int(name) % 2)
    assert any(each.skipped for each in rounds)
