"""Running recursive algorithms without growing Python's stack."""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import GeneratorType
from typing import Any, TypeAlias, TypeVar, cast

T = TypeVar("T")

Task: TypeAlias = Generator[Any, Any, T]
"""A computation that yields the tasks whose results it needs, and is sent each result.

It may also yield a result that it has already, not a generator, which is sent back at once.
"""


def run(task: Task[T] | T) -> T:
    """Return the result of `task`, or `task` itself if it is a result already.

    However deep tasks nest, Python's own stack stays flat.
    """
    if not isinstance(task, GeneratorType):
        return cast("T", task)
    waiting: list[Callable[[Any], Any]] = []
    send: Callable[[Any], Any] = cast("Task[Any]", task).send
    result: Any = None
    while True:
        try:
            result = send(result)
        except StopIteration as finished:
            result = finished.value
            if not waiting:
                return result
            send = waiting.pop()
        else:
            if isinstance(result, GeneratorType):
                waiting.append(send)
                send, result = cast("Task[Any]", result).send, None
