"""Commands that signals end, at random moments.

    python -m tests.hostile.signals [--kills N] [--full N] [--seed S] [--only COMMAND] [--light]

Each command of the table runs in a folder of its own, and gets SIGINT, SIGTERM or SIGKILL at a
moment of its own running time.  What is wrong is told: another exit code than that of the signal or
of the finished command, a traceback, a process that goes on, a file or folder that is neither the
old one nor the whole new one.  Then the command runs again to its end, after which the folder is as
if nothing had happened.  Prints a line a command; the exit status is 1 if anything was wrong.

With `--full`, no signals are sent, but no file may grow over a random size, as on a full disk; a
command must refuse that with an error code.  `--light` leaves out commands that load TensorFlow.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from tests.hostile.kills import contents
from tests.processes import ROOT
from tests.signing_keys import write_keys
from tffc.support.files.atomic import is_leftover

PROGRAM = """
import numpy as np
import tffc as tff

AT_SERVER, AT_CLIENTS = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)

@tff.federated_computation(AT_SERVER, AT_CLIENTS)
def total(state, data):
    return tff.federated_sum(data), tff.federated_sum(data)

@tff.federated_computation(AT_SERVER, AT_CLIENTS)
def largest(state, data):
    return tff.federated_max(data), tff.federated_sum(data)
"""

WITH_TENSORFLOW = """
import numpy as np
import tensorflow as tf
import tffc as tff

@tff.tf_computation(np.int32)
def doubled(number):
    return number * 2

@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def total(state, data):
    return state, tff.federated_sum(tff.federated_map(doubled, data))

@tff.tf_computation(np.int32)
def clipped(number):
    return tf.clip_by_value(tf.cast(number, tf.float32), -1.0, 1.0)

@tff.tf_computation(np.float32)
def noisy(total):
    return tf.math.is_finite(total + tf.random.normal([], stddev=8.0))

@tff.federated_computation
def begin():
    return tff.federated_value(np.int32(5), tff.SERVER)

@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def follow(state, data):
    return state, tff.federated_map(noisy, tff.federated_sum(tff.federated_map(clipped, data)))

