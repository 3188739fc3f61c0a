"""Figures about clients' data: how much of it each client has, and what is in each column.

The data is read once, a part of a column at a time.  Quantiles are exact up to `MOST_HELD` numbers
in a column, and beyond that those of every second number, every fourth, and so on.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tffc.runtime.data.arrays import header_text
from tffc.runtime.data.columns import Cells
from tffc.runtime.data.files import files_size
from tffc.runtime.data.source import DataSet
from tffc.runtime.data.times import times_of
from tffc.support.guards import Array, is_array
from tffc.support.printable import counted, printable

MOST_HELD = 2**22
"""The most numbers of a column that are in memory."""

MOST_DISTINCT = 10_000
"""The most different values of a column that are counted apart."""

MOST_LABELS = 20
"""Integers of at most so many different values are described as categories."""

TOP = 5
"""The categories that are listed."""

BINS = 8
"""The most bins of the histogram of client sizes."""

WIDTH = 30
"""The width of the longest bar of the histogram."""

LONGEST = 24
"""The most characters of a category that are shown."""


@dataclasses.dataclass(frozen=True, slots=True)
class NumberFigures:
    """The range of numbers, their quartiles, and the mean of the finite ones if there are any."""

    least: float
    lower: float
    median: float
    upper: float
    most: float
    mean: float | None


@dataclasses.dataclass(frozen=True, slots=True)
class CategoryFigures:
    """How many different values there are, and the most frequent with their counts.

    `is_whole` is false if there are more than were counted apart.
    """

    distinct: int
    top: tuple[tuple[str, int], ...]
    is_whole: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class ColumnFigures:
    """What a column or array holds: its type in words, its cells and how many of them are missing,
    the figures of its numbers, categories, or times as a range, and how many numbers in cells of
    several are NaN."""

    name: str
    kind: str
    count: int = 0
    missing: int = 0
    numbers: NumberFigures | None = None
    categories: CategoryFigures | None = None
    times: tuple[str, str] | None = None
    nan: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class SizeFigures:
    """The numbers of rows of clients: their range, median and mean, and a histogram of bins, each
    with its least and most rows and the number of clients."""

    least: int
    median: float
    most: int
    mean: float
    bins: tuple[tuple[int, int, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class DataFigures:
    """Figures about clients' data; `rows`, `bytes` and `sizes` are None where they are unknown."""

    clients: int
    rows: int | None
    bytes: int | None
    columns: tuple[ColumnFigures, ...]
    sizes: SizeFigures | None

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, name: str = "") -> Iterator[str]:
        """Yield lines of text; the first begins with the name of the data, if given."""
        parts = [counted(self.clients, "client")]
        if self.rows is not None:
            parts.append(counted(self.rows, "row"))
        if self.bytes is not None:
            parts.append(_bytes_text(self.bytes))
        yield (f"{name}: " if name else "") + ", ".join(parts)
        widths = [
            max(map(len, texts), default=0)
            for texts in zip(*map(_start, self.columns), strict=True)
        ]
        for column in self.columns:
            start = [t.ljust(w) for t, w in zip(_start(column), widths, strict=True)]
            yield f"  {'  '.join(start)}  {_content(column)}".rstrip()
        if self.sizes is not None:
            yield from _histogram(self.sizes)


@runtime_checkable
class ScannedData(Protocol):
    """A data set whose content can be read in parts, without a type."""

    def scan(self) -> Iterator[tuple[str, Cells]]:
        """Yield parts of columns, each with the column's name.

        Raises:
          DataError: the data cannot be read.
        """
        ...

    def row_counts(self) -> Array | None:
        """Return the number of rows of each client; None if that is not known."""
        ...

    def size(self) -> int | None:
        """Return the bytes of the data; None if that is not known."""
        ...


def describe(data: DataSet) -> DataFigures:
    """Return figures about a data set, for which all of it is read.

    Raises:
      DataError: it cannot be read.
    """
    kinds = dict(data.kinds())
    if not isinstance(data, ScannedData):
        columns = tuple(ColumnFigures(name, kind) for name, kind in kinds.items())
        return DataFigures(len(data.clients), None, files_size(data.origin().files), columns, None)
    tallies: dict[str, Tally] = {}
    found: dict[str, str] = {}
    for name, cells in data.scan():
        if name not in tallies:
            tallies[name] = Tally(is_text=kinds.get(name) == "text")
            values = cells.values
            found[name] = kinds.get(name) or header_text((values.dtype, values.shape[1:]))
        tallies[name].add(cells)
    kinds = found or kinds
    counts = data.row_counts()
    return DataFigures(
        len(data.clients),
        None if counts is None else int(counts.sum()),
        data.size(),
        tuple(
            tallies[name].figures(name, kind) if name in tallies else ColumnFigures(name, kind)
            for name, kind in kinds.items()
        ),
        None if counts is None or not len(counts) else _sizes(counts),
    )


