"""What rounds have spent is counted from how they were done, and never for less than that."""

from __future__ import annotations

import dataclasses
import importlib
import json
from typing import Any

import pytest

from tests.refusals import refusal
from tffc.assurance.privacy.accounting import (
    Gaussian,
    Laplacian,
    NoBoundError,
    Skellam,
    Stretch,
    least_spending,
    spending,
    spending_of_all,
)
from tffc.assurance.privacy.ledger import (
    Ledger,
    cohorts_of,
    kept_mechanisms,
    obstacles,
    parts_of,
    rounds_done,
    spent_sentence,
)
from tffc.assurance.privacy.question import ANY_COHORTS, CohortKind, Cohorts, Neighbours
from tffc.runtime.data.identity import SourceIdentity
from tffc.runtime.engines.buffering import Buffering
from tffc.runtime.engines.client_groups import ClientGroups
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.runs.metrics import MetricsRow
from tffc.runtime.runs.privacy_record import (
    EarlierRounds,
    KeptMechanism,
    PrivacyRecord,
    is_privacy,
)
from tffc.runtime.runs.report import RunReport
from tffc.runtime.runs.round_sampling import RoundSampling
from tffc.runtime.runs.run_identity import RunIdentity, Timing
from tffc.support.errors import DataError

ADD, REPLACE, ZERO = Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE, Neighbours.ZERO_OUT
ONE = (Gaussian(1.0),)
DELTA = 1e-6
SECRET = Sampling(None, 5, 0.1, seed_is_secret=True)
POISSON = Cohorts(CohortKind.POISSON, rate=0.1)
FIXED = Cohorts(CohortKind.FIXED, size=10, population=100)
SOURCE = SourceIdentity("npz", {}, [f"client {n}" for n in range(100)], {})


def identity(sampling: Sampling = SECRET, **options: Any) -> RunIdentity:
    return RunIdentity(
        "mapreduce", {}, sampling, **{"skip_bad_clients": False, "source": SOURCE, **options}
    )


def record(epsilon: float = 2.0, **options: Any) -> PrivacyRecord:
    fields = {"neighbours": "add-or-remove", "mechanisms": kept_mechanisms(ONE), **options}
    return PrivacyRecord(epsilon, DELTA, least_clients=0, withheld=(), **fields)


def rows(count: int) -> list[MetricsRow]:
    return [MetricsRow(number, 9, 1, {}) for number in range(1, count + 1)]


