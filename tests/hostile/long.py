"""A long run of every generator of hostile inputs.

    python -m tests.hostile.long [--only GENERATOR] [--cases N] [--seed S] [--first CASE]

Each case has 4 GiB of addresses, with TensorFlow 16, and 30 seconds of processor time.  Cases run
in a process of their own, one after another; when one fails or the process ends, the case is told
and the next one begins in a new process.  Prints a line a generator, and ends with status 1 if a
case failed.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import dataclasses
import functools
import importlib.util
import math
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tests.fuzz.mutations import (
    damaged_bytes,
    damaged_program,
    damaged_text,
    rewritten_text,
)
from tests.fuzz.readers import READERS, damaged, read_or_refuse
from tests.fuzz.targets import (
    check_message,
    check_node,
    seed_messages,
    seed_sections,
    seed_texts,
)
from tests.hostile import (
    bundles,
    data_commands,
    data_fuzz,
    graph_commands,
    killed_runs,
    packs,
    tampered_runs,
)
from tests.hostile.kills import is_killed
from tffc.backends import compile_form
from tffc.backends.forms.kinds import FORMS
from tffc.language import FunctionType, Node
from tffc.language.notation import parse
from tffc.language.wire import from_bytes, to_bytes
from tffc.support.errors import TffcError

GIB = 2**30
SECONDS = 30
"""How much processor time a case may take."""

WAITING = 300
"""How long a case may take on a machine that others use, in seconds."""

AT_ONCE = 1000
"""How many cases a process runs before another takes its place."""


def run_message(generator: random.Random) -> bool:
    """Read a damaged message; print and compile what was read."""
    damage = generator.choice((damaged_bytes, damaged_program))
    return _compile(lambda: from_bytes(damage(generator, seed_messages())), check_message)


def run_text(generator: random.Random) -> bool:
    """Parse a damaged text; print and compile what was parsed."""
    damage = generator.choice((damaged_text, rewritten_text))
    return _compile(lambda: parse(damage(generator, seed_texts()), seed_sections()), check_node)


def _compile(read: Callable[[], Node], check: Callable[[Node], None]) -> bool:
    try:
        node = read()
    except TffcError:
        return False
    try:
        check(node)
    except TffcError as error:
        if error.code not in TOO_LARGE:
            raise
    if isinstance(node.type, FunctionType):
        for form in FORMS:
            _compile_to(node, form)
    return True


TOO_LARGE = frozenset({"E139", "E167", "E321"})


def _compile_to(node: Node, form: str) -> None:
    try:
        components = compile_form(node, form).components()
    except TffcError:
        return
    for part in components.values():
        message = to_bytes(part)
        assert to_bytes(from_bytes(message)) == message


def run_bundle(seed: int, case: int) -> bool:
    """Hand a changed bundle to the commands that read bundles."""
    return 0 in bundles.run_case(seed, case).values()


def run_kill(engine: str, seed: int, case: int) -> bool:
    """Kill a run and what goes on with it; then it goes on to what it would have been."""
    runs, place, whole = _runs(engine)
    choose = random.Random(f"kill {engine} {seed} {case}")
    with contextlib.chdir(place):
        killed = [
            is_killed(lambda: runs.run("killed"), choose.randint(1, killed_runs.CHANGES))
            for _ in range(2)
        ]
        assert runs.left("killed") == whole
    return any(killed)


@functools.cache
def _runs(engine: str) -> tuple[killed_runs.Runs, str, dict[str, bytes | None]]:
    """What runs rounds in a folder, and what an undisturbed run leaves there."""
    if engine == "beam":
        import tffc.deploy.beam.transforms  # noqa: F401 - once, and not in every process
    place = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, place)
    with contextlib.chdir(place):
        runs = killed_runs.Runs(engine)
        return runs, place, runs.left("whole")


class Generator(NamedTuple):
    """What makes and tries a case of a seed and a number, and how many are tried.

    `prepare` is called once before, in the process that begins others.  Where the input of a case
    is bytes, `content` gives it and `read` tries it.
    """

    run: Callable[[int, int], bool]
    cases: int
    memory: int = 4 * GIB
    prepare: Callable[[], Any] = lambda: None
    content: Callable[[int, int], bytes] | None = None
    read: Callable[[bytes], bool] | None = None
    at_once: int = AT_ONCE


def run_federation(kind: str, generator: random.Random) -> bool:
    """Hand changed messages to a node, or to the server of a federation."""
    from tests.hostile import federations

    return getattr(federations, f"run_{kind}")(generator)


def _seeded(name: str, run: Callable[[random.Random], bool]) -> Callable[[int, int], bool]:
    return lambda seed, case: run(random.Random(f"long {name} {seed} {case}"))


def _reader(name: str) -> Generator:
    """Return what hands a reader damaged input."""

    def content(seed: int, case: int) -> bytes:
        return damaged(name, random.Random(f"reader {name} {seed} {case}"))

    def run(seed: int, case: int) -> bool:
        return read_or_refuse(name, content(seed, case))

    read = functools.partial(read_or_refuse, name)
    return Generator(run, 100_000, 16 * GIB, content=content, read=read)


FEDERATIONS = {"request": 60_000, "answer": 20_000}
"""How many changed requests are handed to nodes, and how many rounds have hostile nodes."""

if importlib.util.find_spec("flwr") is not None:
    FEDERATIONS["flower_record"] = 40_000

GENERATORS = {
    "messages": Generator(_seeded("messages", run_message), 100_000),
    "texts": Generator(_seeded("texts", run_text), 100_000),
    "bundles": Generator(run_bundle, 2000),
    "graphs": Generator(graph_commands.run_case, 100_000, 16 * GIB, graph_commands.rounds),
    **{f"reader-{name}": _reader(name) for name in READERS},
    "packs": Generator(packs.run_case, 20_000, 16 * GIB),
    "run-folders": Generator(tampered_runs.run_case, 5000, 16 * GIB),
    **{
        kind: Generator(functools.partial(data_commands.run_case, kind), 2000, 16 * GIB)
        for kind in data_fuzz.MUTATIONS
    },
    **{
        f"{kind}s": Generator(
            _seeded(kind, functools.partial(run_federation, kind)),
            cases,
            16 * GIB,
            at_once=10 * AT_ONCE,
        )
        for kind, cases in FEDERATIONS.items()
    },
    **{
        f"kills-{engine}": Generator(functools.partial(run_kill, engine), 100, 16 * GIB)
        for engine in ("local", *(["beam"] if importlib.util.find_spec("apache_beam") else []))
    },
}


@dataclasses.dataclass
class Found:
    """What became of cases: which is next, how many were read, the longest time that one took, in
    seconds, and which did; what those that failed said, and how many KiB of memory were held."""

    next: int
    read: int = 0
    longest: float = 0.0
    slowest: int = 0
    failed: dict[int, str] = dataclasses.field(default_factory=dict[int, str])
    memory: int = 0


LONGEST_REPORT = 2**20

FORM = struct.Struct("<qqdq")


def run_cases(
    generator: Generator, seed: int, first: int, last: int, end: float = math.inf
) -> Found:
    """Try cases, each in a process with others, until all are done or the time is over."""
    generator.prepare()
    total = Found(first)
    while total.next < last and time.monotonic() < end:
        until = min(total.next + generator.at_once, last)
        with tempfile.TemporaryFile() as shared:
            shared.write(FORM.pack(total.next, total.read, total.longest, total.slowest))
            shared.flush()
            child = os.fork()
            if child == 0:
                _work(generator, seed, until, shared.fileno(), end)
            _, status, used = os.wait4(child, 0)
            told = os.pread(shared.fileno(), FORM.size, 0)
            said = os.pread(shared.fileno(), LONGEST_REPORT, FORM.size).decode(errors="replace")
        total.next, total.read, total.longest, total.slowest = FORM.unpack(told)
        total.memory = max(total.memory, used.ru_maxrss)
        if status or (total.next < until and time.monotonic() < end):
            said = f"case {total.next} of seed {seed} ended with status {status}\n{said}"
            print(said, file=sys.stderr, flush=True)
            total.failed[total.next] = said
            total.next += 1
    return total


def _work(generator: Generator, seed: int, until: int, shared: int, end: float) -> None:
    """Try cases in this process, which ends with the first that fails."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_AS, (generator.memory, generator.memory))
        for number in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(number, _give_up)
        case, read, longest, slowest = FORM.unpack(os.pread(shared, FORM.size, 0))
        while case < until and time.monotonic() < end:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(WAITING)
            begun = time.process_time()
            read += generator.run(seed, case)
            taken = time.process_time() - begun
            longest, slowest = max((longest, slowest), (taken, case))
            case += 1
            os.pwrite(shared, FORM.pack(case, read, longest, slowest), 0)
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, it is what is looked for
        os.pwrite(shared, traceback.format_exc(limit=-8).encode(errors="replace"), FORM.size)
    finally:
        atexit._run_exitfuncs()
        os._exit(code)


def _give_up(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_DFL)  # for what does not let go
    signal.setitimer(signal.ITIMER_PROF, 5)
    signal.alarm(5)
    raise TimeoutError("it was given up")


def rows(options: argparse.Namespace) -> Iterator[tuple[str, Found]]:
    """Run the generators that are asked for."""
    for name in options.only or GENERATORS:
        generator = GENERATORS[name]
        cases = generator.cases if options.cases is None else options.cases
        found = run_cases(generator, options.seed, options.first, options.first + cases)
        print(
            f"{name}: {cases} cases, {found.read} read, {len(found.failed)} failed "
            f"{list(found.failed)[:20]}, longest {found.longest:.1f} s (case {found.slowest}), "
            f"memory {found.memory / 2**10:.0f} MiB",
            flush=True,
        )
        yield name, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.long")
    parser.add_argument("--only", choices=GENERATORS, action="append")
    parser.add_argument("--cases", type=int, help="cases a generator")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    options = parser.parse_args()
    return 1 if any(found.failed for _, found in rows(options)) else 0


if __name__ == "__main__":
    sys.exit(main())
