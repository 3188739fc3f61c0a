"""The random numbers that XLA modules make of secret words."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tffc.assurance.privacy.modules.word_instructions import WordEvaluation
from tffc.assurance.privacy.modules.word_symbols import (
    WIDE_WORDS,
    WORDS,
    PublicArray,
    Symbol,
    WideSeed,
    WordFunction,
    is_of_type,
)
from tffc.assurance.privacy.quantities import bounds, noises
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.keystreams import SecretWords
from tffc.assurance.privacy.quantities.quantity import Noise, Provenance, Quantity
from tffc.linking.hlo_modules import HloInstruction, HloShape

ROUNDED = (
    "random numbers that JAX or PyTorch makes of 23 bits are as good as real ones: normal noise "
    "of them ends at about 5.2 standard deviations, and Laplace's at about 15.5 scales"
)
"""What is assumed of numbers that are not real ones."""


class ModuleNoise:
    """The symbols of what a module computes, by the terms of its arrays."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra
        self._words = WordEvaluation(algebra.streams, algebra.functions)
        self._symbols: dict[int, Symbol] = {}
        self._drawn: dict[tuple[int, int, float], tuple[SecretWords, Quantity | None]] = {}
        self._place = f"Threefry in {algebra.place}" if algebra.place else "Threefry"
        self._words.place = self._place

    def symbol_of(self, value: Quantity, shape: HloShape) -> Symbol | None:
        """Return the symbol of an array of a declared shape."""
        symbol = self._symbols.get(value.term) or self._symbol_of_argument(value, shape)
        return symbol if symbol is not None and is_of_type(symbol, shape.element) else None

    def has_symbol(self, value: Quantity) -> bool:
        return value.term in self._symbols

    def truth(self, value: Quantity) -> bool | None:
        """Return the truth value that an array is, if that is known."""
        symbol = self._symbols.get(value.term)
        if not isinstance(symbol, PublicArray) or symbol.values.shape != ():
            return None
        return bool(symbol.number) if symbol.values.dtype == np.bool_ else None

    def _symbol_of_argument(self, value: Quantity, shape: HloShape) -> Symbol | None:
        if value.shape is None or value.shape != shape.sizes:
            return None
        if value.content is not None:
            return PublicArray(np.asarray(value.content))
        noise = value.noise
        if noise is None or noise.distribution not in noises.SEEDS or not value.size:
            return None
        if value.provenance != Provenance(draws=noise.draws):
            return None
        is_wide = noise.distribution == noises.WIDE_SEED
        if shape.element not in (WIDE_WORDS if is_wide else WORDS):
            return None
        stream = self._algebra.streams.of_seed(noise.draws, value.term)
        if stream is None:
            return None
        counters = np.arange(value.size, dtype=np.uint64).reshape(value.shape)
        if is_wide:
            return WideSeed(stream, counters)
        return SecretWords(stream, counters, np.zeros(value.shape, np.uint8))

    def result(
        self, instruction: HloInstruction, inputs: Sequence[Quantity], shapes: Sequence[HloShape]
    ) -> Symbol | None:
        """Return the symbol of what an instruction computes."""
        symbols = [self.symbol_of(v, shape) for v, shape in zip(inputs, shapes, strict=True)]
        return self._words.symbol(instruction, symbols, shapes)

    def enter(self, value: Quantity, symbol: Symbol) -> None:
        """Note the symbol of an array."""
        self._symbols[value.term] = symbol

    def drawn(self, value: Quantity, shape: HloShape) -> Quantity:
        """Return an array of a declared shape as noise, if that is what it is."""
        symbol = self._symbols.get(value.term)
        if not isinstance(symbol, WordFunction) or shape.element is None:
            return value
        if not shape.element.is_floating:
            return value
        key = id(symbol.words), symbol.function, symbol.factor
        if key not in self._drawn:
            self._drawn[key] = symbol.words, self._noise(symbol)
        return self._drawn[key][1] or value

    def released(self, value: Quantity, shape: HloShape) -> Quantity:
        """Return a result of the module: as noise, a seed for other computations, or as it is."""
        symbol = self._symbols.get(value.term)
        if not isinstance(symbol, SecretWords) or symbol.size < 2:
            return self.drawn(value, shape)
        draw = self._algebra.streams.use(symbol, self._place)
        if draw is None:
            return value
        seed = self._quantity(noises.SEED, 1.0, draw, symbol)
        return dataclasses.replace(seed, is_integer=True)

    def _noise(self, symbol: WordFunction) -> Quantity | None:
        standard = self._algebra.functions.standard(symbol.function)
        if standard is None:
            return None
        draw = self._algebra.streams.use(symbol.words, self._place)
        if draw is None:
            return None
        self._algebra.assumptions[ROUNDED] = None
        noise = self._quantity(
            standard.distribution, standard.scale * symbol.factor, draw, symbol.words
        )
        if standard.distribution != noises.UNIFORM:
            return noise
        ends = standard.low * symbol.factor, standard.high * symbol.factor
        return dataclasses.replace(noise, bounds=bounds.between(min(ends), max(ends)))

    def _quantity(self, distribution: str, scale: float, draw: int, words: SecretWords) -> Quantity:
        draws = frozenset((draw,))
        noise = Noise(distribution, bounds.constant(scale), draws, self._place)
        shape = words.counters.shape
        return Quantity(self._algebra.fresh(), Provenance(draws=draws), shape=shape, noise=noise)


def is_seed(value: Quantity) -> bool:
    """Tell whether a value is a seed that cannot be tried out."""
    return value.noise is not None and value.noise.distribution in noises.SEEDS
