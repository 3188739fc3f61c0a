"""The checksum of TFRecord files: CRC-32C (Castagnoli), rotated and shifted.

A CRC is linear, so that of a block is the exclusive or of what each byte contributes by its value
and its distance from the block's end.  A table of these makes NumPy do the work, a block at a time.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

POLYNOMIAL = 0x82F63B78
"""Reflected, as all numbers here."""

BLOCK = 1024
"""How many bytes the table covers."""

SHORT = 16
"""Up to so many bytes are quicker one after another."""

DISTANCES = np.arange(BLOCK - 1, -1, -1)

ONES = 0xFFFFFFFF


@functools.cache
def _table() -> np.ndarray[Any, Any]:
    """Return a table: `table[d, v]` is the contribution of a byte `v` that `d` bytes follow."""
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
    """Return the first row of the table, for one byte after another."""
    return _table()[0].tolist()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of some bytes."""
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


def _carried(register: int, length: int, table: np.ndarray[Any, Any]) -> int:
    """Return the register after so many bytes of zeros."""
    if length < 4:
        for _ in range(length):
            register = (register >> 8) ^ int(table[0, register & 0xFF])
        return register
    carried = 0
    for index in range(4):
        carried ^= int(table[length - 1 - index, (register >> (8 * index)) & 0xFF])
    return carried


def masked_crc32c(data: bytes) -> int:
    """Return the checksum as it stands in the file."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & ONES
