"""Models of how long clients take, for simulated time.

    constant:SECONDS             every client takes as long
    lognormal:MEDIAN,SIGMA       each start of a client draws its own duration
    ...+stragglers:SHARE,FACTOR  a fixed share of the clients, by their names, takes longer

A duration depends only on the seed, the number of the start and the client's name, so that the same
run is simulated in the same way again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import statistics
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from tffc.support.errors import LanguageValueError

DelayFunction: TypeAlias = Callable[[str, int], Any]
"""The seconds that a client takes, by its name, for the start or the round of a number."""

HELP = (
    "give constant:SECONDS or lognormal:MEDIAN,SIGMA, and perhaps +stragglers:SHARE,FACTOR, such "
    "as lognormal:10,0.5+stragglers:0.1,8"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Delays:
    """A model of delays: its text, and how it is computed.

    `median` and `sigma` are those of the logarithm of durations, `share` and `factor` those of
    stragglers.  With a `function`, that alone says how long a client takes.
    """

    text: str
    median: float = 1.0
    sigma: float = 0.0
    share: float = 0.0
    factor: float = 1.0
    function: DelayFunction | None = None

    def seconds(self, seed: int, number: int, client: str) -> float:
        """Return how long a client takes for the start, or the round, of a number.

        Raises:
          LanguageValueError: the function gives no number of seconds.
        """
        if self.function is not None:
            seconds = self.function(client, number)
            if not (isinstance(seconds, (int, float)) and 0 <= seconds < math.inf):
                raise LanguageValueError(
                    "E706",
                    f"the delay of client {client} at start {number} is {seconds!r}",
                    help="let the function give a number of seconds, from 0 on",
                )
            return float(seconds)
        seconds = self.median
        if self.sigma:
            normal = statistics.NormalDist().inv_cdf(_share_of(f"{seed}/{number}/{client}"))
            seconds *= math.exp(self.sigma * normal)
        return seconds * (self.factor if self.is_straggler(client) else 1.0)

    def is_straggler(self, client: str) -> bool:
        """Return whether a client is one of those that take longer."""
        return _share_of(f"straggler/{client}") < self.share

    def of_round(self, seed: int, number: int, clients: Iterable[str]) -> float:
        """Return how long a round takes that waits for all of its clients."""
        return max((self.seconds(seed, number, client) for client in clients), default=0.0)

    @classmethod
    def parse(cls, text: str) -> Delays:
        """Parse the text of a model.

        Raises:
          LanguageValueError: it is none.
        """
        model, *others = text.split("+")
        name, numbers = _numbers(text, model)
        if name == "constant" and len(numbers) == 1:
            delays = cls(text, numbers[0])
        elif name == "lognormal" and len(numbers) == 2 and numbers[0] > 0:
            delays = cls(text, numbers[0], numbers[1])
        else:
            raise _no_model(text, model)
        for part in others:
            name, numbers = _numbers(text, part)
            if name != "stragglers" or len(numbers) != 2 or numbers[0] > 1 or delays.share:
                raise _no_model(text, part)
            delays = dataclasses.replace(delays, share=numbers[0], factor=numbers[1])
        return delays

    @classmethod
    def of(cls, model: str | DelayFunction | None) -> Delays | None:
        """Return the model that a user means: a text, or a function from a client's name and the
        number of a start to seconds.

        Raises:
          LanguageValueError: it is neither.
        """
        if model is None:
            return None
        if isinstance(model, str):
            return cls.parse(model)
        if callable(model):
            return cls("a function of Python", function=model)
        raise LanguageValueError("E706", f"delays are {model!r}", help=HELP)


CONSTANT = Delays("constant:1")
"""The model of buffered rounds that name none."""


def _share_of(text: str) -> float:
    """Return a number between 0 and 1 that a hash of a text draws."""
    digest = hashlib.sha256(text.encode(errors="surrogateescape")).digest()
    return ((int.from_bytes(digest[:8], "big") >> 12) + 0.5) / 2**52


def _numbers(text: str, part: str) -> tuple[str, list[float]]:
    name, _, rest = part.strip().partition(":")
    try:
        numbers = [float(number) for number in rest.split(",")]
    except ValueError:
        raise _no_model(text, part) from None
    if not all(0 <= number < math.inf for number in numbers):
        raise _no_model(text, part)
    return name, numbers


def _no_model(text: str, part: str) -> LanguageValueError:
    within = "" if part == text else f" in {text!r}"
    return LanguageValueError("E706", f"{part!r}{within} is no model of delays", help=HELP)
