"""What tries tffc with hostile inputs for as long as it may: the nightly job.

    python -m tests.nightly [--minutes M] [--seed S] [--keep FOLDER] [--only NAME]
    python -m tests.nightly --again FOLDER/NAME

The time is divided between everything in `tests.hostile.long` and `SCRIPTS`; where Atheris is
installed, a quarter of it goes to the fuzzer that is guided by coverage.  Of each case that fails,
FOLDER keeps a folder with what it said and, where it is one file, its input; of the fuzzer, a file.
`--again` tries one of them again: its input if there is one, the same case otherwise.  Prints the
rows of the table in `docs/security.md`, and ends with status 1 if anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

from tests.hostile.long import GENERATORS, Found, Generator, run_cases
from tests.processes import ROOT

SCRIPTS = {
    "signals to commands": ("tests.hostile.signals", "--kills=3"),
    "commands on a full disk": ("tests.hostile.signals", "--full=2"),
    "texts of one piece, again and again": ("tests.hostile.reading_times",),
}
"""What is run as a whole, and reports what is wrong itself."""

WRONG = re.compile(r"wrong: [1-9]")
"""Matches what a script says that has not come to its end and found something."""

HEADS = ("what", "cases", "read", "ended with a defect or hung")
ENDLESS = 10**12

INPUT = "input.bin"
CASE = re.compile(r"(?P<name>.+)-(?P<seed>[0-9]{1,18})-(?P<case>[0-9]{1,18})")
"""The names of folders that are kept of cases."""

GUIDED = re.compile(r"coverage-(?P<name>.+)-(crash|leak|oom|slow-unit|timeout)-[0-9a-f]+")
"""The names of files that the fuzzer keeps, as libFuzzer gives them."""

LAST_INPUT = 120
"""How much longer than it was asked to a fuzzer may take, for an input that does not end."""


def try_for(
    name: str, generator: Generator, seconds: float, seed: int, keep: pathlib.Path
) -> Found:
    """Try cases of a generator for a time, and keep those that fail."""
    outcome = run_cases(generator, seed, 0, ENDLESS, time.monotonic() + seconds)
    for case, said in outcome.failed.items():
        folder = keep / f"{name}-{seed}-{case}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "said.txt").write_text(said)
        if generator.content is not None:
            (folder / INPUT).write_bytes(generator.content(seed, case))
    return outcome


def try_again(kept: pathlib.Path) -> bool:
    """Try again what was kept of a case, and return whether it fails.

    Raises:
      ValueError: nothing was kept there.
    """
    case, guided = CASE.fullmatch(kept.name), GUIDED.fullmatch(kept.name)
    if kept.is_dir() and case and case["name"] in GENERATORS:
        generator, file = GENERATORS[case["name"]], kept / INPUT
        seed, number = int(case["seed"]), int(case["case"])
    elif kept.is_file() and guided and f"reader-{guided['name']}" in GENERATORS:
        generator, file = GENERATORS[f"reader-{guided['name']}"], kept
        seed = number = 0
    else:
        raise ValueError(f"{kept} is not a case that a night kept")
    if file.exists() and (read := generator.read) is not None:
        content = file.read_bytes()
        generator = generator._replace(run=lambda _seed, _case: read(content))
    return bool(run_cases(generator, seed, number, number + 1).failed)


def fuzz_for(name: str, seconds: float, seed: int, keep: pathlib.Path) -> int:
    """Run the fuzzer that is guided by coverage on a reader; return how many inputs it kept.

    What reached other code stays in the folder for the next night.  A fuzzer that fails without an
    input counts as one, and what it said is kept.
    """
    keep.mkdir(parents=True, exist_ok=True)
    folder = keep / f"coverage-{name}"
    before = _times(keep, name)
    limit = f"-max_total_time={max(int(seconds), 1)}"
    command = [sys.executable, "-m", "tests.fuzz.coverage", name, str(folder), limit]
    log = keep / f"coverage-{name}-{seed}.txt"
    code = _run(command, log, seconds + LAST_INPUT)
    count = len(_times(keep, name) - before)
    if code == 0 and not count:
        log.unlink()
    return count or int(code != 0)


def _times(keep: pathlib.Path, name: str) -> set[tuple[str, int]]:
    """Return the inputs that the fuzzer of a reader kept, and when it wrote each last."""
    files = ((path, GUIDED.fullmatch(path.name)) for path in keep.iterdir())
    return {(p.name, p.stat().st_mtime_ns) for p, kept in files if kept and kept["name"] == name}


def _run(command: list[str], log: pathlib.Path, seconds: float) -> int | None:
    """Run a program that writes to a log, for a time at most; return its exit status, or None if it
    was still running.  What it began ends with it."""
    with log.open("w") as said:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=said, stderr=said, start_new_session=True
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_script(name: str, seconds: float, seed: int, keep: pathlib.Path) -> bool:
    """Run a script for a time at most; keep what it says, and return whether it failed."""
    module, *options = SCRIPTS[name]
    if options:
        options.append(f"--seed={seed}")
    command = [sys.executable, "-m", module, *options]
    log = keep / f"{name.replace(' ', '-').replace(',', '')}-{seed}.txt"
    keep.mkdir(parents=True, exist_ok=True)
    code = _run(command, log, seconds)
    has_failed = bool(code) or WRONG.search(log.read_text()) is not None
    if not has_failed:
        log.unlink()
    extent = f"{seconds:.0f} s" if code is None else "all"
    row(name, extent, "", "some" if has_failed else "none")
    return has_failed


def row(*cells: object) -> None:
    # What the script is for.
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def night(
    minutes: float, seed: int, keep: pathlib.Path, names: list[str], scripts: Iterable[str] = ()
) -> bool:
    """Try everything for a time; return whether a case failed."""
    scripts = list(scripts)
    has_coverage = importlib.util.find_spec("atheris") is not None
    guided = [name.removeprefix("reader-") for name in names if name.startswith("reader-")]
    seconds = minutes * 60
    share = seconds / 4 / len(guided) if has_coverage and guided else 0
    seconds -= share * len(guided)
    each = seconds / 4 / len(scripts) if scripts else 0
    seconds -= each * len(scripts)
    row(*HEADS)
    row(*("---" for _ in HEADS))
    failed = 0
    end = time.monotonic() + seconds
    for number, name in enumerate(names):
        share_left = (end - time.monotonic()) / (len(names) - number)
        outcome = try_for(name, GENERATORS[name], share_left, seed, keep)
        row(name, f"{outcome.next:,}", f"{outcome.read:,}", len(outcome.failed) or "none")
        failed += len(outcome.failed)
    for name in scripts:
        failed += run_script(name, each, seed, keep)
    for name in guided if share else ():
        count = fuzz_for(name, share, seed, keep)
        row(f"{name}, guided by coverage", f"{share:.0f} s", "", count or "none")
        failed += count
    return failed > 0


def _natural(text: str) -> int:
    number = int(text)
    if not 0 <= number < 10**18:
        raise argparse.ArgumentTypeError("a seed is a number from 0, of at most 18 digits")
    return number


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nightly")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=_natural, help="by default, the day")
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / "build" / "nightly")
    parser.add_argument("--only", choices=GENERATORS, action="append")
    parser.add_argument("--again", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.again is not None:
        try:
            return int(try_again(options.again))
        except ValueError as error:
            parser.error(str(error))
    today = int(datetime.date.today().strftime("%Y%m%d"))
    seed = today if options.seed is None else options.seed
    names = options.only or list(GENERATORS)
    scripts = () if options.only else SCRIPTS
    return int(night(options.minutes, seed, options.keep.absolute(), names, scripts))


if __name__ == "__main__":
    sys.exit(main())
