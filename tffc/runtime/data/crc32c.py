"""The checksum of TFRecord files: CRC-32C (Castagnoli), masked as that format does.

A CRC is linear over GF(2): the CRC of a block is the exclusive or of one term for each byte, which
depends on the byte's value and its distance from the block's end alone.  With a table of these
terms NumPy computes a whole block at a time.
"""

from __future__ import annotations

import functools

import numpy as np

from tffc.support.guards import Array

POLYNOMIAL = 0x82F63B78
"""The Castagnoli polynomial in reflected (least significant bit first) form, as all numbers
here."""

BLOCK = 1024
"""The number of bytes that the table covers."""

SHORT = 16
"""Up to this many bytes, a loop over single bytes is faster than NumPy."""

DISTANCES = np.arange(BLOCK - 1, -1, -1)

ONES = 0xFFFFFFFF


@functools.cache
def _table() -> Array:
    """Return the table of terms: `table[d, v]` is that of a byte `v` with `d` bytes after it."""
    values = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        values = (values >> 1) ^ np.where(values & 1, np.uint32(POLYNOMIAL), np.uint32(0))
    table = np.empty((BLOCK, 256), np.uint32)
    table[0] = values
    for distance in range(1, BLOCK):
        before = table[distance - 1]
        table[distance] = (before >> 8) ^ table[0][before & 0xFF]
    return table


@functools.cache
def _single() -> list[int]:
    """Return the first row of the table as a list, for the loop over single bytes."""
    return _table()[0].tolist()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of `data`."""
    if len(data) <= SHORT:
        single, register = _single(), ONES
        for byte in data:
            register = (register >> 8) ^ single[(register ^ byte) & 0xFF]
        return register ^ ONES
    table = _table()
    content = np.frombuffer(data, np.uint8)
    register = ONES
    for start in range(0, len(content), BLOCK):
        block = content[start : start + BLOCK]
        mixed = int(np.bitwise_xor.reduce(table[DISTANCES[-len(block) :], block]))
        register = _carried(register, len(block), table) ^ mixed
    return register ^ ONES


def _carried(register: int, length: int, table: Array) -> int:
    """Return the register after `length` further bytes of zeros.

    By linearity this is the sum of what each of its four bytes becomes.
    """
    if length < 4:
        for _ in range(length):
            register = (register >> 8) ^ int(table[0, register & 0xFF])
        return register
    carried = 0
    for index in range(4):
        carried ^= int(table[length - 1 - index, (register >> (8 * index)) & 0xFF])
    return carried


def masked_crc32c(data: bytes) -> int:
    """Return the masked checksum, as TFRecord files store it."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & ONES
