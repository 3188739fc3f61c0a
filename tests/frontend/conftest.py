"""What the tests of the front end share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tffc.errors import TffcError


@pytest.fixture
def refusal() -> Callable[[Callable[[], Any]], TffcError]:
    """Gives the error that a function is refused with, after taking its place away.

    Without a place, the text of an error is the same wherever the test stands.
    """

    def refused(function: Callable[[], Any]) -> TffcError:
        with pytest.raises(TffcError) as caught:
            function()
        assert caught.value.span is not None
        caught.value.span = None
        return caught.value

    return refused
