"""A round of a form, run component by component on values in memory."""

from __future__ import annotations

from typing import Any

from tffc.assurance.validation.draws import Draws, Who
from tffc.assurance.validation.watched import Watched, split
from tffc.backends.forms.form import Form, struct_of
from tffc.backends.forms.mergeable import MergeableSteps
from tffc.backends.forms.steps import RoundSteps, TupleAggregation
from tffc.language.nodes import Compiled
from tffc.language.types import Type
from tffc.language.values.concrete import flatten, to_value, unflatten
from tffc.runtime.engines.runtime import EngineRuntime
from tffc.runtime.engines.sections import run_section
from tffc.runtime.interpreter.interpreter import Interpreter


def run_round(form: Form, argument: Any, clients: int, draws: Draws, shards: int) -> Any:
    """Return the result of a round for an argument of the program that was compiled to the form.

    Aggregations accumulate clients in `shards` groups, which are then merged; a form with groups of
    clients runs in as many.  Random numbers come from `draws`.

    Raises:
      ExecutionError: a component fails.
    """
    parameter = struct_of(form.type_signature.parameter, 2, "the round", "parameter")
    values = to_value(argument, parameter)
    (state,) = _local_values(values[0], parameter.types[0], 1)
    data = _local_values(values[1], parameter.types[1], clients)
    return _run_steps(form.steps(_DrawingRuntime(draws)), state, data, draws, shards)


class _DrawingRuntime(EngineRuntime):
    """A runtime that runs components as engines do, with random numbers from `draws`."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws

    def run(self, section: Compiled, argument: Any) -> Any:
        return self._draws.run(section, argument, run_section)

    def interpreter(self, clients: int) -> Interpreter:
        # Engines evaluate one client at a time, so its number is needed to identify its draws.
        return _DrawingInterpreter(clients, self._draws, first=self._draws.who.index)


class _DrawingInterpreter(Watched):
    """An interpreter that runs sections as engines do, with random numbers from its `draws`."""

    def run_section(self, section: Compiled, argument: Any) -> Any:
        return self.draws.run(section, argument, run_section)


def _run_steps(steps: RoundSteps, state: Any, data: list[Any], draws: Draws, shards: int) -> Any:
    if isinstance(steps, MergeableSteps) and shards > 1:
        return _run_groups(steps, state, data, draws, shards)
    carried, sent = steps.prepare(state)
    aggregation = TupleAggregation(steps.aggregations)
    zero = aggregation.zero(carried)
    outputs: list[Any] = []
    merged: Any = None
    for number, shard in enumerate(split(list(enumerate(data)), shards)):
        total = zero
        for index, held in shard:
            with draws.by(Who("client", index)):
                update = steps.work(held, sent)
                outputs.append(steps.client_output(update))
                total = aggregation.accumulate(total, update, carried, str(index))
        with draws.by(Who("merge", number)):
            merged = total if number == 0 else aggregation.merge(merged, total, carried)
    if not steps.aggregates:
        return outputs
    new_state, output = steps.finish(carried, aggregation.report(merged, carried))
    return (new_state, output) if steps.client_output_type is None else (new_state, outputs, output)


def _run_groups(
    steps: MergeableSteps, state: Any, data: list[Any], draws: Draws, groups: int
) -> Any:
    """Run a round of groups of clients, which are then merged.

    They are those in which the reference aggregates, with no more empty ones: of a program whose
    aggregations break the laws, these would have another result.
    """
    merged: Any = None
    for number, group in enumerate(split(list(enumerate(data)), groups)):
        carried, sent = steps.prepare(state)
        aggregation = TupleAggregation(steps.aggregations)
        total = aggregation.zero(carried)
        for index, held in group:
            with draws.by(Who("client", index)):
                total = aggregation.accumulate(total, steps.work(held, sent), carried, str(index))
        _, partial = steps.group.finish(carried, aggregation.report(total, carried))
        with draws.by(Who("merge", number)):
            merged = partial if number == 0 else steps.join(merged, partial)
    return steps.conclude(state, merged)


def _local_values(placed: Any, type: Type, count: int) -> list[Any]:
    """Return the value of each member of a placement."""
    parts = [part.at_each(count) for part in flatten(placed, type)]
    return [unflatten((part[index] for part in parts), type) for index in range(count)]
