"""What the record of a run with a privacy budget says of privacy.

The mechanisms of a round are as accounting for privacy takes them: it alone knows their names and
what the numbers mean.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from tffc.runtime.engines.sampling import is_rate
from tffc.support.files.strict_json import is_count, is_object, is_text
from tffc.support.guards import is_list

PRIVACY = "privacy"
"""The key of the record of privacy in that of a run that has a budget."""


@dataclasses.dataclass(frozen=True, slots=True)
class KeptMechanism:
    """A mechanism of a round: the name of its noise, and its numbers."""

    name: str
    numbers: tuple[float, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class EarlierRounds:
    """Rounds that were done before a run began with their state: their mechanisms, and how their
    clients were drawn as far as that counts.

    That is each with the probability `rate`, or `size` of the `population`; if these are None,
    nothing is gained by how they were drawn.
    """

    rounds: int
    mechanisms: tuple[KeptMechanism, ...]
    rate: float | None = None
    size: int | None = None
    population: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PrivacyRecord:
    """The budget of a run, and what was shown of its program when the run began.

    The rounds may spend `epsilon` at `delta`, for a relation of `neighbours` and at least
    `least_clients` in each, of all outputs but those `withheld`.  Each has these `mechanisms`, and
    the `earlier` rounds count too.  Unless the run `is_from_first`, the first of all rounds did not
    begin with the first state of the program.
    """

    epsilon: float
    delta: float
    neighbours: str
    least_clients: int
    withheld: tuple[str, ...]
    mechanisms: tuple[KeptMechanism, ...]
    earlier: tuple[EarlierRounds, ...] = ()
    is_from_first: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return the record as a JSON object."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> PrivacyRecord:
        """Return a record from a JSON object that was checked with `is_privacy`."""
        return cls(
            float(fields["epsilon"]),
            fields["delta"],
            fields["neighbours"],
            fields["least_clients"],
            tuple(fields["withheld"]),
            _mechanisms(fields["mechanisms"]),
            tuple(map(_earlier, fields["earlier"])),
            fields["is_from_first"],
        )

    def __str__(self) -> str:
        text = f"a privacy budget of ε = {self.epsilon:g} at δ = {self.delta:g}"
        text += f" for the neighbours {self.neighbours}"
        if self.least_clients:
            text += f", with at least {self.least_clients} clients"
        if self.withheld:
            text += f", of all outputs but {', '.join(self.withheld)}"
        each = (f"{m.name} {', '.join(map(repr, m.numbers))}" for m in self.mechanisms)
        return f"{text}, and rounds with {'; '.join(each) or 'no mechanism'}"


def _earlier(fields: Mapping[str, Any]) -> EarlierRounds:
    mechanisms = _mechanisms(fields["mechanisms"])
    drawn = fields["rate"], fields["size"], fields["population"]
    return EarlierRounds(fields["rounds"], mechanisms, *drawn)


def _mechanisms(listed: list[dict[str, Any]]) -> tuple[KeptMechanism, ...]:
    return tuple(KeptMechanism(each["name"], tuple(map(float, each["numbers"]))) for each in listed)


def is_privacy(value: Any) -> bool:
    """Return whether a JSON value is the record of a run's privacy."""
    return (
        is_object(value)
        and value.keys() == {field.name for field in dataclasses.fields(PrivacyRecord)}
        and _is_amount(value["epsilon"])
        and is_rate(value["delta"])
        and value["delta"] < 1
        and is_text(value["neighbours"])
        and is_count(value["least_clients"])
        and is_list(value["withheld"])
        and all(map(is_text, value["withheld"]))
        and _are_mechanisms(value["mechanisms"])
        and is_list(value["earlier"])
        and all(map(_is_earlier, value["earlier"]))
        and isinstance(value["is_from_first"], bool)
    )


def _is_earlier(value: Any) -> bool:
    if not is_object(value) or value.keys() != {f.name for f in dataclasses.fields(EarlierRounds)}:
        return False
    is_right = is_count(value["rounds"]) and _are_mechanisms(value["mechanisms"])
    return is_right and _are_drawn(value["rate"], value["size"], value["population"])


def _are_drawn(rate: Any, size: Any, population: Any) -> bool:
    if size is None or population is None:
        return size is population and (rate is None or is_rate(rate))
    return rate is None and is_count(size) and is_count(population) and 0 < size <= population


def _are_mechanisms(value: Any) -> bool:
    return is_list(value) and all(
        is_object(each)
        and each.keys() == {"name", "numbers"}
        and is_text(each["name"])
        and is_list(each["numbers"])
        and all(map(_is_amount, each["numbers"]))
        for each in value
    )


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf
