"""The values of names while lambdas are evaluated symbolically."""

from __future__ import annotations

from typing import Generic, TypeVar

V = TypeVar("V")


class Frame(Generic[V]):
    """The values of names in one scope, and the scope around it."""

    __slots__ = ("around", "values")

    def __init__(self, around: Frame[V] | None) -> None:
        self.around = around
        self.values: dict[str, V] = {}

    def find(self, name: str) -> V | None:
        """Return the value of a name here or, where this scope has none, around it; None without
        any."""
        passed: list[Frame[V]] = []
        frame: Frame[V] | None = self
        while frame is not None:
            value = frame.values.get(name)
            if value is not None:
                for inner in passed:
                    # Remembered on the way, so that a name far out is not searched for again.
                    inner.values[name] = value
                return value
            passed.append(frame)
            frame = frame.around
        return None
