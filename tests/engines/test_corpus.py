"""Recorded computations give the recorded results in every form on the local engine."""

from __future__ import annotations

import pytest

from tests.corpus.cases import MISSING, Case, cases
from tests.engines.recorded import differences
from tffc.backends import FORMS
from tffc.engines.local import LocalEngine
from tffc.errors import FormError

pytestmark = pytest.mark.skipif(not cases(), reason=MISSING)


@pytest.mark.parametrize("case", [c for c in cases() if c.has("io.json")], ids=str)
def test_recorded_results(case: Case) -> None:
    found: dict[str, list[str]] = {}
    for form in FORMS:
        try:
            found[form] = differences(case, form, LocalEngine)
        except FormError:
            continue
    # What TFF runs but is no round has no form.
    assert found or str(case).startswith("neg_")
    assert not any(found.values()), found
