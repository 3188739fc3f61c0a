"""Errors about computations that do not form a process."""

from __future__ import annotations

from typing import Unpack

from tffc.support.errors import Details, LanguageTypeError


class TemplateError(LanguageTypeError):
    """The computations do not form the intended process.

    TFF's libraries, which define their own processes, raise these errors with only a message.
    """

    def __init__(self, message: str, *, code: str = "E186", **details: Unpack[Details]) -> None:
        super().__init__(code, message, **details)


class TemplateInitFnParamNotEmptyError(TemplateError):
    """`initialize_fn` takes an argument."""


class TemplateStateNotAssignableError(TemplateError):
    """The state that one computation returns is not assignable to what another takes."""


class TemplateNextFnNumArgsError(TemplateError):
    """`next_fn` takes too few arguments, or too many."""


class TemplateNotFederatedError(TemplateError):
    """A parameter or result of a computation is unplaced."""


class TemplatePlacementError(TemplateError):
    """A parameter or result is at the clients instead of the server, or vice versa."""


class TemplateNotMeasuredProcessOutputError(TemplateError):
    """`next_fn` does not return a `MeasuredProcessOutput`."""


class AggregationNotFederatedError(TemplateNotFederatedError):
    """A part of an `AggregationProcess` is unplaced."""


class AggregationPlacementError(TemplatePlacementError):
    """A part of an `AggregationProcess` has the wrong placement."""


class EstimateNotAssignableError(TemplateError):
    """The estimate of an `EstimationProcess` is not what the function to be mapped takes."""
