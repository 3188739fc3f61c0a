"""Calls in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_background(function: Callable[[], T]) -> Future[T]:
    """Call a function in a thread of its own; return its future result.

    The process does not end before it returns: compilers cannot be stopped halfway.
    """
    outcome: Future[T] = Future()

    def call() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:  # noqa: BLE001  (raised where the result is read)
            outcome.set_exception(error)

    threading.Thread(target=call).start()
    return outcome
