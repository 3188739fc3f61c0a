"""Functions of one uniform word, operation by operation, and the distribution of what they give.

Only the highest 23 bits of the word may count, as in JAX, so all results can be computed.  What
follows from these bits is computed as real numbers, in 64 bits of floating point.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tffc.assurance.privacy.quantities.quantiles import BITS, COUNT, Standard, standard_of

Key: TypeAlias = tuple[Any, ...]

WORD = "word"
CONSTANT = "constant"
MOST_OPERATIONS = 200
"""The operations of a function that is looked at."""

MOST_FUNCTIONS = 16
"""The functions of a round that are looked at, since all their values are computed."""

AT_ONCE = 1 << 16

OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "shift-right-logical": np.right_shift,
    "or": np.bitwise_or,
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
    "not": np.logical_not,
    "convert": lambda number: np.asarray(number, np.float64),
    "bitcast-convert": lambda word: word.astype(np.uint32).view(np.float32).astype(np.float64),
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negate": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "log": np.log,
    "log-plus-one": np.log1p,
    "exponential": np.exp,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "select": np.where,
}
"""Operations by the opcodes of instructions, and comparisons by their directions."""


class WordFunctions:
    """Functions of a word, by number; equal operations on equal functions are equal."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._known: dict[int, Standard | None] = {}

    def _number(self, *key: Any) -> int:
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        return number

    @property
    def word(self) -> int:
        """The word itself."""
        return self._number(WORD)

    def constant(self, value: Any) -> int:
        number = np.asarray(value).item()
        return self._number(CONSTANT, number, type(number).__name__)

    def operation(self, name: str, operands: Sequence[int]) -> int:
        """Return an operation on functions."""
        return self._number(name, *operands)

    def key(self, number: int) -> Key:
        """Return the name of a function's last operation, and its operands."""
        return self._keys[number]

    def standard(self, number: int) -> Standard | None:
        """Return the distribution of a function of a uniform word, if it is known."""
        if number not in self._known:
            if len(self._known) >= MOST_FUNCTIONS:
                return None
            steps = self._steps(number)
            self._known[number] = None if steps is None else _standard(steps)
        return self._known[number]

    def _steps(self, root: int) -> tuple[Key, ...] | None:
        """Return the operations of a function, each after its operands, which it has by their
        places; None if there are too many."""
        places: dict[int, int] = {}
        steps: list[Key] = []
        stack = [root]
        while stack:
            number = stack[-1]
            name, *operands = self._keys[number]
            is_leaf = name in (WORD, CONSTANT)
            missing = [] if is_leaf else [each for each in operands if each not in places]
            if number in places or not missing:
                stack.pop()
                if number not in places:
                    places[number] = len(steps)
                    parts = operands if is_leaf else [places[each] for each in operands]
                    steps.append((name, *parts))
            else:
                stack.extend(missing)
            if len(steps) > MOST_OPERATIONS:
                return None
        return tuple(steps)


@functools.lru_cache(maxsize=64)
def _standard(steps: tuple[Key, ...]) -> Standard | None:
    words = {place for place, step in enumerate(steps) if step[0] == WORD}
    if len(steps) - 1 in words:
        return None
    for step in steps:
        if words & set(step[1:]) and not _takes_highest_bits(step, steps, words):
            return None
    values = np.empty(COUNT)
    try:
        with np.errstate(all="ignore"):
            for start in range(0, COUNT, AT_ONCE):
                values[start : start + AT_ONCE] = _values(steps, start)
    except (TypeError, ValueError, OverflowError):
        return None
    return standard_of(values)


def _takes_highest_bits(step: Key, steps: tuple[Key, ...], words: set[int]) -> bool:
    """Tell whether an operation takes nothing but the highest bits of the word."""
    if step[0] in (WORD, CONSTANT):
        return True
    if step[0] != "shift-right-logical" or step[1] not in words:
        return False
    return steps[step[2]] == (CONSTANT, 32 - BITS, "int")


def _values(steps: tuple[Key, ...], start: int) -> Any:
    """Return a function of the words with the highest bits from `start` on."""
    words = np.arange(start, start + AT_ONCE, dtype=np.int64) << 32 - BITS
    values: list[Any] = []
    for name, *operands in steps:
        if name == WORD:
            values.append(words)
        elif name == CONSTANT:
            values.append(operands[0])
        else:
            values.append(OPERATIONS[name](*(values[place] for place in operands)))
    return values[-1]
