"""Arguments for a program, made from its type alone: ordinary ones and those that break things."""

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
from tffc.ir.trampoline import Task, run
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
from tffc.values.concrete import to_python

MAX_CLIENTS = 5
MAX_LENGTH = 4
"""The longest sequence and the largest dimension."""


TRIALS = 20
"""The number of arguments tried unless asked otherwise, where they are not large."""

PARTS = 100_000
"""How many parts the type of a value, or several trials of it, may have to be among those; as many
nodes the program may have."""


class Numbers(enum.Enum):
    """The kind of tensors that an argument holds."""

    ZERO = "zeros"
    ONE = "ones"
    SMALL = "small numbers"
    EXTREME = "the ends of the range"
    SPECIAL = "infinities and what is not a number"


@dataclasses.dataclass(frozen=True, slots=True)
class ArgumentCase:
    """An argument, and whether sums of its numbers may be taken in another order.

    Near the ends of a range another order overflows elsewhere, which is not a fault.
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
"""The numbers of clients and kinds of tensors of the first cases; those after them are drawn."""


def usual_trials(program: Node) -> int:
    """Return how many arguments of a program are tried unless asked otherwise: at least one, and
    fewer where the program or the type of a value in it is large."""
    nodes = tuple(walk(program))
    types = tuple(node.type for node in nodes)
    known: dict[int, int] = {}
    parts = max(written_size(type, known, lambda _: 1) for type in types)
    return max(1, min(TRIALS, PARTS // max(parts, len(nodes))))


def cases(type: Type | None, count: int, seed: int) -> Iterator[ArgumentCase]:
    """Yield so many cases for a parameter type; the same ones for the same seed.

    Raises:
      ValidationError: there are no values of a part of the type, because it is a function.
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
    """Return a case of a type with so many clients."""
    argument = run(_Maker(clients, numbers, source).make(type))
    return ArgumentCase(argument, numbers not in (Numbers.EXTREME, Numbers.SPECIAL))


class _Maker:
    """Makes values; tensors of one type have one shape, as those that are added up must."""

    def __init__(self, clients: int, numbers: Numbers, source: random.Random) -> None:
        self.clients = clients
        self.numbers = numbers
        self.source = source
        self.shapes: dict[TensorType, tuple[int, ...]] = {}

    def make(self, type: Type) -> Task[Any]:
        """Return a value of a type, as Python gives it to the interpreter."""
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
        choices = tensor_choices(type.element_type, self.numbers)
        picked = [self.source.choice(choices) for _ in range(int(np.prod(shape, dtype=np.int64)))]
        if type.element_type is DType.STRING:
            return np.array([*picked, None], object)[:-1].reshape(shape)[()]
        return np.array(picked, type.element_type.dtype).reshape(shape)[()]


def tensor_choices(dtype: DType, numbers: Numbers) -> list[Any]:
    """Return the elements that a tensor of a dtype may have."""
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
        # Not the least: TensorFlow may take what is smaller than that for zero, or may not.
        describe: Any = ml_dtypes.finfo
        info = describe(dtype.dtype)
        return [info.min, info.max, info.eps, -0.0, 1.0]
    if numbers is Numbers.SPECIAL:
        return [float("nan"), float("inf"), float("-inf"), 1.0]
    return [number / 4 for number in range(-12, 13)]
