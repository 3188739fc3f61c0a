"""Derivations of programs that tests write, as `tffc audit --privacy` makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tffc as tff
from tffc.api.programs import round_of
from tffc.assurance.audit.audit import audit_round
from tffc.assurance.privacy.derivation import Derivation, derive
from tffc.assurance.privacy.question import Neighbours
from tffc.backends.compiler import normalized
from tffc.backends.forms.kinds import form_for, load_form
from tffc.backends.forms.stages import assign_stages

VECTOR = tff.TensorType(np.float32, [4])
NOTHING = tff.types.at_server(())


def derivation(
    process: Any,
    neighbours: Neighbours = Neighbours.ADD_OR_REMOVE,
    least_clients: int = 1,
    has_secret_seeds: bool = False,
    rounds: int | None = None,
    participations: int | None = None,
) -> Derivation:
    """Return the derivation of a process."""
    program = round_of(process)
    form = form_for(program.computation)
    staged = assign_stages(normalized(program.computation, form))
    audit = audit_round(staged, load_form(form).build(staged), form)
    return derive(
        staged,
        audit,
        program.initialize,
        neighbours,
        least_clients=least_clients,
        has_secret_seeds=has_secret_seeds,
        rounds=rounds,
        participations=participations,
    )


@tff.federated_computation
def nothing() -> Any:
    """Return the state of rounds without one."""
    return tff.federated_value((), tff.SERVER)


def round_by(work: Callable[..., Any], finish: Callable[..., Any], data: Any = VECTOR) -> Any:
    """Return a process without state: the clients' `work` is added up, and `finish` is applied to
    the sums, which it gets as parameters."""
    local = tff.tf_computation(data)(work)
    sums = local.type_signature.result
    parameters = list(sums) if isinstance(sums, tff.StructType) else [sums]
    last = tff.tf_computation(*parameters)(finish)

    @tff.federated_computation(NOTHING, tff.types.at_clients(data))
    def next_round(state: Any, values: Any) -> Any:
        each = tff.federated_map(local, values)
        total = tff.federated_sum(each)
        if len(parameters) == 1 and parameters[0] is sums:
            return state, tff.federated_map(last, total)
        return state, tff.federated_map(last, tuple(total[n] for n in range(len(parameters))))

    return tff.templates.IterativeProcess(nothing, next_round)
