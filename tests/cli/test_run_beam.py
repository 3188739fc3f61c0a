"""`tffc run` on Apache Beam: the same lines, files and states."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from tests.cli.conftest import ROUND, Run
from tests.deploy.test_beam import needs_beam
from tffc.runtime.runs.command_record import COMMANDS
from tffc.runtime.runs.observed import OBSERVED

PERSONAL = """

@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def personal(state, data):
    return tff.federated_zip((tff.federated_broadcast(state), data))
"""

pytestmark = [needs_beam, pytest.mark.slow]


def kept(folder: pathlib.Path) -> dict[str, bytes]:
    """Return the files of a run, except commands and times, which differ."""
    files = (
        path
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (OBSERVED, COMMANDS)
    )
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(("name", "form"), [("count", "mapreduce"), ("personal", "broadcast")])
def test_both_engines_keep_the_same(run: Run, tmp_path: pathlib.Path, name: str, form: str) -> None:
    (tmp_path / "module.py").write_text(ROUND + PERSONAL)
    assert run("compile", f"module.py:{name}", "--form", form, "--out", "bundle").code == 0
    (tmp_path / "data").mkdir()
    for number in range(9):
        np.savez(tmp_path / "data" / f"{number}.npz", np.int32(2**number))
    np.savez(tmp_path / "first.npz", np.int32(3))
    common = ("--data", "data", "--rounds", "2", "--clients-per-round", "4")
    local = run("run", "bundle", *common, "--state-in", "first.npz", "--out", "local")
    options = ("--engine", "beam", "--engine-options", "--fanout=2")
    beam = run("run", "bundle", *common, "--state-in", "first.npz", "--out", "beam", *options)
    assert (beam.code, beam.stdout) == (0, local.stdout)
    assert kept(tmp_path / "beam") == kept(tmp_path / "local")
    assert ("clients/round-2/" in "".join(kept(tmp_path / "beam"))) == (form == "broadcast")
    # And it goes on, on either engine.
    more = ("--data", "data", "--rounds", "3", "--clients-per-round", "4", "--resume")
    assert run("run", "bundle", *more, "--out", "local").code == 0
    batches = ("--batching", "3", "--explain-speed")
    ran = run("run", "bundle", *more, "--out", "beam", "--engine", "beam", *batches)
    assert ran.code == 0
    assert "time of 1 round, of all workers together\n" in ran.stderr
    assert "batching: up to 3 clients a call, " in ran.stderr
    assert kept(tmp_path / "beam") == kept(tmp_path / "local")
