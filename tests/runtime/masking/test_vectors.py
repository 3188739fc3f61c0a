"""Vectors modulo numbers, and masks in which every value is as likely."""

import numpy as np
import pytest

from tffc.runtime.masking.vectors import Segment, add, expand, subtract

MODULI = [1, 2, 3, 10, 255, 256, 257, 2**16, 2**31 - 1, 2**32, 2**62 + 11, 2**63, 2**64]


def vector(segments: list[Segment], seed: int) -> list[np.ndarray]:
    """Numbers of every size below each modulus."""
    random = np.random.default_rng(seed)
    return [
        random.integers(0, s.modulus - 1, s.size, np.uint64, endpoint=True).astype(s.dtype)
        for s in segments
    ]


@pytest.mark.parametrize("modulus", MODULI)
def test_sums_and_differences_are_modulo_the_number(modulus: int) -> None:
    segments = [Segment(modulus, 500)]
    one, other = vector(segments, 1), vector(segments, 2)
    expected = [(int(a) + int(b)) % modulus for a, b in zip(one[0], other[0], strict=True)]
    total = add(one, other, segments)
    assert total[0].tolist() == expected
    assert total[0].dtype == segments[0].dtype
    assert subtract(total, other, segments)[0].tolist() == one[0].tolist()


@pytest.mark.parametrize("modulus", MODULI)
def test_a_mask_is_one_of_numbers_below_the_modulus(modulus: int) -> None:
    (mask,) = expand(bytes(32), [Segment(modulus, 1000)])
    assert mask.dtype == Segment(modulus, 1000).dtype
    assert int(mask.max()) < modulus


@pytest.mark.parametrize("modulus", [2, 10, 97, 256, 3 * 2**61])
def test_every_value_of_a_mask_is_as_likely(modulus: int) -> None:
    """A chi-square statistic of 16 classes, in 64,000 numbers: above 50 once in 100,000 seeds."""
    (mask,) = expand(b"s" * 32, [Segment(modulus, 64_000)])
    classes = min(16, modulus)
    edges = [modulus * k // classes for k in range(1, classes)]
    found = np.bincount(np.searchsorted(np.array(edges, np.uint64), mask, "right"))
    widths = np.diff([0, *edges, modulus]).astype(float) / modulus * len(mask)
    assert float(((found - widths) ** 2 / widths).sum()) < 50


def test_a_mask_is_the_published_stream() -> None:
    """RFC 8439, appendix A.1, test vector 1: the stream of a key of zeros."""
    (mask,) = expand(bytes(32), [Segment(256, 16)])
    assert mask.tobytes().hex() == "76b8e0ada0f13d90405d6ae55386bd28"


def test_words_above_the_last_multiple_are_passed_over() -> None:
    # Of modulo 3 * 2**61, a quarter of all words is: taking them would favour small numbers.
    (mask,) = expand(bytes(32), [Segment(3 * 2**61, 4)])
    words = np.frombuffer(expand(bytes(32), [Segment(2**64, 12)])[0].tobytes(), "<u8")
    kept = [int(word) % (3 * 2**61) for word in words if word < 2**64 - 2**64 % (3 * 2**61)]
    assert mask.tolist() == kept[:4]


def test_segments_draw_one_after_another() -> None:
    whole = expand(bytes(32), [Segment(256, 8)])[0]
    parts = expand(bytes(32), [Segment(256, 3), Segment(256, 5)])
    assert np.concatenate(parts).tolist() == whole.tolist()
