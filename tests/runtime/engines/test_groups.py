"""Rounds whose clients come in groups: results, groups that fail, records, and every engine."""

from __future__ import annotations

import functools
import importlib.util
import pathlib
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import refusal
from tests.runtime.engines.programs import every_aggregation, process_of
from tests.runtime.engines.sources import OneIsBad, Values
from tffc.deploy.engines import ENGINES, make_engine
from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.groups import GroupedEngine
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.runs.run_record import read_record
from tffc.support.errors import DataError, ExecutionError, LanguageValueError

PAIRS = [(np.float32(n / 2), np.int32(n)) for n in range(7)]
ROUGH = [(np.float32(n / 3), np.int32(n)) for n in range(70)]


@functools.cache
def process() -> Process:
    return process_of(every_aggregation, "mergeable")


def in_groups(source: Any, count: int, make: Any = LocalEngine, **options: Any) -> Any:
    engine = GroupedEngine(process(), ClientGroups(count, options.pop("skip_bad", False)), make)
    return engine.run_round((), Cohort(source, source.clients, **options))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("size", [1, 3])
def test_results_in_groups(count: int, size: int) -> None:
    source = Values(PAIRS)
    whole = LocalEngine(process()).run_round((), Cohort(source, source.clients))
    make = functools.partial(LocalEngine, batching=Batching(size))
    found = in_groups(source, count, make)
    assert (found.output, found.lost, found.skipped) == (whole.output, (), ())


def test_groups_of_nobody() -> None:
    source = Values([])
    whole = LocalEngine(process()).run_round((), Cohort(source, ()))
    np.testing.assert_equal(in_groups(source, 3).output, whole.output)


@pytest.mark.parametrize("name", list(ENGINES.own))
def test_all_engines_add_alike(name: str) -> None:
    kind = ENGINES.own[name]
    if any(importlib.util.find_spec(package) is None for package in kind.packages):
        pytest.skip(f"needs tffc[{kind.extra}]")
    source = Values(ROUGH)
    found = in_groups(source, 5, functools.partial(make_engine, name))
    assert found.output == in_groups(source, 5, LocalEngine).output


def test_masked_sums_are_of_groups() -> None:
    pytest.importorskip("cryptography", reason="needs tffc[masking]")
    source = Values(PAIRS)
    make = functools.partial(LocalEngine, masks_sums=True)
    assert list(in_groups(source, 2, make).output[5:]) == [21, 21]


def test_a_group_that_fails_costs_its_clients() -> None:
    source = OneIsBad(PAIRS)
    found = in_groups(source, 3, skip_bad=True)
    assert found.skipped == source.clients[:2]
    assert found.output[2] == sum(range(2, 7))
    assert found.lost == ("group 1 of 3, of 2 clients, is left out: cannot read it [E626]",)
    # A client that is left out does not fail its group.
    lenient = in_groups(source, 3, skip_bad=True, skip_bad_clients=True)
    assert (lenient.skipped, lenient.lost) == (source.clients[1:2], ())


def test_a_group_that_fails_fails_its_round() -> None:
    with pytest.raises(DataError) as caught:
        in_groups(OneIsBad(PAIRS), 3)
    assert caught.value.notes[-1] == "it is of group 1 of 3"


def test_a_round_without_a_good_group() -> None:
    assert refusal(ExecutionError, lambda: in_groups(OneIsBad(PAIRS[:2]), 1, skip_bad=True)) == (
        "round 1 is not released: all groups of its clients are left out [E746]\n"
        "  note: group 1 of 1, of 2 clients, is left out: cannot read it [E626]\n"
        "  help: mend what the notes say, or see the whole error without skipping bad groups"
    )


def test_groups_of_too_few_clients_are_not_released() -> None:
    source = Values(PAIRS)
    with pytest.raises(ExecutionError, match="it aggregates 2 clients, and 3 are needed"):
        in_groups(source, 3, least_clients=3)
    assert in_groups(source, 3, least_clients=3, skip_bad=True).output[2] == 4 + 5 + 6


def test_progress_is_that_of_the_round() -> None:
    seen: list[tuple[int, int]] = []
    in_groups(Values(PAIRS), 3, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (7, 7)
    assert {total for _, total in seen} == {7}
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tff.run(every_aggregation, Values(PAIRS), groups=2),
            "rounds in the form mapreduce have no groups of clients [E706]\n"
            "  help: compile the program to the form mergeable",
        ),
        (
            lambda: tff.run(every_aggregation, Values(PAIRS), form="mergeable", groups=0),
            "clients cannot come in 0 groups [E706]\n"
            "  help: give a whole number from 1 on, or None for no groups",
        ),
        (
            lambda: tff.run(every_aggregation, Values(PAIRS), skip_bad_groups=True),
            "there are no groups of clients that could be left out [E706]\n"
            "  help: give groups=... with their number, or leave skip_bad_groups out",
        ),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    found = refusal(LanguageValueError, call)
    lines = [line for line in found.splitlines() if not line.startswith("  at ")]
    assert "\n".join(lines) == message


def test_runs_from_python(tmp_path: pathlib.Path) -> None:
    source = OneIsBad(PAIRS)
    run = functools.partial(tff.run, process(), source, out=tmp_path / "run", skip_bad_groups=True)
    with pytest.warns(RuntimeWarning, match="group 1 of 3, of 2 clients, is left out"):
        rounds = list(run(rounds=1, groups=3))
    assert [len(one.skipped) for one in rounds] == [2]
    record = read_record(tmp_path / "run")
    assert record is not None
    assert record.identity.groups == ClientGroups(3, skip_bad=True)
    with pytest.raises(DataError, match="E921") as caught:
        list(run(rounds=2, groups=2, resume=True))
    assert caught.value.notes[-1] == (
        "its clients come in 3 groups, of which bad ones are left out, and here in 2 groups, of "
        "which bad ones are left out"
    )
