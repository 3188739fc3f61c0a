"""The examples: what they print, what they compute, and the data they run on."""

from __future__ import annotations

import collections
import csv
import hashlib
import importlib.util
import pathlib
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.processes import ROOT
from tffc.api.running import run
from tffc.assurance.golden.examples import Example, print_example, read_examples
from tffc.assurance.golden.folder import differences, orphans
from tffc.backends.compiler import compile_bundle
from tffc.backends.forms.kinds import form_for
from tffc.frontend.load import Loaded, load
from tffc.runtime.data.location import open_source
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import run_rounds
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State
from tffc.runtime.interpreter import interpreter

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples"
DIGITS = EXAMPLES / "digits"
AVERAGING = f"{DIGITS}/federated_averaging.py"
TEMPERATURE = f"{EXAMPLES}/temperature/temperature.py"

GOLDEN = read_examples(ROOT / "golden")


NEEDED = {
    "jax": ["jax"],
    "torch_": ["torch", "torchax"],
    "torch_text": ["transformers"],
    "torch_lora": ["transformers", "peft"],
}
"""What examples need besides TensorFlow, by a part of their names."""


def skip_without_frameworks(target: str) -> None:
    for part, names in NEEDED.items():
        for name in names if part in target else ():
            if importlib.util.find_spec(name) is None:
                pytest.skip(f"{name} is not installed: pip install '.[test]'")


@pytest.mark.long
@pytest.mark.parametrize("example", GOLDEN, ids=lambda example: example.name)
def test_prints_what_it_printed(example: Example) -> None:
    """The same as `tffc golden check`, which everybody runs before sending a change."""
    skip_without_frameworks(example.target)
    found = differences(ROOT / "golden", {example.name: print_example(example, ROOT)})
    assert "\n".join(map(str, found)) == ""


def test_no_golden_file_is_left_over() -> None:
    assert orphans(ROOT / "golden", [example.name for example in GOLDEN]) == []


def test_every_program_has_a_golden() -> None:
    texts = {path: path.read_text() for path in EXAMPLES.rglob("*.py")}
    # What TFF's own libraries build is printed only where its wheel is.
    modules = {
        path
        for path, text in texts.items()
        if ("@tff." in text or "tffc.algorithms" in text) and "tff.learning" not in text
    }
    assert {ROOT / example.target.partition(":")[0] for example in GOLDEN} == modules


def engine(program: Loaded) -> LocalEngine:
    first = None if program.initialize is None else program.initialize.node
    node = program.computation.node
    bundle = compile_bundle(node, form_for(node), initialize=first)
    return LocalEngine(Process(bundle))


ROUNDS = {
    "temperature/temperature.py:share_over_threshold": "temperature/sensors",
    "temperature/temperature.py:mean_temperature": "temperature/sensors",
    "digits/federated_averaging.py:training": "digits/train",
    "keras_averaging/keras_averaging.py:training": "digits/train",
    "embedding/embedding.py:training": "embedding/train",
    "jax_averaging/jax_averaging.py:training": "digits/train",
    "kmeans/kmeans.py:clustering": "kmeans/train",
    "quantiles/quantiles.py:search": "csv:quantiles/visits.csv?client=person&columns=seconds",
    "heavy_hitters/heavy_hitters.py:discovery": "csv:heavy_hitters/typed.csv?columns=word",
}
"""The processes without random numbers, and their clients' data."""


@pytest.mark.parametrize("target", ROUNDS)
def test_a_compiled_round_computes_what_was_traced(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_frameworks(target)
    monkeypatch.chdir(EXAMPLES)
    program = load(target)
    compiled = engine(program)
    folder = open_source(ROUNDS[target], compiled.process.data_type)
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
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for pair in zip(found, expected, strict=True):
            check_close(*pair)
    elif np.asarray(expected).dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(found, expected)


def train(
    target: str, data: str, rounds: int, clients: int | None = None, rate: float | None = None
) -> list[Any]:
    """The state and the output of the last of some rounds, as they are in the user's program."""
    compiled = engine(load(target))
    *_, last = run(
        compiled.process,
        open_source(data, compiled.process.data_type),
        rounds,
        clients_per_round=clients,
        sampling_rate=rate,
    )
    return [last.state, last.output]


def evaluate(target: str, data: str, state: State) -> Any:
    """What the evaluation of a state puts out."""
    process = engine(load(target)).process
    (found,) = run(process, open_source(data, process.data_type), 1, state=state)
    return found.output


def test_clusters_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "kmeans")
    state, _ = train("kmeans.py:clustering", "train", 6)
    assert evaluate("kmeans.py:evaluation", "test", state)["spread"] < 2 * 0.8**2 * 1.1


def test_quantiles_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "quantiles")
    visits = "csv:visits.csv?client=person&columns=seconds"
    state, output = train("quantiles.py:search", visits, 16)
    with open("visits.csv") as file:
        seconds = [float(row["seconds"]) for row in csv.DictReader(file)]
    expected = np.quantile(seconds, [0.25, 0.5, 0.9], method="inverted_cdf")
    np.testing.assert_allclose(output, expected, atol=0.02)
    shares = evaluate("quantiles.py:evaluation", visits, state)
    np.testing.assert_allclose(shares, [0.25, 0.5, 0.9], atol=0.01)


