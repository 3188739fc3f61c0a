"""The interface of executors, for programs that bring their own.

tffc has none: its interpreter runs computations.
"""

from __future__ import annotations

import abc
from collections.abc import MutableMapping
from typing import Any

from tffc.frontend.type_queries import TypedObject
from tffc.language.types import Placement
from tffc.tff.framework import RetryableError as RetryableError


class ExecutorValue(TypedObject):
    """A value in an executor."""

    @property
    @abc.abstractmethod
    def reference(self) -> Any:
        """What the executor knows the value by."""

    @abc.abstractmethod
    async def compute(self) -> Any:
        """Return the value itself."""


class Executor(abc.ABC):
    """Holds values and computes with them."""

    @abc.abstractmethod
    def close(self) -> None:
        """Release what the executor holds."""

    @abc.abstractmethod
    async def create_value(self, value: Any, type_spec: Any = None) -> ExecutorValue:
        """Take in a value, of a type unless it says its own."""

    @abc.abstractmethod
    async def create_call(
        self, comp: ExecutorValue, arg: ExecutorValue | None = None
    ) -> ExecutorValue:
        """Call a function, with an argument unless it takes none."""

    @abc.abstractmethod
    async def create_struct(self, elements: Any) -> ExecutorValue:
        """Make a struct of the values in a container."""

    @abc.abstractmethod
    async def create_selection(self, source: ExecutorValue, index: int) -> ExecutorValue:
        """Select an element of a struct."""


class ExecutorFactory(abc.ABC):
    """Makes executors, and owns them."""

    @abc.abstractmethod
    def create_executor(self, cardinalities: MutableMapping[Placement, int]) -> Executor:
        """Return an executor for numbers of participants."""

    @abc.abstractmethod
    def clean_up_executor(self, cardinalities: MutableMapping[Placement, int]) -> None:
        """Release the executor for numbers of participants."""
