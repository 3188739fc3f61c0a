"""Frozen weights on engines with other processes, and in exported models."""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.frozen_programs import (
    ZEROS,
    clients,
    constants,
    in_jax,
    in_tensorflow,
    resource,
    results,
    round_of,
)
from tests.refusals import refusal
from tffc.deploy.export import signatures
from tffc.deploy.export.saved_model import FILE, saved_model
from tffc.support.errors import ExportError

ENGINES = [
    pytest.param("ray", (), "ray", id="ray"),
    pytest.param("beam", (), "apache_beam", id="beam"),
    pytest.param(
        "beam",
        ("--direct_running_mode=multi_processing", "--direct_num_workers=2"),
        "apache_beam",
        id="beam-processes",
    ),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning")
@pytest.mark.parametrize(("engine", "options", "package"), ENGINES)
@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate", "mergeable", "client-state"])
@pytest.mark.parametrize("train", [in_tensorflow, in_jax])
def test_rounds_on_other_processes(
    engine: str, options: Any, package: str, form: str, train: Any
) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")
    bundle = tff.compile(round_of(form, train(resource())), form=form)
    expected = results(bundle)
    for batching in ("off", 3):
        found = results(bundle, engine=engine, engine_options=options, batching=batching)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_models_have_the_weights_in_them(tmp_path: pathlib.Path) -> None:
    outputs: list[Any] = []
    data = clients(1)[0]
    stacked = {key: np.stack([batch[key] for batch in data]) for key in ("x", "y")}
    for frozen in (resource, constants):
        bundle = tff.compile(round_of("broadcast", in_tensorflow(frozen())), form="broadcast")
        content, _ = saved_model(bundle.components)
        folder = tmp_path / frozen.__name__
        folder.mkdir()
        (folder / FILE).write_bytes(content)
        model = tf.saved_model.load(str(folder)).signatures["client_processing"]
        names = model.structured_input_signature[1]
        arguments = {name: tf.constant(stacked.get(name[-1], ZEROS)) for name in names}
        outputs.append([value.numpy() for value in model(**arguments).values()])
    np.testing.assert_array_equal(outputs[0], outputs[1])


def test_a_model_too_large_for_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signatures, "MOST_INLINED", 50)
    bundle = tff.compile(round_of("mapreduce", in_tensorflow(resource())), form="mapreduce")
    assert refusal(ExportError, saved_model, bundle.components) == (
        "the resources of the bundle have 60 bytes, and the file of a model holds at most 50 "
        "[E343]\n"
        "  help: export a bundle of a smaller model, or run the bundle itself"
    )
