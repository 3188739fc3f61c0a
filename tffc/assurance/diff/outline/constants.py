"""Constants of a section, as text and compared."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from tffc.graphs.node import hash_of
from tffc.language.dtypes import BY_NUMBER, DType

SHOWN = 6
"""The most elements of a constant that are shown."""

LONGEST_STRING = 40
"""The most characters of a string element that are shown."""


@dataclasses.dataclass(frozen=True, slots=True)
class Constant:
    """A constant tensor.

    `content` holds the elements without repetitions of the last one: little-endian bytes, or one
    `bytes` for each string.  If the language lacks the type, `dtype` is None and `content` the
    encoded tensor.
    """

    dtype: DType | None
    shape: tuple[int, ...]
    content: bytes | tuple[bytes, ...]

    def __str__(self) -> str:
        shape = f"[{','.join(map(str, self.shape))}]" if self.shape else ""
        return f"{self.dtype or 'constant'}{shape} {self._elements()}".rstrip()

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def _elements(self) -> str:
        held = self._held()
        if self.dtype is None or len(held) == 0:
            return f"({_digest(self.content)})" if self.size else ""
        shown = [self._text(held[i]) for i in range(min(len(held), SHOWN, self.size))]
        if len(held) > SHOWN:
            return f"{' '.join(shown)} ... ({_digest(self.content)})"
        return " ".join(shown) + (" ..." if len(shown) < self.size else "")

    def _held(self) -> Any:
        """Return the stored elements as a NumPy array."""
        if isinstance(self.content, tuple):
            return self.content
        if self.dtype is None or self.dtype.size == 0 or len(self.content) % self.dtype.size:
            return [self.content]
        import numpy as np

        return np.frombuffer(self.content, self.dtype.dtype.newbyteorder("<"))

    def _text(self, element: Any) -> str:
        if not isinstance(element, bytes):
            return str(element)
        text = repr(element)
        return text if len(text) <= LONGEST_STRING else f"{text[:LONGEST_STRING]}..."

    def _raw(self) -> list[bytes]:
        """Return the bytes of each stored element, so that NaN equals itself."""
        if isinstance(self.content, tuple):
            return list(self.content)
        size = self.dtype.size if self.dtype is not None and self.dtype.size else 0
        step = size or max(1, len(self.content))
        return [self.content[i : i + step] for i in range(0, len(self.content), step)]

    def change(self, other: Constant) -> str:
        """Describe the change from this constant to `other`."""
        if (self.dtype, self.shape) != (other.dtype, other.shape) or self.dtype is None:
            return f"{self} -> {other}"
        if self.size <= SHOWN:
            return f"{self._elements()} -> {other._elements()}"
        old, new = self._raw(), other._raw()
        if not old or not new:
            return f"{self} -> {other}"
        longest = max(len(old), len(new))
        old, new = (raw + raw[-1:] * (longest - len(raw)) for raw in (old, new))
        changed = [at for at, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
        if not changed:
            return f"{self} -> {other}"
        rest = self.size - longest if old[-1] != new[-1] else 0
        count = f"{len(changed) + rest} of {self.size} elements differ"
        first = changed[0]
        place = ",".join(map(str, _index(first, self.shape)))
        before, after = (self._at(constant, first) for constant in (self, other))
        return f"{count}, the first at [{place}]: {before} -> {after}"

    @staticmethod
    def _at(constant: Constant, index: int) -> str:
        held = constant._held()
        return constant._text(held[min(index, len(held) - 1)])


def constant(number: int, shape: Sequence[int], content: bytes | Sequence[bytes]) -> Constant:
    """Return a constant; `number` is that of its element type on the wire."""
    held = content if isinstance(content, bytes) else tuple(content)
    return Constant(BY_NUMBER.get(number), tuple(shape), held)


def _index(position: int, shape: tuple[int, ...]) -> list[int]:
    index: list[int] = []
    for size in reversed(shape):
        position, at = divmod(position, size)
        index.append(at)
    return index[::-1]


def _digest(content: bytes | tuple[bytes, ...]) -> str:
    parts = [content] if isinstance(content, bytes) else content
    return hash_of(parts).hex()[:8]
