"""Errors that calls are refused with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tffc.support.errors import TffcError


def refusal(
    kind: type[TffcError], call: Callable[..., object], *arguments: object, **options: object
) -> str:
    """Return the text of the error, of exactly this class, that a call raises."""
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    assert type(caught.value) is kind
    return str(caught.value)


def error_without_place(kind: type[Exception], call: Callable[[], object]) -> TffcError:
    """Return the error that a call raises, after checking that it has a place and removing it.

    The place is a line of the test, so the text of the error is the same wherever the test is.
    """
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, TffcError)
    assert caught.value.span is not None
    caught.value.span = None
    return caught.value
