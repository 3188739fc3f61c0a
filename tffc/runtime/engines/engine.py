"""The interface of an engine, which runs one round.

It reads the clients' data, runs the steps of the form wherever it likes, and returns the new state
and the server output.  It may group clients in any way, so the last digits of floating-point sums
may differ between engines; integers do not.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from tffc.runtime.batching.choices import AUTO, FULL
from tffc.runtime.batching.limits import Limits
from tffc.runtime.data.source import ClientSource, Progress, no_progress
from tffc.support.errors import ExecutionError, LanguageValueError

if TYPE_CHECKING:
    from tffc.backends.forms.steps import RoundSteps
    from tffc.runtime.engines.process import Process

OFF = "off"


@dataclasses.dataclass(frozen=True, slots=True)
class Batching:
    """The number of clients that one call computes, or None to decide by measuring.

    `device` is the one that batches are computed on, such as `GPU:0`; if it is empty, all
    accelerators are, or the processor if there are none.  `compiler` is what compiles them: `pjrt`,
    `tensorflow`, or `auto` for the former where it is installed; `precision` is `full` or `fast`.
    `known` has earlier measurements: whether each kind of batch pays off, by
    its description.  Workers in other processes plan with the default `limits`.
    """

    size: int | None = 1
    device: str = ""
    known: Mapping[str, bool] = dataclasses.field(default_factory=dict[str, bool])
    limits: Limits = dataclasses.field(default_factory=Limits)
    compiler: str = AUTO
    precision: str = FULL

    @classmethod
    def parse(
        cls, text: str | int, device: str = "", compiler: str = AUTO, precision: str = FULL
    ) -> Batching:
        """Parse `auto`, `off` or a number of clients; a device without a number is the first of its
        kind.

        Raises:
          LanguageValueError: the text is none of them.
        """
        device = device.upper()
        if device and ":" not in device:
            device += ":0"
        if text in (OFF, AUTO):
            return cls(1 if text == OFF else None, device, compiler=compiler, precision=precision)
        number = str(text)
        if not number.isdecimal() or int(number) < 1:
            raise LanguageValueError(
                "E706",
                f"clients cannot be computed in batches of {text!r}",
                help="give 'auto', 'off', or how many clients there are in a batch",
            )
        return cls(int(number), device, compiler=compiler, precision=precision)


ONE_A_CALL = Batching()
"""No batches: one client in each call."""

Deliver = Callable[[str, Any], None]
"""A function that is called with the name and final value of each client, in a round in which
clients have one."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cohort:
    """The clients of a round, callbacks about them, and the number of the round.

    With `skip_bad_clients`, a client whose data cannot be read is left out; otherwise it fails the
    round.  An aggregate of fewer than `least_clients` clients is not released.
    """

    source: ClientSource
    clients: tuple[str, ...]
    skip_bad_clients: bool = False
    deliver: Deliver = lambda client, output: None
    progress: Progress = no_progress
    round: int = 1
    least_clients: int = 0

    def __post_init__(self) -> None:
        """Check the least number of clients.

        Raises:
          LanguageValueError: it is negative, or no whole number.
        """
        if type(self.least_clients) is not int or self.least_clients < 0:
            raise LanguageValueError(
                "E706",
                f"the least number of clients is {self.least_clients!r}",
                help="give a whole number from 0 on",
            )

    def check_enough(self, steps: RoundSteps, left_out: int = 0) -> None:
        """Check that the aggregate of all clients but those left out may be released.

        Raises:
          ExecutionError: it is of too few clients.
        """
        count = len(self.clients) - left_out
        if count >= self.least_clients or not steps.aggregates:
            return
        raise ExecutionError(
            "E746",
            f"round {self.round} is not released: it aggregates {count} clients, and "
            f"{self.least_clients} are needed",
            notes=(f"{left_out} of {len(self.clients)} clients were left out",),
            help="let more clients take part, or need fewer",
        )


@dataclasses.dataclass(frozen=True, slots=True)
class RoundResult:
    """The result of a round: the state, the server output, and the clients that were left out.

    If the engine knows them, `parts` has the seconds that its workers spent in each part of the
    round, and `known` its measurements about batches so far.  `lost` tells of each group of clients
    that failed and was left out, `warnings` of what else the user should know.
    """

    state: Any
    output: Any
    skipped: tuple[str, ...] = ()
    workers: int | None = None
    parts: Mapping[str, float] = dataclasses.field(default_factory=dict[str, float])
    known: Mapping[str, bool] = dataclasses.field(default_factory=dict[str, bool])
    lost: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Engine(Protocol):
    """Runs rounds of one process."""

    @property
    def process(self) -> Process: ...

    def run_round(self, state: Any, cohort: Cohort) -> RoundResult:
        """Run one round from the value of a state, with the clients of a cohort.

        If clients have outputs, that of each is delivered once, in any order.
        After an interruption nothing keeps running, except a user's function that does not return.

        Raises:
          DataError: a client's data cannot be read, and bad clients are not skipped.
          ExecutionError: a step fails, or the round aggregates too few clients.
        """
        ...


class ExplainsSpeed(Engine, Protocol):
    """An engine that can tell where the time of its rounds went, like all that `table` lists."""

    def explain_speed(self) -> list[str]:
        """Return lines that say how long each part took, how clients were computed, and why."""
        ...


def processor_count() -> int:
    """Return how many processors this process may use."""
    # Only Linux says it for a process.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
