"""NVFlare's simulator runs the jobs that tffc writes, and trains as the local engine does."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import subprocess
from typing import Any

import numpy as np
import pytest

import tffc
from tests.deploy.nvflare.simulator import PYTHON, Simulation, is_there
from tests.processes import ENVIRONMENT, ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not is_there(), reason="needs NVFlare: pip install nvflare, or name TFFC_NVFLARE_PYTHON"
    ),
]

PLACES = "examples/personalisation/personalisation.py:training", "examples/personalisation/earlier"
IMAGES = "examples/digits/federated_averaging.py:training", "examples/digits/train"

SECURE = """\
import numpy as np

import tffc as tff


@tff.federated_computation
def zero():
    return tff.federated_value(np.int32(0), tff.SERVER)


@tff.tf_computation(np.int32, np.int32)
def add(state, value):
    return state + value


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def grow(state, data):
    sum = tff.federated_secure_sum_bitwidth(data, 20)
    return tff.federated_map(add, (state, sum)), sum


total = tff.templates.IterativeProcess(initialize_fn=zero, next_fn=grow)
"""


def simulation(
    folder: pathlib.Path, target: str, form: str = "mapreduce", **config: object
) -> tuple[tffc.CompiledBundle, Simulation]:
    """Return a bundle, and the simulation of its job with this configuration."""
    bundle = tffc.compile(target, form)
    bundle.export("nvflare", folder / "job")
    made = Simulation(folder, folder / "job")
    config = {"timeout": 120, **config}
    made.configure({name.replace("_", "-"): value for name, value in config.items()})
    return bundle, made


def states(first: pathlib.Path, second: pathlib.Path) -> list[tuple[np.ndarray, np.ndarray]]:
    with np.load(first / "state.npz") as one, np.load(second / "state.npz") as two:
        assert one.files == two.files
        return [(one[name], two[name]) for name in one.files if name != "state.json"]


def test_the_commands_of_the_page(tmp_path: pathlib.Path) -> None:
    page = (ROOT / "docs" / "nvflare.md").read_text()
    (commands,) = re.findall(r"<!-- not run: .*? -->\n```sh\n(.*?)```", page, re.DOTALL)
    bundle = tffc.compile(str(ROOT / IMAGES[0]), "mapreduce")
    bundle.export("nvflare", tmp_path / "job")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "tffc"
    tool.write_text(f'#!/bin/sh\nexec {PYTHON} -m tffc "$@"\n')
    tool.chmod(0o755)
    folders = (str(tool.parent), str(pathlib.Path(PYTHON).parent), os.environ["PATH"])
    ran = subprocess.run(
        ["bash", "-euc", commands],
        cwd=tmp_path,
        env={**ENVIRONMENT, "PATH": os.pathsep.join(folders)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "simulate_job/tffc/state.npz: the state after round 3, 8 tensors\n" in ran.stdout


@pytest.mark.parametrize(
    ("form", "program", "out"),
    [
        ("mapreduce", IMAGES, ""),
        ("distribute-aggregate", IMAGES, ""),
        ("mergeable", IMAGES, ""),
        # The states of a site's clients stay there.
        ("client-state", PLACES, "states"),
    ],
)
def test_three_rounds(
    tmp_path: pathlib.Path, form: str, program: tuple[str, str], out: str
) -> None:
    target, data = (str(ROOT / part) for part in program)
    bundle, simulated = simulation(tmp_path, target, form, rounds=3, min_nodes=3, min_replies=3)
    simulated.set_sites({"data": data, "out": out and str(tmp_path / out)})
    ran = simulated.start(3)
    assert ran.returncode == 0, ran.stdout
    bundle.run(data, 3, out=tmp_path / "here").finish()
    pairs = states(simulated.run_folder, tmp_path / "here")
    assert pairs
    for found, expected in pairs:
        # Clients are added up by sites, which changes the last digits.
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    rows = (simulated.run_folder / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == 3
    assert '"clients": 3' in rows[0]
    parts = sorted(path.name for path in (tmp_path / "states").glob("*"))
    assert parts == [f"states-{part}-of-3" for part in range(3 if out else 0)]


@pytest.fixture
def numbers(tmp_path: pathlib.Path) -> pathlib.Path:
    """The data of seven clients, one number each."""
    folder = tmp_path / "numbers"
    folder.mkdir()
    for number in range(7):
        np.savez(folder / f"{number}.npz", np.int32(10**number % 1000))
    return folder


SHIFTED = """\
import numpy as np

import tffc as tff


@tff.tf_computation(np.int32, np.int32)
def add(state, value):
    return state + value


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def shifted(state, data):
    return tff.federated_map(add, (tff.federated_broadcast(state), data))


@tff.federated_computation
def five():
    return tff.federated_value(np.int32(5), tff.SERVER)
