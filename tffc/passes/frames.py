"""The values of names while lambdas are evaluated symbolically."""

from __future__ import annotations

from typing import Generic, TypeVar

from tffc.ir.environment import Environment

V = TypeVar("V")


class Frame(Generic[V]):
    """The values of names in one scope, which begins with those of the scope around it.

    It is one object while names are bound in it, so that its id stands for the scope.
    """

    __slots__ = ("_values",)

    def __init__(self, around: Frame[V] | None) -> None:
        self._values: Environment[V] = Environment() if around is None else around._values

    def bind(self, name: str, value: V) -> None:
        """Give a name a value here, and in scopes that are made inside this one from now on."""
        self._values = self._values.bind(name, value)

    def find(self, name: str) -> V | None:
        """Return the value of a name here, or None without any."""
        return self._values.find(name)
