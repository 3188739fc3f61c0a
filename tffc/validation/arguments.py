"""Test arguments generated from the type of a program: ordinary values and edge cases."""

from __future__ import annotations

import dataclasses
import enum
import random
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from tffc.errors import ValidationError
from tffc.ir.dtypes import DType
from tffc.ir.nodes import Node
from tffc.ir.size import written_size
from tffc.ir.traverse import walk
from tffc.ir.types import (
    CLIENTS,
    FederatedType,
    FunctionType,
    SequenceType,
    StructType,
    TensorType,
    Type,
)
from tffc.trampoline import Task, run
from tffc.values.concrete import to_python

MAX_CLIENTS = 5
MAX_LENGTH = 4
"""The most elements of a sequence or of one dimension."""


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


@dataclasses.dataclass(frozen=True, slots=True)
class ArgumentCase:
    """An argument, and whether its numbers may be summed in another order.

    They may not if they are infinite, NaN, or near the ends of a range, where the order of a sum
    decides whether it overflows.
    """

    argument: Any
    may_reorder: bool


FIRST = (
    (0, Numbers.SMALL),
    (1, Numbers.SMALL),
    (3, Numbers.SMALL),
    (2, Numbers.ZERO),
    (2, Numbers.ONE),
    (2, Numbers.EXTREME),
    (2, Numbers.SPECIAL),
)
"""The number of clients and the kind of numbers of each of the first cases; later ones are random.
"""


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
            numbers = source.choice((Numbers.SMALL, Numbers.SMALL, *Numbers))
        yield case(type, clients, numbers, source)


def case(type: Type, clients: int, numbers: Numbers, source: random.Random) -> ArgumentCase:
    """Return a case of a type for a number of clients."""
    argument = run(_Maker(clients, numbers, source).make(type))
    return ArgumentCase(argument, numbers not in (Numbers.EXTREME, Numbers.SPECIAL))


class _Maker:
    """A maker of random values; all tensors of a type get the same shape, so they can be added."""

    def __init__(self, clients: int, numbers: Numbers, source: random.Random) -> None:
        self.clients = clients
        self.numbers = numbers
        self.source = source
        self.shapes: dict[TensorType, tuple[int, ...]] = {}

    def make(self, type: Type) -> Task[Any]:
        """Return a value of a type, as a Python object for the interpreter."""
        match type:
            case TensorType():
                return self._tensor(type)
            case StructType():
                return tuple((yield from self._each(type.types)))
            case SequenceType():
                length = self.source.randint(0, MAX_LENGTH)
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
        if type not in self.shapes:
            self.shapes[type] = tuple(
                self.source.randint(0, MAX_LENGTH) if size is None else size
                for size in (type.shape if type.shape is not None else (None,))
            )
        shape = self.shapes[type]
        choices = _tensor_choices(type.element_type, self.numbers)
        picked = [self.source.choice(choices) for _ in range(int(np.prod(shape, dtype=np.int64)))]
        if type.element_type is DType.STRING:
            return np.array([*picked, None], object)[:-1].reshape(shape)[()]
        return np.array(picked, type.element_type.dtype).reshape(shape)[()]


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
    return list(range(max(-4, info.min), 5))


def _floats(dtype: DType, numbers: Numbers) -> list[Any]:
    if numbers is Numbers.EXTREME:
        # Subnormal numbers are left out: TensorFlow may or may not flush them to zero.
        describe: Any = ml_dtypes.finfo
        info = describe(dtype.dtype)
        return [info.min, info.max, info.eps, -0.0, 1.0]
    if numbers is Numbers.SPECIAL:
        return [float("nan"), float("inf"), float("-inf"), 1.0]
    return [number / 4 for number in range(-12, 13)]
