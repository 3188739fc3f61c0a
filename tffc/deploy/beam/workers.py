"""Processes for Beam's workers, which outlive pipelines and keep all that they have loaded.

Beam either starts workers for a pipeline and ends them with it, or asks a service for them.  This
process is such a service, and hands each worker to one of its child processes, which runs it in a
thread:

    python -m tffc.deploy.beam.workers ADDRESS

is such a child process; it ends when its stdin is closed.  Addresses are sockets in a folder that
no other user can read, because whoever can connect to one can run code.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import functools
import importlib
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from tffc.runtime.engines.scratch import scratch_folder
from tffc.runtime.frameworks.tensorflow.quiet import may_speak

Foreign: TypeAlias = Any
"""A module or an object of Beam or gRPC, which may not be installed."""

API = "apache_beam.portability.api"

START = 300
"""How many seconds a process may take to start."""


@functools.cache
def worker_processes(count: int) -> WorkerProcesses:
    """Return `count` processes, shared by all engines of this process."""
    return WorkerProcesses(count)


class WorkerProcesses:
    """A number of processes, and the service at `address` that hands workers to them in turn.

    A process that has died is replaced when its turn comes.
    """

    def __init__(self, count: int) -> None:
        held = contextlib.ExitStack()
        atexit.register(held.close)
        folder = held.enter_context(scratch_folder())
        self._addresses = (f"unix:{folder}/{number}" for number in itertools.count())
        self._processes = [_Process(next(self._addresses)) for _ in range(count)]
        self._turns = itertools.cycle(range(count))
        self.address = f"unix:{folder}/service"
        self._server = _serve(self._start, self.address)

    def _start(self, request: Foreign, context: object) -> Foreign:
        """Ask the next process to start a worker, and return its answer."""
        turn = next(self._turns)
        if self._processes[turn].has_ended():
            self._processes[turn] = _Process(next(self._addresses))
        grpc = importlib.import_module("grpc")
        with grpc.insecure_channel(self._processes[turn].address) as channel:
            pool = _services().BeamFnExternalWorkerPoolStub(channel)
            return pool.StartWorker(request, timeout=START, wait_for_ready=True)


class _Process:
    """A process in which workers run as threads."""

    def __init__(self, address: str) -> None:
        self.address = address
        said = None if may_speak() else subprocess.DEVNULL
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tffc.deploy.beam.workers", address],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            # So that only the driver receives an interruption from the terminal.
            start_new_session=True,
        )

    def has_ended(self) -> bool:
        """Return whether the process has ended; if so, close its pipe."""
        if self._process.poll() is None:
            return False
        with self._process:
            return True


def _services() -> Foreign:
    return importlib.import_module(API).beam_fn_api_pb2_grpc


def _serve(start: Callable[[Foreign, object], Foreign], address: str) -> Foreign:
    """Start a server at an address that calls `start` for each worker that is requested."""
    service = _services().BeamFnExternalWorkerPoolServicer()
    service.StartWorker = start
    server = importlib.import_module("grpc").server(concurrent.futures.ThreadPoolExecutor(1))
    _services().add_BeamFnExternalWorkerPoolServicer_to_server(service, server)
    server.add_insecure_port(address)
    server.start()
    return server


def main(address: str) -> None:
    """Run workers until stdin is closed."""
    messages = importlib.import_module(API).beam_fn_api_pb2
    harness = importlib.import_module("apache_beam.runners.worker.sdk_worker").SdkHarness

    def start(request: Foreign, context: object) -> Foreign:
        # Beam's own service would keep every worker for good.
        worker = harness(request.control_endpoint.url, worker_id=request.worker_id)
        threading.Thread(target=worker.run, daemon=True).start()
        return messages.StartWorkerResponse()

    server = _serve(start, address)
    sys.stdin.read()
    server.stop(None)
    # A normal exit would wait for Beam's threads.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
