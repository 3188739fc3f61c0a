"""A task has one process, even one that is slow to begin; what a node starts ends with it."""

# Flower may not be installed; then its types are unknown.
# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("flwr", reason="needs tffc[flower]")

import uvicorn
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.corestate import in_memory_corestate
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.main import create_app
from flwr.supernode.nodestate import NodeStateFactory

from tests.deploy.flower.processes import free_ports, wait_for
from tffc.deploy.flower import claims, superexec
from tffc.deploy.flower.pauses import Pauses

PATIENCE = 2
"""So many seconds Flower waits here for the first sign of a process."""


class NodeApi:
    """What a SuperNode gives to its SuperExec: tasks of a state, over HTTP."""

    def __init__(self) -> None:
        (self.port,) = free_ports(1)
        factory = NodeStateFactory(objectstore_factory=ObjectStoreFactory())
        self.state = factory.state()
        self._server = uvicorn.Server(
            uvicorn.Config(
                create_app(state_factory=factory, superexec_auth_secret=None),
                host="127.0.0.1",
                port=self.port,
                log_level="error",
                ws="none",
            )
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        wait_for("the node's server", lambda: self._server.started, 30)
        self._client = RuntimeHttpClient.from_server_address(
            f"127.0.0.1:{self.port}",
            insecure=True,
            root_certificates=None,
            interceptors=[RuntimeVersionHttpInterceptor(component_name="SuperExec")],
        )

    def acquire(self) -> str:
        """The token of the task that there is to do now, or nothing."""
        request = AcquireTaskRequest(supported_task_types=["flwr-clientapp"])
        return self._client.AcquireTask(request).token

    def close(self) -> None:
        self._client.close()
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[NodeApi]:
    monkeypatch.setattr(in_memory_corestate, "HEARTBEAT_DEFAULT_INTERVAL", PATIENCE)
    monkeypatch.setattr(claims, "PERIOD", PATIENCE / 8)
    api = NodeApi()
    api.state.set_node_id(1)
    assert api.state.create_task(task_type="flwr-clientapp", run_id=1, fab_hash="f") is not None
    yield api
    api.close()


def is_slow(command: list[str]) -> None:
    """What a process does that is slow to begin: for long, nothing is heard of it."""
    pathlib.Path(command[-1]).write_text(str(os.getpid()))
    time.sleep(300)


def prepared() -> superexec.Forks:
    """What a SuperExec starts processes with, ready before it takes a task."""
    forks = superexec.Forks(Pauses(), is_slow)
    forks.prepare()
    return forks


def start(forks: superexec.Forks, api: NodeApi, token: str, said: pathlib.Path) -> tuple[Any, int]:
    """Start the process for a task as a SuperExec does, and wait until it says its number."""
    address = f"127.0.0.1:{api.port}"
    where = ["--runtime-api-address", address, "--token", token, "--insecure"]
    process: Any = forks.Popen(["flwr-clientapp", *where, str(said)])
    wait_for("the process", lambda: said.exists() and said.read_text() != "")
    return process, int(said.read_text())


@pytest.mark.slow
def test_a_process_that_is_slow_to_begin_is_the_only_one(
    api: NodeApi, tmp_path: pathlib.Path
) -> None:
    forks = prepared()
    token = api.acquire()
    assert token
    process, number = start(forks, api, token, tmp_path / "said")
    try:
        end = time.monotonic() + 4 * PATIENCE
        while time.monotonic() < end:
            assert not api.acquire(), "the task was given to a second process"
            time.sleep(0.2)
    finally:
        os.kill(number, signal.SIGKILL)
    process.join()
    wait_for("another process, as the first has died", lambda: bool(api.acquire()), 8 * PATIENCE)


OWNING = """\
import os, subprocess, sys, time
from tffc.deploy.flower.owner import end_with_owner, own_processes

role, folder = sys.argv[1:]
open(f"{folder}/{role}", "w").write(str(os.getpid()))
if role == "node":
    own_processes()
    subprocess.Popen([sys.executable, __file__, "child", folder], start_new_session=True)
elif role == "child":
    end_with_owner()
    subprocess.Popen([sys.executable, __file__, "grandchild", folder], start_new_session=True)
else:
    end_with_owner()
time.sleep(300)
"""


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and was not asked for does not."""
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_process_owns_ends_with_it(how: signal.Signals, tmp_path: pathlib.Path) -> None:
    (tmp_path / "owning.py").write_text(OWNING)
    # Not `wait`: an owner that has ended is seen before anybody asks for how.
    node = subprocess.Popen([sys.executable, tmp_path / "owning.py", "node", tmp_path])
    roles = ("node", "child", "grandchild")

    def have_begun() -> bool:
        return all((tmp_path / r).exists() and (tmp_path / r).read_text() for r in roles)

    wait_for("the processes", have_begun)
    processes = [int((tmp_path / role).read_text()) for role in roles]
    try:
        assert all(map(is_alive, processes))
        time.sleep(1)
        node.send_signal(how)
        wait_for("their end", lambda: not any(map(is_alive, processes)), 60)
    finally:
        for process in processes[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        node.wait()
