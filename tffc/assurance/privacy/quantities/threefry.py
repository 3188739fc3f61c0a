"""Arithmetic on secret words of 32 bits, and Threefry-2x32 of 20 rounds among what it computes.

The function is that of J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, *Parallel Random
Numbers: As Easy as 1, 2, 3*, SC 2011: for a key that nobody knows, the two words that it makes of
each counter are as good as random.  It is recognized by what is computed: expressions of words have
one normal form, and where one begins as the function does, its results for the same key and
counter are computed in the same form, for comparison.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""By how much the rounds rotate, four at a time in turn."""

PARITY = 0x1BD11BDA
"""What the third word of the key schedule has besides the key."""

MASK = 0xFFFFFFFF
MOST_TERMS = 128
"""The terms of a sum, or of an exclusive or, that are followed."""

MOST_BLOCKS = 10_000
"""The results of Threefry that are computed for comparison in a module."""

Key: TypeAlias = tuple[Any, ...]


class Leaf(NamedTuple):
    """A secret word: half of what a stream has at a counter."""

    stream: int
    counter: int
    half: int


class Count(NamedTuple):
    """A counter word: a constant, plus a public array if `array` is not negative."""

    constant: int
    array: int


class ThreefryWord(NamedTuple):
    """A half of what Threefry makes of a counter of two words: 0 or 1."""

    key: tuple[Leaf, Leaf]
    counter: tuple[Count, Count]
    half: int


