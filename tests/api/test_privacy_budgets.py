"""Privacy budgets of `tffc.run`, and policies with an ε of `tffc.audit`."""

from __future__ import annotations

import datetime
import pathlib
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.assurance.privacy.programs.events import program
from tests.assurance.privacy.test_correlated_noise import normal, process_of, state
from tests.refusals import error_without_place
from tffc.assurance.audit.policy import violations
from tffc.assurance.audit.policy_reading import policy_of
from tffc.assurance.privacy.ledger import BudgetSpentError
from tffc.assurance.privacy.question import PrivacyQuestion
from tffc.support.errors import LanguageValueError, PolicyError

pytest.importorskip("dp_accounting")

DATA = [np.full(4, n, np.float32) for n in range(6)]


@pytest.fixture(scope="module")
def bundle() -> Any:
    return tff.compile(program("sum_clip_by_norm"))


def spent_again(run: Any) -> str:
    """The text of the error with which a run goes no further."""
    return str(error_without_place(BudgetSpentError, run.finish))


SPENT = (
    "round 4 would exceed the privacy budget, ε = 4.2 at δ = 1e-06 [E542]\n"
    "  note: the 3 rounds that were done have ε = 4.1"
)


@pytest.mark.slow
def test_a_run_refuses_the_round_that_exceeds_its_budget(bundle: Any) -> None:
    run = bundle.run(DATA, 9, privacy_budget=4.2)
    assert run.spent.epsilon == 0
    first = next(run)
    assert (first.number, run.spent.rounds) == (1, 1)
    assert spent_again(run).startswith(SPENT)
    assert (run.last.number, run.spent.rounds, len(run.rows)) == (3, 3, 3)
    assert 4 < run.spent.epsilon <= 4.2
    # It says the same whenever it is asked again.
    assert spent_again(run).startswith(SPENT)
    page = run.report()
    assert f"ε = {run.spent.epsilon:.6g} at δ = 1e-06 for the 3 rounds" in page


@pytest.mark.slow
def test_a_folder_goes_on_with_its_budget(bundle: Any, tmp_path: pathlib.Path) -> None:
    out = tmp_path / "run"
    run = bundle.run(DATA, 2, out=out, privacy_budget=4.2).finish()
    assert run.spent.rounds == 2
    run = bundle.run(DATA, 9, out=out, resume=True, privacy_budget=4.2)
    assert spent_again(run).startswith(SPENT)
    assert run.spent.rounds == 3
    run = bundle.run(DATA, 9, state=out, privacy_budget=4.2)
    assert spent_again(run).startswith(SPENT)
    assert (run.spent.rounds, len(run.rows)) == (3, 0)
    run = bundle.run(DATA, 1, state=out, privacy_budget=5).finish()
    assert run.spent.rounds == 4


def test_a_run_without_a_budget(bundle: Any) -> None:
    assert bundle.run(DATA, 1).finish().spent is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"privacy_budget": 0}, "a privacy budget cannot be 0"),
        ({"privacy_budget": float("nan")}, "a privacy budget cannot be nan"),
        ({"privacy_budget": "2"}, "a privacy budget cannot be '2'"),
        ({"privacy_budget": 2, "privacy_delta": 1.0}, "a privacy delta cannot be 1.0"),
        ({"privacy_budget": 2, "neighbours": "replaced"}, "neighbours cannot be 'replaced'"),
        ({"not_released": ["output"]}, "not_released says what the ε of a privacy budget leaves"),
        (
            {"privacy_budget": 2, "state": ()},
            "it is not known what was spent before a state that is given as a value",
        ),
    ],
)
def test_what_is_refused(bundle: Any, options: dict[str, Any], said: str) -> None:
    error = error_without_place(LanguageValueError, lambda: bundle.run(DATA, 1, **options))
    assert error.code == "E706"
    assert error.message.startswith(said)
    assert error.help


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"form": "mergeable", "groups": 2}, "to add a client moves others to another group"),
        ({"delays": "constant:1"}, "buffered rounds and delays tell who took part, and when"),
    ],
)
def test_groups_and_delays_are_not_covered(options: dict[str, Any], said: str) -> None:
    process = program("sum_clip_by_norm")
    error = error_without_place(
        PolicyError, lambda: tff.run(process, DATA, 1, privacy_budget=9, **options)
    )
    assert (error.code, error.notes) == ("E541", (said,))


def test_noise_of_several_rounds_is_not_counted() -> None:
    def finish(s: Any, total: Any) -> Any:
        noise = normal()
        return state(noise), total + noise - 0.5 * s["noise"]

    error = error_without_place(
        PolicyError, lambda: tff.run(process_of(finish), DATA, 5, privacy_budget=9)
    )
    said = (
        "noise that is correlated between rounds has an ε for a number of them, and none for each"
    )
    assert (error.code, error.notes) == ("E541", (said,))


def test_a_policy_asks_for_privacy_itself(bundle: Any) -> None:
    policy = {"epsilon": {"at-most": 3, "delta": 1e-6, "rounds": 1}}
    assert tff.audit(bundle, policy=policy).verdict.value == "passes"
    policy["epsilon"]["rounds"] = 4
    report = tff.audit(bundle, policy=policy)
    assert [each.rule for each in report.violations] == ["epsilon"]
    assert "Differential privacy" in report.page()
    asked = PrivacyQuestion(7)
    error = error_without_place(
        LanguageValueError, lambda: tff.audit(bundle, policy=policy, privacy=asked)
    )
    assert error.message == "the policy asks for an ε of its own"
    assert "epsilon" in str(tff.explore(bundle, policy=policy))


def test_a_policy_without_an_answer_is_violated(bundle: Any) -> None:
    policy = policy_of({"epsilon": {"at-most": 9, "delta": 1e-6, "rounds": 1}})
    (violation,) = violations(tff.audit(bundle).audit, policy, datetime.date(2030, 1, 1))
    assert violation.message == "privacy is not shown: nobody has looked"
