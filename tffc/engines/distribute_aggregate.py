"""The steps of a DistributeAggregateForm.

    b, t = server_prepare(s)
    b'   = server_to_client_broadcast(b)
    ai   = client_work((di, b'))                        for each client by itself
    a'   = client_to_server_aggregation((t, a))         each operator folded over the clients
    s, x = server_result((t, a'))

The parts are evaluated by the reference interpreter, which runs their sections with TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tffc.backends.forms.form import DistributeAggregateForm, pair
from tffc.engines.folds import folds
from tffc.engines.sections import EngineInterpreter
from tffc.engines.steps import Together, struct
from tffc.interpreter.interpreter import EMPTY
from tffc.ir.nodes import Lambda
from tffc.ir.trampoline import Task
from tffc.ir.trampoline import run as run_task
from tffc.ir.type_parts import local_type
from tffc.ir.types import FederatedType, Type
from tffc.values.concrete import Federated, flatten, unflatten


class DistributeAggregateSteps:
    """See `tffc.engines.steps.Steps`."""

    client_output_type = None

    def __init__(self, form: DistributeAggregateForm) -> None:
        self.form = form
        self._state, self._data = pair(form.type_signature.parameter, "the round", "parameter")
        self._new_state, self._output = pair(form.type_signature.result, "the round", "result")
        self.state_type = local_type(self._state)
        self.data_type = local_type(self._data)
        self.output_type = local_type(self._output)
        self.aggregations = folds(form.client_to_server_aggregation)

    def prepare(self, state: Any) -> tuple[Any, Any]:
        sent, kept = evaluate(self.form.server_prepare, _place(state, self._state), 0)
        return kept, evaluate(self.form.server_to_client_broadcast, sent, 0)

    def work(self, data: Any, sent: Any) -> Any:
        return evaluate(self.form.client_work, (_place(data, self._data), sent), 1)

    def absorb(self, totals: list[Any], data: Any, sent: Any, kept: Any, client: str) -> list[Any]:
        return Together(self.aggregations).accumulate(totals, self.work(data, sent), kept, client)

    def finish(self, kept: Any, reports: Sequence[Any]) -> tuple[Any, Any]:
        state, output = evaluate(self.form.server_result, (kept, tuple(reports)), 0)
        return _unplace(state, self._new_state), _unplace(output, self._output)


def evaluate(part: Lambda, argument: Any, clients: int) -> Any:
    """What a part of the form gives for an argument, where there are so many clients."""
    interpreter = EngineInterpreter(clients)
    function = run_task(interpreter.evaluate(part, EMPTY))
    return run_task(interpreter.apply(function, argument))


def _place(value: Any, type: Type) -> Any:
    """A value of one client or of the server, as the program's types place it."""
    return run_task(_placed(value, type))


def _placed(value: Any, type: Type) -> Task[Any]:
    if isinstance(type, FederatedType):
        return Federated((value,), all_equal=type.all_equal)
    elements = []
    for element, part in zip(value, struct(type), strict=True):
        elements.append((yield _placed(element, part)))
    return tuple(elements)


def _unplace(value: Any, type: Type) -> Any:
    """The value that the server holds; parts of it without a placement are what they are."""
    parts = flatten(value, type)
    members = (part.members[0] if isinstance(part, Federated) else part for part in parts)
    return unflatten(members, type)