class Tally:
    """Counts what is in a column, part by part; with `is_text`, text may be numbers."""

    def __init__(self, *, is_text: bool = False) -> None:
        self._is_text = is_text
        self._may_be_numbers = self._may_be_times = True
        self._count = self._missing = self._known = 0
        self._least, self._most = np.inf, -np.inf
        self._sum, self._finite = 0.0, 0
        self._held: list[Array] = []
        self._held_count, self._step = 0, 1
        self._are_integers = self._are_booleans = True
        self._nan = 0
        self._categories: collections.Counter[Any] = collections.Counter()
        self._is_whole = True
        self._times: list[Array] = []

    def add(self, cells: Cells) -> None:
        """Add a part of the column."""
        values = cells.values
        self._count += len(values)
        if cells.gaps is not None:
            self._missing += int(cells.gaps.sum())
            values = values[~cells.gaps]
        kind = values.dtype.kind
        if kind == "M":
            if len(values):
                self._times.append(np.array([values.min(), values.max()], "M8[us]"))
        elif kind in "biufc" or kind == "V":
            self._add_numbers(np.real(values) if kind == "c" else values)
        else:
            self._add_objects(values)

    def figures(self, name: str, kind: str) -> ColumnFigures:
        """Return the figures of the column, of its name and its type in words."""
        numbers = self._number_figures() if self._may_be_numbers and self._known else None
        categories = times = None
        if self._times and self._may_be_times:
            ends = np.concatenate(self._times)
            times = _time_text(ends.min()), _time_text(ends.max())
        if self._categories and times is None and (numbers is None or self._are_labels()):
            top = sorted(self._categories.items(), key=lambda pair: (-pair[1], str(pair[0])))
            is_boolean = numbers is not None and self._are_booleans
            shown = tuple(
                (_category(bool(value) if is_boolean else value), count)
                for value, count in top[:TOP]
            )
            categories = CategoryFigures(len(self._categories), shown, self._is_whole)
        return ColumnFigures(
            name, kind, self._count, self._missing, numbers, categories, times, self._nan
        )

    def _are_labels(self) -> bool:
        return self._are_integers and self._is_whole and len(self._categories) <= MOST_LABELS

    def _add_numbers(self, values: Array) -> None:
        flat = values.astype(np.float64).ravel()
        self._are_booleans = self._are_booleans and values.dtype.kind == "b"
        if values.dtype.kind not in "biu":
            whole = np.isnan(flat)
            if whole.any():
                flat = flat[~whole]
                self._missing += int(whole.sum()) if values.ndim == 1 else 0
                self._nan += int(whole.sum()) if values.ndim > 1 else 0
            self._are_integers = self._are_integers and bool((flat == np.trunc(flat)).all())
        if not len(flat):
            return
        self._known += len(flat)
        self._least, self._most = min(self._least, flat.min()), max(self._most, flat.max())
        finite = flat[np.isfinite(flat)]
        self._sum, self._finite = self._sum + float(finite.sum()), self._finite + len(finite)
        if self._is_whole and self._are_integers and not self._is_text:
            distinct, counts = np.unique(flat, return_counts=True)
            labels = (int(each) if np.isfinite(each) else each for each in distinct.tolist())
            self._count_values(dict(zip(labels, counts.tolist(), strict=True)))
        self._hold(flat)

    def _hold(self, flat: Array) -> None:
        part = flat[:: self._step].copy()
        self._held.append(part)
        self._held_count += len(part)
        while self._held_count > MOST_HELD:
            self._held = [np.concatenate(self._held)[::2]]
            self._held_count, self._step = len(self._held[0]), self._step * 2

    def _add_objects(self, values: Array) -> None:
        items: list[Any] = values.ravel().tolist()
        if items and is_array(items[0]):
            for item in items:
                self.add_inner(item)
            return
        if self._may_be_numbers and items:
            numbers = _parsed(items) if self._is_text else None
            self._may_be_numbers = numbers is not None
            if numbers is not None:
                self._add_numbers(numbers)
        if self._may_be_times and items and not self._may_be_numbers:
            times = times_of(items) if self._is_text else None
            self._may_be_times = times is not None
            if times is not None:
                self._times.append(np.array([times.min(), times.max()], "M8[us]"))
        self._count_values(collections.Counter(map(_hashable, items)))

    def add_inner(self, item: Any) -> None:
        """Add the numbers or strings of a cell that is an array of its own."""
        if is_array(item) and item.dtype.kind in "biuf":
            self._add_numbers(item.reshape(1, -1))

    def _count_values(self, counts: Mapping[Any, int]) -> None:
        if len(self._categories) <= MOST_DISTINCT:
            self._categories.update(counts)
        if len(self._categories) > MOST_DISTINCT:
            self._is_whole = False

    def _number_figures(self) -> NumberFigures:
        held = np.concatenate(self._held)
        with np.errstate(invalid="ignore"):
            quartiles = np.quantile(held, [0.25, 0.5, 0.75], method="lower")
        lower, median, upper = (float(number) for number in quartiles)
        mean = self._sum / self._finite if self._finite else None
        return NumberFigures(float(self._least), lower, median, upper, float(self._most), mean)