private = tff.templates.IterativeProcess(begin, follow)
"""
"""What `private` puts out is always the same, so that its runs can be compared."""

FORM = "--form distribute-aggregate"


class Case(NamedTuple):
    """A command: its arguments, the folders that it replaces as a whole, the arguments with which a
    run that has begun goes on, and whether it loads TensorFlow."""

    arguments: str
    folders: tuple[str, ...] = ()
    again: str = ""
    is_light: bool = True


def heavy(arguments: str, *folders: str, again: str = "") -> Case:
    return Case(arguments, folders, again, is_light=False)


COMMANDS = {
    "admit": Case("admit light"),
    "approve": Case("approve light --key alice --store approvals", ("approvals",)),
    "audit": Case("audit light --format html -o old.html"),
    "check": Case(f"check light.pb {FORM}"),
    "compile": Case(f"compile light.pb {FORM} --prove --out built --force", ("built",)),
    "compile a module": heavy(f"compile heavy.py:total {FORM} --out built --force", "built"),
    "data describe": Case("data describe data"),
    "data pack": Case("data pack data -o pack --force", ("pack",)),
    "decompile": Case("decompile light -o old.pb"),
    "diff": Case("diff light.pb old.pb"),
    "diff --breaking": Case("diff --breaking light built"),
    "doctor": Case("doctor"),
    "explain": Case("explain E101"),
    "explore": Case("explore light.pb -o old.html"),
    "export to Flower": Case("export light --to flower -o app --force", ("app",)),
    "export to TensorFlow": heavy("export heavy --to saved_model -o app --force", "app"),
    "golden check": Case("golden check"),
    "golden review": Case("golden review"),
    "golden update": Case("golden update", ("golden/largest", "golden/total")),
    "help": Case("help security"),
    "init": Case("init project", ("project",)),
    "opt": Case("opt light.pb --passes call-dominant -o old.txt"),
    "parse": Case("parse light.txt -o old.pb"),
    "passes": Case("passes call-dominant"),
    "pipelines": Case("pipelines"),
    "print": Case("print light.pb --style typed"),
    "print a module": heavy("print heavy.py:total --style typed --sections sections"),
    "prove": Case("prove light"),
    "python": Case("python light.py"),
    "rebuild": Case("rebuild light.py:total light"),
    "report": Case("report run -o old.html"),
    "run": heavy(
        "run light --data data --rounds 9 --out run --resume",
        again="run light --data data --rounds 9 --out run --resume",
    ),
    "run a module": heavy(
        "run light.py:total --data data --rounds 9 --state-in first.npz --state-out state.npz"
    ),
    "run in groups": heavy(
        "run light.py:total --data data --rounds 9 --form mergeable --groups 2 --skip-bad-groups "
        "--out new --state-in first.npz",
        again="run light.py:total --data data --rounds 9 --form mergeable --groups 2 "
        "--skip-bad-groups --out new --resume",
    ),
    "run with TensorFlow": heavy(
        "run heavy.py:total --data data --rounds 9 --out new --plot old.svg --report old.html "
        "--state-in first.npz",
        again="run heavy.py:total --data data --rounds 9 --out new --plot old.svg "
        "--report old.html --resume",
    ),
    "run with a privacy budget": heavy(
        "run heavy.py:private --data data --rounds 9 --out new --privacy-budget 50",
        again="run heavy.py:private --data data --rounds 9 --out new --privacy-budget 50 --resume",
    ),
    "sign": Case("sign built --key alice", ("built",)),
    "show": Case("show run --to csv -o old.csv"),
    "trace": Case("trace light.py:largest -o old.pb"),
    "trace with TensorFlow": heavy("trace heavy.py:total -o old.pb"),
    "verify-signature": Case("verify-signature light --keys alice.pub"),
    "verify": heavy(f"verify light.pb {FORM} --trials 4"),
}

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)

SOON = 2.0
"""The seconds within which a signalled command ends, unless other processes use the machine."""

PATIENCE = 30.0
"""The seconds after which it counts as hanging anyway."""

MARK = "TFFC_TESTED_COMMAND"
"""The environment variable by which processes of a command are known."""


@dataclasses.dataclass
class Workplace:
    """A folder as commands find it, and copies of it in which they run."""

    root: pathlib.Path

    def prepare(self, *, light: bool) -> None:
        """Write programs, data, bundles, a run and old outputs."""
        here = self.root / "before"
        for folder in ("data", "golden", "temporary"):
            (here / folder).mkdir(parents=True)
        for number in range(8):
            np.savez(here / f"data/{number}.npz", np.int32(number))
        np.savez(here / "first.npz", np.int32(5))
        (here / "light.py").write_text(PROGRAM)
        write_keys(here, "alice")
        (here / "heavy.py").write_text(WITH_TENSORFLOW)
        names = ("total", "largest")
        listed = [f"{name}:\n  target: ../light.py:{name}\n" for name in names]
        (here / "golden/golden.yaml").write_text("".join(listed).replace("../", ""))
        for name in ("old.html", "old.pb", "old.txt", "old.csv", "old.svg", "state.npz"):
            (here / name).write_text("old")
        written = [
            "trace light.py:total -o light.pb",
            "trace light.py:largest -o old.pb",
            f"compile light.pb {FORM} --out light",
            f"compile old.pb {FORM} --out built",
            "run light --data data --rounds 2 --out run --state-in first.npz",
            "sign light --key alice",
            "data pack data -o pack",
            "golden update",
        ]
        if not light:
            written.append("compile heavy.py:total --form mapreduce --out heavy")
        for arguments in written:
            assert finish(start(here, arguments))[0] == 0, arguments
        (here / "light.txt").write_text(output(here, "print light.pb --style typed"))
        for name in names:
            (here / f"golden/{name}/compact.txt").write_text("old\n")

    def copy(self) -> pathlib.Path:
        """Return a new copy."""
        folder = self.root / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.root / "before", folder, symlinks=True)
        return folder


def environment() -> dict[str, str]:
    """Return the environment of a process that finds this checkout."""
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    return {**kept, "PYTHONPATH": str(ROOT)}


def start(folder: pathlib.Path, arguments: str, most: int | None = None) -> subprocess.Popen[bytes]:
    """Start a command in a folder, in a session of its own; files may grow up to `most` bytes."""

    def limit() -> None:
        if most is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    own = {
        MARK: str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(folder / "temporary"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    with (folder.parent / "said").open("wb") as said, open(os.devnull, "wb") as nowhere:
        return subprocess.Popen(
            [sys.executable, "-m", "tffc", *shlex.split(arguments)],
            cwd=folder,
            env=environment() | own,
            stdin=subprocess.PIPE,
            stdout=nowhere if arguments.startswith("help") or most is not None else said,
            stderr=said if most is None else subprocess.PIPE,
            start_new_session=True,
            preexec_fn=limit,
        )


def finish(process: subprocess.Popen[bytes], seconds: float = 300) -> tuple[int | None, float]:
    """Wait for a process; return its exit code, or None if it hangs, and how long it took."""
    begun = time.monotonic()
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        code = None
    assert process.stdin is not None
    process.stdin.close()
    return code, time.monotonic() - begun


def output(folder: pathlib.Path, arguments: str) -> str:
    """Return what a command prints to both streams."""
    assert finish(start(folder, arguments))[0] == 0, arguments
    return (folder.parent / "said").read_text()


def answers_signals(pid: int) -> bool:
    """Return whether a process has begun to answer SIGTERM."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def left_processes(folder: pathlib.Path, seconds: float) -> list[str]:
    """Return the processes of a command in a folder that go on after some seconds."""
    mark = f"{MARK}={folder}\0".encode()
    until = time.monotonic() + seconds
    while True:
        found: list[str] = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


