"""Whole commands, each a cold process: seconds, the largest memory, and instructions."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks.sides import ROOT, Figure, Schedule, SideError, environment

MEGABYTE = 1024
"""The kilobytes in one; the operating system counts in these."""

RUNNER = """
import os, sys, time
quiet = os.open(os.devnull, os.O_WRONLY)
start = time.perf_counter()
child = os.fork()
if not child:
    os.dup2(quiet, 1)
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print(time.perf_counter() - start, usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""
"""Runs a command, and says how many seconds and how many kilobytes it took."""


CALLGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")


def counts_instructions() -> bool:
    """Return whether valgrind is installed."""
    return shutil.which(CALLGRIND[0]) is not None


class Command:
    """A command that is run repeatedly; `peaks` has the megabytes of each run."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self.peaks: list[float] = []

    def instructions(self) -> float:
        """Return how many million instructions one run executes, as valgrind counts them.

        Raises:
          SideError: the command fails.
        """
        ran = subprocess.run(
            [*CALLGRIND, *self._arguments],
            cwd=ROOT,
            env={**environment(), "PYTHONHASHSEED": "0"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        counted = re.search(r"Collected : (\d+)", ran.stderr)
        if ran.returncode or counted is None:
            raise SideError(f"{' '.join(self._arguments)} fails under valgrind")
        return int(counted[1]) / 1e6

    def __call__(self) -> float:
        """Return the wall-clock seconds of one run.

        Raises:
          SideError: the command fails.
        """
        # The memory of a process counts that of the one it was forked from, so a small one forks.
        ran = subprocess.run(
            [sys.executable, "-S", "-c", RUNNER, *self._arguments],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise SideError(f"{' '.join(self._arguments)} fails")
        seconds, kilobytes = map(float, ran.stdout.split())
        self.peaks.append(kilobytes / MEGABYTE)
        return seconds


def tffc(*arguments: str) -> Command:
    """Return a command of tffc."""
    return Command([sys.executable, "-m", "tffc", *arguments])


def python(code: str) -> Command:
    """Return a command that runs code in an interpreter."""
    return Command([sys.executable, "-c", code])


def measure(
    commands: Mapping[str, Command], schedule: Schedule
) -> tuple[dict[str, Figure], dict[str, Figure]]:
    """Return the seconds and the megabytes of several commands, run in turn."""
    seconds = schedule.alternate(dict(commands))
    return seconds, {name: Figure(tuple(commands[name].peaks)) for name in seconds}


def peer_compile(interpreter: str, program: pathlib.Path, folder: pathlib.Path) -> Command:
    """Return the peer's command that reads a program, compiles it and writes its components."""
    return Command([interpreter, "-m", "benchmarks.peer_compile", str(program), str(folder)])
