"""`tffc run`: output, saved states, resuming, refusals and interruptions."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from tests.cli.conftest import ENVIRONMENT, ROOT, Run

SENSORS = ROOT / "examples" / "temperature" / "sensors"

KEPT = re.compile(r"the state after round \d+ is in \S+\n")


def rounds(run: Run, bundle: pathlib.Path, *options: str, data: pathlib.Path = SENSORS) -> str:
    ran = run("run", str(bundle), "--data", str(data), *options)
    assert ran.code == 0, ran.stderr
    assert ran.stderr == "" or ("--state-out" in options and KEPT.fullmatch(ran.stderr))
    return ran.stdout


def refusal(run: Run, bundle: pathlib.Path, *options: str, data: pathlib.Path = SENSORS) -> str:
    return run("run", str(bundle), "--data", str(data), "--rounds", "1", *options).refusal


def about(state: pathlib.Path) -> dict[str, object]:
    with zipfile.ZipFile(state) as file:
        return json.loads(file.read("state.json"))


def test_prints_one_line_a_round(run: Run, temperature: pathlib.Path) -> None:
    assert rounds(run, temperature, "--rounds", "2") == (
        "round    output\n    1    0.4167\n    2    0.4167\n"
    )


def test_the_seed_decides_who_is_sampled(run: Run, temperature: pathlib.Path) -> None:
    sampled = ("--rounds", "6", "--clients-per-round", "2")
    first = rounds(run, temperature, *sampled)
    assert rounds(run, temperature, *sampled) == first
    assert rounds(run, temperature, *sampled, "--seed", "1") != first


def test_resumed_rounds_are_those_that_would_have_followed(
    run: Run, temperature: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    sampled = ("--clients-per-round", "2", "--state-out", "state.npz")
    whole = rounds(run, temperature, "--rounds", "5", *sampled)
    undisturbed = (tmp_path / "state.npz").read_bytes()
    first = rounds(run, temperature, "--rounds", "2", *sampled)
    second = rounds(run, temperature, "--rounds", "3", "--state-in", "state.npz", *sampled)
    head, *lines = second.splitlines(keepends=True)
    assert first.startswith(head)
    assert first + "".join(lines) == whole
    assert (tmp_path / "state.npz").read_bytes() == undisturbed


def test_the_state_says_how_it_came_about(
    run: Run, temperature: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    rounds(run, temperature, "--rounds", "3", "--state-out", "state.npz")
    with np.load(tmp_path / "state.npz") as arrays:
        assert arrays["0"] == np.float32(25.0)
    known = about(tmp_path / "state.npz")
    assert known.pop("program")
    assert known == {"format_version": "1.0", "type": "float32", "rounds": 3}


def test_a_state_may_be_written_by_hand(
    run: Run, temperature: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    np.savez(tmp_path / "mine.npz", np.float32(100.0))
    shown = rounds(run, temperature, "--rounds", "1", "--state-in", "mine.npz")
    assert shown == "round    output\n    1     0.000\n"


@pytest.mark.parametrize(
    ("about", "text"),
    [
        (
            '{"type": "int32", "rounds": 3}',
            "error[E651]: other.npz holds a state of type `int32`\n"
            " = note: the bundle's state is of type `float32`\n"
            " = help: give a state of this program, or start without one\n",
        ),
        (
            "[]",
            "error[E627]: other.npz: its member state.json is not what tffc writes\n"
            " = help: give a file of state that tffc wrote, or start without one\n",
        ),
    ],
    ids=["of another type", "not of tffc"],
)
def test_another_state_is_refused(
    run: Run, temperature: pathlib.Path, tmp_path: pathlib.Path, about: str, text: str
) -> None:
    with zipfile.ZipFile(tmp_path / "other.npz", "w") as file:
        file.writestr("state.json", about)
    assert refusal(run, temperature, "--state-in", "other.npz") == text


@pytest.mark.parametrize("option", ["--state-out=out/x.svg", "--plot=out/x.svg"])
def test_a_file_in_no_folder_is_refused_before_the_first_round(
    run: Run, temperature: pathlib.Path, option: str
) -> None:
    assert refusal(run, temperature, option) == (
        "error[E851]: cannot write out/x.svg: there is no folder out\n"
        " = help: make it: mkdir -p out\n"
    )


def test_a_plot_is_svg(run: Run, temperature: pathlib.Path) -> None:
    ran = run("run", str(temperature), "--data", str(SENSORS), "--rounds", "1", "--plot", "x.png")
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.endswith(
        "Error: --plot draws an SVG file, whose name ends in .svg, not x.png\n"
    )


def test_a_state_that_cannot_be_written_is_refused(
    run: Run, temperature: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "folder").mkdir()
    assert refusal(run, temperature, "--state-out", "folder") == (
        "error[E600]: cannot write the state folder: Is a directory\n"
        " = note: what was there before is as it was\n"
        " = help: give the path of a file, in a folder that exists and can be written, on a disk "
        "with space left\n"
    )


A_FOLDER = " = help: give a folder with one .npz file for each client\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("clients", f"error[E640]: there is no folder clients\n{A_FOLDER}"),
        (
            "visits.csv",
            "error[E640]: visits.csv is a file, not a folder\n"
            " = help: say of which kind it is: csv:visits.csv\n",
        ),
        ("clients.npz", f"error[E640]: clients.npz is a file, not a folder\n{A_FOLDER}"),
        (
            "soon",
            f"error[E640]: the folder soon is without data: it holds no .npz file\n{A_FOLDER}",
        ),
    ],
)
def test_what_is_no_folder_of_data_is_refused(
    run: Run, temperature: pathlib.Path, tmp_path: pathlib.Path, data: str, text: str
) -> None:
    for file in ("visits.csv", "clients.npz"):
        (tmp_path / file).touch()
    (tmp_path / "soon").mkdir()
    (tmp_path / "soon" / "README.md").write_text("soon")
    assert refusal(run, temperature, data=pathlib.Path(data)) == text


def test_data_that_does_not_fit_is_refused_before_the_round(
    run: Run, temperature: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    shutil.copytree(SENSORS, tmp_path / "clients")
    np.savez(tmp_path / "clients" / "sensor_07.npz", np.zeros(3, "S1"))
    assert refusal(run, temperature, data=pathlib.Path("clients")) == (
        "error[E620]: clients/sensor_07.npz: the array 'arr_0' is str[3], "
        "expected float32[n]\n"
        " = help: convert it before saving, with .astype(np.float32); or leave out clients whose "
        "data cannot be read, with --skip-bad-clients\n"
    )


def test_more_clients_than_there_are_cannot_be_sampled(run: Run, temperature: pathlib.Path) -> None:
    assert refusal(run, temperature, "--clients-per-round", "13") == (
        "error[E662]: cannot sample 13 clients of 12\n"
        " = help: sample fewer; --clients-per-round sets the number\n"
    )


INTERRUPTING = """\
import os, pathlib, signal