"""


def test_results_of_clients_stay_at_the_sites(
    tmp_path: pathlib.Path, numbers: pathlib.Path
) -> None:
    (tmp_path / "shifted.py").write_text(SHIFTED)
    target, first = (str(tmp_path / f"shifted.py:{name}") for name in ("shifted", "five"))
    bundle = tffc.compile(target, "broadcast", initialize=first)
    bundle.export("nvflare", tmp_path / "job")
    simulated = Simulation(tmp_path, tmp_path / "job")
    simulated.set_sites({"data": str(numbers), "out": str(tmp_path / "kept")})
    ran = simulated.start(2)
    assert ran.returncode == 0, ran.stdout
    kept = sorted((tmp_path / "kept" / "clients" / "round-1").iterdir())
    assert len(kept) == 7
    for file in kept:
        with np.load(file) as result, np.load(numbers / file.name) as data:
            assert result[result.files[0]] == data["arr_0"] + 5


@pytest.mark.parametrize("way", ["masked", "open"])
def test_secure_sums(tmp_path: pathlib.Path, numbers: pathlib.Path, way: str) -> None:
    (tmp_path / "secure.py").write_text(SECURE)
    target = str(tmp_path / "secure.py:total")
    config = {"rounds": 2, "min_nodes": 3, "min_replies": 3, "secure_sums": way}
    bundle, simulated = simulation(tmp_path, target, **config)
    simulated.set_sites({"data": str(numbers)})
    ran = simulated.start(3)
    assert ran.returncode == 0, ran.stdout
    assert ("the server sees parts" in ran.stdout) == (way == "open")
    bundle.run(numbers, 2, out=tmp_path / "here").finish()
    for found, expected in states(simulated.run_folder, tmp_path / "here"):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("entry", "content", "code", "text"),
    [
        (
            "policy",
            "protection: secure\n",
            "E776",
            "a round of the program goes beyond the node's policy [E776]",
        ),
        ("demands", "policy: secure.yaml\n", "E880", "policy REFUSED (protection: "),
    ],
)
def test_a_site_may_refuse(
    tmp_path: pathlib.Path, numbers: pathlib.Path, entry: str, content: str, code: str, text: str
) -> None:
    """By its policy or demands; the server learns the code alone, and the job fails."""
    (tmp_path / "secure.yaml").write_text("protection: secure\n")
    (tmp_path / "secure.py").write_text(SECURE)
    (tmp_path / "entry.yaml").write_text(content)
    config = {"attempts": 1, "pause": 0, "secure_sums": "open"}
    _, simulated = simulation(tmp_path, str(tmp_path / "secure.py:total"), **config)
    simulated.set_sites({"data": str(numbers), entry: str(tmp_path / "entry.yaml")})
    ran = simulated.start(2)
    assert ran.returncode != 0
    server = (tmp_path / "workspace" / "server" / "log.txt").read_text()
    assert f"site-1 does not take part: {code}, " in server
    assert "0 of 2 nodes answered in round 1, and 2 are needed" in server
    site = (tmp_path / "workspace" / "site-1" / "log.txt").read_text()
    assert text in site
    assert text not in server


def test_a_site_refuses_a_job_with_a_forged_bundle(
    tmp_path: pathlib.Path, numbers: pathlib.Path
) -> None:
    """Export refuses it, so whoever submits the job writes it there."""
    (tmp_path / "secure.py").write_text(SECURE)
    config = {"attempts": 1, "pause": 0, "secure_sums": "open"}
    bundle, simulated = simulation(tmp_path, str(tmp_path / "secure.py:total"), **config)
    (tmp_path / "other.py").write_text(SECURE.replace("state + value", "state - value"))
    other = tffc.compile(str(tmp_path / "other.py:total"), "mapreduce")
    forged = dataclasses.replace(bundle, components=other.components)
    forged.save(simulated.job / "app" / "bundle", replace=True)
    (tmp_path / "demands.yaml").write_text("proof: true\n")
    simulated.set_sites({"data": str(numbers), "demands": str(tmp_path / "demands.yaml")})
    assert simulated.start(2).returncode != 0
    site = (tmp_path / "workspace" / "site-1" / "log.txt").read_text()
    assert "proof REFUSED (the form mapreduce computes something else than the program" in site


def test_what_is_not_allowed_does_not_run(tmp_path: pathlib.Path, numbers: pathlib.Path) -> None:
    """NVFlare loads classes of tffc where the server and the sites allow them."""
    (tmp_path / "secure.py").write_text(SECURE)
    _, simulated = simulation(tmp_path, str(tmp_path / "secure.py:total"), secure_sums="open")
    simulated.set_sites({"data": str(numbers)})
    simulated.allow("nvflare.")
    ran = simulated.start(2)
    assert ran.returncode != 0
    assert "is not in allow_list" in ran.stdout


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (
            {"rounds": 0},
            "'rounds' in the run configuration is 0, expected a number from 1 on [E766]",
        ),
        ({"out": "/elsewhere"}, "the server does not let runs keep their folder in '/elsewhere'"),
        ({"allow_effects": "files"}, "the server does not let bundles have these effects: files"),
    ],
)
def test_a_wrong_configuration_ends_the_job(
    tmp_path: pathlib.Path, numbers: pathlib.Path, config: dict[str, Any], text: str
) -> None:
    (tmp_path / "secure.py").write_text(SECURE)
    _, simulated = simulation(tmp_path, str(tmp_path / "secure.py:total"), **config)
    simulated.set_sites({"data": str(numbers)})
    ran = simulated.start(2)
    assert ran.returncode != 0
    assert text in ran.stdout
