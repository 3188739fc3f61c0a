"""What compiles batches in tests: each compiler in turn."""

from __future__ import annotations

import pytest

from tffc.runtime.batching import compilers
from tffc.runtime.batching.choices import PJRT, TENSORFLOW


@pytest.fixture(params=[PJRT, TENSORFLOW])
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The compiler that is used where none is named."""
    monkeypatch.setattr(compilers, "preferred", lambda: request.param)
    return request.param
