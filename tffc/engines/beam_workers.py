"""Processes for workers of Beam, which stay between pipelines with all that they have loaded.

Beam starts workers for a pipeline and ends them with it, or asks a service for them.  Here this
process is that service, and hands each worker to one of its processes, which runs it in a thread:

    python -m tffc.engines.beam_workers ADDRESS

is such a process, which ends when its stdin does.  Addresses are sockets in a folder that no other
user can read, for whoever reaches one can run code.
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
from typing import Any

from tffc.engines.scratch import scratch_folder
from tffc.frameworks.tensorflow.quiet import may_speak

API = "apache_beam.portability.api"

START = 300
"""How many seconds a process may take until it is there."""


@functools.cache
def worker_processes(count: int) -> WorkerProcesses:
    """Return so many processes, the same for all engines of this process."""
    return WorkerProcesses(count)


class WorkerProcesses:
    """So many processes, and at `address` the service that hands workers to them in turn.

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

    def _start(self, request: Any, context: Any) -> Any:
        """Have the next process start a worker, and return its answer."""
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
            [sys.executable, "-m", "tffc.engines.beam_workers", address],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            # So that an interruption is for the driver alone.
            start_new_session=True,
        )

    def has_ended(self) -> bool:
        """Return whether it has ended, and give up its pipe then."""
        if self._process.poll() is None:
            return False
        with self._process:
            return True


def _services() -> Any:
    return importlib.import_module(API).beam_fn_api_pb2_grpc


def _serve(start: Callable[[Any, Any], Any], address: str) -> Any:
    """Have a function start the workers that are asked for at an address."""
    service = _services().BeamFnExternalWorkerPoolServicer()
    service.StartWorker = start
    server = importlib.import_module("grpc").server(concurrent.futures.ThreadPoolExecutor(1))
    _services().add_BeamFnExternalWorkerPoolServicer_to_server(service, server)
    server.add_insecure_port(address)
    server.start()
    return server


def main(address: str) -> None:
    """Take workers until stdin ends."""
    messages = importlib.import_module(API).beam_fn_api_pb2
    harness = importlib.import_module("apache_beam.runners.worker.sdk_worker").SdkHarness

    def start(request: Any, context: Any) -> Any:
        # Beam's own service keeps every worker for good.
        worker = harness(request.control_endpoint.url, worker_id=request.worker_id)
        threading.Thread(target=worker.run, daemon=True).start()
        return messages.StartWorkerResponse()

    server = _serve(start, address)
    sys.stdin.read()
    server.stop(None)
    # Threads of Beam's would go on.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
