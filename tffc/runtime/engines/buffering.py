"""How a run's rounds are buffered."""

from __future__ import annotations

import dataclasses

from tffc.support.errors import DataError, ExecutionError, LanguageValueError


@dataclasses.dataclass(frozen=True, slots=True)
class Buffering:
    """How rounds are buffered: the contributions of a step, the clients in flight, and the greatest
    age of a contribution that is merged, or None for any."""

    size: int
    in_flight: int
    max_age: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
          LanguageValueError: one is too small, or no whole number.
        """
        for what, number, least in (
            ("the buffer", self.size, 1),
            ("the number of clients in flight", self.in_flight, 1),
            ("the greatest age", 0 if self.max_age is None else self.max_age, 0),
        ):
            if type(number) is not int or number < least:
                raise LanguageValueError(
                    "E706",
                    f"{what} of buffered rounds is {number!r}",
                    help=f"give a whole number from {least} on",
                )

    def check(self, clients: int, least_clients: int) -> None:
        """Check the numbers against those of all clients, and of those that a step needs.

        Raises:
          DataError: there are too few clients.
          ExecutionError: a step would aggregate too few.
        """
        most = max(self.size, self.in_flight)
        if most > clients:
            raise DataError(
                "E662",
                f"cannot have {most} clients in flight or in the buffer, of {clients}",
                help="give smaller numbers; a step has at most one contribution of each client",
            )
        if self.size < least_clients:
            raise ExecutionError(
                "E746",
                f"no step is released: it aggregates {self.size} clients, and {least_clients} are "
                "needed",
                help="let the buffer hold more contributions, or need fewer",
            )