def clients():
    return {str(number): _read for number in range(3)}

def _read():
    if pathlib.Path("state.npz").exists() and not pathlib.Path("interrupted").exists():
        pathlib.Path("interrupted").touch()
        os.kill(os.getpid(), signal.SIGINT)
    return [20.0, 40.0]
"""
"""Sensors that press Ctrl-C when the second round reads them."""


def test_an_interrupted_run_keeps_the_state_of_its_last_round(
    run: Run, temperature: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "sensors.py").write_text(INTERRUPTING)
    data = ("--data", "python:sensors.py:clients")
    ran = run("run", str(temperature), *data, "--rounds", "3", "--state-out", "state.npz")
    assert (ran.code, ran.stdout) == (130, "round    output\n    1     1.000\n")
    assert ran.stderr == "\ninterrupted in round 2\nthe state after round 1 is in state.npz\n"
    assert about(tmp_path / "state.npz")["rounds"] == 1


@pytest.mark.slow
def test_tensorflow_stays_silent(temperature: pathlib.Path) -> None:
    command = [sys.executable, "-m", "tffc", "run", temperature, "--data", SENSORS, "--rounds", "1"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert (ran.stdout, ran.stderr) == ("round    output\n    1    0.4167\n", "")


def test_a_bundle_that_says_another_form_is_refused(
    run: Run, temperature: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    shutil.copytree(temperature, tmp_path / "bundle")
    manifest = tmp_path / "bundle" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"mapreduce"', '"broadcast"'))
    assert refusal(run, pathlib.Path("bundle")).startswith(
        "error[E501]: the form broadcast has the components compute_server_context, "
    )


COUNTS = """\
import numpy as np
import tensorflow as tf
import tffc as tff

@tff.tf_computation(np.int32)
def counts(total):
    return tf.range(3) * total, tf.zeros([20]), tf.constant(["tea", "black tea"])

@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def process(state, data):
    return state, tff.federated_map(counts, tff.federated_sum(data))
"""

TABLE = """\
round          0            1                   2
    1  [0, 3, 6]  float32[20]  [tea, "black tea"]
"""


@pytest.mark.tensorflow
def test_arrays_and_strings_are_shown_and_where_the_long_ones_are(
    run: Run, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "module.py").write_text(COUNTS)
    assert run("compile", "module.py:process", "--form", "mapreduce", "--out", "bundle").code == 0
    (tmp_path / "data").mkdir()
    for number in range(3):
        np.savez(tmp_path / "data" / f"{number}.npz", np.int32(number))
    np.savez(tmp_path / "state.npz", np.int32(0))
    words = ["run", "bundle", "--data", "data", "--rounds", "1", "--state-in", "state.npz"]
    ran = run(*words)
    assert (ran.stdout, ran.stderr) == (
        TABLE,
        "too long for the table: 1; --out DIR keeps them, and --log jsonl prints them\n",
    )
    ran = run(*words, "--out", "kept folder")
    assert (ran.stdout, ran.stderr) == (
        TABLE,
        "too long for the table: 1; tffc show 'kept folder:1' shows them\n"
        "the state after round 1 is in kept folder/state.npz\n",
    )
    assert '"metrics": {"0": [0, 3, 6], "1": [0.0, ' in run(*words, "--log", "jsonl").stdout
    assert run("show", "kept folder:1", "--part", "output/2").stdout == (
        'output/2  str[2]  [tea, "black tea"]\n'
    )
