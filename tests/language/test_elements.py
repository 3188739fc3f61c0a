"""Constants in the typed form: many elements written together have the texts of each alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tffc.language.array import Array
from tffc.language.dtypes import DType
from tffc.language.notation.elements import constant_text

RANDOM = np.random.default_rng(7)
EDGES = (1e-4, 1e16, 1e22, 0.0, -0.0, 1.0, 1e-5, 9999999999999998.0, np.inf, -np.inf, np.nan)


def numbers(dtype: Any) -> Any:
    """Numbers of all sizes, powers of two, short decimals, and those beside where notation
    changes."""
    exponents = RANDOM.integers(-12, 22, 300)
    with np.errstate(all="ignore"):
        edges = np.array(EDGES, dtype)
        beside = [np.nextafter(edges, dtype(side)) for side in (np.inf, -np.inf)]
        return np.concatenate(
            [
                (RANDOM.standard_normal(300) * 10.0**exponents).astype(dtype),
                (2.0 ** RANDOM.integers(-40, 60, 100)).astype(dtype),
                (RANDOM.integers(-99, 99, 300) * 10.0**exponents).astype(dtype),
                edges,
                *beside,
            ]
        )


def content(dtype: DType) -> bytes:
    match dtype:
        case DType.FLOAT16 | DType.BFLOAT16:
            return np.arange(0, 65536, 7, dtype="<u2").tobytes()
        case DType.FLOAT32 | DType.FLOAT64:
            return numbers(dtype.dtype.type).tobytes()
        case DType.COMPLEX64 | DType.COMPLEX128:
            parts = numbers(np.float32 if dtype is DType.COMPLEX64 else np.float64)
            return RANDOM.choice(parts, 1000).tobytes()
        case DType.BOOL:
            return b"\0\1\1"
        case _:
            return RANDOM.bytes(100 * dtype.size)


@pytest.mark.parametrize("dtype", [each for each in DType if each.size], ids=str)
def test_elements_are_written_together_as_each_alone(dtype: DType) -> None:
    data, size = content(dtype), dtype.size
    together = constant_text(Array(dtype, (len(data) // size,), data))
    alone = (
        constant_text(Array(dtype, (), data[at : at + size])) for at in range(0, len(data), size)
    )
    assert together == f"[{' '.join(alone)}]"
