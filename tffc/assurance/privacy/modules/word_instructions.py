"""What instructions of HLO compute of words: public arrays, and secret words that these are mixed
with.

An array of them is a symbol.  Public arrays are computed; functions of secret words are recorded as
expressions; whatever is not described has no symbol.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tffc.assurance.privacy.modules.public_arrays import MOVES, elementwise
from tffc.assurance.privacy.modules.word_symbols import (
    MixedWords,
    PublicArray,
    Symbol,
    WideSeed,
    WordFunction,
    shape_of_symbol,
)
from tffc.assurance.privacy.quantities.keystreams import BOTH, Keystreams, SecretWords
from tffc.assurance.privacy.quantities.quantiles import BITS
from tffc.assurance.privacy.quantities.quantity import Shape
from tffc.assurance.privacy.quantities.threefry import Count, Expressions, ThreefryWord
from tffc.assurance.privacy.quantities.word_functions import OPERATIONS, WordFunctions
from tffc.language.dtypes import DType
from tffc.linking.hlo_modules import HloInstruction, HloShape

MOST_WORDS = 1 << 23
"""The largest array whose elements are followed."""

MOST_ELEMENTS = 1 << 28
"""The elements of public arrays that are computed in a module."""

HIGH_BITS = 32
REAL = (DType.FLOAT32, DType.FLOAT64, DType.BOOL)
"""The types of numbers that are followed as real ones, and of truth values."""


UNARY = {"abs", "exponential", "log", "log-plus-one", "negate", "not", "rsqrt", "sign", "sqrt"}
BINARY = {"add", "and", "divide", "maximum", "minimum", "multiply", "or", "power", "subtract"}
BINARY |= {"xor", "shift-left", "shift-right-logical", "shift-right-arithmetic"}
ELEMENTWISE = UNARY | BINARY | {"compare", "select", "convert", "bitcast-convert"}


class WordEvaluation:
    """The symbols of a module's instructions."""

    def __init__(self, streams: Keystreams, functions: WordFunctions) -> None:
        self._streams = streams
        self._functions = functions
        self._expressions = Expressions()
        self._arrays: list[Any] = []
        self._indices: dict[int, int] = {}
        self._moved: dict[tuple[Any, ...], tuple[SecretWords, SecretWords]] = {}
        self._counters: dict[tuple[tuple[Count, Count], Shape], Any] = {}
        self._elements = 0
        self.place = ""
        """Where the keys are used, for people."""

    def symbol(
        self,
        instruction: HloInstruction,
        operands: Sequence[Symbol | None],
        shapes: Sequence[HloShape],
    ) -> Symbol | None:
        """Return the symbol of an instruction's result, given those of its operands."""
        sizes, kind = instruction.shape.sizes, instruction.shape.element
        if sizes is None or kind is None or math.prod(sizes) > MOST_WORDS:
            return None
        if not (kind.is_integer or kind in REAL):
            return None
        present = [operand for operand in operands if operand is not None]
        if len(present) < len(operands):
            return None
        if [shape.sizes for shape in shapes] != [shape_of_symbol(each) for each in present]:
            return None
        try:
            result = self._symbol(instruction, present, shapes, sizes, kind)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return None
        if result is None or shape_of_symbol(result) != sizes:
            return None
        if isinstance(result, PublicArray) and result.values.dtype != kind.dtype:
            return None
        return result

    def _symbol(
        self,
        instruction: HloInstruction,
        operands: list[Symbol],
        shapes: Sequence[HloShape],
        sizes: Shape,
        kind: DType,
    ) -> Symbol | None:
        opcode = instruction.opcode
        if opcode in ("constant", "iota"):
            return self._public(instruction, sizes, kind)
        if opcode in MOVES:
            return self._rearranged(instruction, operands, sizes)
        if opcode == "concatenate":
            return _concatenated(operands, instruction.dimensions[0])
        if opcode not in ELEMENTWISE or len(operands) != _count(opcode):
            return None
        if any(shape.sizes != sizes for shape in shapes):
            return None
        public = [each for each in operands if isinstance(each, PublicArray)]
        if len(public) == len(operands):
            return self._computed(instruction, public, sizes, kind)
        if isinstance(operands[0], WideSeed):
            return _part_of_seed(opcode, operands, kind)
        kinds = [shape.element for shape in shapes]
        if opcode in ("convert", "bitcast-convert") and isinstance(operands[0], SecretWords):
            if {kind, *kinds} == {DType.INT32, DType.UINT32}:
                return operands[0]
        if kind is DType.UINT32 and all(each is kind for each in kinds):
            mixed = self._mixed(opcode, operands, sizes)
            if mixed is not None:
                return mixed
        return self._function(instruction, operands, kinds, kind)

    # Public arrays.

    def _public(self, instruction: HloInstruction, sizes: Shape, kind: DType) -> Symbol | None:
        if instruction.opcode == "constant":
            literal = instruction.literal
            return None if literal is None else PublicArray(np.asarray(literal, kind.dtype))
        if not kind.is_integer or kind.size < 4 or not self._has_room(math.prod(sizes)):
            return None
        (axis,) = instruction.dimensions
        shape = tuple(size if at == axis else 1 for at, size in enumerate(sizes))
        return PublicArray(
            np.broadcast_to(np.arange(sizes[axis], dtype=kind.dtype).reshape(shape), sizes)
        )

    def _has_room(self, elements: int) -> bool:
        self._elements += elements
        return self._elements <= MOST_ELEMENTS

    def _computed(
        self, instruction: HloInstruction, operands: list[PublicArray], sizes: Shape, kind: DType
    ) -> Symbol | None:
        """Return a function of public arrays, of their one number if they repeat one."""
        is_repeated = all(operand.is_repeated for operand in operands)
        if not self._has_room(1 if is_repeated else math.prod(sizes)):
            return None
        values = [o.number if is_repeated else o.values for o in operands]
        with np.errstate(all="ignore"):
            result = elementwise(instruction, values, kind)
        if result is None:
            return None
        return PublicArray(np.broadcast_to(result, sizes))

    # The same elements at other places.

    def _rearranged(
        self, instruction: HloInstruction, operands: list[Symbol], sizes: Shape
    ) -> Symbol | None:
        symbol, *starts = operands
        places = [int(each.number) for each in starts if isinstance(each, PublicArray)]
        if len(places) != len(starts) or (starts and instruction.opcode != "dynamic-slice"):
            return None

        def move(array: Any) -> Any:
            if not any(array.strides) or array.size == 1:
                return np.broadcast_to(array.flat[0], sizes)
            if not self._has_room(math.prod(sizes)):
                raise ValueError(sizes)
            return MOVES[instruction.opcode](array, instruction, sizes, places)

        match symbol:
            case PublicArray():
                return PublicArray(move(symbol.values))
            case MixedWords():
                is_one = not self._expressions.has_array(symbol.number)
                return MixedWords(symbol.number, sizes) if is_one else None
            case WideSeed():
                return dataclasses.replace(symbol, counters=move(symbol.counters))
            case WordFunction():
                key = id(symbol.words), instruction.opcode, instruction.slices, sizes
                key = *key, instruction.dimensions, tuple(places)
                if key not in self._moved:
                    self._moved[key] = symbol.words, _moved(symbol.words, move)
                return dataclasses.replace(symbol, words=self._moved[key][1])
            case SecretWords():
                number = self._secret(symbol)
                if number is not None and math.prod(sizes) > 1:
                    return MixedWords(number, sizes)
                return _moved(symbol, move)

    # Expressions of words.

    def _mixed(self, opcode: str, operands: list[Symbol], sizes: Shape) -> Symbol | None:
        """Return an operation on words, as what it is known to be."""
        if opcode == "xor" and all(isinstance(each, SecretWords) for each in operands):
            both = _both_halves(operands) if self._has_room(math.prod(sizes)) else None
            if both is not None:
                return both
        if opcode == "shift-right-logical" and self._is_number(operands):
            return None
        numbers = [self._expression(operand) for operand in operands]
        if len(numbers) != 2 or numbers[0] is None or numbers[1] is None:
            return None
        first, second = numbers[0], numbers[1]
        expressions, result = self._expressions, None
        match opcode:
            case "add" | "subtract":
                result = expressions.add(first, second, 1 if opcode == "add" else -1)
            case "xor":
                result = expressions.exclusive_or(first, second)
            case "or":
                result = expressions.inclusive_or(first, second)
            case "shift-left" | "shift-right-logical":
                bits = operands[1]
                if isinstance(bits, PublicArray) and bits.is_repeated:
                    direction = "left" if opcode == "shift-left" else "right"
                    result = expressions.shifted(first, direction, int(bits.number))
            case _:
                pass
        if result is None:
            return None
        expressions.note(result)
        block = expressions.block(result)
        if block is not None:
            return self._words_of(block, sizes) or MixedWords(result, sizes)
        return MixedWords(result, sizes)

    def _is_number(self, operands: list[Symbol]) -> bool:
        """Tell whether a uniform word is shifted to the highest bits that a number is made of."""
        word, bits = operands
        if not isinstance(word, SecretWords) or not isinstance(bits, PublicArray):
            return False
        return self._streams.is_uniform(word.stream) and int(bits.number) == 32 - BITS

    def _expression(self, symbol: Symbol) -> int | None:
        match symbol:
            case MixedWords():
                return symbol.number
            case SecretWords():
                return self._secret(symbol)
            case PublicArray() if symbol.is_repeated:
                return self._expressions.constant(int(symbol.number))
            case PublicArray():
                index = self._indices.setdefault(id(symbol.values), len(self._arrays))
                if index == len(self._arrays):
                    self._arrays.append(symbol.values)
                return self._expressions.array(index)
            case _:
                return None

    def _secret(self, words: SecretWords) -> int | None:
        """Return a single secret word, or the exclusive or of two."""
        leaves = words.leaves
        if not leaves:
            return None
        first, *rest = map(self._expressions.secret, leaves)
        return self._expressions.exclusive_or(first, rest[0]) if rest else first

    def _words_of(self, block: ThreefryWord, sizes: Shape) -> SecretWords | None:
        """Return what Threefry makes of a key and counters."""
        if all(count.array < 0 for count in block.counter) and math.prod(sizes) != 1:
            return None
        if not self._has_room(3 * math.prod(sizes)):
            return None
        stream = self._streams.of_key(block.key, self.place)
        if stream is None:
            return None
        if (block.counter, sizes) not in self._counters:
            high, low = (self._counter(count, sizes) for count in block.counter)
            self._counters[block.counter, sizes] = high << np.uint64(32) | low
        halves = np.broadcast_to(np.uint8(block.half), sizes)
        return SecretWords(stream, self._counters[block.counter, sizes], halves)

    def _counter(self, count: Count, sizes: Shape) -> Any:
        constant = np.uint32(count.constant)
        whole: Any = constant
        if count.array >= 0:
            whole = np.add(self._arrays[count.array], constant, dtype=np.uint32)
        return np.broadcast_to(whole, sizes).astype(np.uint64)

    # Functions of a uniform word.

    def _function(
        self,
        instruction: HloInstruction,
        operands: list[Symbol],
        kinds: list[DType | None],
        kind: DType,
    ) -> Symbol | None:
        """Return an operation on functions of the same words, and on constants."""
        opcode = instruction.opcode
        name = instruction.direction if opcode == "compare" else opcode
        words = {id(w): w for w in map(_words, operands) if w is not None}
        if name not in OPERATIONS or len(words) != 1 or not _is_followed(opcode, kinds, kind):
            return None
        (base,) = words.values()
        if not self._streams.is_uniform(base.stream):
            return None
        if opcode in ("multiply", "divide", "negate") and kind.is_floating:
            scaled = self._scaled(opcode, operands)
            if scaled is not None:
                return scaled
        numbers = [self._plain(operand) for operand in operands]
        if any(number is None for number in numbers):
            return None
        return WordFunction(
            base, self._functions.operation(name, [n for n in numbers if n is not None])
        )

    def _scaled(self, opcode: str, operands: list[Symbol]) -> WordFunction | None:
        """Return a function times or divided by a number."""
        if opcode == "negate":
            operands = [operands[0], PublicArray(np.float64(-1.0))]
        for function, other in (operands, operands[::-1]):
            is_product = opcode != "divide" or function is operands[0]
            if not isinstance(function, WordFunction) or not is_product:
                continue
            if isinstance(other, PublicArray) and other.is_repeated:
                number = float(other.number)
                factor = function.factor * (1 / number if opcode == "divide" else number)
                is_usual = math.isfinite(factor) and factor
                return dataclasses.replace(function, factor=factor) if is_usual else None
        return None

    def _plain(self, symbol: Symbol) -> int | None:
        """Return a function with its factor, or a constant, as a function."""
        functions = self._functions
        match symbol:
            case SecretWords():
                return functions.word
            case WordFunction() if symbol.factor == 1.0:
                return symbol.function
            case WordFunction():
                factor = functions.constant(symbol.factor)
                return functions.operation("multiply", [symbol.function, factor])
            case PublicArray() if symbol.is_repeated:
                return functions.constant(symbol.number)
            case _:
                return None


