"""Reading the names of the operations in a module of MLIR bytecode.

A portable artifact of StableHLO is such a module.  Its operations belong to the dialect `vhlo`, and
their names end in their versions.  https://mlir.llvm.org/docs/BytecodeFormat describes the format.
"""

from __future__ import annotations

from collections.abc import Iterator

MAGIC = b"ML\xefR"
STRINGS, DIALECTS = 0, 1
"""The numbers of the section of strings, and of that of dialects and operations."""

VERSIONS = range(6, 7)
"""The supported versions of the format: the one that StableHLO has written since 1.0."""


class BytecodeError(ValueError):
    """Bytes are not a module in a supported version of the format."""


def operations(module: bytes) -> list[str]:
    """Return the operations that a module may use, each once, such as `vhlo.add_v1`.

    Raises:
      BytecodeError: it is not a module, or has parts that artifacts of StableHLO never have.
    """
    sections = _sections(module)
    named = _strings(_BytecodeReader(sections[STRINGS]))
    return list(_operations(_BytecodeReader(sections[DIALECTS]), named))


def strings(module: bytes) -> list[str]:
    """Return the strings of a module; among them are the functions outside of it that it calls.

    Raises:
      BytecodeError: as `operations` does.
    """
    return _strings(_BytecodeReader(_sections(module)[STRINGS]))


def _sections(module: bytes) -> dict[int, bytes]:
    if not module.startswith(MAGIC):
        raise BytecodeError
    reader = _BytecodeReader(module, len(MAGIC))
    if reader.number() not in VERSIONS:
        raise BytecodeError
    reader.at = reader.find(b"\0") + 1
    sections: dict[int, bytes] = {}
    while not reader.is_at_end():
        number, content = reader.section()
        if number in sections:
            raise BytecodeError
        sections[number] = content
    if STRINGS not in sections or DIALECTS not in sections:
        raise BytecodeError
    return sections


class _BytecodeReader:
    """Reads a part of a module from its beginning."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at

    def is_at_end(self) -> bool:
        return self.at >= len(self._data)

    def find(self, content: bytes) -> int:
        position = self._data.find(content, self.at)
        if position < 0:
            raise BytecodeError
        return position

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self.at:
            raise BytecodeError
        self.at += count
        return self._data[self.at - count : self.at]

    def number(self) -> int:
        """Return a number of one to nine bytes; the trailing zero bits of the first count the
        others."""
        first = self.take(1)[0]
        if not first:
            return int.from_bytes(self.take(8), "little")
        more = (first & -first).bit_length() - 1
        return int.from_bytes(bytes([first]) + self.take(more), "little") >> more + 1

    def count(self) -> int:
        """Return the number of items that follow, each of at least one byte."""
        value = self.number()
        if value > len(self._data) - self.at:
            raise BytecodeError
        return value

    def flagged(self) -> tuple[int, bool]:
        """Return a number whose last bit is a flag, and the flag."""
        value = self.number()
        return value >> 1, bool(value & 1)

    def section(self) -> tuple[int, bytes]:
        number = self.take(1)[0]
        if number >> 7:  # aligned, as sections of resources are
            raise BytecodeError
        return number, self.take(self.number())


def _strings(reader: _BytecodeReader) -> list[str]:
    """Return the strings; their lengths precede them in reverse order."""
    lengths = [reader.number() for _ in range(reader.count())]
    return [
        reader.take(length).removesuffix(b"\0").decode(errors="backslashreplace")
        for length in reversed(lengths)
    ]


def _operations(reader: _BytecodeReader, strings: list[str]) -> Iterator[str]:
    """Yield the operations, which follow the names of the dialects, grouped by dialect."""
    dialects: list[str] = []
    for _ in range(reader.count()):
        name, has_version = reader.flagged()
        dialects.append(_string(strings, name))
        if has_version:
            reader.section()
    reader.number()  # the number of operations
    while not reader.is_at_end():
        dialect = _string(dialects, reader.number())
        for _ in range(reader.count()):
            name, _ = reader.flagged()
            yield f"{dialect}.{_string(strings, name)}"


def _string(strings: list[str], number: int) -> str:
    if number >= len(strings):
        raise BytecodeError
    return strings[number]
