"""Portable artifacts of StableHLO, as far as they are read."""

from __future__ import annotations


def number(value: int) -> bytes:
    """A number below 2**14, as the bytecode has it."""
    return bytes([value << 1 | 1]) if value < 128 else (value << 2 | 2).to_bytes(2, "little")


def section(name: int, content: bytes) -> bytes:
    return bytes([name]) + number(len(content)) + content


def artifact(*names: str, dialect: str = "vhlo", version: int = 6) -> bytes:
    """A module whose only part is the list of its operations."""
    strings = [f"{text}\0".encode() for text in (dialect, *names)]
    lengths = b"".join(number(len(text)) for text in reversed(strings))
    found = number(1) + number(0) + number(len(names)) + number(0) + number(len(names))
    found += b"".join(number(2 * index + 1) for index in range(1, len(names) + 1))
    head = b"ML\xefR" + number(version) + b"StableHLO_v1.0.0\0"
    texts = number(len(strings)) + lengths + b"".join(strings)
    return head + section(1, found) + section(0, texts)
