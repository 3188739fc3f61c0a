"""The values of secure sums are from 0 to their bound, however the sums are computed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.deploy.federation.nodes import Together, make_node, run
from tests.runtime.engines.programs import process_of
from tests.runtime.engines.sources import Values
from tests.runtime.masking.sums import plays
from tffc.deploy.federation.asking import TooFewError
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.support.errors import ExecutionError, TffcError

pytest.importorskip("cryptography", reason="needs tffc[masking]")

INT = np.int32

SUMS: dict[str, tuple[Any, Callable[[Any], Any], Any, int]] = {
    "bits": (INT, lambda x: tff.federated_secure_sum_bitwidth(x, 3), INT(7), 7),
    "no bits": (INT, lambda x: tff.federated_secure_sum_bitwidth(x, 0), INT(0), 0),
    "many bits": (
        np.int64,
        lambda x: tff.federated_secure_sum_bitwidth(x, 62),
        np.int64(2**62 - 1),
        2**62 - 1,
    ),
    "a maximum": (INT, lambda x: tff.federated_secure_sum(x, 7), INT(7), 7),
    "a maximum of a byte": (np.int8, lambda x: tff.federated_secure_sum(x, 100), np.int8(9), 100),
    "a maximum of 0": (INT, lambda x: tff.federated_secure_sum(x, 0), INT(0), 0),
    "the largest": (INT, lambda x: tff.federated_secure_sum(x, 2**31 - 1), INT(5), 2**31 - 1),
}
"""The type of a client's value, the sum, a value that it allows, and its greatest."""

WRONG = {"minus one": -1, "minus a hundred": -100, "the least": None, "above": "above"}


def wrong_value(dtype: Any, most: int, how: str) -> Any:
    limits = np.iinfo(dtype)
    if how == "above":
        return None if most == limits.max else dtype(most + 1)
    return dtype(limits.min if how == "the least" else WRONG[how])


def structured(values: Any) -> Any:
    """One client's value in a struct of a vector and a number."""
    return (np.array([0, values, 0], values.dtype), values.dtype.type(0))


def round_of(dtype: Any, add: Callable[[Any], Any], is_struct: bool) -> Any:
    kind = [(dtype, [3]), dtype] if is_struct else dtype

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(kind))
    def added(state: Any, data: Any) -> Any:
        return state, add(data)

    return added


def locally(process: Any, values: list[Any], masks_sums: bool) -> Any:
    source = Values(values)
    engine = LocalEngine(process, masks_sums=masks_sums)
    return engine.run_round((), Cohort(source, source.clients)).output


def on_nodes(process: Any, values: list[Any], mode: str) -> tuple[Any, set[str]]:
    log: list[str] = []
    nodes = {f"n{at}": make_node(process.bundle, Values([v]), log) for at, v in enumerate(values)}
    try:
        output = run(process, Together(nodes), secure_sums=mode, attempts=1, min_replies=3)
    except TooFewError:
        return None, {line.partition("[")[2][:4] for line in log}
    return output.rounds[0].output, set()


@pytest.mark.parametrize("is_struct", [False, True])
@pytest.mark.parametrize("name", SUMS)
def test_values_within_the_bounds_are_added(name: str, is_struct: bool) -> None:
    dtype, add, value, _ = SUMS[name]
    computation = round_of(dtype, add, is_struct)
    good = structured(value) if is_struct else value
    with np.errstate(over="ignore"):
        total = dtype(value + value) + value
    expected = structured(total) if is_struct else total
    assert plain(computation((), [good] * 3)[1]) == plain(expected)
    for form in ("mapreduce", "distribute-aggregate"):
        process = process_of(computation, form)
        for masks_sums in (False, True):
            assert plain(locally(process, [good] * 3, masks_sums)) == plain(expected)


def plain(value: Any) -> Any:
    """A value as lists."""
    parts = value if isinstance(value, (tuple, list)) else [value]
    return [np.asarray(part).tolist() for part in parts]


@plays("values beyond the bounds")
@pytest.mark.parametrize("is_struct", [False, True])
@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize("name", SUMS)
def test_values_beyond_the_bounds_are_refused(name: str, how: str, is_struct: bool) -> None:
    dtype, add, good, most = SUMS[name]
    bad = wrong_value(dtype, most, how)
    if bad is None:
        pytest.skip("there is no greater number")
    values = [structured(v) if is_struct else v for v in (good, good, bad)]
    computation = round_of(dtype, add, is_struct)
    end = "at most" if how == "above" else "at least 0"
    with pytest.raises(TffcError, match=f"client 2 adds {bad} to a secure sum .* {end}") as caught:
        computation((), values)
    assert caught.value.code == "E735"
    for form in ("mapreduce", "distribute-aggregate"):
        process = process_of(computation, form)
        for masks_sums in (False, True):
            with pytest.raises(ExecutionError, match="a value beyond the bounds") as refused:
                locally(process, values, masks_sums)
            assert refused.value.code == "E663"
            # The engine passes on no client's value; its own error has the whole text.
            assert f" {bad} " not in str(refused.value)
            assert re.search(f"adds {bad} to a secure sum .* {end}", str(refused.value.whole))


@plays("values beyond the bounds")
@pytest.mark.parametrize("mode", ["open", "masked"])
@pytest.mark.parametrize("name", ["bits", "a maximum", "a maximum of a byte", "a maximum of 0"])
def test_nodes_refuse_values_beyond_the_bounds(name: str, mode: str) -> None:
    dtype, add, good, _ = SUMS[name]
    process = process_of(round_of(dtype, add, is_struct=False))
    total, _ = on_nodes(process, [good] * 3, mode)
    assert total == 3 * int(good)
    assert on_nodes(process, [good, good, dtype(-1)], mode) == (None, {"E663"})


@pytest.mark.parametrize(
    "add",
    [
        lambda x: tff.federated_secure_sum(x, -1),
        lambda x: tff.federated_secure_sum(x, -(2**31)),
        lambda x: tff.federated_secure_sum_bitwidth(x, -1),
        lambda x: tff.federated_secure_sum_bitwidth(x, -62),
    ],
)
def test_a_negative_bound_is_refused(add: Callable[[Any], Any]) -> None:
    process = process_of(round_of(INT, add, is_struct=False))
    for masks_sums in (False, True):
        with pytest.raises(ExecutionError) as caught:
            locally(process, [INT(0)] * 3, masks_sums)
        assert caught.value.code == "E734"


def test_a_negative_modulus_cannot_be_masked() -> None:
    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(INT))
    def added(state: Any, data: Any) -> Any:
        return state, tff.backends.mapreduce.federated_secure_modular_sum(data, -7)

    with pytest.raises(ExecutionError) as caught:
        locally(process_of(added), [INT(3)] * 3, masks_sums=True)
    assert caught.value.code == "E734"


def test_values_of_sums_modulo_a_number_are_reduced_and_need_no_bounds() -> None:
    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(INT))
    def added(state: Any, data: Any) -> Any:
        return state, tff.backends.mapreduce.federated_secure_modular_sum(data, 7)

    process = process_of(added)
    for masks_sums in (False, True):
        assert locally(process, [INT(-1), INT(100), INT(3)], masks_sums) == 102 % 7
