"""The table of rounds that `tffc run` prints, one line for each round."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tffc.cli.screen import cut, width_of
from tffc.cli.value_text import LONGEST, leading_text, short_text
from tffc.language.type_parts import leaves
from tffc.language.types import SequenceType, TensorType, Type
from tffc.language.values.concrete import flatten
from tffc.runtime.data.json_values import paths
from tffc.runtime.engines.rounds import Round
from tffc.runtime.runs.metrics import EVALUATION, OutputTensor, named_outputs
from tffc.runtime.runs.number_column import NumberColumn
from tffc.support.printable import counted, printable

FLOAT_WIDTH = 8
"""The least width of a column of floats; few need more."""


SECONDS = TensorType(np.float32)


def _mean_age(finished: Round) -> Any:
    ages = finished.contributions and finished.contributions.ages
    return np.float32(np.mean(ages)) if ages else None


TIMES: Mapping[str, Callable[[Round], Any]] = {
    "simulated": lambda finished: np.float32(finished.simulated),
    "age": _mean_age,
}
"""The columns of simulated seconds and of the mean age of contributions."""


class RoundTable:
    """The number of each round and its server output, such as

        round      loss  accuracy
            7    0.3121    0.9012

    A column gets wider for the following lines if a value needs it.  Short arrays and strings are
    shown in full, long arrays as their type.  Columns that do not fit the terminal are left out.
    """

    def __init__(
        self,
        last: int,
        type: Type,
        evaluation: Type | None = None,
        timing: Sequence[str] = (),
    ) -> None:
        """Create the table of rounds up to number `last`, with outputs of type `type`.

        `evaluation` is the type of evaluations' results, if there are any.  `timing` are the
        columns of `TIMES` that are shown.
        """
        self._timing = timing
        self._type = type
        self._evaluation = evaluation
        self._last = last
        self._widths: list[int] = []
        self._columns: defaultdict[str, NumberColumn] = defaultdict(NumberColumn)
        self.room = width_of(sys.stdout)
        """The width that a line may take; None for any."""
        self.shortened: dict[str, None] = {}
        """The columns that were abridged or left out, in order."""

    def lines(self, finished: Round) -> Iterator[str]:
        """Yield the line of a round, preceded by the header if it is the first."""
        outputs = named_outputs(finished.output, self._type)
        measured = self._measured(finished)
        names = [
            "round",
            *self._timing,
            *(self._title(output.name) for output in outputs),
            *(printable(output.name) for output in measured),
        ]
        times = [OutputTensor(name, SECONDS, TIMES[name](finished)) for name in self._timing]
        values = map(self._text, names[1:], (*times, *outputs, *measured))
        end = _left_out(len(finished.skipped))
        texts = [str(finished.number), *self._cut(names[1:], values, len(end))]
        is_first = not self._widths
        if is_first:
            least = (len(str(self._last)), *map(_least_width, (*times, *outputs, *measured)))
            self._widths = [max(pair) for pair in zip(least, map(len, names), strict=True)]
        self._widths = [max(pair) for pair in zip(self._widths, map(len, texts), strict=True)]
        count = self._fitting(len(end))
        self.shortened.update(dict.fromkeys(names[count:]))
        if is_first:
            yield self._line(names[:count])
        yield (self._line(texts[:count]) + end).rstrip()

    def _cut(self, titles: list[str], values: Iterable[str], taken: int) -> Iterator[str]:
        """Yield each value, cut to the width left by the round's number and `taken` characters."""
        number = max(len("round"), len(str(self._last)))
        room = None if self.room is None else self.room - number - 2 - taken
        for title, value in zip(titles, values, strict=True):
            shown = cut(value, room)
            if shown != value:
                self.shortened[title] = None
            yield shown

    def _fitting(self, taken: int) -> int:
        """Return how many columns fit the terminal beside `taken` characters; at least one."""
        if self.room is None:
            return len(self._widths)
        ends = itertools.accumulate(width + 2 for width in self._widths)
        return max(1, sum(end - 2 + taken <= self.room for end in ends))

    def _measured(self, finished: Round) -> list[OutputTensor]:
        """Return the evaluation's results with their column titles; the values are None if the
        round had no evaluation."""
        if self._evaluation is None:
            return []
        if finished.evaluation is None:
            parts = zip(paths(self._evaluation), leaves(self._evaluation), strict=True)
            found = [OutputTensor(name, part, None) for name, part in parts]
        else:
            found = named_outputs(finished.evaluation, self._evaluation)
        return [each._replace(name=EVALUATION + (each.name or "output")) for each in found]

    def _text(self, title: str, output: OutputTensor) -> str:
        if output.value is None:
            return ""
        text = _short(output, self._columns[title])
        if text is None:
            self.shortened[title] = None
            text = _long(output)
        return printable(text)

    def _title(self, name: str) -> str:
        """Return the title of an output's column, distinct from those of the other columns."""
        taken = name in ("round", *self._timing) or name.startswith("evaluation.")
        return f"metrics.{printable(name)}" if taken else printable(name or "output")

    def _line(self, texts: list[str]) -> str:
        return "  ".join(map(str.rjust, texts, self._widths))


def _left_out(count: int) -> str:
    return f"  ({counted(count, 'client')} left out)" if count else ""


def _least_width(output: OutputTensor) -> int:
    is_float = isinstance(output.type, TensorType) and output.type.element_type.is_floating
    return FLOAT_WIDTH if is_float and getattr(output.value, "shape", ()) == () else 0


def _short(output: OutputTensor, column: NumberColumn) -> str | None:
    """Return a tensor or sequence as short text, floats as in the column; None if it is long."""
    if isinstance(output.type, TensorType):
        if output.type.element_type.is_floating and np.size(output.value) <= LONGEST:
            column.see(np.ravel(output.value).astype(float).tolist())
        return short_text(output.value, output.type.element_type, _digits_in(column))
    assert isinstance(output.type, SequenceType)
    if len(output.value) > LONGEST:
        return None
    texts = [_element(each, output.type.element, _digits_in(column)) for each in output.value]
    return None if None in texts else "[" + ", ".join(filter(None, texts)) + "]"


def _element(value: Any, type: Type, digits: Callable[[Any], str]) -> str | None:
    """Return an element of a sequence, a struct as `<a=1, b=2>`; None if it is long."""
    if isinstance(type, TensorType):
        return short_text(value, type.element_type, digits)
    parts: list[str] = []
    for name, part, inner in zip(paths(type), flatten(value, type), leaves(type), strict=True):
        text = (
            short_text(part, inner.element_type, digits) if isinstance(inner, TensorType) else None
        )
        if text is None:
            return None
        parts.append(f"{name}={text}")
    return f"<{', '.join(parts)}>"


def _digits_in(column: NumberColumn) -> Callable[[Any], str]:
    return lambda number: column.text(float(number))


def _long(output: OutputTensor) -> str:
    """Abridge a long tensor to its type, or a sequence to its number of elements."""
    if not isinstance(output.type, TensorType):
        return counted(len(output.value), "element")
    shape = np.shape(output.value)
    if shape:
        return str(TensorType(output.type.element_type, shape))
    return leading_text(output.value, output.type.element_type)
