"""What calls are refused with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tffc.errors import TffcError


def refusal(
    kind: type[TffcError], call: Callable[..., object], *arguments: object, **options: object
) -> str:
    """Return the text of the error, of this very class, that a call is refused with."""
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    assert type(caught.value) is kind
    return str(caught.value)
