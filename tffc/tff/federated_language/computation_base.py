"""The abstract class of computations, for annotations, and for programs with their own."""

from __future__ import annotations

import abc
from typing import Any

from tffc.frontend import computation
from tffc.frontend.type_queries import TypedObject
from tffc.language.types import FunctionType


class AbstractComputation(TypedObject):
    """A function of a type that can be called, also with values of programs; tffc's are such."""

    @property
    @abc.abstractmethod
    def type_signature(self) -> FunctionType:
        """The type of the function."""

    @abc.abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the computation."""

    @abc.abstractmethod
    def __hash__(self) -> int:
        """Return the same number for computations that are equal."""


AbstractComputation.register(computation.Computation)

Computation = AbstractComputation
"""The name that annotations have for it."""
