"""A command that runs an app on a federation, follows the run to its end, and says how it ended.

`flwr run --stream` ends without a word, and with exit status 0, if the run dies.  This command
takes the same app, connection and configuration:

    python -m tffc.deploy.flower.run APP CONNECTION -c "rounds=20 ..."

It ends with status 0 only if the run has completed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tffc.deploy.flower.owner import own_processes
from tffc.support.errors import ExecutionError, TffcError
from tffc.support.guards import is_dict, is_list

Flwr = Callable[[Sequence[str], bool], str]
"""Runs Flower's command with arguments; returns what it prints, if that is to be captured."""

COMPLETED, FINISHED = "finished:completed", "finished"

POLL = 3.0
"""The seconds between two looks at a run whose log has ended."""

PATIENCE = 180.0
"""The seconds that a SuperLink has to answer, for example after a restart."""

INTERRUPTED = 130

FLWR = """\
from tffc.deploy.flower.owner import end_with_owner

end_with_owner()

import runpy
import sys

sys.argv[0] = "flwr"
runpy.run_module("flwr.cli.app", run_name="__main__")
"""
"""Flower's command, which ends with this one, however this one ends."""


class FlowerRun(NamedTuple):
    """A run's status, and what Flower says of it."""

    status: str
    details: str = ""


def call_flwr(arguments: Sequence[str], is_captured: bool) -> str:
    """Run Flower's command, as `Flwr`."""
    command = [sys.executable, "-c", FLWR, *arguments]
    output = subprocess.PIPE if is_captured else None
    # The log is seen as it comes, also in a file.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    ran = subprocess.run(command, stdout=output, env=environment, text=True, check=False)
    return ran.stdout or ""


def run_app(
    app: str,
    connection: Sequence[str],
    options: Sequence[str],
    tell: Callable[[str], None],
    flwr: Flwr = call_flwr,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run an app, and return when the run has completed; `connection` is empty for the default one.

    Raises:
      ExecutionError: the run is refused, has not completed, or cannot be followed.
    """
    number = _begin(flwr(["run", app, *connection, *options, "--format", "json"], True))
    tell(f"run {number} has begun")
    flwr(["log", number, *connection, "--stream"], False)
    ended = _end_of(number, connection, flwr, sleep, clock)
    if ended.status != COMPLETED:
        raise ExecutionError(
            "E785",
            f"run {number} has not completed: {ended.status}",
            notes=tuple(ended.details.splitlines()),
            help="see its log, and that of the SuperLink; with the same folder as out, resume=true "
            "goes on after the last finished round",
        )
    tell(f"run {number} has completed")


def _begin(output: str) -> str:
    """Return the number of the run that has begun."""
    answer = _parse(output)
    number = answer.get("run-id")
    if not isinstance(number, str) or not number.isdecimal():
        said = answer.get("error-message") or output
        raise ExecutionError(
            "E785",
            "the run has not begun",
            notes=tuple(str(said).strip().splitlines()),
            help="check the connection, and that the SuperLink runs",
        )
    return number


def _end_of(
    number: str,
    connection: Sequence[str],
    flwr: Flwr,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> FlowerRun:
    """Wait until a run has ended, and return how."""
    answered = clock()
    while clock() - answered < PATIENCE:
        found = _status(flwr(["list", *connection, "--run-id", number, "--format", "json"], True))
        if found is not None:
            answered = clock()
            if found.status.startswith(FINISHED):
                return found
        sleep(POLL)
    raise ExecutionError(
        "E785",
        f"the SuperLink does not answer how run {number} is",
        help="see its log; start it again with the same database",
    )


def _status(output: str) -> FlowerRun | None:
    runs = _parse(output).get("runs")
    if not is_list(runs) or len(runs) != 1 or not is_dict(runs[0]):
        return None
    status, details = runs[0].get("status"), runs[0].get("status-details", "")
    return FlowerRun(status, str(details)) if isinstance(status, str) else None


def _parse(output: str) -> dict[str, object]:
    """Return the JSON object that Flower's command prints; empty if there is none."""
    try:
        answer = json.loads(output)
    except ValueError:
        return {}
    return {str(key): value for key, value in answer.items()} if is_dict(answer) else {}


def main() -> None:
    """Run the app that the arguments name."""
    parser = argparse.ArgumentParser(
        prog="python -m tffc.deploy.flower.run",
        description="Run a Flower app, and say how the run ended.",
    )
    parser.add_argument("app", help="the folder of the app")
    parser.add_argument("connection", nargs="?", help="the name of the SuperLink connection")
    for names in (("-c", "--run-config"), ("--federation-config",), ("--federation",)):
        parser.add_argument(*names, action="append", default=[], help="as for flwr run")
    given = parser.parse_args()
    own_processes()
    options = [
        word
        for name in ("run_config", "federation_config", "federation")
        for value in getattr(given, name)
        for word in (f"--{name.replace('_', '-')}", value)
    ]
    connection = [] if given.connection is None else [given.connection]
    try:
        run_app(given.app, connection, options, _tell)
    except TffcError as error:
        _tell(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _tell("the run goes on without this command; flwr stop ends it")
        sys.exit(INTERRUPTED)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201  # it is the command's output


if __name__ == "__main__":
    main()
