"""Test arguments generated from the type of a program: ordinary values and edge cases, and plainer
values for programs that fail on these.

The first state of a program that has one is that of its own, and so are states that rounds reach
from it: see `tffc.assurance.validation.own_states`.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tffc.language.dtypes import DType
from tffc.language.nodes import Node
from tffc.language.size import written_size
from tffc.language.traverse import walk
from tffc.language.types import (
    CLIENTS,
    FederatedType,
    FunctionType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.language.values.concrete import to_python
from tffc.support.errors import ValidationError
from tffc.support.trampoline import Task, run

MAX_CLIENTS = 5
MAX_LENGTH = 4
"""The most elements of a sequence or of one dimension."""


MAX_DISTINCT = 1000
"""The largest of the integers that all differ."""

TRIALS = 20
"""The default number of arguments tried, for programs that are not large."""

PARTS = 100_000
"""The limit on the trials times the nodes of the program, or the parts of its largest type."""


class Numbers(enum.Enum):
    """The kind of numbers in an argument's tensors."""

    ZERO = "zeros"
    ONE = "ones"
    SMALL = "small numbers"
    EXTREME = "the ends of the range"
    SPECIAL = "infinities and NaN"
    POSITIVE = "small positive numbers"
    DISTINCT = "positive numbers that all differ"

    @property
    def is_plain(self) -> bool:
        """Whether nothing is empty and texts are words."""
        return self in (Numbers.POSITIVE, Numbers.DISTINCT)


@dataclasses.dataclass(frozen=True, slots=True)
class ArgumentCase:
    """An argument, and whether its numbers may be summed in another order.

    They may not if they are infinite, NaN, or near the ends of a range, where the order of a sum
    decides whether it overflows.
    """

    argument: Any
    may_reorder: bool


FIRST = (
    (3, Numbers.SMALL),
    (1, Numbers.SMALL),
    (0, Numbers.SMALL),
    (2, Numbers.ZERO),
    (2, Numbers.ONE),
    (2, Numbers.EXTREME),
    (2, Numbers.SPECIAL),
)
"""The number of clients and the kind of numbers of each of the first cases; later ones are random.
"""

USUAL = tuple(numbers for numbers in Numbers if not numbers.is_plain)

WORDS = tuple(f"{first}{last}".encode() for last in ("", *"aeiou") for first in "abcdefghijklm")
NUMERALS = tuple(str(number).encode() for number in range(1, len(WORDS) + 1))


@dataclasses.dataclass(frozen=True, slots=True)
class Plainness:
    """A way to make plainer arguments: the numbers, and the texts."""

    numbers: Numbers
    texts: tuple[bytes, ...] = WORDS


def plainnesses(type: Type | None, constants: Sequence[bytes]) -> list[Plainness]:
    """Return the ways to try for a program that fails, in order.

    `constants` are texts in the program itself, such as the separators that it looks for.
    """
    ways = [Plainness(Numbers.POSITIVE), Plainness(Numbers.DISTINCT), Plainness(Numbers.ONE)]
    if type is None or not _has_texts(type):
        return ways
    # Separators are rarely letters.
    separators = sorted(constants, key=lambda text: (text.isalnum(), len(text)))[:MAX_CONSTANTS]
    parts = ((WORDS, NUMERALS), (NUMERALS, NUMERALS), (WORDS, NUMERALS, WORDS))
    joined = [
        tuple(map(separator.join, zip(*part, strict=True)))
        for part in parts
        for separator in separators
    ]
    texts = [NUMERALS, *joined, *((text,) for text in constants[:MAX_CONSTANTS])]
    if constants:
        texts.append(tuple(constants))
    return ways + [Plainness(Numbers.DISTINCT, text) for text in texts]


MAX_CONSTANTS = 4
"""The most constants of the program that words are joined with, or that stand for themselves."""


def _has_texts(type: Type) -> bool:
    return any(
        isinstance(part, TensorType) and part.element_type is DType.STRING for part in walk(type)
    )


