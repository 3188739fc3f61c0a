"""Small rounds, on which faults planted in forms show: each form, run whole and step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import planted_programs as programs
from tests.runtime.engines.sources import Values
from tffc.backends import compile_form
from tffc.backends.compiler import compile_bundle
from tffc.runtime.engines.engine import Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.interpreter.interpreter import run

F = np.float32
N = np.int32

ROUNDS: dict[str, tuple[Any, list[Any]]] = {
    "means_and_extremes": (
        (),
        [(F(1), F(2), N(-5)), (F(-3), F(1), N(-7)), (F(-8), F(5), N(-2))],
    ),
    "texts": ((), ["a", "b", "c"]),
    "secured": ((), [N(3), N(905), N(13)]),
    "states": ((F(2), F(3)), [F(1), F(-4), F(0.5)]),
    "shadowed": ((), [(N(3), N(-4)), (N(5), N(11))]),
}


def flat(value: Any) -> list[Any]:
    """The tensors of a value, floats rounded: clients are added up in another order."""
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in flat(part)]
    return [value if isinstance(value, (str, bytes)) else round(float(value), 3)]


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
@pytest.mark.parametrize("name", ROUNDS)
def test_a_form_computes_what_the_program_does(name: str, form: str) -> None:
    program = getattr(programs, name)().node
    state, clients = ROUNDS[name]
    expected = flat(run(program, (state, clients)))
    compiled = compile_form(program, form)
    assert flat(run(compiled.decompile(), (state, clients))) == expected
    if name == "texts":
        return  # how clients are grouped shows in them
    process = Process(compile_bundle(program, form))
    source = Values(clients)
    result = LocalEngine(process, 1).run_round(state, Cohort(source, source.clients))
    assert flat((result.state, result.output)) == expected


def test_a_broadcast_form_computes_what_the_program_does() -> None:
    program = programs.sent_back().node
    argument = (F(2), F(5)), [F(1), F(-4)]
    compiled = compile_form(program, "broadcast").decompile()
    assert flat(run(compiled, argument)) == flat(run(program, argument)) == [-3, -13]


def test_groups_of_clients_are_merged_in_order() -> None:
    process = Process(compile_bundle(programs.texts().node, "mapreduce"))
    (aggregation,) = process.steps.aggregations
    groups = []
    for clients in ("ab", "cd"):
        total = aggregation.zero(())
        for client in clients:
            total = aggregation.accumulate(total, ((client.encode(),), (), (), ()), (), client)
        groups.append(total)
    first, second = groups
    report = aggregation.report(aggregation.merge(first, second, ()), ())
    assert report == (b"z<a><b><c><d>!",)
