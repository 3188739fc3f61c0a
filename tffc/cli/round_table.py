"""What `tffc run` prints of its rounds: a table that grows by a line a round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tffc.printable import printable

if TYPE_CHECKING:
    from tffc.engines.engine import Round
    from tffc.ir.types import Type

FLOAT_WIDTH = 8
"""How wide a column of floats is at least; few of them need more."""

LONGEST_ARRAY = 8
"""An array of more elements than this is shown by its shape."""


class RoundTable:
    """The number of each round and its server output, such as

        round      loss  accuracy
            7    0.3121    0.9012

    A column gets wider, for the lines that follow, where a value needs more than it has.
    """

    def __init__(self, last: int, type: Type) -> None:
        """The table of rounds up to number `last`, whose outputs are of type `type`."""
        self._type = type
        self._last = last
        self._widths: list[int] = []

    def lines(self, finished: Round) -> Iterator[str]:
        """The line of a round, below the names of the columns if it is the first."""
        from tffc.engines.metrics import named_outputs

        outputs = named_outputs(finished.output, self._type)
        names = ["round", *(_title(name) for name, _ in outputs)]
        texts = [str(finished.number), *(_text(value) for _, value in outputs)]
        if not self._widths:
            least = [len(str(self._last)), *(_least_width(value) for _, value in outputs)]
            self._widths = [max(pair) for pair in zip(least, map(len, names), strict=True)]
            yield self._line(names)
        self._widths = [max(pair) for pair in zip(self._widths, map(len, texts), strict=True)]
        yield self._line(texts) + _left_out(len(finished.skipped))

    def _line(self, texts: list[str]) -> str:
        return "  ".join(map(str.rjust, texts, self._widths))


def _title(name: str) -> str:
    """Return the name of an output as the title of its column, of which `round` is the first's."""
    return "metrics.round" if name == "round" else printable(name or "output")


def _left_out(count: int) -> str:
    return f"  ({count} client{'' if count == 1 else 's'} left out)" if count else ""


def _least_width(value: Any) -> int:
    import numpy as np

    array = np.asarray(value)
    return FLOAT_WIDTH if array.dtype.kind == "f" and array.size == 1 else len(_text(value))


def _text(value: Any) -> str:
    """A tensor in few characters: floats to four digits, long ones by their shape."""
    import numpy as np

    array = np.asarray(value)
    if array.size > LONGEST_ARRAY:
        return f"{array.dtype}{list(array.shape)}"
    if array.dtype.kind == "f":
        text = np.array2string(array, formatter={"float_kind": "{:#.4g}".format})
    else:
        text = str(value)
    return printable(" ".join(text.split()))
