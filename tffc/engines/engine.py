"""The interface of an engine, which carries out one round.

It reads the clients' data, runs the steps of the form where it likes, and gives the new state and
the server output.  It may take clients in any grouping, so that floating-point sums differ in their
last digits between engines; integers do not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from tffc.data.source import ClientSource, Progress, no_progress
from tffc.errors import LanguageValueError

if TYPE_CHECKING:
    from tffc.engines.process import Process

OFF, AUTO = "off", "auto"


@dataclasses.dataclass(frozen=True, slots=True)
class Batching:
    """How many clients are computed in a call: so many, or as measuring says where that is None.

    `device` is the one that TensorFlow computes batches on, such as `GPU:0`; its choice if empty.
    `known` is what measuring has said before: whether each kind of batch pays, by its description.
    """

    size: int | None = 1
    device: str = ""
    known: Mapping[str, bool] = dataclasses.field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | int, device: str = "") -> Batching:
        """Return what `auto`, `off` or a number of clients stand for.

        Raises:
          LanguageValueError: the text is none of them.
        """
        if text in (OFF, AUTO):
            return cls(1 if text == OFF else None, device)
        number = str(text)
        if not number.isdecimal() or int(number) < 1:
            raise LanguageValueError(
                "E975",
                f"clients cannot be computed in batches of {text!r}",
                help="give 'auto', 'off', or how many clients there are in a batch",
            )
        return cls(int(number), device)


ONE_A_CALL = Batching()
"""No batches."""

Deliver = Callable[[str, Any], None]
"""Given the name of a client and what it has at the end of a round that does not aggregate."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cohort:
    """The clients that a round asks, what is done about them, and the number of the round.

    With `skip_bad_clients`, one whose data cannot be read is left out; otherwise it fails the
    round.
    """

    source: ClientSource
    clients: tuple[str, ...]
    skip_bad_clients: bool = False
    deliver: Deliver = lambda client, output: None
    progress: Progress = no_progress
    round: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class RoundResult:
    """What a round gave: a state, the server output, and the clients that were left out.

    `parts` is how many seconds of its workers each part took, where the engine knows, and `known`
    what it has measured about batches so far.
    """

    state: Any
    output: Any
    skipped: tuple[str, ...] = ()
    workers: int | None = None
    parts: Mapping[str, float] = dataclasses.field(default_factory=dict)
    known: Mapping[str, bool] = dataclasses.field(default_factory=dict)


class Engine(Protocol):
    """Carries out rounds of one process."""

    @property
    def process(self) -> Process: ...

    def run_round(self, state: Any, cohort: Cohort) -> RoundResult:
        """Run one round from the value of a state, with the clients of a cohort.

        Where the round does not aggregate, every client's output is delivered once, in any order.
        An interruption leaves nothing running but a function of the user's that does not return.

        Raises:
          DataError: a client's data cannot be read, and bad clients are not skipped.
          ExecutionError: a step fails.
        """
        ...


class ExplainsSpeed(Engine, Protocol):
    """An engine that can tell where the time of its rounds went, as those of the table do."""

    def explain_speed(self) -> list[str]:
        """Return in lines how long what took, how clients were computed and why."""
        ...
