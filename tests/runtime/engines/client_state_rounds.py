"""Rounds of clients that keep states, for the tests of every engine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.runtime.engines.programs import process_of, tallied
from tests.runtime.engines.sources import Values
from tffc.runtime.engines.engine import Engine
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import run_rounds
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State


def check_states(make: Callable[[Process], Engine]) -> None:
    """Check that an engine gives the outputs and the states of clients that the local one gives."""
    process = process_of(tallied, "client-state")
    data = Values([np.int32(10**n) for n in range(5)])
    results: list[list[object]] = []
    for engine in (LocalEngine(process), make(process)):
        first = State(np.int32(3), process.program, 0)
        rounds = run_rounds(engine, first, data, 3, Sampling(3, seed=5))
        results.append([])
        for each in rounds:
            assert each.client_states is not None
            held = each.client_states.held
            states = {client: int(held[client].read()) for client in sorted(held)}
            results[-1].append((int(each.state.value), [int(n) for n in each.output], states))
    assert results[0] == results[1]
    assert len(results[0]) == 3
