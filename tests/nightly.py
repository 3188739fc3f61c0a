"""What tries tffc with hostile inputs for as long as it may: the nightly job.

    python -m tests.nightly [--minutes M] [--seed S] [--keep FOLDER] [--only NAME]
    python -m tests.nightly --again FOLDER/NAME-SEED-CASE

The time is divided between everything in `tests.hostile.long` and `SCRIPTS`; where Atheris is
installed, a quarter of it goes to the fuzzer that is guided by coverage.  Of each case that fails,
FOLDER keeps a folder with what it said and, where it is one file, its input; `--again` tries such a
case again.  Prints the rows of the table in `docs/security.md`, and ends with status 1 if anything
failed.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import pathlib
import re
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
            (folder / "input.bin").write_bytes(generator.content(seed, case))
    return outcome


def try_again(folder: pathlib.Path) -> bool:
    """Try a case that was kept again, and return whether it fails."""
    name, seed, case = folder.name.rsplit("-", 2)
    outcome = run_cases(GENERATORS[name], int(seed), int(case), int(case) + 1)
    return bool(outcome.failed)


def fuzz_for(name: str, seconds: float, keep: pathlib.Path) -> int:
    """Run the fuzzer that is guided by coverage on a reader; return how many inputs it kept.

    What reached other code stays in the folder for the next night.
    """
    keep.mkdir(parents=True, exist_ok=True)
    folder = keep / f"coverage-{name}"
    before = set(keep.iterdir())
    limit = f"-max_total_time={max(int(seconds), 1)}"
    command = [sys.executable, "-m", "tests.fuzz.coverage", name, str(folder), limit]
    subprocess.run(command, cwd=ROOT, capture_output=True, timeout=seconds + 600, check=False)
    return len(set(keep.iterdir()) - before - {folder})


def run_script(name: str, seconds: float, seed: int, keep: pathlib.Path) -> bool:
    """Run a script for a time at most; keep what it says, and return whether it failed."""
    module, *options = SCRIPTS[name]
    if options:
        options.append(f"--seed={seed}")
    command = [sys.executable, "-m", module, *options]
    log = keep / f"{name.replace(' ', '-').replace(',', '')}-{seed}.txt"
    keep.mkdir(parents=True, exist_ok=True)
    code: int | None = None
    with log.open("w") as said, contextlib.suppress(subprocess.TimeoutExpired):
        code = subprocess.run(
            command, cwd=ROOT, stdout=said, stderr=said, timeout=seconds, check=False
        ).returncode
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
        count = fuzz_for(name, share, keep)
        row(f"{name}, guided by coverage", f"{share:.0f} s", "", count or "none")
        failed += count
    return failed > 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nightly")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, help="by default, the day")
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / "build" / "nightly")
    parser.add_argument("--only", choices=GENERATORS, action="append")
    parser.add_argument("--again", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.again is not None:
        return int(try_again(options.again))
    seed = options.seed or int(datetime.date.today().strftime("%Y%m%d"))
    names = options.only or list(GENERATORS)
    scripts = () if options.only else SCRIPTS
    return int(night(options.minutes, seed, options.keep.absolute(), names, scripts))


if __name__ == "__main__":
    sys.exit(main())
