"""Secure sums that are masked between the clients of a round give the same as unmasked sums."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.corpus.cases import MISSING, Case, cases, each_case
from tests.runtime.engines.recorded import differences
from tffc.backends.compiler import compile_bundle
from tffc.backends.forms.kinds import FORMS
from tffc.deploy.engines import make_engine
from tffc.language.nodes import Intrinsic
from tffc.language.traverse import walk
from tffc.linking.aggregations import SECURE
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.support.errors import (
    DataError,
    ExecutionError,
    FormError,
    LanguageValueError,
    MissingExtraError,
)

pytest.importorskip("cryptography", reason="an optional package")


@tff.federated_computation(
    tff.FederatedType(np.int32, tff.SERVER),
    tff.FederatedType(
        [("few", np.int8), ("many", (np.int64, [3])), ("rest", np.int32), ("any", np.int32)],
        tff.CLIENTS,
    ),
)
def sums(state: Any, data: Any) -> Any:
    return state, tff.federated_zip(
        (
            tff.federated_secure_sum_bitwidth(data.few, 7),
            tff.federated_secure_sum(data.many, 2**40),
            tff.backends.mapreduce.federated_secure_modular_sum(data.rest, 1000),
            tff.federated_secure_sum(data.any, 2**31 - 1),
        )
    )


class Clients:
    """Clients whose values are drawn; some cannot be read."""

    def __init__(self, count: int, bad: int = 0) -> None:
        self.clients = tuple(f"client_{number:02}" for number in range(count))
        self.bad = self.clients[:bad]

    def read(self, client: str) -> Any:
        if client in self.bad:
            raise DataError("E626", "cannot read it")
        draw = np.random.default_rng(list(client.encode()))
        return (
            np.int8(draw.integers(0, 127)),
            draw.integers(0, 2**40, 3),
            np.int32(draw.integers(0, 1000)),
            np.int32(draw.integers(0, 2**31 - 1)),
        )


@functools.cache
def process(form: str) -> Process:
    return Process(compile_bundle(sums.node, form))


def plain(value: Any) -> Any:
    """A value as lists."""
    return [np.asarray(part).tolist() for part in value]


def output(form: str, source: Clients, **options: Any) -> Any:
    cohort = Cohort(source, source.clients, skip_bad_clients=True)
    result = LocalEngine(process(form), 2, **options).run_round(np.int32(0), cohort)
    return plain(result.output), result.skipped


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
@pytest.mark.parametrize(
    ("count", "bad"),
    [(0, 0), (1, 0), (2, 0), (9, 0), pytest.param(40, 0, marks=pytest.mark.slow), (9, 4)],
)
def test_masked_sums_are_the_sums(form: str, count: int, bad: int) -> None:
    source = Clients(count, bad)
    assert output(form, source, masks_sums=True) == output(form, source)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_too_few_clients_for_the_threshold_end_the_round(form: str) -> None:
    with pytest.raises(ExecutionError) as refusal:
        output(form, Clients(9, 5), masks_sums=True)
    assert str(refusal.value.code) == "E980"
    assert refusal.value.message == (
        "4 of 9 participants gave their vectors, and a masked sum needs 5"
    )


def test_bounds_are_checked_before_masks() -> None:
    class Above(Clients):
        def read(self, client: str) -> Any:
            few, _, *others = super().read(client)
            return (few, np.full(3, 2**41), *others)

    with pytest.raises(ExecutionError) as refusal:
        output("mapreduce", Above(3), masks_sums=True)
    assert refusal.value.code == "E663"


def test_accumulators_hold_nothing_of_clients() -> None:
    """What one client sends differs from its value in every element, and in every round."""
    source = Clients(3)
    sent: list[Mapping[str, Any]] = []
    for _ in range(2):
        steps = process("mapreduce").masked_steps(source.clients)
        _, _, summed, *_ = steps.aggregations  # the second of the three operators
        carried, context = steps.prepare(np.int32(0))
        zero = summed.zero(carried)
        sent.append(
            {
                client: summed.accumulate(
                    zero, steps.work(source.read(client), context), carried, client
                )
                for client in source.clients
            }
        )
    wide = [plain(round_[client][0]) for round_ in sent for client in source.clients]
    values = [source.read(client)[1].tolist() for client in source.clients]
    elements = [element for parts in (*wide, *values) for element in np.ravel(parts).tolist()]
    assert len(set(elements)) == len(elements)


def test_clients_add_tensors_of_one_shape() -> None:
    @tff.federated_computation(
        tff.FederatedType(np.int32, tff.SERVER),
        tff.FederatedType(tff.TensorType(np.int32, [None]), tff.CLIENTS),
    )
    def ragged(state: Any, data: Any) -> Any:
        return state, tff.federated_secure_sum(data, 10)

    class Ragged(Clients):
        def read(self, client: str) -> Any:
            return np.zeros(self.clients.index(client) + 1, np.int32)

    process = Process(compile_bundle(ragged.node, "mapreduce"))
    engine = LocalEngine(process, 1, masks_sums=True)
    source = Ragged(3)
    with pytest.raises(ExecutionError) as refusal:
        engine.run_round(np.int32(0), Cohort(source, source.clients))
    assert refusal.value.code == "E789"
    assert refusal.value.notes == ("it was at work on the data of client client_01",)


def has_secure_sum(case: Case) -> bool:
    """Whether there is a secure sum in a recorded computation."""
    found = (node for node in walk(case.program()) if isinstance(node, Intrinsic))
    return any(node.uri in SECURE for node in found)


def test_the_package_for_keys_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtraError) as refusal:
        output("mapreduce", Clients(3), masks_sums=True)
    assert str(refusal.value) == (
        "cryptography is not installed, and masked sums need it [E701]\n"
        "  help: in tffc's checkout: pip install '.[masking]'"
    )


def test_engines_that_cannot_mask_say_so() -> None:
    with pytest.raises(LanguageValueError) as refusal:
        make_engine("beam", process("mapreduce"), masks_sums=True)
    assert str(refusal.value) == (
        "the engine 'beam' adds secure sums unmasked [E747]\n"
        "  help: choose the engine local, or leave secure sums unmasked"
    )


@pytest.mark.skipif(not cases(), reason=MISSING)
@each_case([c for c in cases() if c.has("io.json")])
def test_recorded_results(case: Case) -> None:
    make = functools.partial(LocalEngine, masks_sums=True)
    for form in FORMS if has_secure_sum(case) else ():
        with contextlib.suppress(FormError):
            assert differences(case, form, make) == []
