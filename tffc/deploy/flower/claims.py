"""Claims of tasks, messages to a node and runs, which a SuperExec holds while their processes live.

Flower gives a task to another process if it hears nothing of the first for half a minute.  On a
busy machine, a process may take longer to begin: then one more is started every half minute, and
each slows the others down.  So the SuperExec speaks for a process as long as it lives.
"""

# Flower may not be installed; then its types are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import argparse
import contextlib
import pathlib
import threading
from collections.abc import Callable, Sequence

# An extra, not installed with the rest.
from flwr.proto.runtime_pb2 import SendTaskHeartbeatRequest  # pyright: ignore[reportMissingImports]  # an extra
from flwr.supercore.interceptors import (  # pyright: ignore[reportMissingImports]  # an extra
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
)
from flwr.supercore.runtime import RuntimeHttpClient  # pyright: ignore[reportMissingImports]  # an extra

PERIOD = 5.0
"""The seconds between two signs of life; Flower waits 30 for the first one."""


def hold_claim(command: Sequence[str], has_ended: Callable[[float], bool]) -> None:
    """Hold the claim of a command's task, in a thread, until its process has ended.

    `has_ended` waits for that for at most so many seconds.
    """
    threading.Thread(target=_hold, args=(command, has_ended), daemon=True).start()


def _hold(command: Sequence[str], has_ended: Callable[[float], bool]) -> None:
    # Most processes end sooner, and need no client of their own here.
    if has_ended(PERIOD):
        return
    client = _client(command)
    try:
        while not has_ended(PERIOD):
            _send(client)
    finally:
        client.close()


def _send(client: RuntimeHttpClient) -> None:
    # The next sign may arrive, and once it has begun, the process speaks too.
    with contextlib.suppress(Exception):
        client.SendTaskHeartbeat(SendTaskHeartbeatRequest())


def _client(command: Sequence[str]) -> RuntimeHttpClient:
    """Return a client that speaks for the process of a command."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--token")
    parser.add_argument("--insecure", action="store_true")
    parser.add_argument("--root-certificates", type=pathlib.Path)
    known, _ = parser.parse_known_args(command[3:])
    certificates = known.root_certificates
    return RuntimeHttpClient.from_server_address(
        server_address=command[2],
        insecure=known.insecure,
        root_certificates=certificates and certificates.read_bytes(),
        interceptors=[
            RuntimeVersionHttpInterceptor(component_name=command[0]),
            RuntimeTokenHttpInterceptor(known.token),
        ],
    )
