"""Streams of secret words, and which of their words are used for what.

The words of a seed, and those that Threefry makes of a key at each counter, are a stream each.
Uses of different words of a stream are independent of each other: each counts as a draw of its own,
which follows from those that the stream's key follows from.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from tffc.assurance.privacy.quantities.threefry import Leaf

Span: TypeAlias = "tuple[int, int] | None"
"""The least and the largest counter of some words, None if there are none."""

BOTH = 2
"""The half of a counter's words that stands for the exclusive or of both."""

Derivation: TypeAlias = Callable[[Iterable[int], str], int]
"""Returns a new draw that follows from others, by its place."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SecretWords:
    """An array of words of a stream: at each counter there are two `halves`, 0 and 1."""

    stream: int
    counters: Any
    halves: Any

    @property
    def size(self) -> int:
        return int(self.counters.size)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The words that it is the exclusive or of, if it is a single element."""
        if self.size != 1:
            return ()
        counter, half = int(self.counters.flat[0]), int(self.halves.flat[0])
        halves = (0, 1) if half == BOTH else (half,)
        return tuple(Leaf(self.stream, counter, each) for each in halves)

    def are_different(self) -> bool:
        """Tell whether the words are independent of each other: no two are the same."""
        if (self.halves == BOTH).any():
            return _are_different(self.counters)
        parts = (self.counters[self.halves == half] for half in (0, 1))
        return all(map(_are_different, parts))

    def spans(self) -> tuple[Span, Span]:
        """Return the counters of the words of each half."""
        first, second = (_span(self.counters[self.halves != 1 - half]) for half in (0, 1))
        return first, second


def _are_different(counters: Any) -> bool:
    listed = np.ravel(counters)
    if (listed[1:] > listed[:-1]).all():
        return True
    return np.unique(listed).size == listed.size


def _span(counters: Any) -> Span:
    return (int(counters.min()), int(counters.max())) if counters.size else None


class _Spans:
    """Spans that do not overlap."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []

    def overlaps(self, span: Span) -> bool:
        if span is None:
            return False
        at = bisect.bisect_left(self._spans, (span[0], span[0]))
        before = self._spans[at - 1 : at] if at else []
        return any(one <= span[1] and span[0] <= two for one, two in before + self._spans[at:][:1])

    def add(self, span: Span) -> None:
        if span is not None:
            bisect.insort(self._spans, span)


@dataclasses.dataclass(slots=True, eq=False)
class _Stream:
    """A stream whose key follows from `draws`; the words of a seed are not uniform."""

    draws: frozenset[int]
    is_uniform: bool
    source: int
    spans: tuple[_Spans, _Spans]
    uses: dict[tuple[Span, Span], int]


class Keystreams:
    """The streams of a round; `derived` registers their draws."""

    def __init__(self, derived: Derivation) -> None:
        self._derived = derived
        self._streams: list[_Stream] = []
        self._of_draws: dict[frozenset[int], int] = {}

    def of_seed(self, draws: frozenset[int], source: int) -> int | None:
        """Return the stream of a seed that some draws are; `source` is the term of the tensor.

        In another tensor the same words may be at other places, so it has no stream.
        """
        stream = self._stream(draws, False, source)
        return stream if self._streams[stream].source == source else None

    def _stream(self, draws: frozenset[int], is_uniform: bool, source: int = 0) -> int:
        number = self._of_draws.setdefault(draws, len(self._streams))
        if number == len(self._streams):
            self._streams.append(_Stream(draws, is_uniform, source, (_Spans(), _Spans()), {}))
        return number

    def is_uniform(self, stream: int) -> bool:
        """Tell whether the words of a stream are uniform."""
        return self._streams[stream].is_uniform

    def use(self, words: SecretWords, place: str) -> int | None:
        """Return the draw that some words are.

        Words between the same counters are the same draw; None if they overlap others otherwise, or
        if they are not different from each other.
        """
        if not words.size or not words.are_different():
            return None
        stream, spans = self._streams[words.stream], words.spans()
        if spans in stream.uses:
            return stream.uses[spans]
        if any(used.overlaps(span) for used, span in zip(stream.spans, spans, strict=True)):
            return None
        for used, span in zip(stream.spans, spans, strict=True):
            used.add(span)
        stream.uses[spans] = self._derived(stream.draws, place)
        return stream.uses[spans]

    def of_key(self, key: tuple[Leaf, Leaf], place: str) -> int | None:
        """Return the stream of a key of two different words, None if they are used otherwise.

        In another order they have the same stream.
        """
        first, second = key
        assert first.stream == second.stream
        counters = np.array([first.counter, second.counter], np.uint64)
        halves = np.array([first.half, second.half], np.uint8)
        draw = self.use(SecretWords(first.stream, counters, halves), place)
        if draw is None:
            return None
        stream = self._stream(frozenset((draw,)), True)
        # If the same words are a seed elsewhere, what is made of them there would count twice.
        return stream if self._streams[stream].is_uniform else None