def usual_trials(program: Node) -> int:
    """Return the default number of arguments to try: `TRIALS`, or fewer if the program or the type
    of a value in it is large."""
    nodes = tuple(walk(program))
    types = tuple(node.type for node in nodes)
    known: dict[int, int] = {}
    parts = max(written_size(type, known, lambda _: 1) for type in types)
    return max(1, min(TRIALS, PARTS // max(parts, len(nodes))))


def cases(type: Type | None, count: int, seed: int) -> Iterator[ArgumentCase]:
    """Yield `count` cases for a parameter type, determined by a seed.

    Raises:
      ValidationError: a part of the type is a function, for which no values can be made.
    """
    if type is None:
        yield ArgumentCase(None, may_reorder=True)
        return
    for index in range(count):
        source = random.Random(f"{seed}/{index}")
        if index < len(FIRST):
            clients, numbers = FIRST[index]
        else:
            clients = source.randint(0, MAX_CLIENTS)
            numbers = source.choice((Numbers.SMALL, Numbers.SMALL, *USUAL))
        # The first case shows something even if there is no other.
        yield Maker(clients, numbers, source, shortest=int(index == 0)).case(type)


def plain_case(type: Type, way: Plainness, source: random.Random) -> ArgumentCase:
    """Return a plain case of a type; all open dimensions in it have one size, as those of features
    and labels do."""
    clients, size = source.randint(1, 3), source.randint(1, MAX_LENGTH)
    return Maker(clients, way.numbers, source, 1, way.texts, size).case(type)


@dataclasses.dataclass
class Maker:
    """A maker of random values; all tensors of a type get the same shape, so they can be added.

    Sequences and dimensions have at least the `shortest` size, and open dimensions this `size` if
    there is one; texts are among the given ones if there are any.
    """

    clients: int
    numbers: Numbers
    source: random.Random
    shortest: int = 0
    texts: Sequence[bytes] = ()
    size: int | None = None
    _shapes: dict[TensorType, tuple[int, ...]] = dataclasses.field(
        default_factory=dict[TensorType, tuple[int, ...]], init=False
    )
    _count: Iterator[int] = dataclasses.field(default_factory=itertools.count, init=False)

    def case(self, type: Type) -> ArgumentCase:
        """Return a case of a type."""
        may_reorder = self.numbers not in (Numbers.EXTREME, Numbers.SPECIAL)
        return ArgumentCase(run(self.make(type)), may_reorder)

    def make(self, type: Type) -> Task[Any]:
        """Return a value of a type, as a Python object for the interpreter."""
        match type:
            case TensorType():
                return self._tensor(type)
            case StructType():
                return tuple((yield from self._each(type.types)))
            case SequenceType():
                length = self.source.randint(self.shortest, MAX_LENGTH)
                return (yield from self._each((type.element,) * length))
            case FederatedType(all_equal=False) if type.placement is CLIENTS:
                return (yield from self._each((type.member,) * self.clients))
            case FederatedType():
                return (yield self.make(type.member))
            case FunctionType():
                raise ValidationError(
                    "E900",
                    f"there are no values to try for a parameter of type `{type}`",
                    help="verify a program whose parameter holds no functions",
                )
            case _:
                return to_python(type, type)

    def _each(self, types: tuple[Type, ...]) -> Task[list[Any]]:
        values: list[Any] = []
        for type in types:
            values.append((yield self.make(type)))
        return values

    def _tensor(self, type: TensorType) -> Any:
        if type not in self._shapes:
            self._shapes[type] = tuple(
                self._open_size() if size is None else size
                for size in (type.shape if type.shape is not None else (None,))
            )
        shape = self._shapes[type]
        choices: Sequence[Any] = _tensor_choices(type.element_type, self.numbers)
        if self.texts and type.element_type is DType.STRING:
            choices = self.texts
        picked = [self._choice(choices) for _ in range(int(np.prod(shape, dtype=np.int64)))]
        if type.element_type is DType.STRING:
            return np.array([*picked, None], object)[:-1].reshape(shape)[()]
        return np.array(picked, type.element_type.dtype).reshape(shape)[()]

    def _open_size(self) -> int:
        return self.size or self.source.randint(self.shortest, MAX_LENGTH)

    def _choice(self, choices: Sequence[Any]) -> Any:
        if self.numbers is Numbers.DISTINCT:
            return choices[next(self._count) % len(choices)]
        return self.source.choice(choices)


def _tensor_choices(dtype: DType, numbers: Numbers) -> list[Any]:
    """Return the numbers from which the elements of a tensor are drawn."""
    if dtype is DType.STRING:
        plain = {Numbers.ZERO: [b""], Numbers.ONE: [b"a"]}
        return plain.get(numbers, [b"", b"a", b"bc", b"\x00\xff"])
    if dtype is DType.BOOL:
        return {Numbers.ZERO: [False], Numbers.ONE: [True]}.get(numbers, [False, True])
    if numbers in (Numbers.ZERO, Numbers.ONE):
        return [dtype.dtype.type(numbers is Numbers.ONE)]
    if dtype.is_integer:
        return _integers(dtype, numbers)
    return _floats(dtype, numbers)


def _integers(dtype: DType, numbers: Numbers) -> list[Any]:
    info = np.iinfo(dtype.dtype)
    if numbers is Numbers.EXTREME:
        return [info.min, info.max, 0, 1]
    if numbers is Numbers.POSITIVE:
        return list(range(1, 4))
    if numbers is Numbers.DISTINCT:
        return list(range(1, min(info.max, MAX_DISTINCT) + 1))
    return list(range(max(-4, info.min), 5))


def _floats(dtype: DType, numbers: Numbers) -> list[Any]:
    if numbers is Numbers.EXTREME:
        # Subnormal numbers are left out: TensorFlow may or may not flush them to zero.
        describe: Any = ml_dtypes.finfo
        info = describe(dtype.dtype)
        return [info.min, info.max, info.eps, -0.0, 1.0]
    if numbers is Numbers.SPECIAL:
        return [float("nan"), float("inf"), float("-inf"), 1.0]
    if numbers.is_plain:
        return [number / 8 for number in range(1, 9 if numbers is Numbers.POSITIVE else 129)]
    return [number / 4 for number in range(-12, 13)]
