"""What verification has tried: the arguments, and how many of them had results to compare."""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from tffc.language.type_parts import leaves
from tffc.language.types import CLIENTS, FederatedType, SequenceType, TensorType, Type
from tffc.language.values.concrete import Endless, Federated, flatten, to_value
from tffc.runtime.interpreter.interpreter import count_clients
from tffc.support.errors import ValidationError

FEW = 2
"""One argument in so many must have had results, or verification warns."""

HELP = "give data on which the program does not fail, or more arguments"

MOST_FAILURES = 5
"""The most texts of failures that an error shows."""


NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?([ ,]+-?[0-9.]+(e[+-]?[0-9]+)?)*")
"""Matches numbers in a text, several beside one another at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Coverage:
    """The numbers of arguments.

    `compared` had a result on both sides; `with_data` of these also had data: a client, and an
    element in a sequence, if the program takes such.  `failed` had none on both sides, for one of
    the reasons in `failures`, each as it was first met.  Of `unknown` the results were not
    compared, because they may differ in each run: the program calls Python, or does what tffc does
    not know.
    """

    tried: int = 0
    compared: int = 0
    with_data: int = 0
    failed: int = 0
    unknown: int = 0
    failures: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Coverage:
        """Return the numbers of these outcomes, one of each argument."""
        every = list(outcomes)
        first: dict[str, str] = {}
        failures: collections.Counter[str] = collections.Counter()
        for trial in every:
            if trial.failure is not None:
                # Failures that differ in the numbers of their arguments count as one.
                failures[first.setdefault(NUMBER.sub("#", trial.failure), trial.failure)] += 1
        compared = [trial for trial in every if trial.failure is None and not trial.is_loose]
        return cls(
            len(every),
            len(compared),
            sum(trial.has_data for trial in compared),
            failures.total(),
            len(every) - len(compared) - failures.total(),
            tuple(sorted(failures.items(), key=lambda item: (-item[1], item[0]))),
        )

    def refusal(self) -> ValidationError | None:
        """Return the error if nothing was compared, or nothing but arguments without data, all
        others having failed."""
        if self.with_data or (self.compared and self.compared == self.tried):
            return None
        message = "no argument had a result on both sides, so nothing was compared"
        help = HELP
        if self.unknown:
            message = "the results may differ in each run, so they were not compared"
            help = "write in TensorFlow what the program calls Python for"
        elif self.compared:
            message = "only arguments without data had results, so next to nothing was compared"
        return NothingCompared(
            "E904",
            f"{message}: {self}",
            notes=self.notes(),
            help=help,
            coverage=self,
        )

    def warning(self, first_state: str | None) -> ValidationError | None:
        """Return the warning if little was compared; `first_state` says why states are made up."""
        messages: list[str] = []
        if not self.with_data:
            messages.append("no argument had data: a client, or an element of a sequence")
        if self.compared * FEW < self.tried:
            messages.append(f"few arguments had results to compare: {self}")
        if first_state is not None:
            messages.append(f"the program's own states could not all be tried: {first_state}")
        if not messages:
            return None
        return ValidationError(
            "E904",
            "; ".join(messages),
            notes=self.notes(),
            help=HELP,
        )

    def notes(self) -> tuple[str, ...]:
        """Return a line for each reason of failures."""
        shown = self.failures[:MOST_FAILURES]
        lines = [f"failed on both sides, {_times(count)}: {text}" for text, count in shown]
        if len(self.failures) > MOST_FAILURES:
            lines.append(f"and {len(self.failures) - MOST_FAILURES} other failures")
        return tuple(lines)

    def __str__(self) -> str:
        parts = [f"{self.compared} of {self.tried} compared"]
        if self.failed:
            parts.append(f"{self.failed} failed on both sides")
        if self.unknown:
            parts.append(f"{self.unknown} with results that differ in each run")
        return ", ".join(parts)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one argument on both sides: a failure, or results that may be loose."""

    failure: str | None
    is_loose: bool
    has_data: bool


class NothingCompared(ValidationError):
    """The error if no argument showed anything: the program is neither verified nor refuted."""

    exit_code = 3

    def __init__(self, code: str, message: str, *, coverage: Coverage, **details: Any) -> None:
        super().__init__(code, message, **details)
        self.coverage = coverage


def has_data(argument: Any, type: Type | None) -> bool:
    """Return whether an argument has a client, and something in what may be empty, if its type has
    such parts."""
    if type is None:
        return True
    value = to_value(argument, type, endless=True)
    parts = list(zip(flatten(value, type), leaves(type), strict=True))
    at_clients = [part for _, part in parts if _is_at_clients(part)]
    if at_clients and not count_clients(value, type):
        return False
    filled: list[bool] = []
    for part, leaf in parts:
        filled.extend(_filled(part, leaf))
    return not filled or any(filled)


def _is_at_clients(type: Type) -> bool:
    return isinstance(type, FederatedType) and type.placement is CLIENTS and not type.all_equal


def _filled(part: Any, type: Type) -> list[bool]:
    """Return for each sequence and tensor of open size in a value whether it has an element."""
    filled: list[bool] = []
    stack: list[tuple[Any, Type]] = [(part, type)]
    while stack:
        value, kind = stack.pop()
        match kind:
            case FederatedType() if isinstance(value, Federated):
                inner = leaves(kind.member)
                for member in value.members:
                    stack.extend(zip(flatten(member, kind.member), inner, strict=True))
            case SequenceType():
                filled.append(isinstance(value, Endless) or len(value) > 0)
            case TensorType() if not kind.is_fully_defined():
                filled.append(bool(np.size(value)))
            case _:
                pass
    return filled


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
