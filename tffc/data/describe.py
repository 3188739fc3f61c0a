"""What a data set holds, and whether it fits a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tffc.data.source import DataSet, Progress, counted, no_progress
from tffc.errors import DataError
from tffc.ir.types import Type


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """How clients fit a type.

    `lengths` has, for each client that fits, the number of elements of each sequence in its value;
    `errors` has the others.  `error` says why none can fit, and is None otherwise.
    """

    type: Type
    lengths: Mapping[str, tuple[int, ...]]
    errors: Mapping[str, DataError]
    error: DataError | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every client fits."""
        return self.error is None and not self.errors


def fit(data: DataSet, type: Type, progress: Progress = no_progress) -> Fit:
    """Check every client of a data set, whatever is wrong with others."""
    try:
        source = data.typed(type)
    except DataError as error:
        return Fit(type, {}, {}, error)
    lengths: dict[str, tuple[int, ...]] = {}
    errors: dict[str, DataError] = {}
    for client in counted(source.clients, progress):
        try:
            lengths[client] = source.check(client)
        except DataError as error:
            errors[client] = error
    return Fit(type, lengths, errors)