@dataclasses.dataclass
class Trial:
    """A command whose undisturbed run is known: its exit code, seconds, and what it leaves."""

    name: str
    workplace: Workplace
    before: Mapping[str, bytes | None] = dataclasses.field(init=False)
    whole: Mapping[str, bytes | None] = dataclasses.field(init=False)
    code: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    signalled: int = 0
    late: int = 0

    def __post_init__(self) -> None:
        self.case = COMMANDS[self.name]
        folder = self.workplace.copy()
        self.before = comparable(folder)
        self.code, self.seconds = self._undisturbed(folder, self.case.arguments)
        self.whole = comparable(folder)

    def _undisturbed(self, folder: pathlib.Path, arguments: str) -> tuple[int, float]:
        process = start(folder, arguments)
        if self.name == "golden review":
            # It waits for answers.
            assert process.stdin is not None
            time.sleep(1)
            process.stdin.write(b"e\ne\n")
            process.stdin.flush()
        code, seconds = finish(process)
        assert code is not None, f"{arguments} hangs"
        return code, seconds

    def signal(self, number: int, moment: float) -> Iterator[str]:
        """Send a signal at a moment; yield what is wrong."""
        folder = self.workplace.copy()
        process = start(folder, self.case.arguments)
        time.sleep(moment)
        was_running = process.poll() is None
        has_begun = answers_signals(process.pid)
        process.send_signal(number)
        code, seconds = finish(process, PATIENCE)
        said = (folder.parent / "said").read_text(errors="replace")
        self.signalled += was_running
        if not has_begun:
            # Python answers itself, or forgets the signal while it looks for its own modules.
            said, code = "", self.code
        else:
            self.longest = max(self.longest, seconds)
            self.late += seconds > SOON
        if code not in (self.code, -number, 128 + number):
            yield f"it ends with {code}: {said[-2000:]}"
        if "Traceback" in said and f"{ROOT}/tffc" in said:
            yield said[-2000:]
        yield from self._after(folder)

    def fill(self, most: int) -> Iterator[str]:
        """Run where no file may grow over a number of bytes; yield what is wrong."""
        folder = self.workplace.copy()
        process = start(folder, self.case.arguments, most)
        assert process.stderr is not None
        answers = b"e\ne\n" if self.name == "golden review" else b""
        said = process.communicate(answers, timeout=300)[1].decode(errors="replace")
        refused = process.returncode == 1 and "error[E" in said
        self.signalled += refused
        if process.returncode != self.code and not refused:
            yield f"it ends with {process.returncode}: {said[-2000:]}"
        yield from self._after(folder)

    def _after(self, folder: pathlib.Path) -> Iterator[str]:
        """Yield what is wrong in a folder, and what the next command leaves there."""
        for each in left_processes(folder, 3.0):
            yield f"a process goes on: {each}"
        found = comparable(folder)
        yield from self._halves(found)
        if found == self.before == self.whole:
            return  # It writes nothing.
        out = "new" if "--out new" in self.case.arguments else "run"
        has_begun = (folder / out / "run.json").exists()
        again = self.case.again if self.case.again and has_begun else self.case.arguments
        code, _ = self._undisturbed(folder, again)
        found = comparable(folder)
        if found != self.whole:
            names = [
                name for name in {*found, *self.whole} if found.get(name) != self.whole.get(name)
            ]
            yield f"the next one, with exit code {code}, leaves other {sorted(names)}"

    def _halves(self, found: Mapping[str, bytes | None]) -> Iterator[str]:
        """Yield files that are neither old nor new, and folders that are some of both."""
        if self.case.again:
            return  # A run shows by going on that what it keeps can be used.
        for name, content in found.items():
            olds = [state[name] for state in (self.before, self.whole) if name in state]
            if content not in olds and not any(map(is_leftover, name.split("/"))):
                yield f"{name} is neither the old one nor the new one"
        for folder in self.case.folders:
            states = [part_of(state, folder) for state in (self.before, self.whole)]
            if part_of(found, folder) not in states:
                yield f"{folder} is neither the old one nor the new one"


