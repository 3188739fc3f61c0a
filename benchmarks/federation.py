"""The costs of a round of the digits on a federation of processes on this machine.

python -m benchmarks.federation [ROUNDS] [--stock]

A SuperLink and three SuperNodes with TLS, node authentication and warm workers run the rounds.
Printed are the seconds of a round after the first three, beside those of the local engine in one
process, and the processor seconds of each kind of process, a round.  With `--stock` the nodes are
Flower's own, and not `tffc.deploy.flower.supernode`.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator

import click

import tffc
from benchmarks.sides import ROOT
from tests.deploy.flower.processes import SUPERNODE, Federation, rows, started
from tests.shell import Shell

PROGRAM = ROOT / "examples/digits/federated_averaging.py"
DIGITS = str(ROOT / "examples/digits/train")

FIRST = 3
"""So many rounds begin what later ones find begun."""

KINDS = {
    "flower-superlink": "server: SuperLink",
    "flwr-serverapp": "server: its app, which runs tffc",
    "flower-supernode": "nodes: SuperNodes",
    "tffc.deploy.flower.supernode": "nodes: SuperNodes",
    "tffc.deploy.flower.worker": "nodes: workers of tffc",
    "flower-superexec": "nodes and server: SuperExecs, which start processes",
    "tffc.deploy.flower.superexec": "nodes and server: SuperExecs, which start processes",
    "multiprocessing": "nodes: processes of messages, which are forked",
}


def main() -> None:
    """Measure rounds and print their costs."""
    words = sys.argv[1:]
    supernode = ("flower-supernode",) if "--stock" in words else SUPERNODE
    count = next((int(word) for word in words if word.isdigit()), 13)
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        lines = (
            f"cd {folder}",
            f"tffc compile {PROGRAM}:training --form mapreduce --out training",
            "tffc export training --to flower -o app",
        )
        ran = Shell(folder / "home").run(" && ".join(lines))
        assert ran.code == 0, ran.output
        local = list(_local(folder / "training", count))
        # Flower's own SuperLink, whose processes can be told from those of nodes.
        superlink = ("flower-superlink",)
        with started(folder, DIGITS, supernode=supernode, superlink=superlink) as federation:
            seconds, processor = _measured(federation, folder, count)
    click.echo(f"seconds a round: {_spread(seconds)}; local engine: {_spread(local[FIRST:])}")
    for kind, used in processor.items():
        click.echo(f"{used:7.2f}  {kind}")


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


def _local(bundle: pathlib.Path, count: int) -> Iterator[float]:
    before = time.monotonic()
    for _ in tffc.run(bundle, DIGITS, rounds=count):
        now = time.monotonic()
        yield now - before
        before = now


def _measured(
    federation: Federation, folder: pathlib.Path, count: int
) -> tuple[list[float], dict[str, float]]:
    """Return the seconds of each round, and the processor seconds of a round by kinds."""
    out = folder / "run"
    federation.begin(folder / "app", rounds=count, min_nodes=3, min_replies=3, out=str(out))
    ends: list[float] = []
    before: dict[str, float] = {}
    while len(ends) < count:
        found = len(rows(out))
        if found > len(ends):
            ends += [time.monotonic()] * (found - len(ends))
            if found == FIRST:
                before = _processor()
        time.sleep(0.01)
    after = _processor()
    rounds = count - FIRST
    used = {kind: (after[kind] - before.get(kind, 0.0)) / rounds for kind in after}
    pairs = zip(ends[FIRST - 1 :], ends[FIRST:], strict=False)
    return [end - start for start, end in pairs], used


def _processor() -> dict[str, float]:
    """Return the processor seconds of the kinds of processes, with those that ended."""
    tick = os.sysconf("SC_CLK_TCK")
    used = {**dict.fromkeys(KINDS.values(), 0.0), "processes that ended": 0.0}
    for each in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            fields = (each / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        own, ended = (sum(map(int, fields[at : at + 2])) / tick for at in (11, 13))
        for name, kind in KINDS.items():
            if name in command:
                used[kind] += own
                used["processes that ended"] += ended
                break
        else:
            if "flwr-clientapp" in command:
                used["processes that ended"] += own
    return used


if __name__ == "__main__":
    main()
