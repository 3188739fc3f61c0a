"""Mutually recursive walks on a stack of our own.

A walk is written as generators: a step yields the steps it needs, is sent what they return, and
returns its own result.  Programs may be nested deeper than Python's own stack allows.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias

Step: TypeAlias = Generator[Any, Any, Any]
"""A part of a walk: it yields steps, is sent what each returns, and returns its own result."""


def run(step: Step) -> Any:
    """Runs a step and all that it yields; gives what it returns."""
    stack = [step]
    sent: Any = None
    while stack:
        try:
            stack.append(stack[-1].send(sent))
            sent = None
        except StopIteration as finished:
            stack.pop()
            sent = finished.value
    return sent
