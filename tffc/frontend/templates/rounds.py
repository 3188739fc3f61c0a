"""The round of a process in the shape that forms take: from state and data to state and output."""

from __future__ import annotations

import collections
from typing import Any

from tffc.frontend.computation import Computation, federated_computation
from tffc.frontend.operators import federated_zip
from tffc.frontend.templates.iterative_process import IterativeProcess
from tffc.frontend.templates.measured_process import MeasuredProcess
from tffc.language.types import CLIENTS, SERVER, FederatedType, Placement, StructType, Type


def round_of(process: IterativeProcess) -> Computation:
    """Return the computation of a round, from state and data to state and output.

    The output of a measured process is a struct of its result and measurements.  If a round takes
    several values of each client, as a weighted aggregation does, a client's data is a struct of
    them.  Other rounds, and those with other placements, are `next` itself.
    """
    parameter = process.next.type_signature.parameter
    if not isinstance(process, MeasuredProcess) or not isinstance(parameter, StructType):
        return process.next
    state, *values = parameter.types
    outputs: Any = process.next.type_signature.result
    if not _is_at(SERVER, state, *outputs.types):
        return process.next
    if not values or not _is_at(CLIENTS, *values):
        return process.next

    def one_round(state: object, data: Any) -> tuple[object, object]:
        several = [data[number] for number in range(len(values))] if len(values) > 1 else [data]
        output: Any = process.next(state, *several)
        measured = collections.OrderedDict[str, object](
            result=output.result, measurements=output.measurements
        )
        return output.state, federated_zip(measured)

    return federated_computation(one_round, state, _as_one(parameter.names[1:], values))


def _is_at(placement: Placement, *types: Type) -> bool:
    """Return whether each type is placed as a whole, and may differ from client to client."""
    return all(
        isinstance(type, FederatedType)
        and type.placement is placement
        and type.all_equal is (placement is SERVER)
        for type in types
    )


def _as_one(names: tuple[str | None, ...], values: list[Any]) -> Type:
    """Return the type of everything that a client holds."""
    if len(values) == 1:
        return values[0]
    return FederatedType(StructType.of(names, tuple(value.member for value in values)), CLIENTS)
