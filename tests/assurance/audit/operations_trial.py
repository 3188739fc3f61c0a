"""`python -m tests.assurance.audit.operations_trial`: tries the flow of each operation of
TensorFlow.

Each operation runs in a process of its own that may crash or hang.  Results are lines of JSON in a
file; what is in it already is not done again.
"""

from __future__ import annotations

import collections
import contextlib
import json
import mmap
import os
import pathlib
import signal
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from tests.assurance.audit import operation_programs
from tests.assurance.audit.operation_calls import definitions, on_a_cpu
from tests.assurance.audit.states import STATES
from tffc.assurance.audit.sections import TABLE
from tffc.graphs.operations.effects import read_table

SECONDS = 90
"""A process that takes longer for one operation is ended."""

CALLS = 4
"""The most calls of an operation that are tried until one has a result that differs."""

NOT_TRIED = {
    "needs other machines": ("Collective", "DataService", "Rpc", "RegisterDataset"),
    "needs a TPU or XLA's compiler": ("TPU", "Xla", "_Xla", "ConfigureDistributedTPU"),
    "calls Python": ("PyFunc", "EagerPyFunc", "PyFuncStateless"),
    "moves tensors between devices or sessions": (
        "Send", "Recv", "_Send", "_Recv", "_Host", "_Arg", "_Retval", "_Device", "GetSession",
        "DeleteSession", "MultiDevice", "RemoteCall", "_ScopedAllocator",
    ),
    "ends the process": ("Abort",),
}  # fmt: skip
"""Beginnings of the names of operations that are not tried, by the reason."""


def why_not(operation: str) -> str:
    if operation not in on_a_cpu():
        return "no code for a CPU"
    for reason, names in NOT_TRIED.items():
        if operation.startswith(names):
            return reason
    return ""


def subjects() -> list[str]:
    """Return all kinds of state, and all operations; those first that the table describes."""
    rows = read_table(TABLE)
    known = definitions()
    order = sorted(known, key=lambda name: (name not in rows, not known[name].is_stateful, name))
    return [*(f"state: {name}" for name in STATES), *order]


def tried(subject: str, attempt: int, started: Callable[[int], None]) -> Iterator[dict[str, Any]]:
    """Yield what is seen of each program of an operation or a kind of state."""
    if subject.startswith("state: "):
        makers = list(operation_programs.state_programs(subject.removeprefix("state: ")))
        for number, (title, make) in enumerate(makers):
            if number >= attempt:
                started(number)
                yield of_program(title, make, subject)
        return
    reason = why_not(subject)
    if reason:
        yield {"subject": subject, "why_not": reason}
        return
    for _ in range(CALLS):
        call = operation_programs.call_that_runs(subject, attempt, started)
        if isinstance(call, str):
            yield {"subject": subject, "why_not": "no call runs", "error": call}
            return
        lines = [of_program("", make, subject) for make in operation_programs.programs(call)]
        yield from (line | {"attempt": call.attempt, "readers": call.readers} for line in lines)
        if not call.leaves or any(line.get("exchanged") for line in lines):
            return
        attempt = call.attempt + 1


def of_program(title: str, make: Callable[[], Any], subject: str) -> dict[str, Any]:
    try:
        program = make()
        verdict = operation_programs.trial(program)
    except Exception as error:  # noqa: BLE001  (a random program may fail in any way)
        text = f"{type(error).__name__}: {str(error).splitlines()[:1]}"
        return {"subject": subject, "program": title, "why_not": "not traced", "error": text[:300]}
    return {
        "subject": subject,
        "program": program.name,
        "operations": sorted(operation_programs.operations_of(program)),
        "modes": sorted(set(program.modes)),
        "misses": verdict.misses[:3],
        "claimed": verdict.claimed,
        "shown": verdict.shown,
        "why_not": verdict.why_not,
        "is_static": program.is_static,
        "exchanged": list(verdict.exchanged.values()),
    }


# Processes.