def _parsed(items: Sequence[Any]) -> Array | None:
    """Return texts as the numbers that are written in them; None if one is no number."""
    try:
        return np.array([float(item) for item in items])
    except (TypeError, ValueError):
        return None


def _time_text(time: Any) -> str:
    """Return a time without the parts that are zero: a date at midnight."""
    text = str(time).removesuffix(".000000")
    return text.removesuffix("T00:00:00")


def _hashable(item: Any) -> Any:
    return item if isinstance(item, (str, bytes, int, float)) else str(item)


def _category(value: Any) -> str:
    text = printable(value.decode(errors="replace") if isinstance(value, bytes) else str(value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _sizes(counts: Array) -> SizeFigures:
    least, most = int(counts.min()), int(counts.max())
    width = max(-(-(most - least + 1) // BINS), 1)
    starts = range(least, most + 1, width)
    numbers = np.bincount((counts - least) // width, minlength=len(starts))
    bins = tuple(
        (start, min(start + width - 1, most), int(number))
        for start, number in zip(starts, numbers, strict=True)
    )
    return SizeFigures(least, float(np.median(counts)), most, float(counts.mean()), bins)


def _start(column: ColumnFigures) -> tuple[str, str, str]:
    missing = [f"{column.missing} missing"] if column.missing else []
    nan = [f"{column.nan} NaN"] if column.nan else []
    return printable(column.name), column.kind, ", ".join([*missing, *nan])


def _content(column: ColumnFigures) -> str:
    if column.categories is not None:
        top = ", ".join(f"{value} {count}" for value, count in column.categories.top)
        more = ", ..." if column.categories.distinct > len(column.categories.top) else ""
        least = "" if column.categories.is_whole else "more than "
        return f"{least}{column.categories.distinct} different: {top}{more}"
    if column.times is not None:
        return f"{column.times[0]} to {column.times[1]}"
    if column.numbers is None:
        return ""
    n = column.numbers
    quartiles = " ".join(f"{number:.4g}" for number in (n.lower, n.median, n.upper))
    mean = "" if n.mean is None else f", mean {n.mean:.4g}"
    return f"{n.least:.4g} to {n.most:.4g}, quartiles {quartiles}{mean}"


def _histogram(sizes: SizeFigures) -> Iterator[str]:
    if sizes.least == sizes.most:
        yield f"  rows a client: {sizes.least}"
        return
    yield (
        f"  rows a client: {sizes.least} to {sizes.most}, median {sizes.median:g}, "
        f"mean {sizes.mean:.4g}"
    )
    spans = [str(low) if low == high else f"{low} to {high}" for low, high, _ in sizes.bins]
    width = max(map(len, spans))
    highest = max(count for *_, count in sizes.bins)
    for span, (_, _, count) in zip(spans, sizes.bins, strict=True):
        bar = "#" * max(round(count / highest * WIDTH), 1 if count else 0)
        yield f"    {span.rjust(width)}  {bar} {count}".rstrip()


def _bytes_text(count: int) -> str:
    size, unit = float(count), "bytes"
    for larger in ("KB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{count} bytes" if unit == "bytes" else f"{size:.3g} {unit}"
