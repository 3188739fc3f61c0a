"""Vectors of integers modulo a number, and uniformly random masks for them.

A vector is a list of arrays, one for each `Segment`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Vector: TypeAlias = list[Array]

WORD = 2**64
"""The number of values of a 64-bit word, which numbers modulo other than powers of two are drawn
from."""


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    """A number of integers that are added modulo `modulus`.

    The modulus is 2 to the power of 8, 16, 32 or 64, or any number from 1 up to 2**63.
    """

    modulus: int
    size: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The narrowest unsigned little-endian element type that holds all values."""
        return next(d for d in _UNSIGNED if self.modulus <= 256**d.itemsize)

    @property
    def wraps(self) -> bool:
        """Whether addition in the element type is already addition modulo the modulus."""
        return self.modulus == 256**self.dtype.itemsize


_UNSIGNED = tuple(np.dtype(f"<u{size}") for size in (1, 2, 4, 8))


def add(first: Vector, second: Vector, segments: Iterable[Segment]) -> Vector:
    """Return the sum of two vectors."""
    triples = zip(first, second, segments, strict=True)
    return [_add(one, other, segment) for one, other, segment in triples]


def subtract(first: Vector, second: Vector, segments: Iterable[Segment]) -> Vector:
    """Return the difference of two vectors."""
    triples = zip(first, second, segments, strict=True)
    return [_add(one, _negative(other, segment), segment) for one, other, segment in triples]


def _add(first: Array, second: Array, segment: Segment) -> Array:
    if segment.wraps:
        return first + second
    # Two values below 2**63 cannot overflow 64 bits.
    wide = np.add(first, second, dtype=np.uint64)
    return (wide % np.uint64(segment.modulus)).astype(segment.dtype)


def _negative(values: Array, segment: Segment) -> Array:
    if segment.wraps:
        return np.zeros_like(values) - values
    return np.where(values == 0, values, segment.dtype.type(segment.modulus) - values)


def expand(seed: bytes, segments: Sequence[Segment]) -> Vector:
    """Return the mask of a 32-byte seed, taken from the ChaCha20 key stream (RFC 8439).

    A number modulo 2 to the power of 8, 16, 32 or 64 takes that many bits of the stream.  Any other
    takes a 64-bit word; words above the largest multiple of the modulus are rejected, so that all
    numbers are equally likely.
    """
    # A constant nonce is safe because every seed is used for one mask only.
    stream = Cipher(algorithms.ChaCha20(seed, bytes(16)), mode=None).encryptor()
    return [_draw(stream, segment) for segment in segments]


def _draw(stream: CipherContext, segment: Segment) -> Array:
    if segment.wraps:
        return _words(stream, segment.dtype, segment.size)
    limit = np.uint64(WORD - 1 - WORD % segment.modulus)
    drawn = np.empty(0, "<u8")
    while len(drawn) < segment.size:
        words = _words(stream, np.dtype("<u8"), segment.size - len(drawn))
        drawn = np.concatenate([drawn, words[words <= limit]])
    return (drawn % np.uint64(segment.modulus)).astype(segment.dtype)


def _words(stream: CipherContext, dtype: np.dtype[Any], count: int) -> Array:
    return np.frombuffer(stream.update(bytes(count * dtype.itemsize)), dtype)
