"""The experiments, each of which yields rows of figures."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pathlib
import tempfile
from collections.abc import Callable, Iterator

import click

from benchmarks import commands
from benchmarks.programs import PROGRAMS
from benchmarks.sides import Figure, Schedule, Side, asking
from tffc.cli.application import COMMANDS

FORMS = ("mapreduce", "distribute-aggregate")
MAIN = ("chain", "aggregations", "wide")
"""The programs that the peer is measured on at larger sizes too."""

SIZES = (4, 16, 64, 128, 256, 512, 1024, 2048, 4096)
SLOW = 1.0
"""Sizes are doubled until tffc needs so many seconds for one of the things that are measured."""

LARGE = (2**13, 2**16, 2**20)
"""How many nodes large programs have; the peer is measured on the first only."""

LIBRARIES = "import click, google.protobuf.message_factory"
"""What a command that reads messages cannot do without."""

WARM_UP = ("chain", 2)


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One figure: of which case at which size, by whom; `unit` is `s`, `MB`, or `M` for a million
    instructions."""

    experiment: str
    case: str
    size: int
    side: str
    figure: Figure
    unit: str = "s"


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """The processes of the sides, and how much to measure.

    `sides` has tffc first, then the peer if it is there; `peer` is its interpreter.
    """

    sides: tuple[Side, ...]
    schedule: Schedule
    peer: str | None
    corpus: pathlib.Path | None
    quick: bool

    @property
    def tffc(self) -> Side:
        return self.sides[0]

    def peer_size(self, kind: str) -> int:
        """Return the largest size of a program that the peer compiles; larger ones take it
        minutes."""
        return 64 if kind in MAIN and not self.quick else 16

    def sides_at(self, kind: str, size: int) -> tuple[Side, ...]:
        """Return the sides that are measured at a size of a program."""
        return self.sides if size <= self.peer_size(kind) else self.sides[:1]

    def warm_up(self) -> None:
        """Make every side load what it loads only once."""
        for side in self.sides:
            side.ask("trace", *WARM_UP)
            for form in FORMS:
                side.ask("compile", form)


def compiling(setting: Setting) -> Iterator[Row]:
    """Measure tracing every program at growing sizes, and compiling it to the forms."""
    for kind in MAIN if setting.quick else PROGRAMS:
        for size in SIZES[:3] if setting.quick else SIZES:
            rows = list(_compiling_at(setting, kind, size))
            yield from rows
            if any(r.side == "tffc" and r.figure.median > SLOW for r in rows):
                break


def _compiling_at(setting: Setting, kind: str, size: int) -> Iterator[Row]:
    sides = setting.sides_at(kind, size)
    yield from _rows(setting, "trace", kind, size, asking(sides, "trace", kind, size))
    for form in FORMS:
        yield from _rows(setting, form, kind, size, asking(sides, "compile", form))
    yield from _rows(setting, "floor", kind, size, {"floor": lambda: setting.tffc.ask("floor")})


def proving(setting: Setting) -> Iterator[Row]:
    """Measure proving what programs are compiled to, and compiling them."""
    for kind in MAIN if setting.quick else PROGRAMS:
        for size in SIZES[1:3] if setting.quick else SIZES[1:]:
            setting.tffc.ask("trace", kind, size)
            measured = {
                "compile": lambda: setting.tffc.ask("compile", FORMS[0]),
                "prove": lambda: setting.tffc.ask("prove", FORMS[0]),
            }
            rows = list(_rows(setting, "proving", kind, size, measured))
            yield from rows
            if any(row.figure.median > SLOW for row in rows):
                break


def doubling(setting: Setting) -> Iterator[Row]:
    """Measure compiling structs of structs, each level with twice the values of the one before."""
    for levels in (16, 64, 256, 1024):
        measured = asking(setting.sides[:1], "compile_doubled", levels)
        yield from _rows(setting, "doubling", "doubled struct", levels, measured)


def stages(setting: Setting) -> Iterator[Row]:
    """Measure the stages of compiling to the forms."""
    for kind in MAIN:
        for size in (64,) if setting.quick else (64, 512):
            setting.tffc.ask("trace", kind, size)
            for form in FORMS:
                yield from _stages_at(setting, kind, size, form)


def _stages_at(setting: Setting, kind: str, size: int, form: str) -> Iterator[Row]:
    runs: list[dict[str, float]] = []
    while len(runs) < setting.schedule.runs and _total(runs) <= setting.schedule.budget:
        runs.append(setting.tffc.ask("stages", form))
    for name in runs[0]:
        figure = Figure(tuple(run[name] for run in runs))
        yield Row("stages", f"{kind} to {form}", size, name, figure)


def _total(runs: list[dict[str, float]]) -> float:
    return sum(sum(run.values()) for run in runs)


def corpus(setting: Setting) -> Iterator[Row]:
    """Measure compiling serialized computations that the peer has traced."""
    if setting.corpus is None:
        return
    for folder in sorted(setting.corpus.iterdir()):
        about = folder / "meta.json"
        if not about.is_file() or "learning" not in json.loads(about.read_text())["class"]:
            continue
        for side in setting.sides:
            side.ask("load", str(folder / "comp.pb"))
        for form in FORMS:
            measured = asking(setting.sides, "compile", form)
            yield from _rows(setting, f"corpus {form}", folder.name, 0, measured)
        measured = {"floor": lambda: setting.tffc.ask("floor")}
        yield from _rows(setting, "corpus floor", folder.name, 0, measured)
        if setting.quick:
            return


