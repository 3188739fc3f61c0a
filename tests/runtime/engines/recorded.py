"""Recorded rounds of real computations, run by an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.corpus.cases import Case
from tests.runtime.engines.sources import Values
from tffc.backends.compiler import compile_bundle
from tffc.language.type_parts import local_type
from tffc.language.types import FunctionType, SequenceType
from tffc.language.values.concrete import Federated, to_python, to_value
from tffc.runtime.engines.engine import Cohort, Engine
from tffc.runtime.engines.process import Process

MakeEngine = Callable[[Process], Engine]


def differences(case: Case, form: str, make: MakeEngine) -> list[str]:
    """What differs from the recorded results; empty if all agree.

    Raises:
      FormError: the case is not of this form.
    """
    program = case.program()
    engine = make(Process(compile_bundle(program, form)))
    recorded = case.rounds()
    found: list[str] = []
    assert isinstance(program.type, FunctionType)
    for index, one in enumerate(recorded.rounds):
        state, clients = arguments(program.type, one)
        result = run_round(engine, state, clients)
        found += recorded.compare_result(index, to_python(result, result_type(engine, program)))
    return found


def run_round(engine: Engine, state: Any, clients: list[Any]) -> Any:
    """Return the new state and the output, or what each client is left with."""
    source = Values(clients)
    delivered: dict[str, Any] = {}
    outcome = engine.run_round(state, Cohort(source, source.clients, deliver=delivered.__setitem__))
    if engine.process.client_output_type is None:
        return outcome.state, outcome.output
    return [delivered[client] for client in source.clients]


def result_type(engine: Engine, program: Any) -> Any:
    """Return the type of what `run_round` returns."""
    result = program.type.result
    if engine.process.client_output_type is not None:
        return SequenceType(local_type(result))
    return local_type(result)


def arguments(type: FunctionType, recorded: Any) -> tuple[Any, list[Any]]:
    """The state and every client's data of a recorded round."""
    assert type.parameter is not None
    state, data = to_value(recorded.arg, type.parameter)
    return _unplaced(state), list(data.at_each(recorded.n_clients))


def _unplaced(value: Any) -> Any:
    if isinstance(value, Federated):
        return value.members[0]
    return tuple(map(_unplaced, value))