def _count(opcode: str) -> int:
    if opcode in UNARY or opcode in ("convert", "bitcast-convert"):
        return 1
    return 3 if opcode == "select" else 2


def _words(symbol: Symbol) -> SecretWords | None:
    match symbol:
        case SecretWords():
            return symbol
        case WordFunction():
            return symbol.words
        case _:
            return None


def _is_followed(opcode: str, kinds: list[DType | None], kind: DType) -> bool:
    """Tell whether an operation of these types computes what it computes of real numbers, or of
    words of 32 bits."""
    match opcode:
        case "bitcast-convert":
            return kinds == [DType.UINT32] and kind is DType.FLOAT32
        case "convert":
            wide = kind.is_floating and kind.size >= 4
            return wide and kinds[0] in (DType.UINT32, *REAL)
        case "and" | "or" | "xor" | "not" if kind is DType.BOOL:
            return True
        case "and" | "or" | "xor" | "shift-right-logical":
            return kind is DType.UINT32
        case "compare" | "select":
            return all(each in REAL for each in (kind, *kinds))
        case _:
            return all(each in REAL and each is not DType.BOOL for each in (kind, *kinds))


def _part_of_seed(opcode: str, operands: list[Symbol], kind: DType) -> Symbol | None:
    """Return the higher or the lower half of the bits of a seed of 64 bits, as words if these are
    converted to 32 bits."""
    seed = operands[0]
    assert isinstance(seed, WideSeed)
    if opcode == "convert" and kind is DType.UINT32:
        half = 0 if seed.part == "high" else 1
        halves = np.broadcast_to(np.uint8(half), seed.counters.shape)
        return SecretWords(seed.stream, seed.counters, halves)
    other = operands[1] if len(operands) == 2 else None
    if seed.part != "whole" or not isinstance(other, PublicArray) or not other.is_repeated:
        return None
    if opcode in ("shift-right-logical", "shift-right-arithmetic"):
        is_half = int(other.number) == HIGH_BITS
        return dataclasses.replace(seed, part="high") if is_half else None
    if opcode == "and" and int(other.number) == (1 << HIGH_BITS) - 1:
        return dataclasses.replace(seed, part="low")
    return None


