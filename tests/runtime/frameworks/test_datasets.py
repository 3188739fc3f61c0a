"""Elements of datasets are arranged as their types say."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.language.types import SequenceType, StructType, Type
from tffc.runtime.frameworks.tensorflow.datasets import arrange, make_dataset
from tffc.support.errors import LanguageValueError

INT = tff.to_type(np.int32)
DEEP = 5000
"""Deeper than Python's stack."""


def nested(depth: int) -> Type:
    type: Type = INT
    for _ in range(depth):
        type = StructType([type])
    return type


@pytest.mark.parametrize("plain", [False, True])
def test_structures_of_any_depth_are_arranged(plain: bool) -> None:
    found: Any = arrange(nested(DEEP), iter([7]), plain=plain)
    for _ in range(DEEP):
        (found,) = found
    assert found == 7


def test_plain_structures_have_no_containers_of_the_program() -> None:
    Pair = collections.namedtuple("Pair", ["b", "a"])
    type = tff.to_type(Pair(INT, [INT, INT]))
    assert arrange(type, iter([1, 2, 3]), plain=False) == Pair(1, [2, 3])
    plain = arrange(type, iter([1, 2, 3]), plain=True)
    assert plain == collections.OrderedDict(b=1, a=(2, 3))
    assert isinstance(plain, collections.OrderedDict)


def test_eager_datasets_of_deep_elements_are_refused() -> None:
    with pytest.raises(LanguageValueError, match="nested more than 100 deep"):
        make_dataset([], SequenceType(nested(DEEP)))