class Progress:
    """The subject and the attempt that a process is at, in memory that it shares."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 16)

    def write(self, subject: int, attempt: int) -> None:
        self._memory[:16] = struct.pack("qq", subject, attempt)

    def read(self) -> tuple[int, int]:
        subject, attempt = struct.unpack("qq", self._memory[:16])
        return subject, attempt


def work(names: Sequence[str], start: int, attempt: int, progress: Progress, out: Any) -> None:
    """Try the subjects from one on; an alarm ends the process if one takes too long."""
    for number in range(start, len(names)):
        progress.write(number, attempt)
        signal.alarm(SECONDS)
        lines = list(tried(names[number], attempt, lambda at, n=number: progress.write(n, at)))
        for line in lines:
            out.write(json.dumps(line) + "\n")
        out.flush()
        attempt = 0


def run_all(names: Sequence[str], path: pathlib.Path) -> None:
    """Try subjects in processes, each of which goes on where the one before it ended."""
    start = attempt = crashes = 0
    progress = Progress()
    path = path.absolute()
    while start < len(names):
        progress.write(start, attempt)
        child = os.fork()
        if child == 0:
            with (
                contextlib.suppress(KeyboardInterrupt),
                path.open("a") as out,
                tempfile.TemporaryDirectory() as scratch,
            ):
                # Some operations write files by the names that they are given.
                os.chdir(scratch)
                quiet()
                work(names, start, attempt, progress, out)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return
        at, tries = progress.read()
        crashes = crashes + 1 if at == start else 1
        start, attempt = at, tries + 1
        if crashes > 4 or os.WTERMSIG(status) == signal.SIGALRM:
            with path.open("a") as out:
                line = {"subject": names[at], "why_not": f"ended by signal {os.WTERMSIG(status)}"}
                out.write(json.dumps(line) + "\n")
            start, attempt, crashes = at + 1, 0, 0


def quiet() -> None:
    """Let nothing of TensorFlow's complaints be printed."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


# Records.

RECORDED = pathlib.Path(__file__).with_name("calls_that_run.json")
"""Calls that run, by operation: the attempts that gave them, how their results are read, and the
exchanges of a part of their inputs that changed a result."""


def recorded(lines: Sequence[dict[str, Any]]) -> str:
    fields = ("attempt", "readers", "is_static", "exchanged")
    calls = {
        line["subject"]: {field: line[field] for field in fields}
        for line in lines
        if "attempt" in line and "value" in line.get("modes", ()) and line["exchanged"]
    }
    rows = (f"{json.dumps(name)}: {json.dumps(calls[name])}" for name in sorted(calls))
    return "{\n" + ",\n".join(rows) + "\n}\n"


# The report.


class Report:
    """The numbers of operations by mode, what was missed, and what was claimed in vain."""

    def __init__(self, lines: Sequence[dict[str, Any]]) -> None:
        self.modes: dict[str, set[str]] = collections.defaultdict(set)
        self.reasons: dict[str, set[str]] = collections.defaultdict(set)
        self.failing: collections.Counter[str] = collections.Counter()
        self.claimed: collections.Counter[str] = collections.Counter()
        self.shown: collections.Counter[str] = collections.Counter()
        self.missed: list[str] = []
        self._rows = read_table(TABLE)
        for line in lines:
            self._add(line)

    def _add(self, line: dict[str, Any]) -> None:
        subject, program = line["subject"], line.get("program", "")
        is_state = subject.startswith("state: ")
        if line["why_not"]:
            if program or "operations" in line:
                self.failing[line["why_not"]] += 1
            else:
                self.reasons[line["why_not"]].add(subject)
            return
        for mode in line["modes"]:
            covered = line["operations"] if is_state else [subject]
            self.modes["through state" if is_state else mode].update(covered)
            row = "programs with state" if is_state else self._rows.get(subject, "no row")
            if is_state or mode == "value":
                self.claimed[row] += line["claimed"].get(mode, 0)
                self.shown[row] += line["shown"].get(mode, 0)
        self.missed += [f"{program}: {each}" for each in line["misses"]]

    def __str__(self) -> str:
        text = [f"operations registered: {len(definitions())}"]
        text += [f"tried, {mode}: {len(names)}" for mode, names in sorted(self.modes.items())]
        every = set[str]().union(*self.modes.values())
        text.append(f"tried in any mode: {len(every)}")
        for why, names in sorted(self.reasons.items()):
            text.append(f"not tried, {why}: {len(names - every)}")
        text += [f"programs not compared, {why}: {n}" for why, n in sorted(self.failing.items())]
        text.append("dependences claimed, and those that no pair showed:")
        for row, count in sorted(self.claimed.items()):
            vain = count - self.shown[row]
            text.append(f"  [{row}] {count}, {vain} ({vain / max(count, 1):.0%})")
        return "\n".join([*text, f"missed: {len(self.missed)}", *self.missed])


@click.command()
@click.option("--only", multiple=True, help="An operation, or `state: NAME`.")
@click.option("--results", type=click.Path(path_type=pathlib.Path), default="trial.jsonl")
@click.option("--again", is_flag=True, help="Forget earlier results.")
@click.option("--report-only", is_flag=True)
@click.option("--record", is_flag=True, help="Record the calls that run, for the quick tests.")
def main(
    only: Sequence[str], results: pathlib.Path, again: bool, report_only: bool, record: bool
) -> None:
    """Try the flow of each operation, and print what was missed."""
    if again or only:
        results.unlink(missing_ok=True)
    results.touch()
    names = list(only) or subjects()
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    known = {line["subject"] for line in lines}
    if not report_only:
        run_all([name for name in names if name not in known], results)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    if record:
        RECORDED.write_text(recorded(lines), encoding="utf-8")
    report = Report(lines)
    print(report)
    sys.exit(1 if report.missed else 0)


if __name__ == "__main__":
    main()