def _both_halves(operands: list[Symbol]) -> SecretWords | None:
    """Return the exclusive or of the two words that there are at each counter."""
    first, second = operands
    if not isinstance(first, SecretWords) or not isinstance(second, SecretWords):
        return None
    if first.stream != second.stream or not np.array_equal(first.counters, second.counters):
        return None
    if not (np.minimum(first.halves, second.halves) == 0).all():
        return None
    if not (np.maximum(first.halves, second.halves) == 1).all():
        return None
    both = np.broadcast_to(np.uint8(BOTH), first.counters.shape)
    return SecretWords(first.stream, first.counters, both)


def _concatenated(operands: list[Symbol], axis: int) -> Symbol | None:
    public = [each.values for each in operands if isinstance(each, PublicArray)]
    if len(public) == len(operands):
        return PublicArray(np.concatenate(public, axis))
    words = [each for each in operands if isinstance(each, SecretWords)]
    if len(words) != len(operands) or len({each.stream for each in words}) != 1:
        return None
    counters = np.concatenate([each.counters for each in words], axis)
    halves = np.concatenate([each.halves for each in words], axis)
    return SecretWords(words[0].stream, counters, halves)


def _moved(words: SecretWords, move: Callable[[Any], Any]) -> SecretWords:
    return SecretWords(words.stream, move(words.counters), move(words.halves))
