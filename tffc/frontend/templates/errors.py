"""What is raised where the computations of a process do not fit each other."""

from __future__ import annotations

from tffc.errors import LanguageTypeError


class TemplateError(LanguageTypeError):
    """Computations that do not make the process that they are meant to make.

    TFF's libraries, which have processes of their own, raise these errors with a message alone.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "E186",
        notes: tuple[str, ...] = (),
        help: str | None = None,
    ) -> None:
        super().__init__(code, message, notes=notes, help=help)


class TemplateInitFnParamNotEmptyError(TemplateError):
    """`initialize_fn` takes an argument."""


class TemplateStateNotAssignableError(TemplateError):
    """The state that one computation gives is not one that another takes."""


class TemplateNextFnNumArgsError(TemplateError):
    """`next_fn` takes too few arguments, or too many."""


class TemplateNotFederatedError(TemplateError):
    """What a computation takes or gives is placed nowhere."""


class TemplatePlacementError(TemplateError):
    """What a computation takes or gives is at the clients and should be at the server, or the
    other way round."""


class TemplateNotMeasuredProcessOutputError(TemplateError):
    """`next_fn` does not return a `MeasuredProcessOutput`."""


class AggregationNotFederatedError(TemplateNotFederatedError):
    """A part of an `AggregationProcess` is placed nowhere."""


class AggregationPlacementError(TemplatePlacementError):
    """A part of an `AggregationProcess` is placed at the wrong side."""


class EstimateNotAssignableError(TemplateError):
    """What an `EstimationProcess` reports is not what a function that is to be mapped takes."""
