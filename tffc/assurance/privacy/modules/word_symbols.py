"""Arrays of words in the evaluation of a module: public ones, and functions of secret words."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

from tffc.assurance.privacy.quantities.keystreams import SecretWords
from tffc.assurance.privacy.quantities.quantity import Shape
from tffc.language.dtypes import DType

WORDS = (DType.INT32, DType.UINT32)
"""The types of words."""

WIDE_WORDS = (DType.INT64, DType.UINT64)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class PublicArray:
    """An array that everybody may know."""

    values: Any

    @property
    def is_repeated(self) -> bool:
        """Whether all elements are known to be one number."""
        return self.values.size == 1 or not any(self.values.strides)

    @property
    def number(self) -> Any:
        """The number that it repeats."""
        return self.values.flat[0]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class MixedWords:
    """An array whose elements are an expression of words."""

    number: int
    shape: Shape


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class WideSeed:
    """Integers of 64 bits that are a seed: a stream with both halves at each counter."""

    stream: int
    counters: Any
    part: str = "whole"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class WordFunction:
    """An array that is a `function` of each of some uniform words, times a number."""

    words: SecretWords
    function: int
    factor: float = 1.0


Symbol: TypeAlias = "PublicArray | MixedWords | SecretWords | WideSeed | WordFunction"


def shape_of_symbol(symbol: Symbol) -> Shape:
    """Return the shape of the array that a symbol stands for."""
    match symbol:
        case PublicArray():
            return symbol.values.shape
        case MixedWords():
            return symbol.shape
        case SecretWords() | WideSeed():
            return symbol.counters.shape
        case WordFunction():
            return symbol.words.counters.shape


def is_of_type(symbol: Symbol, element: DType | None) -> bool:
    """Tell whether a symbol stands for an array of elements of a type."""
    match symbol:
        case PublicArray():
            return element is not None and symbol.values.dtype.name == element.label
        case SecretWords() | MixedWords():
            return element in WORDS
        case WideSeed():
            return element in WIDE_WORDS
        case WordFunction():
            return True
