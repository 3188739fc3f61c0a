"""Flower's SuperExec with shorter pauses; it starts a process for each message, or run.

    python -m tffc.deploy.flower.superexec --runtime-api-address ...

The processes are forked from one that has only imported Flower and tffc's side of an app.  It takes
nothing before that one is there, and then holds what it has taken while its process lives.
"""

# Flower may not be installed; then its types are unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import importlib
import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from typing import Any

# An extra, not installed with the rest.
from flwr.supercore.cli import flower_superexec  # pyright: ignore[reportMissingImports]  # an extra
from flwr.supercore.superexec import run_superexec  # pyright: ignore[reportMissingImports]  # an extra
from flwr.supercore.superexec.executor import subprocess_executor  # pyright: ignore[reportMissingImports]  # an extra

from tffc.deploy.flower.claims import hold_claim
from tffc.deploy.flower.log import configure_log
from tffc.deploy.flower.owner import end_with_owner
from tffc.deploy.flower.pauses import Pauses

COMMANDS = {
    "flwr-clientapp": ("flwr.supernode.cli", "flwr_clientapp"),
    "flwr-serverapp": ("flwr.superlink.cli", "flwr_serverapp"),
}
"""Flower's commands that handle a message, and a run, with the app: where their functions are."""

IMPORTED = ("flwr.supernode.cli", "tffc.deploy.flower.sides")
"""The modules that are imported before processes for messages are forked."""


def run_command(command: list[str]) -> None:
    """Run one of Flower's commands in this process."""
    module, function = COMMANDS[command[0]]
    sys.argv = command
    getattr(importlib.import_module(module), function)()


def _run_owned(run: Callable[[list[str]], None], command: list[str]) -> None:
    end_with_owner()
    configure_log()
    run(command)


class Forks:
    """Replaces the module `subprocess` in Flower's SuperExec.

    `run` executes the commands of `COMMANDS`, in forked processes.
    """

    DEVNULL = subprocess.DEVNULL

    def __init__(self, pauses: Pauses, run: Callable[[list[str]], None] = run_command) -> None:
        self._pauses = pauses
        self._run = run
        self._server = multiprocessing.get_context("forkserver")
        self._server.set_forkserver_preload(list(IMPORTED))

    def prepare(self) -> None:
        """Wait until processes can be forked."""
        first = self._server.Process(target=_do_nothing)
        first.start()
        first.join()

    # Named as in `subprocess`.
    def Popen(self, command: Sequence[str], **options: Any) -> Any:
        """Start a command; use a forked process for those of `COMMANDS`."""
        self._pauses.came()
        if command[0] not in COMMANDS:
            return subprocess.Popen(command, **options)
        process = self._server.Process(target=_run_owned, args=(self._run, list(command)))
        process.start()
        # Not `join`, which another thread may call when it starts a process.
        hold_claim(command, lambda timeout: bool(wait([process.sentinel], timeout)))
        return process


def _do_nothing() -> None:
    pass


def main() -> None:
    """Run until the node or the SuperLink ends."""
    end_with_owner()
    configure_log()
    loop: Any = run_superexec
    executor: Any = subprocess_executor
    loop.time = Pauses()
    executor.subprocess = forks = Forks(loop.time)
    forks.prepare()
    flower_superexec()


if __name__ == "__main__":
    main()