def test_frequent_words_are_spelled_out_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES / "heavy_hitters")
    typed = "csv:typed.csv?columns=word"
    state, output = train("heavy_hitters.py:discovery", typed, 6)
    users = collections.defaultdict(set)
    with open("typed.csv") as file:
        for row in csv.DictReader(file):
            users[row["word"]].add(row["client"])
    expected = {f"{word}.".encode(): len(who) for word, who in users.items() if len(who) >= 6}
    found = dict(zip(output["prefixes"], output["votes"].tolist(), strict=True))
    assert {word: votes for word, votes in found.items() if votes} == expected
    again = evaluate("heavy_hitters.py:evaluation", typed, state)
    assert again["users"].tolist() == output["votes"].tolist()


def test_quantiles_are_found_behind_noise() -> None:
    module = f"{EXAMPLES}/private_quantiles/private_quantiles.py"
    state, _ = train(f"{module}:search", f"{module}:people", 30, rate=0.1)
    for clients in ("people", "others"):
        shares = evaluate(f"{module}:evaluation", f"{module}:{clients}", state)
        np.testing.assert_allclose(shares, [0.25, 0.5, 0.9], atol=0.1)


def test_frequent_words_are_spelled_out_behind_noise_and_no_others() -> None:
    module = f"{EXAMPLES}/private_heavy_hitters/private_heavy_hitters.py"
    state, output = train(f"{module}:discovery", f"{module}:people", 6, rate=0.2)
    found = [word.rstrip(b".") for word in output["beginnings"] if word]
    assert sorted(found) == [b"late", b"light", b"rain", b"river", b"tea", b"trail", b"train"]
    users = evaluate(f"{module}:evaluation", f"{module}:people", state)["users"]
    np.testing.assert_allclose(5 * output["votes"], users, rtol=0.5)


def shown(name: str, pattern: str) -> list[float]:
    """The numbers on the page of an example, which shows what it prints.

    That it does print them is what `tests/cli/test_pages.py` holds.
    """
    page = (ROOT / "docs" / "examples" / name).read_text(encoding="utf-8")
    return [float(number) for number in re.findall(pattern, page, re.MULTILINE)]


def test_an_embedding_is_learnt() -> None:
    (accuracy,) = shown("embedding.md", r"^ +20 .* ([\d.]+)$")
    assert accuracy > 0.75


@pytest.mark.parametrize(
    ("module", "rounds", "accuracy"),
    [
        ("private_averaging/private_averaging.py", 30, 0.8),
        ("jax_averaging/jax_averaging.py", 20, 0.85),
        ("torch_digits/torch_digits.py", 20, 0.85),
        ("keras_averaging/keras_averaging.py", 10, 0.85),
    ],
)
def test_digits_are_told_apart(
    module: str, rounds: int, accuracy: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_frameworks(module)
    monkeypatch.chdir(EXAMPLES)
    state, _ = train(f"{module}:training", "digits/train", rounds, clients=30)
    assert evaluate(f"{module}:evaluation", "digits/test", state)["accuracy"] > accuracy


@pytest.mark.long
def test_a_bert_learns_to_read_reviews() -> None:
    skip_without_frameworks("torch_text")
    module = f"{EXAMPLES}/torch_text/torch_text.py"
    state, _ = train(f"{module}:training", f"{module}:reviews", 15)
    assert evaluate(f"{module}:evaluation", f"{module}:held_out", state)["accuracy"] > 0.7


@pytest.mark.long
def test_lora_learns_on_a_base_that_stays() -> None:
    skip_without_frameworks("torch_lora")
    module = f"{EXAMPLES}/torch_lora/torch_lora.py"
    first, last = (train(f"{module}:training", f"{module}:melodies", n)[1] for n in (1, 10))
    assert last["loss"] < first["loss"] - 0.4


def test_clients_keep_what_is_their_own() -> None:
    errors = shown("personalisation.md", r"^ +\d +[\d.]+ +([\d.]+)$")
    assert len(errors) == 6
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.5


def test_controls_lessen_the_drift_of_clients() -> None:
    losses = shown("scaffold.md", r"^ +\d +([\d.]+)$")
    assert len(losses) == 5
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 1.0


def test_calling_a_computation_runs_it() -> None:
    slides = f"{EXAMPLES}/slides.py"
    assert load(f"{slides}:add_one").computation(5) == 6
    assert load(f"{slides}:combine").computation(1, 2) == (1, 2)
    assert load(f"{slides}:make_selection").computation((3, 0.5)) == 3


def test_sensors_over_a_threshold() -> None:
    readings = [[20.0, 31.0], [20.0], [26.0, 25.0, 27.0]]
    round_ = load(f"{TEMPERATURE}:share_over_threshold").computation
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
    for path in sorted(folder.rglob("*.csv")):
        found.update(path.read_bytes())
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
        (EXAMPLES / "embedding" / "make_data.py", ("train", "test")),
        (EXAMPLES / "heavy_hitters" / "make_data.py", ("",)),
        (EXAMPLES / "kmeans" / "make_data.py", ("train", "test")),
        (EXAMPLES / "personalisation" / "make_data.py", ("earlier", "later")),
        (EXAMPLES / "quantiles" / "make_data.py", ("",)),
        (EXAMPLES / "torch_text" / "make_data.py", ("",)),
    ],
    ids=lambda value: value.parent.name if isinstance(value, pathlib.Path) else "",
)
def test_the_script_makes_the_data_again(
    tmp_path: pathlib.Path, script: pathlib.Path, data: tuple[str, ...]
) -> None:
    subprocess.run([sys.executable, str(script), "--out", str(tmp_path)], check=True)
    committed = script.parent if data != (".",) else script.parent / "sensors"
    for folder in data:
        assert digest(tmp_path / folder) == digest(committed / folder)
