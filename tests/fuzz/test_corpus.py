"""Inputs of interest, tried again; `python -m tests.fuzz.coverage` finds them."""

from __future__ import annotations

import pytest

from tests.fuzz.readers import READERS, corpus, read_or_refuse

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", READERS)
def test_inputs_of_interest_are_refused_or_read(name: str) -> None:
    read = [read_or_refuse(name, data) for data in (*READERS[name].seeds(), *corpus(name))]
    assert True in read
    assert False in read
