"""Replays recorded rounds inside TensorFlow Federated, as what tffc makes of them.

    TFFC_CORPUS=DIR TFFC_PEER_PYTHON=PYTHON python -m tests.corpus.replay [CASE...]

Of every case that has a form, TensorFlow Federated is given the form's parts, from which it builds
its own form, and the computation that tffc decompiles the form to; also the graph of the first
state.  Each is run on the recorded arguments and has to give the recorded results.  One row a case;
the last line is the count.  The exit code is 1 if anything differs.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from tests.corpus.cases import MISSING, ROOT, Case, cases
from tffc.backends import compile_form, compile_initialize
from tffc.backends.forms.distribute_aggregate import DistributeAggregateForm
from tffc.backends.forms.form import Form
from tffc.backends.forms.kinds import FORMS
from tffc.language import Call, FunctionType, Intrinsic, Lambda, at_server
from tffc.language.traverse import walk
from tffc.language.wire import to_bytes
from tffc.support.errors import TffcError

PEER = os.environ.get("TFFC_PEER_PYTHON")
WORKER = pathlib.Path(__file__).with_name("replay_worker.py")
PARTS = {"mapreduce": "--mrf", "broadcast": "--bf", "distribute-aggregate": "--daf"}


@dataclasses.dataclass(frozen=True)
class Replay:
    """One thing to run inside TensorFlow Federated."""

    case: Case
    what: str
    arguments: tuple[str, ...]


def replays(case: Case, folder: pathlib.Path) -> Iterator[Replay]:
    """What there is to run of a case; its files are written to `folder`."""
    for form in FORMS:
        try:
            made = compile_form(case.program(), form)
        except TffcError:
            continue
        parts = folder / form
        parts.mkdir(parents=True)
        if not has_functions_in_aggregation(made):
            for name, part in made.components().items():
                (parts / f"{name}.pb").write_bytes(to_bytes(part))
            yield Replay(case, f"{form} parts", (PARTS[form], str(parts)))
        whole = folder / f"{form}.pb"
        whole.write_bytes(to_bytes(made.decompile()))
        yield Replay(case, f"{form} decompiled", ("--comp", str(whole)))
    if case.has("init.pb") and case.meta["init_reproducible"]:
        first = folder / "init.pb"
        section = compile_initialize(case.program("init"))
        placed = FunctionType(section.type, at_server(section.type.children()[0]))
        place = Call(Intrinsic("federated_eval_at_server", placed), section)
        first.write_bytes(to_bytes(Lambda(None, None, place)))
        yield Replay(case, "first state", ("--init", str(first)))


def has_functions_in_aggregation(form: Form) -> bool:
    """Whether the aggregation part holds functions, which the peer's class does not take."""
    return isinstance(form, DistributeAggregateForm) and any(
        isinstance(node, Intrinsic) and node.uri == "federated_aggregate"
        for node in walk(form.client_to_server_aggregation)
    )


class Peer:
    """TensorFlow Federated in a process of its own, which is started again after it ended."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def run(self, replay: Replay) -> str:
        """What differs from the recorded results; empty if nothing does."""
        process = self.process = self.process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([str(replay.case.folder), *replay.arguments]) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            self.close()
            return "the process ended"
        record = json.loads(line)
        return "" if record["ok"] else record.get("error") or shown(record)

    def _start(self) -> subprocess.Popen[str]:
        assert PEER is not None
        assert ROOT is not None
        command = [PEER, str(WORKER), ROOT]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()
        self.process = None


def shown(record: dict) -> str:
    found = record.get("differences") or [d for r in record["rounds"] for d in r["differences"]]
    return "; ".join(map(str, found[:2]))


def main(names: list[str]) -> int:
    """Prints the rows and the count; 1 if anything differs or there is nothing to run."""
    for missing in (None if cases() else MISSING, None if PEER else "TFFC_PEER_PYTHON is not set"):
        if missing:
            print(missing, file=sys.stderr)
            return 1
    counts: collections.Counter[str] = collections.Counter()
    failures = 0
    peer = Peer()
    for case in cases():
        if not case.has("io.json") or (names and str(case) not in names):
            continue
        cells = []
        with tempfile.TemporaryDirectory() as folder:
            for replay in replays(case, pathlib.Path(folder)):
                difference = peer.run(replay)
                counts[replay.what] += not difference
                failures += bool(difference)
                cells.append(f"{replay.what}: {difference[:300]}" if difference else replay.what)
        print(f"{case!s:45}", ", ".join(cells), flush=True)
    peer.close()
    agreed = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    # What the script is for.
    print(f"{sum(counts.values())} agree ({agreed}), {failures} differ")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
