"""Flower's simulation, whose nodes are Ray's actors, trains as the local engine does."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
from collections.abc import Iterator

import pytest

from tests.processes import ROOT
from tests.shell import Shell

pytest.importorskip("flwr", reason="needs tffc[flower]")
pytest.importorskip("ray", reason="Flower's simulation needs Ray: pip install 'flwr[simulation]'")

from tests.deploy.flower.processes import check_alike, free_ports, rows

pytestmark = pytest.mark.long

DIGITS = ROOT / "examples/digits/train"


@pytest.fixture
def shell(tmp_path: pathlib.Path) -> Iterator[Shell]:
    """A shell with a Flower of its own, whose SuperLink ends with the test."""
    made = Shell(tmp_path / "home")
    made.environment |= {
        "FLWR_HOME": str(tmp_path / "flwr"),
        "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": str(free_ports(1)[0]),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray's sockets are in a folder of this one, and have short paths.
        "RAY_TMPDIR": "/tmp",
    }
    yield made
    end_all(f"FLWR_HOME={tmp_path / 'flwr'}")


def end_all(variable: str) -> None:
    """End the processes with a variable in their environment."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if variable.encode() in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)


def test_the_digits(shell: Shell, tmp_path: pathlib.Path) -> None:
    program = f"{ROOT / 'examples/digits/federated_averaging.py'}:training"
    lines = (
        f"cd {tmp_path}",
        f"tffc compile {program} --form mapreduce --out training",
        "tffc export training --to flower -o app",
        f"tffc run training --data {DIGITS} --rounds 3 --out local",
        "export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1",
        "flwr run app --stream --federation-config 'num-supernodes=3' "
        f"""-c 'rounds=3 min-nodes=3 data="{DIGITS}" out="{tmp_path / "run"}"'""",
    )
    ran = shell.run(" && ".join(lines))
    assert ran.code == 0, ran.output
    assert [row["clients"] for row in rows(tmp_path / "run")] == [3, 3, 3], ran.output
    check_alike(tmp_path / "run", tmp_path / "local")
