"""Recursive algorithms without the recursion."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Task: TypeAlias = Generator[Any, Any, T]
"""A computation that yields the tasks whose results it needs, and is sent each result."""


def run(task: Task[T]) -> T:
    """The result of `task`.  However deep tasks nest, Python's own stack stays flat."""
    stack: list[Task[Any]] = [task]
    result: Any = None
    while stack:
        try:
            needed = stack[-1].send(result)
        except StopIteration as finished:
            stack.pop()
            result = finished.value
        else:
            stack.append(needed)
            result = None
    return result