def by_hand(event: Any) -> float:
    """The ε of an event for a client added or removed."""
    library = importlib.import_module("dp_accounting")
    accountant = library.pld.PLDAccountant(library.NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(event)
    return float(accountant.get_epsilon(DELTA))


@pytest.mark.slow
def test_rounds_of_different_choices_are_composed() -> None:
    library: Any = pytest.importorskip("dp_accounting")
    gaussian = library.GaussianDpEvent(1.0)
    spent = spending_of_all(
        [Stretch(10, ONE, POISSON), Stretch(2, ONE), Stretch(3, (Gaussian(4.0),), POISSON)],
        DELTA,
        ADD,
    )
    expected = by_hand(
        library.ComposedDpEvent(
            [
                library.SelfComposedDpEvent(library.PoissonSampledDpEvent(0.1, gaussian), 10),
                library.SelfComposedDpEvent(gaussian, 2),
                library.SelfComposedDpEvent(
                    library.PoissonSampledDpEvent(0.1, library.GaussianDpEvent(4.0)), 3
                ),
            ]
        )
    )
    assert spent.epsilon == pytest.approx(expected, abs=1e-6)
    assert (spent.rounds, spent.is_amplified) == (15, True)


@pytest.mark.slow
def test_without_a_bound_nothing_is_gained_for_all() -> None:
    pytest.importorskip("dp_accounting")
    both = (Gaussian(1.0), Laplacian(2.0))
    stretches = [Stretch(10, both, POISSON), Stretch(5, ONE, POISSON)]
    plain = [dataclasses.replace(each, cohorts=ANY_COHORTS) for each in stretches]
    spent = least_spending(stretches, DELTA, ADD)
    assert spent == spending_of_all(plain, DELTA, ADD)
    assert not spent.is_amplified


def test_what_no_accountant_has_a_bound_for() -> None:
    pytest.importorskip("dp_accounting")
    stretches = [Stretch(3, ONE, FIXED), Stretch(2, ONE)]
    assert refusal(NoBoundError, spending_of_all, stretches, DELTA, ADD) == (
        "no accountant has a bound for Gaussian, noise multiplier 1 under 10 of 100 clients "
        "without replacement, any clients in each round, without amplification by sampling, for a "
        "client added or removed [E540]\n"
        "  help: Poisson sampling has one for a client added or removed, and a fixed number of "
        "clients for a client's data replaced, each for one kind of noise"
    )


def test_skellam_s_noise_is_added_up_without_amplification() -> None:
    pytest.importorskip("dp_accounting")
    skellam = (Skellam(0.3, 0.2, 100.0),)
    spent = least_spending([Stretch(4, skellam, POISSON), Stretch(6, skellam)], DELTA, ADD)
    assert spent.epsilon == spending(skellam, 10, DELTA, ANY_COHORTS, ADD).epsilon
    assert not spent.is_amplified


@pytest.mark.slow
def test_a_fixed_number_and_any_clients_are_composed() -> None:
    pytest.importorskip("dp_accounting")
    stretches = [Stretch(10, ONE, FIXED), Stretch(5, ONE)]
    spent = least_spending(stretches, DELTA, REPLACE)
    assert spent.is_amplified
    assert spent.epsilon < spending(ONE, 15, DELTA, ANY_COHORTS, REPLACE).epsilon


def sampled(sampling: Sampling) -> RoundSampling:
    return RoundSampling.of(identity(sampling), rows(1)[0])


@pytest.mark.parametrize(
    ("sampling", "neighbours", "cohorts"),
    [
        (SECRET, ADD, POISSON),
        (SECRET, ZERO, POISSON),
        (SECRET, REPLACE, ANY_COHORTS),
        (Sampling(None, 5, 0.1), ADD, ANY_COHORTS),
        (Sampling(10, 5), REPLACE, ANY_COHORTS),
        (Sampling(10, 5, seed_is_secret=True), REPLACE, FIXED),
        (Sampling(10, 5, seed_is_secret=True), ZERO, ANY_COHORTS),
        (Sampling(), ADD, ANY_COHORTS),
    ],
)
def test_only_chances_that_nobody_knows_count(
    sampling: Sampling, neighbours: Neighbours, cohorts: Cohorts
) -> None:
    assert cohorts_of(sampled(sampling), neighbours) == cohorts


@pytest.mark.parametrize(
    ("options", "neighbours", "words"),
    [
        ({}, ADD, []),
        ({}, REPLACE, []),
        ({"sampling": Sampling(10, 5)}, ADD, ["takes the place of another"]),
        ({"sampling": Sampling(10, 5)}, REPLACE, []),
        ({"skip_bad_clients": True}, ADD, []),
        ({"skip_bad_clients": True}, REPLACE, ["is left out"]),
        ({"groups": ClientGroups(2, False)}, ADD, ["moves others to another group"]),
        ({"timing": Timing(Buffering(2, 4), None)}, ADD, ["who took part, and when"]),
        ({"timing": Timing(None, "constant:1")}, ADD, ["who took part, and when"]),
        ({"source": SourceIdentity("flower", {}, [], {})}, ADD, ["on Flower, a node"]),
    ],
)
def test_what_the_derivation_does_not_cover(
    options: dict[str, Any], neighbours: Neighbours, words: list[str]
) -> None:
    reasons = list(obstacles(identity(**options), neighbours))
    assert len(reasons) == len(words)
    assert all(word in text for word, text in zip(words, reasons, strict=True))


@pytest.mark.slow
def test_the_rounds_that_a_budget_has() -> None:
    pytest.importorskip("dp_accounting")
    ledger = Ledger(record(6.0), identity())
    most = ledger.most_rounds([], 200)
    assert ledger.spending([], most).epsilon <= 6.0 < ledger.spending([], most + 1).epsilon
    assert ledger.most_rounds(rows(3), 200) == most - 3
    assert ledger.most_rounds(rows(most), 200) == 0
    assert ledger.most_rounds([], 2) == 2
    assert ledger.spending(rows(4)) == ledger.spending(rows(1), 3)


def test_earlier_rounds_count() -> None:
    pytest.importorskip("dp_accounting")
    earlier = (EarlierRounds(4, kept_mechanisms((Gaussian(2.0),)), rate=0.1), EarlierRounds(1, ()))
    ledger = Ledger(record(2.0, earlier=earlier), identity())
    spent = ledger.spending(rows(2))
    stretches = [Stretch(4, (Gaussian(2.0),), POISSON), Stretch(2, ONE, POISSON)]
    assert spent.epsilon == spending_of_all(stretches, DELTA, ADD).epsilon
    assert spent.rounds == 7


def test_finished_rounds_are_earlier_rounds_of_the_next_run() -> None:
    report = RunReport.in_memory("x", identity(), rows(3), [])
    mechanisms = kept_mechanisms(ONE)
    assert rounds_done(report, mechanisms, ADD) == (EarlierRounds(3, mechanisms, rate=0.1),)
    assert rounds_done(report, mechanisms, REPLACE) == (EarlierRounds(3, mechanisms),)
    secret = Sampling(10, 5, seed_is_secret=True)
    report = RunReport.in_memory("x", identity(secret), rows(3), [])
    expected = EarlierRounds(3, mechanisms, size=10, population=100)
    assert rounds_done(report, mechanisms, REPLACE) == (expected,)


def test_the_sentence_says_what_is_not_in_it() -> None:
    pytest.importorskip("dp_accounting")
    done = [MetricsRow(1, 9, 0, {}, {"loss": 1.0}), MetricsRow(2, 9, 0, {}, {"loss": None})]
    known = identity(Sampling(None, 5, 0.1))
    report = RunReport.in_memory("x", known, done, [])
    text = spent_sentence(report, Ledger(record(), known))
    epsilon = spending(ONE, 2, DELTA, ANY_COHORTS, ADD).epsilon
    assert text.startswith(
        f"ε = {epsilon:.6g} at δ = 1e-06 for the 2 rounds that were done, for a client added or "
        "removed; the formula of the Gaussian mechanism, in dp-accounting "
    )
    assert text.endswith(
        ", without amplification by sampling; evaluations are not in it, for they release something"
        " of their own data"
    )


PARTS = (Gaussian(1.5), Laplacian(0.25), Skellam(0.1, 0.2, 3.0))
KEPT = record(
    mechanisms=kept_mechanisms(PARTS),
    earlier=(
        EarlierRounds(3, kept_mechanisms(PARTS), rate=0.3),
        EarlierRounds(3, (), size=2, population=9),
    ),
)


def test_a_record_comes_back_from_json() -> None:
    plain = json.loads(json.dumps(KEPT.as_json()))
    assert is_privacy(plain)
    assert PrivacyRecord.from_json(plain) == KEPT
    assert parts_of(KEPT.mechanisms) == PARTS


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": -1},
        {"epsilon": True},
        {"epsilon": float("inf")},
        {"delta": 0},
        {"delta": 1},
        {"neighbours": 1},
        {"least_clients": -1},
        {"withheld": "x"},
        {"withheld": [1]},
        {"mechanisms": [{"name": "gaussian"}]},
        {"mechanisms": [{"name": "gaussian", "numbers": ["1"]}]},
        {"mechanisms": [{"name": "gaussian", "numbers": [float("nan")]}]},
        {"earlier": [{}]},
        {"earlier": {}},
        {"is_from_first": 1},
        {"more": 1},
    ],
)
def test_a_damaged_record(change: dict[str, Any]) -> None:
    assert not is_privacy({**json.loads(json.dumps(KEPT.as_json())), **change})


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": -1},
        {"rate": 2},
        {"rate": 0.1, "size": 1, "population": 2},
        {"rate": None, "size": 3, "population": 2},
        {"rate": None, "size": 3},
        {"rate": None, "population": 3},
        {"mechanisms": None},
    ],
)
def test_damaged_earlier_rounds(change: dict[str, Any]) -> None:
    plain = json.loads(json.dumps(KEPT.as_json()))
    plain["earlier"][0].update(change)
    assert not is_privacy(plain)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            {"mechanisms": (KeptMechanism("cauchy", (1.0,)),)},
            "the mechanism 'cauchy' with 1 number",
        ),
        (
            {"mechanisms": (KeptMechanism("gaussian", (1.0, 2.0)),)},
            "the mechanism 'gaussian' with 2 numbers",
        ),
        (
            {"mechanisms": (KeptMechanism("gaussian", (0.0,)),)},
            "the mechanism 'gaussian' with 1 number",
        ),
        (
            {"earlier": (EarlierRounds(1, (KeptMechanism("x", ()),)),)},
            "the mechanism 'x' with 0 numbers",
        ),
        ({"neighbours": "friends"}, "neighbours 'friends'"),
    ],
)
def test_a_record_that_nobody_can_account_for(change: dict[str, Any], what: str) -> None:
    assert refusal(DataError, Ledger, record(**change), identity()) == (
        f"the record of the run has {what}, of which this tffc knows nothing [E938]\n"
        "  help: put run.json back as it was, or use the version of tffc that began the run"
    )


@pytest.mark.parametrize(("multiplier", "rounds"), [(0.5, 1), (5.0, 1), (1.0, 30), (0.97, 1500)])
def test_gaussian_mechanisms_without_sampling_have_the_formula(
    multiplier: float, rounds: int
) -> None:
    library: Any = pytest.importorskip("dp_accounting")
    mpmath: Any = importlib.import_module("mpmath")
    epsilon = spending([Gaussian(multiplier)], rounds, DELTA, ANY_COHORTS, ADD).epsilon
    with mpmath.workdps(1000):
        shift, whole = mpmath.sqrt(rounds) / multiplier, mpmath.mpf(epsilon)
        near, far = (mpmath.ncdf(sign * shift / 2 - whole / shift) for sign in (1, -1))
        assert float((near - mpmath.exp(whole) * far) / DELTA) == pytest.approx(1, rel=1e-6)
    if epsilon < 10:
        accountant = library.pld.PLDAccountant()
        accountant.compose(library.GaussianDpEvent(multiplier), rounds)
        assert epsilon == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-6)
