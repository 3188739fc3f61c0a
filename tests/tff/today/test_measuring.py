"""What programs of today's TFF measure over tffc is what NumPy says."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tff.today.sources import module, needs_checkout

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_checkout,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]


def test_programs() -> None:
    programs = module("measuring").PROGRAMS
    assert len(programs) >= 20
    wrong: dict[str, str] = {}
    for name, program in programs.items():
        results, expected = program()
        if not isinstance(results, list):
            results, expected = [results], [expected]
        try:
            for one, other in zip(results, expected, strict=True):
                if isinstance(other, list | tuple):
                    assert one == other
                else:
                    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        except AssertionError as error:
            wrong[name] = str(error)
    assert wrong == {}
