"""The process that owns others: they end when it does, however it ends.

Flower's processes look every now and then whether the number of their parent is still in use, which
it is if nobody has asked how the parent ended.  A worker has no parent that lives as long as its
node.  Here a process waits for the end of its owner, whose number is in its environment.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

OWNER = "TFFC_FLOWER_OWNER"
"""The variable of the environment with the number of the owner."""

POLL = 1.0
"""The seconds between two looks for the owner, where a system cannot tell of its end."""


class Starts:
    """Replaces the module `subprocess` in Flower's node and SuperLink, to start our SuperExec."""

    TimeoutExpired = subprocess.TimeoutExpired

    # Named as in `subprocess`.
    @staticmethod
    def Popen(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start our own SuperExec with the arguments of Flower's."""
        ours = [sys.executable, "-m", "tffc.deploy.flower.superexec", *command[1:]]
        return subprocess.Popen(ours, **options)


def own_processes() -> None:
    """Make this process the owner of those that it starts from now on, and of theirs.

    If it has an owner itself, it ends with that one.
    """
    end_with_owner()
    os.environ[OWNER] = str(os.getpid())


def end_with_owner() -> None:
    """Kill this process when its owner ends, if it has one."""
    owner = os.environ.get(OWNER, "")
    if owner.isdecimal() and int(owner) != os.getpid():
        threading.Thread(target=_end_after, args=(int(owner),), daemon=True).start()


def _end_after(owner: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        _wait_for(owner)
    os.kill(os.getpid(), signal.SIGKILL)


def _wait_for(process: int) -> None:
    """Return when a process has ended; raises ProcessLookupError if it already has."""
    try:
        descriptor = os.pidfd_open(process)
    except (AttributeError, PermissionError, NotImplementedError):
        while True:
            os.kill(process, 0)
            time.sleep(POLL)
    try:
        select.select([descriptor], [], [])
    finally:
        os.close(descriptor)
