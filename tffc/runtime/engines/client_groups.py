"""How a run's clients come in groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tffc.backends.forms.kinds import load_form
from tffc.support.errors import LanguageValueError


@dataclasses.dataclass(frozen=True, slots=True)
class ClientGroups:
    """The number of groups of each round's clients, and whether a group that fails is left out
    instead of failing its round.

    Raises:
      LanguageValueError: the number is not positive.
    """

    count: int
    skip_bad: bool = False

    def __post_init__(self) -> None:
        if type(self.count) is not int or self.count < 1:
            raise LanguageValueError(
                "E706",
                f"clients cannot come in {self.count!r} groups",
                help="give a whole number from 1 on, or None for no groups",
            )

    def check(self, form: str) -> None:
        """Check that rounds of a form can run in groups.

        Raises:
          LanguageValueError: they cannot.
        """
        if not load_form(form).has_groups():
            raise LanguageValueError(
                "E706",
                f"rounds in the form {form} have no groups of clients",
                help="compile the program to the form mergeable",
            )

    def divide(self, clients: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the clients in groups of about equal size, in order; never more groups than
        clients, but at least one."""
        count = max(1, min(self.count, len(clients)))
        ends = [len(clients) * index // count for index in range(count + 1)]
        return [tuple(clients[ends[i] : ends[i + 1]]) for i in range(count)]
