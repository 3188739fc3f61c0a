"""Checking all clients of a data set against the type of a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tffc.data.source import DataSet, Progress, counted, no_progress
from tffc.errors import DataError
from tffc.ir.types import Type


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """The result of checking all clients against a type.

    `lengths` has, for each client that fits, the number of elements of each sequence in its value;
    `errors` has the error of each other client.  `error` says why no client can fit, otherwise
    None.
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
    """Check every client of a data set, also after one has failed."""
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
