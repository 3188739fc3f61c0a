"""The distances that validation allows between floating-point numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tffc.assurance.validation.compare import unit_of

BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16, np.float32, np.float64])
def test_the_unit_is_the_distance_from_one_to_the_next_number(kind: Any) -> None:
    one = np.ones((), kind)
    bits = BITS[one.dtype.itemsize]
    following = (one.view(bits) + bits(1)).view(kind)
    assert unit_of(one.dtype) == float(following) - 1.0


@pytest.mark.parametrize(("kind", "part"), [(np.complex64, np.float32), (np.complex128, float)])
def test_complex_numbers_have_the_unit_of_their_parts(kind: Any, part: Any) -> None:
    assert unit_of(np.dtype(kind)) == unit_of(np.dtype(part))
