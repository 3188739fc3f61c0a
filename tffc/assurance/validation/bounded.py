"""The reference interpreter with a limit on calls, and without repeating pure calls."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tffc.language.size import CALL, max_size
from tffc.runtime.interpreter.interpreter import Closure, Interpreter
from tffc.support.errors import ValidationError
from tffc.support.printable import printable
from tffc.support.trampoline import Task


class Bounded(Interpreter):
    """An interpreter for a single run, with a limited number of calls.

    A call of one of the program's functions that runs no section and no operator is pure, so its
    result is kept for later calls with the same argument.
    """

    def __init__(self, clients: int) -> None:
        super().__init__(clients)
        self._calls = 0
        self._carried_out = 0
        self._applied: Counter[str] = Counter()
        self._results: dict[tuple[int, int], tuple[Closure, Any, Any]] = {}

    def apply(self, function: Any, argument: Any) -> Task[Any]:
        if not isinstance(function, Closure):
            self._count("an operator or a section")
            self._carried_out += 1
            return (yield super().apply(function, argument))
        key = id(function), id(argument)
        if key not in self._results:
            self._count(f"`{printable(function.function.parameter_name or '( -> ...)')}`")
            before = self._carried_out
            result = yield super().apply(function, argument)
            if self._carried_out != before:
                return result
            self._results[key] = function, argument, result
        return self._results[key][2]

    def _count(self, name: str) -> None:
        self._calls += 1
        self._applied[name] += 1
        most = max_size() // CALL
        if self._calls > most:
            name, number = max(self._applied.items(), key=lambda item: (item[1], item[0]))
            raise ValidationError(
                "E321",
                f"the program takes more than {most} calls to run on one argument",
                notes=(f"{number} of them are calls of {name}",),
                help="call functions fewer times, or allow more",
            )