def large(setting: Setting) -> Iterator[Row]:
    """Measure printing, parsing, verifying, reading and writing flat programs of up to a million
    nodes."""
    for size in LARGE[:1] if setting.quick else LARGE:
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "program.pb")
            setting.tffc.ask("make_large", size)
            setting.tffc.ask("save", path)
            sides = setting.sides if size == LARGE[0] else setting.sides[:1]
            yield from _rows(setting, "large", "read", size, asking(sides, "load", path))
            for operation in ("show", "write"):
                measured = asking(sides, operation)
                yield from _rows(setting, "large", operation, size, measured)
            for operation in ("parse", "verify"):
                measured = asking(setting.sides[:1], operation)
                yield from _rows(setting, "large", operation, size, measured)


def rounds(setting: Setting) -> Iterator[Row]:
    """Measure one round of federated averaging in each side's own runtime."""
    for side in setting.sides:
        side.ask("prepare_round")
    for clients in (10, 100) if setting.quick else (10, 100, 1000):
        for side in setting.sides:
            side.ask("round", clients)
        setting.tffc.ask("round_by_hand", clients)
        measured = asking(setting.sides, "round", clients)
        measured["floor"] = asking([setting.tffc], "round_by_hand", clients)["tffc"]
        yield from _rows(setting, "rounds", "federated averaging", clients, measured)


def whole_commands(setting: Setting) -> Iterator[Row]:
    """Measure commands as cold processes: seconds, and the largest memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = _saved(setting, "chain", 64, folder)
        compile_ = ("compile", program, "--form", "mapreduce", "--force", "-o")
        measured = {
            f"python -c '{LIBRARIES}'": commands.python(LIBRARIES),
            "tffc --help": commands.tffc("--help"),
            **{f"tffc {each} --help": commands.tffc(each, "--help") for each in sorted(COMMANDS)},
            "tffc print chain-64.pb": commands.tffc("print", program),
            "tffc compile chain-64.pb": commands.tffc(*compile_, f"{name}/bundle"),
            "tffc trace module": commands.tffc("trace", "benchmarks.traced_module"),
            "the same functions by hand": commands.python("import benchmarks.traced_by_hand"),
        }
        if setting.peer is not None:
            measured["the peer compiles chain-64.pb"] = commands.peer_compile(
                setting.peer, pathlib.Path(program), folder / "peer"
            )
        yield from _command_rows("commands", measured, setting)


def instructions(setting: Setting) -> Iterator[Row]:
    """Count the instructions of commands that need no TensorFlow; yield nothing without
    valgrind."""
    if not commands.counts_instructions():
        click.echo("without instructions; valgrind, which counts them, is not installed", err=True)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        measured = {
            (LIBRARIES, 0): commands.python(LIBRARIES),
            ("tffc --help", 0): commands.tffc("--help"),
            ("tffc print chain", 64): commands.tffc("print", _saved(setting, "chain", 64, folder)),
        }
        for kind, size in itertools.product(
            MAIN, (16, 32, 64) if setting.quick else (64, 128, 256)
        ):
            program = _saved(setting, kind, size, folder)
            measured[f"tffc compile {kind}", size] = commands.tffc(
                "compile", program, "--form", "mapreduce", "--force", "-o", f"{name}/bundle"
            )
        for (case, size), command in measured.items():
            yield Row("instructions", case, size, "tffc", Figure((command.instructions(),)), "M")


def memory(setting: Setting) -> Iterator[Row]:
    """Measure the largest memory of compiling, and the size of the input."""
    sizes = {"chain": (64, 2048), "aggregations": (64, 2048), "wide": (64, 512)}
    with tempfile.TemporaryDirectory() as name:
        for kind, each in sizes.items():
            for size in each[:1] if setting.quick else each:
                program = _saved(setting, kind, size, pathlib.Path(name))
                megabytes = pathlib.Path(program).stat().st_size / 2**20
                yield Row("memory", kind, size, "input", Figure((megabytes,)), "MB")
                compile_ = commands.tffc(
                    "compile", program, "--form", "mapreduce", "--force", "-o", f"{name}/bundle"
                )
                measured = {"tffc": compile_}
                if setting.peer is not None and size <= setting.peer_size(kind):
                    path = pathlib.Path(program)
                    folder = pathlib.Path(name) / "peer"
                    measured["peer"] = commands.peer_compile(setting.peer, path, folder)
                _, peaks = commands.measure(measured, Schedule(1, setting.schedule.budget))
                for side, figure in peaks.items():
                    yield Row("memory", kind, size, side, figure, "MB")


EXPERIMENTS: dict[str, Callable[[Setting], Iterator[Row]]] = {
    "compiling": compiling,
    "proving": proving,
    "doubling": doubling,
    "stages": stages,
    "corpus": corpus,
    "large": large,
    "round": rounds,
    "commands": whole_commands,
    "instructions": instructions,
    "memory": memory,
}


def _saved(setting: Setting, kind: str, size: int, folder: pathlib.Path) -> str:
    """Return the file of a program."""
    path = str(folder / f"{kind}-{size}.pb")
    setting.tffc.ask("trace", kind, size)
    setting.tffc.ask("save", path)
    return path


def _rows(
    setting: Setting,
    experiment: str,
    case: str,
    size: int,
    measured: dict[str, Callable[[], float]],
) -> Iterator[Row]:
    for side, figure in setting.schedule.alternate(measured).items():
        yield Row(experiment, case, size, side, figure)


def _command_rows(
    experiment: str, measured: dict[str, commands.Command], setting: Setting
) -> Iterator[Row]:
    seconds, peaks = commands.measure(measured, setting.schedule)
    for case, figure in seconds.items():
        yield Row(experiment, case, 0, "seconds", figure)
        yield Row(experiment, case, 0, "memory", peaks[case], "MB")
