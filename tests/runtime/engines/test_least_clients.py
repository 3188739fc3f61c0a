"""Aggregates of too few clients are not released."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import refusal
from tests.runtime.engines.programs import NONE, every_aggregation, process_of
from tests.runtime.engines.sources import SomeBad, Values
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.support.errors import ExecutionError, LanguageValueError

FORMS = pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
PAIRS = [(np.float32(1), np.int32(n)) for n in range(6)]


@FORMS
@pytest.mark.parametrize("masks_sums", [False, True])
def test_clients_that_are_left_out_do_not_count(form: str, masks_sums: bool) -> None:
    pytest.importorskip("cryptography", reason="needs tffc[masking]")
    source = SomeBad(PAIRS[:5])

    def run(least: int) -> Any:
        engine = LocalEngine(process_of(every_aggregation, form), 2, masks_sums=masks_sums)
        cohort = Cohort(source, source.clients, skip_bad_clients=True, round=4, least_clients=least)
        return engine.run_round((), cohort)

    assert run(3).output[2] == 0 + 2 + 4
    assert refusal(ExecutionError, run, 4) == (
        "round 4 is not released: it aggregates 3 clients, and 4 are needed [E746]\n"
        "  note: 2 of 5 clients were left out\n"
        "  help: let more clients take part, or need fewer"
    )


def test_batches_count_clients() -> None:
    source = Values(PAIRS)
    engine = LocalEngine(process_of(every_aggregation), 1, Batching(3))
    assert engine.run_round((), Cohort(source, source.clients, least_clients=6)).output[2] == 15
    with pytest.raises(ExecutionError, match="aggregates 5 clients, and 6 are needed"):
        engine.run_round((), Cohort(source, source.clients[1:], least_clients=6))


def test_a_small_sample_is_refused_before_any_data_is_read() -> None:
    class Unread(Values):
        def read(self, client: str) -> Any:
            raise AssertionError("it was read")

    source = Unread(PAIRS)
    rounds = tff.run(process_of(every_aggregation), source, 1, clients_per_round=2, least_clients=3)
    with pytest.raises(ExecutionError, match="aggregates 2 clients, and 3 are needed"):
        next(iter(rounds))


def test_rounds_of_enough_clients() -> None:
    source = Values(PAIRS)
    rounds = tff.run(process_of(every_aggregation), source, 2, clients_per_round=3, least_clients=3)
    assert [len(each.clients) for each in rounds] == [3, 3]


@tff.federated_computation(NONE, tff.types.at_clients(np.int32))
def each_its_own(state: Any, data: Any) -> Any:
    return data


def test_what_is_not_aggregated_is_not_counted() -> None:
    source = Values([np.int32(1)])
    delivered: dict[str, Any] = {}
    rounds = tff.run(
        process_of(each_its_own, "broadcast"),
        source,
        1,
        deliver=delivered.__setitem__,
        least_clients=2,
    )
    assert len(list(rounds)) == 1
    assert delivered == {"00000": 1}


def test_evaluations_count_too() -> None:
    process = process_of(every_aggregation)
    rounds = tff.run(
        process,
        Values(PAIRS),
        1,
        evaluate=process,
        evaluate_data=Values(PAIRS[:2]),
        least_clients=3,
    )
    with pytest.raises(ExecutionError, match="aggregates 2 clients, and 3 are needed"):
        next(iter(rounds))


@pytest.mark.parametrize("least", [-1, 2.5, "3", True, None])
def test_numbers_that_are_none(least: Any) -> None:
    rounds = tff.run(process_of(every_aggregation), Values(PAIRS), 1, least_clients=least)
    with pytest.raises(LanguageValueError, match="the least number of") as caught:
        next(iter(rounds))
    assert caught.value.code == "E706"


def test_the_other_engines_do_not_show_clients() -> None:
    for engine in ("ray", "beam"):
        options = {"engine": engine, "show_clients": True}
        said = refusal(
            LanguageValueError, tff.run, process_of(every_aggregation), Values(PAIRS), 1, **options
        )
        assert "E747" in said
