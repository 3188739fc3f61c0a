"""How long evaluating the functions of a program may take."""

from __future__ import annotations

from collections import Counter

from tffc.errors import VerificationError
from tffc.ir.size import APPLICATION, max_size
from tffc.printable import printable

NOTABLE = 8
"""What takes more than this part of all steps is named."""


class Steps:
    """The steps of evaluating functions in place: one for each element of a struct that is made,
    and `APPLICATION` for each time that a function is applied; but one where that makes calls, for
    those are counted themselves."""

    def __init__(self) -> None:
        self.most = max_size()
        self.taken = 0
        self._times: Counter[str] = Counter()
        self._longest = (0, "")

    def apply(self, name: str) -> int:
        """Count that a function is applied, and return how many steps were taken before.

        Raises:
          VerificationError: there are too many.
        """
        before = self.taken
        self.taken += APPLICATION
        self._times[name] += 1
        if self.taken > self.most:
            raise self._too_many()
        return before

    def applied(self, name: str, before: int, *, makes_calls: bool) -> None:
        """Take note that the application that began with so many steps taken has ended."""
        if makes_calls:
            self.taken -= APPLICATION - 1
        self._longest = max(self._longest, (self.taken - before, name))

    def _too_many(self) -> VerificationError:
        name, times = max(self._times.items(), key=lambda item: (item[1], item[0]))
        notes = [f"`{printable(name)}` was applied {times} times by then"]
        steps, name = self._longest
        if steps > self.most // NOTABLE:
            notes.append(f"`{printable(name)}` alone takes {steps} steps each time it is called")
        return VerificationError(
            "E322",
            f"the functions of the program are not inlined in {self.most} steps",
            notes=tuple(notes),
            help="call functions fewer times, or allow more",
        )
