"""LiteRT's own kernels compute the clients' work of recorded rounds."""

from __future__ import annotations

import pytest

from tests.corpus.cases import MISSING, Case, cases
from tests.deploy.export.lite import CLIENT_PARTS, calls, outcome
from tffc.linking.inspect import is_pure
from tffc.support.errors import FormError, TffcError

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not cases(), reason=MISSING),
]


@pytest.mark.parametrize("form", CLIENT_PARTS)
@pytest.mark.parametrize("case", [c for c in cases() if c.has("io.json")], ids=str)
def test_recorded_rounds(case: Case, form: str) -> None:
    try:
        parts = list(calls(case, form))
    except FormError:
        pytest.skip("it is not of this form")
    except TffcError as error:
        pytest.skip(f"tffc does not run it: {error.message}")
    if not parts:
        pytest.skip("no client's data can be stacked")
    if not is_pure(parts[0].section):
        pytest.skip("it draws, so that no two runs are the same")
    model, reason = outcome(parts[0].section, parts[0].name)
    if model is None:
        pytest.skip(reason)
    for part in parts:
        part.compare(model)
