"""Aggregation processes: measured rounds that aggregate clients' values at the server."""

from __future__ import annotations

from tffc.frontend.templates.errors import (
    AggregationNotFederatedError,
    AggregationPlacementError,
    TemplateNextFnNumArgsError,
)
from tffc.frontend.templates.iterative_process import check_computation
from tffc.frontend.templates.measured_process import MeasuredProcess
from tffc.language.types import CLIENTS, SERVER, FederatedType, Placement, StructType, Type
from tffc.runtime.user_code.source import entry_point


class AggregationProcess(MeasuredProcess):
    """A measured process whose rounds aggregate values at the clients into a result at the server.

    Rounds may take further arguments; state and measurements are at the server.
    """

    @entry_point
    def __init__(self, initialize_fn: object, next_fn: object) -> None:
        """Check that the two computations fit each other and are placed as an aggregation is.

        Raises:
          LanguageTypeError: what `MeasuredProcess` refuses.
          TemplateNextFnNumArgsError: `next_fn` takes nothing but a state.
          AggregationNotFederatedError: a part is unplaced, or placed in several places.
          AggregationPlacementError: a part has the wrong placement.
        """
        parameter = check_computation(next_fn, "next_fn").type_signature.parameter
        several = isinstance(parameter, StructType)
        super().__init__(initialize_fn, next_fn, next_is_multi_arg=several or None)
        if not several or len(parameter.types) < 2:
            raise TemplateNextFnNumArgsError(
                f"the next_fn of an aggregation must take a state and values, but takes "
                f"`{parameter}`",
                code="E190",
                help="give its decorator the types of the state and of the clients' values",
            )
        state, result, measurements = _elements(self.next.type_signature.result)
        _check_placed(self.state_type, SERVER, "the state that initialize_fn makes")
        for number, type in enumerate(parameter.types):
            _check_federated(type, f"argument {number + 1} of next_fn")
        _check_placed(parameter.types[1], CLIENTS, "argument 2 of next_fn, the values,")
        _check_placed(state, SERVER, "the state that next_fn gives")
        _check_placed(result, SERVER, "the result that next_fn gives")
        _check_placed(measurements, SERVER, "what next_fn gives as measurements")

    @property
    def is_weighted(self) -> bool:
        """Whether rounds take a third argument: a weight for each client's value."""
        parameter = self.next.type_signature.parameter
        return isinstance(parameter, StructType) and len(parameter.types) == 3


def _elements(type: Type) -> tuple[Type, ...]:
    assert isinstance(type, StructType)
    return type.types


def _check_federated(type: Type, what: str) -> FederatedType:
    if isinstance(type, FederatedType):
        return type
    raise AggregationNotFederatedError(
        f"{what} must be placed as a whole, but is of type `{type}`",
        code="E189",
        help="place a constant with tff.federated_value; put parts together with tff.federated_zip",
    )


def _check_placed(type: Type, placement: Placement, what: str) -> None:
    federated = _check_federated(type, what)
    if federated.placement is not placement:
        raise AggregationPlacementError(
            f"{what} must be at {placement}, but is of type `{type}`",
            code="E189",
            help="an aggregation takes values at the clients and gives all that it gives at the "
            "server",
        )
