"""What a participant remembers of earlier sums, so that the server gets one sum in each round.

Two sums of one round over almost the same participants differ by the vectors of a few.  So a
participant that revealed shares in a round takes part in no other sum of that round, nor of an
earlier one.  It takes no label twice, and begins a limited number of sums in a round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

MOST_ATTEMPTS = 100
"""The most sums that a participant begins in one round."""


@dataclasses.dataclass
class _Past:
    """The last round of a program, whether it is over, and the labels of its sums."""

    round: int
    is_over: bool = False
    labels: list[str] = dataclasses.field(default_factory=list[str])


class History:
    """Remembers the last round of each program."""

    def __init__(self) -> None:
        self._pasts: dict[str, _Past] = {}

    def begin(self, program: str, round: int, label: bytes) -> str:
        """Remember that a sum begins; return why it must not, or an empty text."""
        past = self._pasts.get(program)
        if past is None or past.round < round:
            past = self._pasts[program] = _Past(round)
        if past.round > round:
            return f"its last round was {past.round}, and this is round {round}"
        if past.is_over:
            return f"it gave its part of round {round} before, and two sums would show parts"
        if label.hex() in past.labels:
            return "the label was used before"
        if len(past.labels) >= MOST_ATTEMPTS:
            return f"it began {MOST_ATTEMPTS} sums of round {round} before"
        past.labels.append(label.hex())
        return ""

    def end(self, program: str, round: int) -> str:
        """Remember that shares are revealed; return why they must not be, or an empty text."""
        past = self._pasts.get(program)
        if past is None or past.round != round or past.is_over:
            return f"round {round} of the program is over for it"
        past.is_over = True
        return ""

    def has_begun(self, program: str, round: int) -> bool:
        """Return whether a sum of a round began."""
        past = self._pasts.get(program)
        return past is not None and past.round == round and bool(past.labels)

    def add(self, other: History) -> None:
        """Remember also what another history does."""
        for program, theirs in other._pasts.items():
            own = self._pasts.get(program)
            if own is None or own.round < theirs.round:
                self._pasts[program] = dataclasses.replace(theirs, labels=list(theirs.labels))
            elif own.round == theirs.round:
                own.is_over = own.is_over or theirs.is_over
                own.labels += [label for label in theirs.labels if label not in own.labels]

    def to_json(self) -> dict[str, Any]:
        """Return the history as an object of JSON."""
        return {program: dataclasses.asdict(past) for program, past in self._pasts.items()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> History:
        """Restore a history.

        Raises:
          ValueError: it is not the result of `to_json`.
        """
        history = cls()
        for program, fields in content.items():
            history._pasts[program] = _past(fields)
        return history


def _past(fields: Any) -> _Past:
    if isinstance(fields, dict):
        held = cast("dict[str, Any]", fields)
        round, is_over, labels = (held.get(key) for key in ("round", "is_over", "labels"))
        if isinstance(round, int) and isinstance(is_over, bool) and isinstance(labels, list):
            return _Past(round, is_over, [str(label) for label in cast("list[Any]", labels)])
    raise ValueError("it is not a history of masked sums")
