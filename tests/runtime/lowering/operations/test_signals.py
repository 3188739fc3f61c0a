"""Complex numbers, transforms, shifts and the largest elements are as TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.lowering.operations.samples import Sample, compare_all, floats, sample


def complexes(*shape: int, dtype: type = np.complex64) -> np.ndarray:
    one, other = (floats(*shape, seed=seed, dtype=np.float64) for seed in (1, 2))
    return (one + 1j * other).astype(dtype)


BOTH = {np.complex64: np.float32, np.complex128: np.float64}
LENGTH = np.array([6], np.int32)
BITS = np.array([-9, -1, 0, 1, 77, 2**30], np.int32)
SHIFTS = np.array([1, 0, 3, 31, 4, 2], np.int32)

SAMPLES: dict[str, list[Sample]] = {
    "Complex": [sample(floats(3, 2), floats(3, 2, seed=3))],
    "Real": [sample(complexes(3, 2, dtype=each), Tout=real) for each, real in BOTH.items()],
    "Imag": [sample(complexes(3, 2, dtype=each), Tout=real) for each, real in BOTH.items()],
    "Conj": [sample(complexes(3, 2, dtype=dtype)) for dtype in BOTH],
    "ComplexAbs": [sample(complexes(3, 2), tolerance=1e-6)],
    "FFT": [sample(complexes(2, 7, dtype=dtype), tolerance=1e-5) for dtype in BOTH],
    "IFFT": [sample(complexes(2, 8, dtype=dtype), tolerance=1e-5) for dtype in BOTH],
    "FFT2D": [sample(complexes(2, 4, 3), tolerance=1e-5)],
    "IFFT2D": [sample(complexes(2, 4, 3), tolerance=1e-5)],
    "RFFT": [
        sample(floats(2, size), LENGTH, tolerance=1e-5, known="fft_length") for size in (6, 8)
    ],
    "IRFFT": [sample(complexes(2, 4), LENGTH, tolerance=1e-5, known="fft_length")],
    "LeftShift": [sample(BITS, SHIFTS), sample(BITS.astype(np.uint8), SHIFTS.astype(np.uint8) % 8)],
    "RightShift": [sample(BITS, SHIFTS), sample(BITS.astype(np.int64), SHIFTS.astype(np.int64))],
    "TopKV2": [
        sample(np.array([[3, 1, 3, 2], [0, 0, 5, 5]], np.float32), np.int32(3), known="k"),
        sample(np.array([4, 4, 4], np.int64), np.int32(2), known="k"),
    ],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_as_in_tensorflow(name: str) -> None:
    compare_all(name, SAMPLES[name])
