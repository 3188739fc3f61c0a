"""The numbers of expressions and of random draws in the evaluation of a round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Registry:
    """The expressions of a round, by number, and its draws of random numbers."""

    def __init__(self) -> None:
        self._terms: dict[tuple[Any, ...], int] = {}
        self.draws: list[str] = []
        """The place of each draw."""
        self.ranks: dict[int, int] = {}
        """The tensors of which some terms are the numbers of dimensions."""
        self.place = ""
        """Where the operations are, for people."""
        self.places: dict[int, str] = {}
        """The places of terms."""
        self.assumptions: dict[str, None] = {}
        """What the evaluation rests on, besides what holds of all programs."""
        self.assertions: dict[int, bool] = {}
        """Whether all that sections assert is certain, by the sections' ids."""
        self._sections: list[tuple[int, int | None]] = []

    # Draws of whole sections.

    def begin_section(self) -> int:
        """Return a number that stands for all draws until `end_section`."""
        self._sections.append((len(self.draws), None))
        return -len(self._sections)

    def end_section(self, number: int) -> None:
        """End the draws that a number stands for."""
        self._sections[-number - 1] = self._sections[-number - 1][0], len(self.draws)

    def single_draws(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return draws one by one."""
        single: set[int] = set()
        for number in numbers:
            if number >= 0:
                single.add(number)
            else:
                start, end = self._sections[-number - 1]
                single.update(range(start, len(self.draws) if end is None else end))
        return frozenset(single)

    # Expressions.

    def term(self, *key: Any) -> int:
        """Return the number of an expression; the same for the same expression."""
        number = self._terms.setdefault(key, len(self._terms) + 1)
        self.places.setdefault(number, self.place)
        return number

    def fresh(self) -> int:
        """Return the number of an expression that no other is equal to."""
        return self.term("fresh", len(self._terms))

    def axes_of_rank(self, rank: int) -> int:
        """Return the term of all axes of the tensor whose rank has a term, or 0."""
        value = self.ranks.get(rank)
        return self.term("all axes", value) if value else 0
