"""The words for options of data in errors: as the text of a location has them, or as Python has."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class Wording:
    """The way in which users write options: as keywords of Python, or else in a location."""

    is_python: bool = False

    def option(self, name: str, value: str, column: str | None = None) -> str:
        """Return an option with a value, for a column alone if one is named; a value in capitals
        stands for any."""
        if column is not None:
            return self.options(name, value, [column])
        return f"{name}={repr(value) if self.is_python and not value.isupper() else value}"

    def options(self, name: str, value: str, columns: Sequence[str]) -> str:
        """Return an option with the same value for each of some columns."""
        if not self.is_python:
            return f"{name}={','.join(f'{column}:{value}' for column in columns)}"
        shown = value if value.isupper() else repr(value)
        return f"{name}={{{', '.join(f'{column!r}: {shown}' for column in columns)}}}"

    def word(self, word: str) -> str:
        """Return a word that is the value of an option."""
        return repr(word) if self.is_python else word

    def columns(self, names: Sequence[str] = ("A", "B")) -> str:
        """Return the option that names columns."""
        return f"columns={list(names)}" if self.is_python else f"columns={','.join(names)}"

    def client(self, name: str = "NAME") -> str:
        """Return the option that names the column of clients."""
        return self.option("by" if self.is_python else "client", name)


LOCATION, PYTHON = Wording(), Wording(is_python=True)
