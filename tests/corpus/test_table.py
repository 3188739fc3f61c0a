"""Every row of the table of recorded computations: accepted and refused as TFF does, with parts of
the same types and the recorded results."""

from __future__ import annotations

import pytest

from tests.corpus.cases import MISSING, Case, cases, each_case
from tests.corpus.table import main, verdict
from tffc.backends import compile_initialize

pytestmark = pytest.mark.skipif(not cases(), reason=MISSING)

OWN_LIMITS = {
    "mapreduce": {"sequence_map_reduce", "neg_select_keys", "secure_select_round"},
    "broadcast": set[str](),
    "distribute-aggregate": {
        "agg_encoded_sum",
        "custom_aggregate",
        "dataset_concat_aggregation",
        "fedavg_compression",
        "mr_mnist",
        "mr_temperature",
        "neg_select_keys",
        "secure_select_round",
        "strings_in_aggregate",
    },
}
"""Rounds that TFF refuses for what it lacks, not for what is wrong with them, by its forms."""


@each_case(cases())
def test_row(case: Case) -> None:
    row = {form: verdict(case, form).split()[0] for form in OWN_LIMITS}
    assert row == {form: wanted(case, form) for form in OWN_LIMITS}


def wanted(case: Case, form: str) -> str:
    if case.forms.get(form.replace("-", "_"), {}).get("ok"):
        return "same"
    return "ours" if str(case) in OWN_LIMITS[form] else "none"


def test_the_script_prints_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    name = str(next(case for case in cases() if wanted(case, "mapreduce") == "same"))
    assert main([name]) == 0
    row, count = capsys.readouterr().out.splitlines()
    assert row.split()[:2] == [name, "same"]
    assert count == "1 cases, 0 with differences"


@pytest.mark.parametrize("case", [c for c in cases() if c.has("init.pb")], ids=str)
def test_first_state(case: Case) -> None:
    recorded = case.forms["init_form"]
    (part,) = recorded["components"].values()
    assert str(compile_initialize(case.program("init")).type) == part["type"]