def part_of(state: Mapping[str, bytes | None], folder: str) -> dict[str, bytes | None]:
    """Return what is in a folder."""
    return {n: c for n, c in state.items() if n == folder or n.startswith(f"{folder}/")}


def comparable(folder: pathlib.Path) -> dict[str, bytes | None]:
    """Return the content of a folder, without what differs each time or belongs to libraries."""
    found = contents(folder)
    for name in list(found):
        parts = name.split("/")
        if parts[0] == "temporary" and not name.startswith("temporary/tffc-"):
            del found[name]
        elif name == "old.html" and b"clients a second" in (found[name] or b""):
            found[name] = b"a report"
        elif parts[0] == "app" and parts[-1].endswith((".pb", ".data-00000-of-00001", ".index")):
            found[name] = b"a SavedModel"
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.signals")
    parser.add_argument("--only", choices=COMMANDS, action="append")
    parser.add_argument("--kills", type=int, default=15, help="signals a command")
    parser.add_argument("--full", type=int, default=0, help="full disks a command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--light", action="store_true")
    options = parser.parse_args()
    total, bad = 0, 0
    with tempfile.TemporaryDirectory() as root:
        workplace = Workplace(pathlib.Path(root))
        workplace.prepare(light=options.light)
        for name, case in COMMANDS.items():
            if (options.only and name not in options.only) or (options.light and not case.is_light):
                continue
            choose = random.Random(f"{options.seed} {name}")
            trial = Trial(name, workplace)
            wrong: list[str] = []
            for kill in range(options.full or options.kills):
                if options.full:
                    most = int(2 ** choose.uniform(0, 14))
                    wrong += [f"up to {most} bytes: {each}" for each in trial.fill(most)]
                    continue
                moment = choose.uniform(0, trial.seconds)
                number = SIGNALS[kill % len(SIGNALS)]
                wrong += [
                    f"{signal.Signals(number).name} after {moment:.3f} s: {each}"
                    for each in trial.signal(number, moment)
                ]
            total, bad = total + (options.full or options.kills), bad + len(wrong)
            told = "refused" if options.full else "before its end"
            print(
                f"{name}: {options.full or options.kills} trials in {trial.seconds:.1f} s, "
                f"{trial.signalled} {told} (code {trial.code}), longest {trial.longest:.1f} s "
                f"({trial.late} over {SOON:.0f} s), wrong: {len(wrong)}",
                flush=True,
            )
            for each in wrong:
                print(f"  {each}", flush=True)
    print(f"{total} trials, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
