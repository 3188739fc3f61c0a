"""TFF's simulations, programs and aggregators together with tffc's commands and rounds."""

from __future__ import annotations

import asyncio
import collections
import pathlib
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.cli.conftest import Run
from tests.tff.wheel import needs_wheel

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]

MODULE = """\
import collections

import numpy as np
import tensorflow_federated as tff

factory = tff.aggregators.MeanFactory()
mean = factory.create(tff.TensorType(np.float32, [2]), tff.TensorType(np.float32))
clients = tff.simulation.datasets.TestClientData(
    {"ada": collections.OrderedDict(x=[1.0, 2.0]), "bob": collections.OrderedDict(x=[6.0])}
)


@tff.tensorflow.computation(tff.SequenceType(collections.OrderedDict(x=np.float32)))
def add_up(dataset):
    return dataset.reduce(np.float32(0), lambda total, each: total + each["x"])


@tff.federated_computation(
    tff.types.at_server(()), tff.types.at_clients(add_up.type_signature.parameter)
)
def total(state, data):
    return state, tff.federated_sum(tff.federated_map(add_up, data))


def weighted():
    light, heavy = {"value": [1.0, 2.0], "weight": 1.0}, {"value": [5.0, 2.0], "weight": 3.0}
    return {"ada": light, "bob": heavy}
"""


@pytest.fixture
def module(tmp_path: pathlib.Path) -> None:
    (tmp_path / "program.py").write_text(MODULE)


def test_classes_of_processes_are_tffcs(module: None) -> None:
    library: Any = tff
    process = library.aggregators.SumFactory().create(tff.TensorType(np.float32))
    assert type(process) is tff.templates.AggregationProcess
    output = process.next(process.initialize(), [1.0, 2.0])
    assert type(output) is tff.templates.MeasuredProcessOutput


def test_an_aggregator_runs_from_its_module(run: Run, module: None) -> None:
    ran = run("check", "program.py:factory", "--form", "mapreduce")
    assert ran.stderr == (
        "error[E465]: 'factory' in program.py is not a computation but an object of class "
        "'MeanFactory'\n"
        " = help: apply it to a type: process = factory.create(tff.TensorType(np.float32))\n"
    )
    data = ("--data", "program.py:weighted", "--rounds", "1", "--log", "jsonl")
    ran = run("run", "program.py:mean", *data)
    assert ran.code == 0, ran.stderr
    assert '"result": [4.0, 2.0]' in ran.stdout


def test_a_client_data_feeds_rounds(run: Run, module: None) -> None:
    ran = run("run", "program.py:total", "--data", "program.py:clients", "--rounds", "1")
    assert ran.stdout.split() == ["round", "output", "1", "9.000"]


def test_programs_managers_keep_rounds(run: Run, module: None, tmp_path: pathlib.Path) -> None:
    assert run("compile", "program.py:total", "--form", "mapreduce", "--out", "b").code == 0
    library: Any = tff
    bundle = tff.load(tmp_path / "b")
    data = library.simulation.datasets.TestClientData(
        {"ada": collections.OrderedDict(x=np.array([1, 2], np.float32))}
    )

    async def train() -> Any:
        states = library.program.FileProgramStateManager(str(tmp_path / "states"))
        metrics = library.program.MemoryReleaseManager()
        for each in tff.run(bundle, data, 2):
            await states.save(each.state, each.number)
            await metrics.release(each.output, key=each.number)
        return await states.load_latest(bundle.first_state()), metrics.values()

    (state, number), released = asyncio.run(train())
    assert (state, number) == ((), 2)
    assert released == {1: 3.0, 2: 3.0}
