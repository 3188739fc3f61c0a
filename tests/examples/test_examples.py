"""The examples: what they print, what they compute, and the data they run on."""

from __future__ import annotations

import hashlib
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tffc.backends import compile_form, compile_initialize
from tffc.backends.bundle import Bundle
from tffc.data.location import open_source
from tffc.engines.engine import Sampling, run_rounds
from tffc.engines.local import LocalEngine
from tffc.engines.process import Process
from tffc.execution import interpreter
from tffc.frontend.load import Loaded, load
from tffc.golden.examples import Example, print_example, read_examples
from tffc.golden.folder import differences, orphans

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DIGITS = EXAMPLES / "digits"
AVERAGING = f"{DIGITS}/federated_averaging.py"
TEMPERATURE = f"{EXAMPLES}/temperature/temperature.py"

GOLDEN = read_examples(ROOT / "golden")


@pytest.mark.parametrize("example", GOLDEN, ids=lambda example: example.name)
def test_prints_what_it_printed(example: Example) -> None:
    found = differences(ROOT / "golden", {example.name: print_example(example, ROOT)})
    assert "\n".join(map(str, found)) == ""


def test_no_golden_file_is_left_over() -> None:
    assert orphans(ROOT / "golden", [example.name for example in GOLDEN]) == []


def test_every_program_has_a_golden() -> None:
    modules = {path for path in EXAMPLES.rglob("*.py") if "@tff." in path.read_text()}
    assert {ROOT / example.target.partition(":")[0] for example in GOLDEN} == modules


def engine(program: Loaded) -> LocalEngine:
    node = program.computation.node
    form = compile_form(node, "mapreduce")
    first = None if program.initialize is None else compile_initialize(program.initialize.node)
    return LocalEngine(Process(Bundle("mapreduce", node, form.components(), first, {})))


@pytest.mark.parametrize(
    ("target", "data"),
    [
        (f"{TEMPERATURE}:share_over_threshold", EXAMPLES / "temperature" / "sensors"),
        (f"{TEMPERATURE}:mean_temperature", EXAMPLES / "temperature" / "sensors"),
        (f"{AVERAGING}:training", DIGITS / "train"),
    ],
    ids=["share_over_threshold", "mean_temperature", "training"],
)
def test_a_compiled_round_computes_what_was_traced(target: str, data: pathlib.Path) -> None:
    program = load(target)
    compiled = engine(program)
    folder = open_source(data, compiled.process.data_type)
    state = compiled.process.first_state()
    (found,) = run_rounds(compiled, state, folder, 1, Sampling(8))
    argument = (state.value, list(map(folder.read, found.clients)))
    next_state, output = interpreter.run(program.computation.node, argument)
    check_close(found.state.value, next_state)
    check_close(found.output, output)


def check_close(found: Any, expected: Any) -> None:
    """Checks values of one structure for equality up to the rounding of another association."""
    if isinstance(expected, dict):
        expected = tuple(expected.values())
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            check_close(*pair)
    else:
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def test_calling_a_computation_runs_it() -> None:
    slides = f"{EXAMPLES}/slides.py"
    assert load(f"{slides}:add_one").computation(5) == 6
    assert load(f"{slides}:combine").computation(1, 2) == (1, 2)
    assert load(f"{slides}:make_selection").computation((3, 0.5)) == 3


def test_sensors_over_a_threshold() -> None:
    readings = [[20.0, 31.0], [20.0], [26.0, 25.0, 27.0]]
    round_ = load(f"{TEMPERATURE}:share_over_threshold").next
    assert round_(25.0, readings) == (25.0, np.float32(2 / 3))
    assert load(f"{TEMPERATURE}:mean_temperature").computation((), readings) == (
        (),
        np.float32(149 / 6),
    )


def arrays(folder: str) -> list[dict[str, np.ndarray[Any, Any]]]:
    files = sorted((DIGITS / folder).iterdir())
    return [dict(np.load(file)) for file in files]


def test_the_digits_are_split_unevenly_over_many_clients() -> None:
    clients = [client["label"] for client in arrays("train")]
    sizes = [len(labels) for labels in clients]
    assert len(clients) == 60
    assert sum(sizes) == 1500
    assert (min(sizes), max(sizes)) == (3, 71)
    kinds = [len(set(labels.tolist())) for labels in clients]
    assert min(kinds) == 1
    assert max(kinds) == 10


def test_the_held_out_digits_are_of_every_kind() -> None:
    labels = np.concatenate([client["label"] for client in arrays("test")])
    assert len(labels) == 297
    assert np.bincount(labels).min() == 18


def digest(folder: pathlib.Path) -> str:
    """A hash of the arrays in a folder, whatever compressed them."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.npz")):
        with np.load(path) as content:
            for name in content.files:
                array = content[name]
                found.update(f"{path.name} {name} {array.dtype} {array.shape}".encode())
                found.update(array.tobytes())
    return found.hexdigest()


@pytest.mark.parametrize(
    ("script", "data"),
    [
        (DIGITS / "make_data.py", ("train", "test")),
        (EXAMPLES / "temperature" / "make_data.py", (".",)),
    ],
    ids=["digits", "temperature"],
)
def test_the_script_makes_the_data_again(
    tmp_path: pathlib.Path, script: pathlib.Path, data: tuple[str, ...]
) -> None:
    subprocess.run([sys.executable, str(script), "--out", str(tmp_path)], check=True)
    committed = script.parent if data != (".",) else script.parent / "sensors"
    for folder in data:
        assert digest(tmp_path / folder) == digest(committed / folder)
