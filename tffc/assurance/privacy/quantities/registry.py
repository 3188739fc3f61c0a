"""The numbers of expressions and of random draws in the evaluation of a round."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tffc.assurance.privacy.quantities.keystreams import Keystreams
from tffc.assurance.privacy.quantities.seeds import Seed
from tffc.assurance.privacy.quantities.word_functions import WordFunctions


class Registry:
    """The expressions of a round, by number, and its draws of random numbers."""

    def __init__(self) -> None:
        self._terms: dict[tuple[Any, ...], int] = {}
        self.draws: list[str] = []
        """The place of each draw."""
        self._following: dict[int, list[int]] = {}
        """For a draw, those that are derived from it."""
        self.streams = Keystreams(self.derived)
        self.functions = WordFunctions()
        self.ranks: dict[int, int] = {}
        """The tensors of which some terms are the numbers of dimensions."""
        self.place = ""
        """Where the operations are, for people."""
        self.places: dict[int, str] = {}
        """The places of terms."""
        self.assumptions: dict[str, None] = {}
        """What the evaluation rests on, besides what holds of all programs."""
        self.has_secret_seeds = False
        """Whether seeds that follow from a clock count as secret, and as different ones."""
        self.sources: dict[str, int] = {}
        """The numbers of sources of seeds: elements of the state, by their paths, and the clock."""
        self._seeds: dict[int, dict[tuple[int, ...], int]] = {}
        """The draws from the seeds of each source, by what tells these seeds apart."""
        self._tables: dict[int, tuple[int, dict[int, int]]] = {}
        """Of draws, the term of the table that has columns, and the draws that these are."""
        self.assertions: dict[int, bool] = {}
        """Whether all that sections assert is certain, by the sections' ids."""
        self.follows_noise = False
        """Whether noise is followed from round to round: then any draw may be among it."""
        self.followed: int | None = None
        """The draw that stands for all noise that is followed from round to round."""
        self._sections: list[tuple[int, int | None]] = []

    # Draws of whole sections.

    def begin_section(self) -> int:
        """Return a number that stands for all draws until `end_section`."""
        self._sections.append((len(self.draws), None))
        return -len(self._sections)

    def end_section(self, number: int) -> None:
        """End the draws that a number stands for."""
        self._sections[-number - 1] = self._sections[-number - 1][0], len(self.draws)

    def derived(self, draws: Iterable[int], place: str) -> int:
        """Return a new draw that follows from others, and that is independent of all else that
        does."""
        number = len(self.draws)
        self.draws.append(place)
        for draw in draws:
            self._following.setdefault(draw, []).append(number)
        return number

    def single_draws(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return draws one by one, and all that are derived from them."""
        single: set[int] = set()
        stack = list(numbers)
        while stack:
            number = stack.pop()
            if number in self._seeds:
                stack.extend(self._seeds[number].values())
            elif number < 0:
                start, end = self._sections[-number - 1]
                stack.extend(range(start, len(self.draws) if end is None else end))
            elif number not in single:
                single.add(number)
                stack.extend(self._following.get(number, ()))
        return frozenset(single)

    def have_common_draws(self, first: Iterable[int], second: Iterable[int]) -> bool:
        """Tell whether some draws are among others, or follow from them."""
        return bool(self.single_draws(first) & self.single_draws(second))

    def noise_number(self) -> int:
        """Return the draw that stands for all noise that is followed from round to round."""
        if self.followed is None:
            self.followed = len(self.draws)
            self.draws.append("from round to round, beginning with the first state")
        return self.followed

    @property
    def followed_draws(self) -> frozenset[int]:
        """The draws that any draw tells about: none, unless noise is followed."""
        return frozenset((self.noise_number(),) if self.follows_noise else ())

    # Draws from seeds that nobody can guess.

    def source(self, path: str) -> int:
        """Return the number that stands for all draws from the seeds of a source."""
        if path not in self.sources:
            self.sources[path] = self.begin_section()
            self.end_section(self.sources[path])
            self._seeds[self.sources[path]] = {}
        return self.sources[path]

    def draw_from(self, seed: Seed) -> int:
        """Return the number of the draw from a seed; the same for the same seed."""
        draws = self._seeds[seed.source]
        if seed.key not in draws:
            draws[seed.key] = len(self.draws)
            self.draws.append(self.place)
        return draws[seed.key]

    def column(self, table: int, term: int, number: int) -> int | None:
        """Return the draw of a column of a table of numbers, which is independent of its others;
        None if another table that was drawn from the same seed has columns."""
        known, columns = self._tables.setdefault(table, (term, {}))
        if known != term:
            return None
        if number not in columns:
            columns[number] = self.derived((table,), self.draws[table])
        return columns[number]

    def keys_of(self, path: str) -> list[tuple[int, ...]]:
        """Return what tells the seeds of a source apart that are drawn from."""
        return list(self._seeds[self.sources[path]]) if path in self.sources else []

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