class Expressions:
    """Expressions of words, each by the number of its normal form.

    A sum, modulo 2^32, and an exclusive or have a constant and terms without an order.  A method
    returns None for what is not followed.
    """

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._blocks: dict[int, ThreefryWord] = {}
        self._begun: set[int] = set()
        self._arrays: set[int] = set()

    def _number(self, *key: Any) -> int:
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        return number

    # Leaves.

    def constant(self, value: int) -> int:
        return self._number("sum", value & MASK, ())

    def array(self, index: int) -> int:
        """Return a public array."""
        number = self._number("array", index)
        self._arrays.add(number)
        return number

    def secret(self, leaf: Leaf) -> int:
        return self._number("secret", leaf)

    def leaf(self, number: int) -> Leaf | None:
        """Return the secret word that an expression is, if it is one."""
        kind, *parts = self._keys[number]
        return parts[0] if kind == "secret" else None

    def has_array(self, number: int) -> bool:
        """Tell whether an expression may differ from element to element."""
        return number in self._arrays

    def block(self, number: int) -> ThreefryWord | None:
        """Return what an expression is a result of, if it is one of Threefry."""
        return self._blocks.get(number)

    # Operations.

    def add(self, first: int, second: int, sign: int = 1) -> int | None:
        """Return the first plus `sign` times the second."""
        one, terms = self._sum_of(first)
        other, rest = self._sum_of(second)
        total = dict(terms)
        for term, times in rest.items():
            total[term] = (total.get(term, 0) + sign * times) & MASK
        listed = sorted((term, times) for term, times in total.items() if times)
        if len(listed) > MOST_TERMS:
            return None
        return self._sum((one + sign * other) & MASK, listed)

    def _sum(self, constant: int, terms: list[tuple[int, int]]) -> int:
        if not constant and len(terms) == 1 and terms[0][1] == 1:
            return terms[0][0]
        return self._marked(self._number("sum", constant, tuple(terms)), [t for t, _ in terms])

    def _sum_of(self, number: int) -> tuple[int, dict[int, int]]:
        kind, *parts = self._keys[number]
        return (parts[0], dict(parts[1])) if kind == "sum" else (0, {number: 1})

    def exclusive_or(self, first: int, second: int) -> int | None:
        one, terms = self._xor_of(first)
        other, rest = self._xor_of(second)
        listed = sorted(terms ^ rest)
        if len(listed) > MOST_TERMS:
            return None
        if not one ^ other and len(listed) == 1:
            return listed[0]
        if not listed:
            return self.constant(one ^ other)
        return self._marked(self._number("xor", one ^ other, tuple(listed)), listed)

    def _xor_of(self, number: int) -> tuple[int, set[int]]:
        kind, *parts = self._keys[number]
        if kind == "xor":
            return parts[0], set(parts[1])
        if kind == "sum" and not parts[1]:
            return parts[0], set()
        return 0, {number}

    def shifted(self, number: int, direction: str, bits: int) -> int | None:
        """Return a word shifted `left` or `right`, with zeros in place of what leaves it."""
        if not 0 < bits < 32:
            return number if not bits else None
        return self._marked(self._number(direction, number, bits), [number])

    def inclusive_or(self, first: int, second: int) -> int | None:
        """Return a word that is rotated to the left, if the operands are its parts."""
        left, right = self._keys[first], self._keys[second]
        if left[0] == "right":
            left, right = right, left
        if left[0] != "left" or right[0] != "right" or left[1] != right[1]:
            return None
        return self._rotated(left[1], left[2]) if left[2] + right[2] == 32 else None

    def _rotated(self, number: int, bits: int) -> int:
        kind, *parts = self._keys[number]
        if kind == "sum" and not parts[1]:
            return self.constant(parts[0] << bits | parts[0] >> 32 - bits)
        return self._marked(self._number("rotated", number, bits), [number])

    def _marked(self, number: int, operands: Iterable[int]) -> int:
        if any(operand in self._arrays for operand in operands):
            self._arrays.add(number)
        return number

    # Threefry.

    def note(self, number: int) -> None:
        """Compute the results of Threefry where an expression is that of its first round."""
        kind, *parts = self._keys[number]
        if kind != "xor" or parts[0] or len(parts[1]) != 2 or number in self._begun:
            return
        for total, turned in (parts[1], parts[1][::-1]):
            if self._keys[turned][0] == "rotated" and self._keys[turned][2] == ROTATIONS[0][0]:
                second = self._keys[turned][1]
                first = self.add(total, second, -1)
                key = None if first is None else (self._counted(first), self._counted(second))
                if key and key[0] and key[1] and len(self._begun) < MOST_BLOCKS:
                    self._begun.add(number)
                    self._compute(key[0], key[1])

    def _counted(self, number: int) -> tuple[Leaf, Count] | None:
        """Return the secret word and the counter that an expression is the sum of."""
        constant, terms = self._sum_of(number)
        secrets = [term for term in terms if self._keys[term][0] == "secret"]
        arrays = [term for term in terms if self._keys[term][0] == "array"]
        if len(secrets) != 1 or len(arrays) > 1 or len(terms) != 1 + len(arrays):
            return None
        leaf = self.leaf(secrets[0])
        if leaf is None or any(times != 1 for times in terms.values()):
            return None
        return leaf, Count(constant, self._keys[arrays[0]][1] if arrays else -1)

    def _compute(self, first: tuple[Leaf, Count], second: tuple[Leaf, Count]) -> None:
        """Note the results of Threefry for a key and a counter, the words of each in turn."""
        (key0, count0), (key1, count1) = first, second
        if key0.stream != key1.stream:
            return
        words = self.threefry(
            (self.secret(key0), self.secret(key1)), (self._count(count0), self._count(count1))
        )
        for half, word in enumerate(words):
            if word is not None:
                self._blocks[word] = ThreefryWord((key0, key1), (count0, count1), half)

    def _count(self, count: Count) -> int:
        constant = self.constant(count.constant)
        return constant if count.array < 0 else self._added(self.array(count.array), constant)

    def threefry(self, key: tuple[int, int], counter: tuple[int, int]) -> tuple[int, int]:
        """Return the two words that Threefry-2x32 makes of a counter in 20 rounds."""
        parity = self._either(self._either(*key), self.constant(PARITY))
        schedule = (*key, parity)
        left, right = (self._added(c, k) for c, k in zip(counter, key, strict=True))
        for turn in range(5):
            for bits in ROTATIONS[turn % 2]:
                left = self._added(left, right)
                right = self._either(self._rotated(right, bits), left)
            left = self._added(left, schedule[(turn + 1) % 3])
            right = self._added(right, schedule[(turn + 2) % 3])
            right = self._added(right, self.constant(turn + 1))
        return left, right

    def _added(self, first: int, second: int) -> int:
        total = self.add(first, second)
        assert total is not None, "Threefry's sums have few terms"
        return total

    def _either(self, first: int, second: int) -> int:
        result = self.exclusive_or(first, second)
        assert result is not None, "Threefry's exclusive ors have few terms"
        return result
