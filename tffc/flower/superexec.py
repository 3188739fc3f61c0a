"""Flower's SuperExec, which looks for messages and starts processes for them, without its pauses.

    python -m tffc.flower.superexec --runtime-api-address ...

The processes are forked from one that has imported Flower and tffc's side of an app, and done
nothing else.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from flwr.supercore.cli import flower_superexec  # pyright: ignore[reportMissingImports]
from flwr.supercore.superexec import run_superexec  # pyright: ignore[reportMissingImports]
from flwr.supercore.superexec.executor import subprocess_executor  # pyright: ignore[reportMissingImports]

from tffc.flower.pauses import Pauses

COMMAND = "flwr-clientapp"
"""Flower's command that does with a message what the app says."""

IMPORTED = ("flwr.supernode.cli", "tffc.flower.sides")
"""What processes for messages have imported when they begin."""


def run_command(command: list[str]) -> None:
    """Run Flower's command for messages in this process."""
    from flwr.supernode.cli import flwr_clientapp  # pyright: ignore[reportMissingImports]

    sys.argv = command
    flwr_clientapp()


class Forks:
    """Stands where Flower's SuperExec looks for the module `subprocess`.

    Commands for messages are run by `run`, in processes that are forked.
    """

    DEVNULL = subprocess.DEVNULL

    def __init__(self, pauses: Pauses, run: Callable[[list[str]], None] = run_command) -> None:
        self._pauses = pauses
        self._run = run
        self._server = multiprocessing.get_context("forkserver")
        self._server.set_forkserver_preload(list(IMPORTED))

    def Popen(self, command: Sequence[str], **options: Any) -> Any:  # the name that it has there
        """Start a command; that for messages in a process that is forked."""
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
