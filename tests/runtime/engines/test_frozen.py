"""Rounds with frozen weights give the same in every form and on every engine, whether the weights
are a resource or constants."""

from __future__ import annotations

import functools
import hashlib
import pathlib
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.frozen_programs import (
    FORMS,
    VALUES,
    clients,
    constants,
    in_jax,
    in_tensorflow,
    in_torch,
    resource,
    results,
)
from tests.frozen_programs import round_of as frozen_round
from tests.processes import ROOT, run_python
from tffc.assurance.golden.printing import Recipe, print_program
from tffc.assurance.proof.prove import Answer, prove
from tffc.language.values.resources import array_of
from tffc.language.wire.resources import resources_of
from tffc.runtime.batching import tensorflow_kernels
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import DataError

BY_FORM = pytest.mark.parametrize("form", FORMS)
BY_FRAMEWORK = pytest.mark.parametrize("train", [in_tensorflow, in_jax, in_torch])


@functools.cache
def bundle_of(form: str, train: Any, frozen: Any) -> tff.CompiledBundle:
    return tff.compile(frozen_round(form, train(frozen())), form=form)


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    [pytest.param(form, marks=[] if form == "mapreduce" else [pytest.mark.slow]) for form in FORMS],
)
@BY_FRAMEWORK
def test_rounds_are_those_of_constants(form: str, train: Any) -> None:
    expected = results(bundle_of(form, train, constants))
    for batching in ("off", 3):
        found = results(bundle_of(form, train, resource), batching=batching)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@BY_FORM
@BY_FRAMEWORK
def test_forms_are_proved_and_have_each_array_once(form: str, train: Any) -> None:
    bundle = bundle_of(form, train, resource)
    assert prove(bundle.computation, form, bundle.components).answer is Answer.PROVED
    held = resources_of(bundle.components.values())
    assert sorted(each.size for each in held) == [12, 48]


def test_large_arrays_are_used_in_batches_where_they_are() -> None:
    array = np.arange(2**19, dtype=np.float32).reshape(2, -1)
    (node,) = resources_of([tff.resource(array).node])
    tensor = tensorflow_kernels._resource(load_tensorflow(), node, "CPU:0")
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert np.shares_memory(np.asarray(memoryview(tensor)), array_of(node))
    assert tensorflow_kernels._resource(load_tensorflow(), node, "CPU:0") is tensor


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["pjrt", "tensorflow"])
def test_batches_read_large_arrays(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorflow_kernels, "LEAST_SHARED", 1)
    values = {**VALUES, "bias": VALUES["bias"] + 2}
    expected, found = (
        results(
            tff.compile(frozen_round("mapreduce", in_tensorflow(frozen(values))), form="mapreduce"),
            batching=3,
            compiler=compiler,
        )
        for frozen in (constants, resource)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_run_does_not_go_on_with_other_weights(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "run"
    bundle = bundle_of("mapreduce", in_tensorflow, resource)
    results(bundle, out=folder)
    values = {**VALUES, "bias": VALUES["bias"] + 1}
    other = tff.compile(
        frozen_round("mapreduce", in_tensorflow(resource(values))), form="mapreduce"
    )
    data = {"0": clients(1)[0]}
    with pytest.raises(DataError, match="the bundle is that of another program"):
        list(tff.run(other, data, 3, out=folder, resume=True))


@pytest.mark.slow
def test_weights_that_are_damaged_are_refused_as_they_are_loaded(tmp_path: pathlib.Path) -> None:
    values = {**VALUES, "base": VALUES["base"] * 3}
    made = tff.compile(frozen_round("mapreduce", in_tensorflow(resource(values))), form="mapreduce")
    made.save(tmp_path / "bundle")
    digest = hashlib.sha256(values["base"].tobytes()).hexdigest()
    (tmp_path / "bundle" / "resources" / digest).write_bytes(bytes(48))
    said = run_python("-c", RUN, str(tmp_path / "bundle"), cwd=ROOT).stderr
    assert f"the resource {digest} is damaged" in said
    assert "[E341]" in said


RUN = """
import pathlib, sys
from tests.frozen_programs import results
results(pathlib.Path(sys.argv[1]))
"""


def test_golden_files_tell_weights_apart() -> None:
    changed = {**VALUES, "bias": VALUES["bias"] + 1}
    programs = [
        frozen_round("mapreduce", in_tensorflow(resource(values))).node
        for values in (VALUES, VALUES, changed)
    ]
    recipe = Recipe(("mapreduce",), audit=True)
    first, again, other = (dict(print_program(program, None, recipe)) for program in programs)
    assert first == again
    differing = {path for path in first if first[path] != other[path]}
    assert {"program.sexpr", "mapreduce/manifest.json", "mapreduce/audit.txt"} <= differing
    digests = [hashlib.sha256(each["bias"].tobytes()).hexdigest() for each in (VALUES, changed)]
    assert digests[0][:50] in first["sections.txt"]
    assert digests[1][:50] in other["sections.txt"]
