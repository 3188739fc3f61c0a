"""Rounds of a form run part by part, exactly as each form's picture says."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tffc.backends.forms.broadcast import BroadcastForm
from tffc.backends.forms.distribute_aggregate import DistributeAggregateForm
from tffc.backends.forms.form import struct_of
from tffc.backends.forms.map_reduce import MapReduceForm
from tffc.backends.forms.mergeable import MergeableForm
from tffc.language import FunctionType, Node, StructType, TensorType, Type
from tffc.language.values.concrete import Federated
from tffc.runtime.frameworks.sections import run_section
from tffc.runtime.interpreter.interpreter import EMPTY, Interpreter
from tffc.support.trampoline import run


def run_mapreduce(form: MapReduceForm, state: Any, clients: Sequence[Any]) -> Any:
    """The new state and the output of one round, over shards of two clients each."""
    context = run_section(form.prepare, state)
    updates = [run_section(form.work, (data, context)) for data in clients]
    shards = [updates[start : start + 2] for start in range(0, len(updates), 2)] or [[]]
    accumulated = [_fold(form, [update[0] for update in shard]) for shard in shards]
    whole = accumulated[0]
    for other in accumulated[1:]:
        whole = run_section(form.merge, (whole, other))
    report = run_section(form.report, whole)
    assert isinstance(form.work.type, FunctionType)
    types = struct_of(form.work.type.result, 4, "work", "result").types[1:]
    sums = [add(t, [u[i] for u in updates]) for i, t in enumerate(types, start=1)]
    moduli = run_section(form.secure_modular_sum_modulus, None)
    sums[2] = modulo(sums[2], moduli)
    return run_section(form.update, (state, (report, *sums)))


def _fold(form: MapReduceForm, updates: Iterable[Any]) -> Any:
    accumulator = run_section(form.zero, None)
    for update in updates:
        accumulator = run_section(form.accumulate, (accumulator, update))
    return accumulator


def add(type_: Type, values: Sequence[Any]) -> Any:
    """The sum of values of a type, zeros for none."""
    if isinstance(type_, StructType):
        return tuple(add(t, [v[i] for v in values]) for i, t in enumerate(type_.types))
    assert isinstance(type_, TensorType)
    shape = [size or 0 for size in type_.shape or ()]
    total = np.zeros(shape, type_.element_type.dtype)
    for value in values:
        total = (total + value).astype(type_.element_type.dtype)
    return total[()]


def modulo(value: Any, modulus: Any) -> Any:
    """A value modulo a structure of moduli, or modulo one for all."""
    if isinstance(value, tuple):
        moduli = modulus if isinstance(modulus, tuple) else (modulus,) * len(value)
        return tuple(modulo(v, m) for v, m in zip(value, moduli, strict=True))
    return np.mod(value, modulus).astype(np.asarray(value).dtype)[()]


def run_broadcast(form: BroadcastForm, state: Any, clients: Sequence[Any]) -> list[Any]:
    """What each client computes in one round."""
    context = run_section(form.compute_server_context, state)
    return [run_section(form.client_processing, (context, data)) for data in clients]


def run_distribute_aggregate(
    form: DistributeAggregateForm, state: Any, data: Any, clients: int
) -> Any:
    """The new state and the output of one round, as placed values made of placed values."""
    interpreter = Interpreter(clients)

    def call(part: Node, argument: Any) -> Any:
        function = run(interpreter.evaluate(part, EMPTY))
        return run(interpreter.apply(function, argument))

    sent, temporary = call(form.server_prepare, state)
    received = call(form.server_to_client_broadcast, sent)
    worked = call(form.client_work, (data, received))
    collected = call(form.client_to_server_aggregation, (temporary, worked))
    return call(form.server_result, (temporary, collected))


def run_mergeable(
    form: MergeableForm, state: Any, data: Any, clients: int, sizes: Sequence[int]
) -> Any:
    """The new state and the output of one round, as placed values made of placed values, with the
    clients in groups of these sizes, in order."""
    assert sum(sizes) == clients
    ends = list(itertools.accumulate(sizes))
    groups = [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    partials = [
        apply_part(form.up_to_merge, (state, of_clients(data, group)), len(group)).members[0]
        for group in groups
    ]
    whole = functools.reduce(lambda *pair: apply_part(form.merge, pair, 0), partials)
    merged = Federated.everywhere(whole)
    return apply_part(form.after_merge, ((state, data), merged), clients)


def apply_part(part: Node, argument: Any, clients: int) -> Any:
    """What a program gives for an argument, with this number of clients."""
    interpreter = Interpreter(clients)
    return run(interpreter.apply(run(interpreter.evaluate(part, EMPTY)), argument))


def of_clients(value: Any, group: range) -> Any:
    """A value at the clients, or a struct of them, as some of the clients have it."""
    if not isinstance(value, Federated):
        return tuple(of_clients(part, group) for part in value)
    if value.all_equal:
        return value
    return Federated(value.members[group.start : group.stop], all_equal=False)


def groupings(clients: int) -> list[tuple[int, ...]]:
    """Sizes of groups of this many clients: one, two, one each, uneven ones, and an empty one."""
    half = clients // 2
    return [
        (clients,),
        (half, clients - half),
        (1,) * clients or (0,),
        (0, clients),
        (min(1, clients), max(0, clients - 1), 0),
    ]
