"""Recorded computations give the recorded results in every form on every engine."""

from __future__ import annotations

import functools
import importlib.util

import pytest

from tests.corpus.cases import MISSING, Case, cases
from tests.engines.recorded import differences
from tffc.backends.forms.kinds import FORMS
from tffc.engines.table import ENGINES, make_engine
from tffc.errors import FormError

pytestmark = pytest.mark.skipif(not cases(), reason=MISSING)


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                any(importlib.util.find_spec(package) is None for package in kind.packages),
                reason=f"needs tffc[{kind.extra}]",
            ),
        )
        for name, kind in ENGINES.items()
    ],
)
@pytest.mark.parametrize("case", [c for c in cases() if c.has("io.json")], ids=str)
def test_recorded_results(case: Case, engine: str) -> None:
    found: dict[str, list[str]] = {}
    for form in FORMS:
        try:
            found[form] = differences(case, form, functools.partial(make_engine, engine))
        except FormError:
            continue
    # What TFF runs but is not a round has no form.
    assert found or str(case).startswith("neg_")
    assert not any(found.values()), found
