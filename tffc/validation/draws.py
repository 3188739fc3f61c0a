"""What a program draws at random: recorded when it is traced, replayed in what is made of it.

A section is called with an argument and gives a result; the keepers here stand between.
"""

from __future__ import annotations

import collections
import pickle
from typing import Any

from tffc.execution.sections import run_section
from tffc.graphs.effects import Effect
from tffc.graphs.inspect import inspect
from tffc.ir.nodes import Compiled


class DrawnTooOften(Exception):
    """A section is run more often than the traced program runs it, and gives another result."""


class Draws:
    """The results of sections that do not always give the same, in the order of their calls."""

    def __init__(self) -> None:
        self.results: dict[Any, collections.deque[Any]] = collections.defaultdict(collections.deque)
        self.operations: collections.Counter[str] = collections.Counter()

    def record(self, section: Compiled, argument: Any) -> Any:
        """Runs a section and remembers what it gave, if it might give something else next time."""
        result = run_section(section, argument)
        varying = varying_operations(section)
        if varying:
            self.results[_key(section, argument)].append(result)
            self.operations.update(varying)
        return result

    def replay(self) -> Replay:
        """The same results once more."""
        return Replay(self)


class Replay:
    """Gives each call of a section one result that was recorded for the same call."""

    def __init__(self, draws: Draws) -> None:
        self._results = {key: collections.deque(found) for key, found in draws.results.items()}

    def run(self, section: Compiled, argument: Any) -> Any:
        """The recorded result; sections that always give the same are run.

        Raises:
          DrawnTooOften: the recorded calls are used up.
        """
        if not varying_operations(section):
            return run_section(section, argument)
        known = self._results.get(_key(section, argument))
        if not known:
            raise DrawnTooOften(
                f"a section of type `{section.type}`, which does not always give the same, runs "
                "more often"
            )
        return known.popleft()


class Count:
    """Counts what may be drawn by sections that were linked from others, whose calls are gone."""

    def __init__(self) -> None:
        self.operations: collections.Counter[str] = collections.Counter()

    def run(self, section: Compiled, argument: Any) -> Any:
        """The result of a section."""
        self.operations.update(varying_operations(section))
        return run_section(section, argument)

    def check(self, draws: Draws) -> None:
        """Raises DrawnTooOften if anything was drawn more often than recorded."""
        for operation, count in sorted((self.operations - draws.operations).items()):
            expected = draws.operations[operation]
            raise DrawnTooOften(
                f"the operation {operation} runs {expected + count} times instead of {expected}"
            )


def _key(section: Compiled, argument: Any) -> tuple[Compiled, bytes]:
    return section, pickle.dumps(argument)


def varying_operations(section: Compiled) -> dict[str, int]:
    """The operations that make a section's results vary from run to run, and how many there are."""
    facts = inspect(section)
    steady = (Effect.OWN_STATE, Effect.OUTPUT, Effect.SUMMARIES)
    varying = (name for name, effect in facts.effects.items() if effect not in steady)
    return {name: facts.operations[name] for name in varying}
