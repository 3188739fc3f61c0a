"""Flower's SuperExec with shorter pauses; it polls for messages and starts processes for them.

    python -m tffc.deploy.flower.superexec --runtime-api-address ...

The processes are forked from one that has only imported Flower and tffc's side of an app.
"""

# Flower may not be installed; then its types are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from typing import Any

# An extra, not installed with the rest.
from flwr.supercore.cli import flower_superexec  # pyright: ignore[reportMissingImports]  # an extra
from flwr.supercore.superexec import run_superexec  # pyright: ignore[reportMissingImports]  # an extra
from flwr.supercore.superexec.executor import subprocess_executor  # pyright: ignore[reportMissingImports]  # an extra

from tffc.deploy.flower.pauses import Pauses

COMMAND = "flwr-clientapp"
"""Flower's command that handles a message with the app."""

IMPORTED = ("flwr.supernode.cli", "tffc.deploy.flower.sides")
"""The modules that are imported before processes for messages are forked."""


def run_command(command: list[str]) -> None:
    """Run Flower's command for messages in this process."""
    from flwr.supernode.cli import flwr_clientapp  # pyright: ignore[reportMissingImports]  # an extra

    sys.argv = command
    flwr_clientapp()


class Forks:
    """Replaces the module `subprocess` in Flower's SuperExec.

    `run` executes commands for messages, in forked processes.
    """

    DEVNULL = subprocess.DEVNULL

    def __init__(self, pauses: Pauses, run: Callable[[list[str]], None] = run_command) -> None:
        self._pauses = pauses
        self._run = run
        self._server = multiprocessing.get_context("forkserver")
        self._server.set_forkserver_preload(list(IMPORTED))

    # Named as in `subprocess`.
    def Popen(self, command: Sequence[str], **options: Any) -> subprocess.Popen[Any] | BaseProcess:
        """Start a command; use a forked process for the command that handles messages."""
        self._pauses.came()
        if command[0] != COMMAND:
            return subprocess.Popen(command, **options)
        process = self._server.Process(target=self._run, args=(list(command),))
        process.start()
        return process


def main() -> None:
    """Run until the node ends."""
    loop: Any = run_superexec
    executor: Any = subprocess_executor
    loop.time = Pauses()
    executor.subprocess = Forks(loop.time)
    flower_superexec()


if __name__ == "__main__":
    main()
