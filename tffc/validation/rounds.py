"""One round of a form, run part by part as a system would, on in-memory values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from tffc.backends.forms.form import (
    BroadcastForm,
    DistributeAggregateForm,
    Form,
    MapReduceForm,
    struct_of,
)
from tffc.engines.secure_sums import SecureSums
from tffc.interpreter.interpreter import invoke
from tffc.ir.nodes import Node
from tffc.ir.types import Type
from tffc.validation.draws import Draws, Who
from tffc.validation.stand_ins import runnable
from tffc.validation.watched import Watched, split
from tffc.values.concrete import flatten, to_python, to_value, unflatten


def run_round(form: Form, argument: Any, clients: int, draws: Draws, shards: int) -> Any:
    """The result of a round for the argument of the program that the form was made from.

    Aggregations accumulate in so many shards, and merge them.  What is drawn at random comes from
    `draws`.

    Raises:
      ExecutionError: a part fails.
    """
    parameter = struct_of(form.type_signature.parameter, 2, "the round", "parameter")
    types = parameter.types
    values = to_value(argument, parameter)
    if isinstance(form, DistributeAggregateForm):
        state, data = (to_python(v, t, clients) for v, t in zip(values, types, strict=True))
        return _distribute_aggregate(
            form, state, data, lambda found: Watched(found or clients, draws, shards)
        )
    (server,) = _local_values(values[0], types[0], 1)
    each = _local_values(values[1], types[1], clients)
    if isinstance(form, BroadcastForm):
        return _broadcast(form, server, each, draws)
    return _map_reduce(form, server, each, draws, shards)


def _local_values(placed: Any, type: Type, count: int) -> list[Any]:
    """What each of so many members of a placement holds."""
    parts = [part.at_each(count) for part in flatten(placed, type)]
    return [unflatten((part[index] for part in parts), type) for index in range(count)]


def _broadcast(form: BroadcastForm, state: Any, clients: Sequence[Any], draws: Draws) -> Any:
    context = draws.run(form.compute_server_context, state)
    received = []
    for index, data in enumerate(clients):
        with draws.by(Who("client", index)):
            received.append(draws.run(form.client_processing, (context, data)))
    return received


def _map_reduce(
    form: MapReduceForm, state: Any, clients: Sequence[Any], draws: Draws, shards: int
) -> Any:
    context = draws.run(form.prepare, state)
    zero = draws.run(form.zero, None)
    secure = SecureSums(_with_runnable_bounds(form))
    totals = secure.zero()
    merged: Any = None
    for number, shard in enumerate(split(list(enumerate(clients)), shards)):
        accumulator = zero
        for index, data in shard:
            with draws.by(Who("client", index)):
                update, *secured = draws.run(form.work, (data, context))
                accumulator = draws.run(form.accumulate, (accumulator, update))
            totals = secure.add(totals, secured, str(index))
        with draws.by(Who("merge", number)):
            merged = accumulator if number == 0 else draws.run(form.merge, (merged, accumulator))
    return draws.run(form.update, (state, (draws.run(form.report, merged), *totals)))


def _with_runnable_bounds(form: MapReduceForm) -> MapReduceForm:
    return dataclasses.replace(
        form,
        secure_sum_bitwidth=runnable(form.secure_sum_bitwidth).section,
        secure_sum_max_input=runnable(form.secure_sum_max_input).section,
        secure_modular_sum_modulus=runnable(form.secure_modular_sum_modulus).section,
    )


def _distribute_aggregate(
    form: DistributeAggregateForm, state: Any, data: Any, make: Callable[[int], Watched]
) -> Any:
    # A part that is given nothing of the clients' own still runs for all of them.
    def call(part: Node, argument: Any) -> Any:
        return invoke(part, part.type, argument, make)

    sent, temporary = call(form.server_prepare, state)
    received = call(form.server_to_client_broadcast, sent)
    worked = call(form.client_work, (data, received))
    aggregates = call(form.client_to_server_aggregation, (temporary, worked))
    return call(form.server_result, (temporary, aggregates))
