"""Estimation processes: iterative processes that report an estimate."""

from __future__ import annotations

from collections.abc import Callable

from tffc.frontend.computation import Computation, federated_computation, tf_computation
from tffc.frontend.templates.errors import (
    EstimateNotAssignableError,
    TemplateStateNotAssignableError,
)
from tffc.frontend.templates.iterative_process import IterativeProcess, check_computation
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType, Type
from tffc.runtime.user_code.source import entry_point


class EstimationProcess(IterativeProcess):
    """An iterative process with a third computation, `report`, from the state to an estimate."""

    @entry_point
    def __init__(
        self,
        initialize_fn: object,
        next_fn: object,
        report_fn: object,
        next_is_multi_arg: bool | None = None,
    ) -> None:
        """Check that the three computations fit each other.

        Raises:
          LanguageTypeError: what `IterativeProcess` refuses, or `report_fn` is not a computation.
          TemplateStateNotAssignableError: `report_fn` does not take the state.
        """
        super().__init__(initialize_fn, next_fn, next_is_multi_arg)
        self._report = check_computation(report_fn, "report_fn")
        report = self._report.type_signature
        if not _takes(report, self.state_type):
            raise TemplateStateNotAssignableError(
                f"report_fn must take the state, of type `{self.state_type}`, but is of type "
                f"`{report}`",
                code="E190",
                help="give its decorator the type of the state",
            )

    @property
    def report(self) -> Computation:
        """The computation from the state to the estimate."""
        return self._report

    @entry_point
    def map(self, map_fn: object) -> EstimationProcess:
        """Return the process with `map_fn` applied to the estimates of this one.

        Raises:
          LanguageTypeError: `map_fn` is not a computation.
          EstimateNotAssignableError: it does not take the estimate.
        """
        mapping = check_computation(map_fn, "map_fn")
        mapped = mapping.type_signature
        report = self.report
        estimate = report.type_signature.result
        if not _takes(mapped, estimate):
            raise EstimateNotAssignableError(
                f"map_fn must take the estimate, of type `{estimate}`, but is of type `{mapped}`",
                code="E190",
                help="give its decorator the type of the estimate",
            )
        is_section = all(isinstance(function.node, Compiled) for function in (report, mapping))
        decorate = tf_computation if is_section else federated_computation
        compose: Callable[[Callable[[object], object]], Computation] = decorate(self.state_type)
        composed = compose(lambda state: mapping(report(state)))
        return EstimationProcess(self.initialize, self.next, composed)


def _takes(function: FunctionType, type: Type) -> bool:
    return function.parameter is not None and function.parameter.is_assignable_from(type)
