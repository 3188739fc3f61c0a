"""The steps of a DistributeAggregateForm.

    b, t = server_prepare(s)
    b'   = server_to_client_broadcast(b)
    ai   = client_work((di, b'))                        for each client by itself
    a'   = client_to_server_aggregation((t, a))         each operator folded over the clients
    s, x = server_result((t, a'))

The parts are evaluated by the reference interpreter, which runs their sections with TensorFlow.
"""

from __future__ import annotations

import functools
from typing import Any

from tffc.backends.forms import DistributeAggregateForm, local_type, pair
from tffc.engines.folds import folds
from tffc.engines.steps import struct
from tffc.execution.interpreter import EMPTY, Interpreter
from tffc.execution.values import Federated, flatten, unflatten
from tffc.ir.nodes import Lambda
from tffc.ir.trampoline import Task
from tffc.ir.trampoline import run as run_task
from tffc.ir.types import FederatedType, Type, leaves


class DistributeAggregateSteps:
    """See `tffc.engines.steps.Steps`.

    An accumulator is None before the first client, and then one value for each aggregation.
    """

    client_output_type = None

    def __init__(self, form: DistributeAggregateForm) -> None:
        self.form = form
        self._state, self._data = pair(form.type_signature.parameter, "the round", "parameter")
        self._new_state, self._output = pair(form.type_signature.result, "the round", "result")
        self.state_type = local_type(self._state)
        self.data_type = local_type(self._data)
        self.output_type = local_type(self._output)
        self._folds = folds(form.client_to_server_aggregation)

    def prepare(self, state: Any) -> tuple[Any, Any]:
        sent, kept = evaluate(self.form.server_prepare, _place(state, self._state), 0)
        return kept, evaluate(self.form.server_to_client_broadcast, sent, 0)

    def work(self, data: Any, sent: Any) -> Any:
        return evaluate(self.form.client_work, (_place(data, self._data), sent), 1)

    def zero(self, kept: Any) -> Any:
        return None

    def accumulate(self, accumulator: Any, update: Any, kept: Any, client: str) -> Any:
        argument = (kept, update)
        if accumulator is None:
            return [fold.first(argument, client) for fold in self._folds]
        totals = zip(self._folds, accumulator, strict=True)
        return [fold.accumulate(total, argument, client) for fold, total in totals]

    def merge(self, first: Any, second: Any, kept: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        totals = zip(self._folds, first, second, strict=True)
        return [fold.merge(one, other, (kept, self._nobody)) for fold, one, other in totals]

    def finish(self, kept: Any, accumulator: Any) -> tuple[Any, Any]:
        argument = (kept, self._nobody)
        if accumulator is None:
            aggregate = evaluate(self.form.client_to_server_aggregation, argument, 0)
        else:
            totals = zip(self._folds, accumulator, strict=True)
            aggregate = tuple(fold.report(total, argument) for fold, total in totals)
        state, output = evaluate(self.form.server_result, (kept, aggregate), 0)
        return _unplace(state, self._new_state), _unplace(output, self._output)

    @functools.cached_property
    def _nobody(self) -> Any:
        """What `client_work` gives where there are no clients."""
        type = self.form.client_work.type.result
        return unflatten((Federated((), all_equal=False) for _ in leaves(type)), type)


def evaluate(part: Lambda, argument: Any, clients: int) -> Any:
    """What a part of the form gives for an argument, where there are so many clients."""
    interpreter = Interpreter(clients)
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
    """The value that the server holds."""
    members = (part.members[0] for part in flatten(value, type))
    return unflatten(members, type)
