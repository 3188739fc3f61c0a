"""NVFlare's simulator runs the jobs that tffc writes, and trains as the local engine does."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import tffc
from tests.deploy.nvflare.simulator import Simulation, is_there
from tests.processes import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not is_there(), reason="needs NVFlare: pip install nvflare, or name TFFC_NVFLARE_PYTHON"
    ),
]

DIGITS = ROOT / "examples/digits/train"

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
) -> tuple[tffc.Bundle, Simulation]:
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


def test_three_rounds_of_the_digits(tmp_path: pathlib.Path) -> None:
    target = str(ROOT / "examples/digits/federated_averaging.py:training")
    bundle, simulated = simulation(tmp_path, target, rounds=3, min_nodes=3, min_replies=3)
    simulated.set_sites({"data": str(DIGITS)})
    ran = simulated.start(3)
    assert ran.returncode == 0, ran.stdout
    bundle.run(DIGITS, 3, out=tmp_path / "here").finish()
    pairs = states(simulated.run_folder, tmp_path / "here")
    assert len(pairs) == 8
    for found, expected in pairs:
        # Sites are added in another order than clients, which changes the last digits.
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    rows = (simulated.run_folder / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == 3
    assert '"clients": 3' in rows[0]


@pytest.fixture
def numbers(tmp_path: pathlib.Path) -> pathlib.Path:
    """The data of seven clients, one number each."""
    folder = tmp_path / "numbers"
    folder.mkdir()
    for number in range(7):
        np.savez(folder / f"{number}.npz", np.int32(10**number % 1000))
    return folder


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


def test_a_site_may_refuse(tmp_path: pathlib.Path, numbers: pathlib.Path) -> None:
    """By its policy; the server learns the code alone, and the job fails."""
    (tmp_path / "secure.py").write_text(SECURE)
    (tmp_path / "policy.yaml").write_text("protection: secure\n")
    config = {"attempts": 1, "pause": 0, "secure_sums": "open"}
    _, simulated = simulation(tmp_path, str(tmp_path / "secure.py:total"), **config)
    simulated.set_sites({"data": str(numbers), "policy": str(tmp_path / "policy.yaml")})
    ran = simulated.start(2)
    assert ran.returncode != 0
    server = (tmp_path / "workspace" / "server" / "log.txt").read_text()
    assert "site-1 does not take part: E776, " in server
    assert "0 of 2 nodes answered in round 1, and 2 are needed" in server
    site = (tmp_path / "workspace" / "site-1" / "log.txt").read_text()
    assert "a round of the program goes beyond the node's policy [E776]" in site


def test_what_is_not_allowed_does_not_run(tmp_path: pathlib.Path, numbers: pathlib.Path) -> None:
    """NVFlare loads classes of tffc where the server and the sites allow them."""
    (tmp_path / "secure.py").write_text(SECURE)
    _, simulated = simulation(tmp_path, str(tmp_path / "secure.py:total"), secure_sums="open")
    simulated.set_sites({"data": str(numbers)})
    simulated.allow("nvflare.")
    ran = simulated.start(2)
    assert ran.returncode != 0
    assert "is not in allow_list" in ran.stdout


def test_a_wrong_configuration_ends_the_job(tmp_path: pathlib.Path, numbers: pathlib.Path) -> None:
    (tmp_path / "secure.py").write_text(SECURE)
    _, simulated = simulation(tmp_path, str(tmp_path / "secure.py:total"), rounds=0)
    simulated.set_sites({"data": str(numbers)})
    ran = simulated.start(2)
    assert ran.returncode != 0
    assert (
        "'rounds' in the run configuration is 0, expected a number from 1 on [E766]" in ran.stdout
    )
