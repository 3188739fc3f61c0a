"""Resources in linked graphs: each once, and as captured inputs of functions."""

from __future__ import annotations

from typing import Any

import numpy as np

import tffc as tff
from tests.frozen_programs import BASE, BATCH, BIAS, DATA, WEIGHTS, resource, round_of
from tffc.backends import compile_form
from tffc.backends.forms.map_reduce import MapReduceForm
from tffc.graphs.resources import resources_among
from tffc.language.nodes import Compiled
from tffc.linking.section import read_section
from tffc.runtime.frameworks.sections import run_section
from tffc.runtime.interpreter.interpreter import run

frozen = resource()


@tff.tf_computation(frozen.type_signature.result, WEIGHTS, BATCH)
def step(fixed: Any, weights: Any, batch: Any) -> Any:
    return weights + np.float32(2) * batch["x"][0, 0] * fixed["base"][:3, :2] + fixed["bias"][0]


@tff.tf_computation(WEIGHTS)
def shifted(weights: Any) -> Any:
    return weights + frozen()["base"][:3, :2]


@tff.federated_computation(WEIGHTS, BATCH)
def following(weights: Any, batch: Any) -> Any:
    return step(frozen(), shifted(weights), batch)


@tff.federated_computation(WEIGHTS, DATA)
def train(weights: Any, batches: Any) -> Any:
    before = shifted(weights)
    return shifted(tff.sequence_reduce(batches, before, following))


def test_each_is_in_a_component_once_and_in_no_function() -> None:
    form = compile_form(round_of("mapreduce", train).node, "mapreduce")
    assert isinstance(form, MapReduceForm)
    for name, component in form.components().items():
        assert isinstance(component, Compiled)
        graph = read_section(component).graph
        found = [resource.size for _, resource in resources_among(graph.node)]
        assert sorted(found) == ([12, 48] if name == "work" else [])
        assert not any("_resource" in n.attr for f in graph.library.function for n in f.node_def)


def test_graphs_compute_what_the_program_does() -> None:
    form = compile_form(round_of("mapreduce", train).node, "mapreduce")
    assert isinstance(form, MapReduceForm)
    x = np.arange(8, dtype=np.float32).reshape(2, 4) + 1
    batches = [(x, np.zeros((2, 2), np.float32))] * 3
    zeros = np.zeros((3, 2), np.float32)
    update, *_ = run_section(form.work, (batches, (zeros,)))
    expected = run(train.node, (zeros, batches))
    np.testing.assert_allclose(update[1][0], expected, rtol=1e-6)
    corner = BASE[:3, :2]
    np.testing.assert_allclose(expected, 5 * corner + 3 * (2 * corner + BIAS[0]), rtol=1e-6)


def test_what_a_component_does_not_need_is_not_in_it() -> None:
    @tff.tf_computation(WEIGHTS, DATA)
    def unneeded(weights: Any, batches: Any) -> Any:
        return weights, frozen()

    @tff.federated_computation(WEIGHTS, DATA)
    def first(weights: Any, batches: Any) -> Any:
        return unneeded(weights, batches)[0]

    form = compile_form(round_of("mapreduce", first).node, "mapreduce")
    assert isinstance(form, MapReduceForm)
    assert list(resources_among(read_section(form.work).graph.node)) == []
