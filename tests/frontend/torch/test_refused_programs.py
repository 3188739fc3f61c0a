"""What a compiled program cannot do is refused, at the user's line, and never traced wrongly."""

from __future__ import annotations

import re

import pytest
import torch

import tffc as tff
from tests.frontend.torch import refused_programs
from tests.frontend.torch.refused_programs import FUNCTIONS, MAKERS, VECTOR, saved
from tffc.support.errors import TffcError


def check(error: TffcError, code: str) -> None:
    assert error.code == code
    assert error.help is not None
    assert re.match(r"[A-Z]\w+|[a-z'_`.]", str(error))
    assert error.span is not None
    assert error.span.file.endswith("refused_programs.py")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, code = FUNCTIONS[name]
    outside = refused_programs.outside.clone()
    with pytest.raises(TffcError) as caught:
        tff.torch.computation(function, VECTOR)
    check(caught.value, code)
    assert torch.equal(refused_programs.outside, outside)


@pytest.mark.parametrize("name", MAKERS)
def test_makers(name: str) -> None:
    make, code = MAKERS[name]
    with pytest.raises(TffcError) as caught:
        make()
    assert caught.value.code == code
    assert caught.value.help is not None
    assert caught.value.span is not None


def test_exceptions_of_the_users_own() -> None:
    """What PyTorch and Python say themselves passes unchanged."""
    with pytest.raises(RuntimeError, match="broadcast"):
        tff.torch.computation(lambda x: x + torch.zeros(3), VECTOR)
    with pytest.raises(AttributeError):
        tff.torch.computation(saved, VECTOR)
    with pytest.raises(KeyError):
        tff.torch.computation(lambda x: {}["absent"], VECTOR)
