"""Data descriptors: arguments given by a computation that makes them, and its own argument."""

from __future__ import annotations

from typing import Any

from tffc.frontend.computation import Computation
from tffc.frontend.execution import DeferredArgument, Runner
from tffc.language.types import CLIENTS, Placement, Type, to_type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageValueError


class CardinalityFreeDataDescriptor(DeferredArgument):
    """An argument made by a computation; or the given argument itself if there is no
    computation."""

    @entry_point
    def __init__(self, comp: Computation | None, arg: Any, arg_type: Any) -> None:
        """Take the computation, its argument and the argument's type.

        Raises:
          LanguageValueError: the computation does not take an argument of the type.
        """
        self._comp, self._arg = comp, arg
        self._type: Type = to_type(arg_type)
        if comp is None:
            return
        parameter = comp.type_signature.parameter
        if parameter is None or not parameter.is_assignable_from(self._type):
            raise LanguageValueError(
                "E711",
                f"the computation is of type `{comp.type_signature}`, and does not take an "
                f"argument of type `{self._type}`",
                help="give an argument of the type that the computation takes",
            )
        self._type = comp.type_signature.result

    @property
    def type_signature(self) -> Type:
        """The type of the argument that it makes."""
        return self._type

    def made(self, run: Runner) -> Any:
        return self._arg if self._comp is None else run(self._comp, self._arg)


class DataDescriptor(CardinalityFreeDataDescriptor):
    """A data descriptor of values at a known number of clients."""

    @entry_point
    def __init__(
        self, comp: Computation | None, arg: Any, arg_type: Any, cardinality: int | None = None
    ) -> None:
        """Take the number of clients, in addition to what the base class takes."""
        super().__init__(comp, arg, arg_type)
        self._cardinality = cardinality

    @property
    def cardinality(self) -> dict[Placement, int]:
        """The number of participants at each placement.

        Raises:
          LanguageValueError: it was not given.
        """
        if self._cardinality is None:
            raise LanguageValueError(
                "E729",
                "the descriptor was made without a cardinality",
                help="give the number of clients as the last argument",
            )
        return {CLIENTS: self._cardinality}
