"""The page about performance: tables in Markdown, and plots."""

from __future__ import annotations

import datetime
import math
import os
import pathlib
import platform
from collections.abc import Iterable, Mapping, Sequence

from benchmarks import plots
from benchmarks.experiments import Row
from benchmarks.rounds.page import section_of
from benchmarks.sides import Figure

COMPILING = {
    "trace": "Tracing",
    "mapreduce": "Compiling to MapReduceForm",
    "distribute-aggregate": "Compiling to DistributeAggregateForm",
}
IMAGES = "performance"

INTRODUCTION = """\
# Performance

Made by `python -m benchmarks`; do not edit by hand.

Every figure is the median of several runs, with the minimum and the maximum in brackets.  tffc and
the peer, the TensorFlow Federated 0.87 package, run in turn on the same machine.  The machine is
shared, so only ratios within a table are meaningful.  *tffc* reads a program's bytes and compiles
it; *peer* starts from the computation in memory.  *floor* is the minimum work of any compiler:
parsing a program's graphs, renaming their nodes once, and serializing them.  *ratio* is the time of
the peer relative to tffc.  *doubling* is the time of tffc relative to half the size, so 2 means
linear.

Above the floor, tffc spends its time on the program around the graphs, whose nodes it reads, checks
and traverses a few times in Python, and on new nodes: the components of a MapReduceForm have a
placeholder and an identity for every tensor that they take and return, so *wide* writes ten times
as many nodes as it reads.  The time is spread evenly: no function takes a tenth of it.  The output
can grow faster than the program if the wire format requires it: every selection from a struct
contains the type of the whole struct, so a DistributeAggregateForm of n sums has n * n types, and
so has the input file of *fields*.
"""


def write_report(
    rows: Sequence[Row],
    folder: pathlib.Path,
    *,
    versions: Mapping[str, str],
    has_peer: bool,
    runs: int,
    seconds: float,
) -> pathlib.Path:
    """Write `performance.md` and its plots into a folder; return the page's path."""
    images = folder / IMAGES
    images.mkdir(parents=True, exist_ok=True)
    parts = [INTRODUCTION, _machine(versions, has_peer, runs, seconds)]
    for experiment, title in COMPILING.items():
        parts.append(_compiling(rows, experiment, title, images))
    parts += [
        _proving(rows),
        _doubling(rows),
        _corpus(rows),
        _stages(rows, images),
        _large(rows),
        _rounds(rows),
    ]
    parts += [_commands(rows), _instructions(rows), _memory(rows, images)]
    page = folder / "performance.md"
    parts.append(section_of(page))
    page.write_text("\n".join(filter(None, parts)), encoding="utf-8")
    return page


def _machine(versions: Mapping[str, str], has_peer: bool, runs: int, seconds: float) -> str:
    lines = [
        f"- {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {_processor()}, {os.cpu_count()} "
        f"processors, {_memory_size()}, {platform.system()}",
        f"- Python {platform.python_version()}, "
        + ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"- up to {runs} runs of each; the whole took {seconds / 60:.0f} minutes",
    ]
    if not has_peer:
        lines.append("- without the peer, which was not there")
    return "\n".join(lines) + "\n"


def _processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _memory_size() -> str:
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return f"{pages * size / 2**30:.0f} GB"


def _of(rows: Iterable[Row], experiment: str) -> list[Row]:
    return [row for row in rows if row.experiment == experiment]


def _compiling(rows: Sequence[Row], experiment: str, title: str, images: pathlib.Path) -> str:
    found = _of(rows, experiment)
    if not found:
        return ""
    floors = _of(rows, "floor") if experiment != "trace" else []
    plots.growth([*found, *floors], images / f"{experiment}.svg")
    sides = ["tffc", "floor", "peer"] if floors else ["tffc", "peer"]
    table = _side_by_side([*found, *floors], sides, "program", "n")
    return f"## {title}\n\n![{title}]({IMAGES}/{experiment}.svg)\n\n{table}"


def _proving(rows: Sequence[Row]) -> str:
    found = {(row.case, row.size, row.side): row.figure for row in _of(rows, "proving")}
    if not found:
        return ""
    lines = ["| program | n | compile | prove | ratio | doubling |", "|---|---|---|---|---|---|"]
    before: dict[str, tuple[int, Figure]] = {}
    for case, size in dict.fromkeys((case, size) for case, size, _ in found):
        compiled, proved = found[case, size, "compile"], found[case, size, "prove"]
        growth = _growth(before[case], (size, proved)) if case in before else ""
        before[case] = size, proved
        ratio = _ratio(proved.median / compiled.median)
        cells = (case, str(size), _seconds(compiled), _seconds(proved), ratio, growth)
        lines.append(f"| {' | '.join(cells)} |")
    text = (
        "Compiling to MapReduceForm, and proving that its components compute what the program\n"
        "does.  *ratio* is the time of the proof relative to compiling, and *doubling* its time\n"
        "relative to half the size."
    )
    return f"## Proofs\n\n{text}\n\n" + "\n".join(lines) + "\n"


def _doubling(rows: Sequence[Row]) -> str:
    found = _of(rows, "doubling")
    if not found:
        return ""
    table = _side_by_side(found, ["tffc"], "program", "levels")
    text = "`a1=<a0,a0>, a2=<a1,a1>, ...` in a round; expanded, it has 2^levels values."
    return f"## Structs of structs\n\n{text}\n\n{table}"


def _corpus(rows: Sequence[Row]) -> str:
    parts = []
    for experiment, title in list(COMPILING.items())[1:]:
        found = _of(rows, f"corpus {experiment}")
        if found:
            table = _side_by_side([*found, *_of(rows, "corpus floor")], ["tffc", "floor", "peer"])
            parts.append(f"### {title}\n\n{table}")
    text = "Learning algorithms, traced by the peer and read from a file.\n\n"
    return "## Recorded computations\n\n" + text + "\n".join(parts) if parts else ""


def _stages(rows: Sequence[Row], images: pathlib.Path) -> str:
    found = _of(rows, "stages")
    if not found:
        return ""
    plots.stacked(found, images / "stages.svg")
    text = "The stages of compiling a file to a bundle.  *write* covers all files of the bundle."
    return f"## Stages\n\n{text}\n\n![Stages of compiling]({IMAGES}/stages.svg)\n"


def _large(rows: Sequence[Row]) -> str:
    found = _of(rows, "large")
    if not found:
        return ""
    table = _side_by_side(found, ["tffc", "peer"], "operation", "nodes")
    text = "`(p -> (let v1=<p,p>,v2=<v1[0],p>,... in vN[1]))`; the peer cannot parse or verify."
    return f"## Large programs\n\n{text}\n\n{table}"


def _rounds(rows: Sequence[Row]) -> str:
    found = _of(rows, "rounds")
    if not found:
        return ""
    table = _side_by_side(found, ["tffc", "floor", "peer"], "program", "clients")
    text = (
        "Each side runs in its own runtime, on the same clients.  *floor* is the same round by\n"
        "hand: a session that loops over slices of a client's arrays, with threads for clients."
    )
    return f"## A round\n\n{text}\n\n{table}"


def _commands(rows: Sequence[Row]) -> str:
    found = _of(rows, "commands")
    if not found:
        return ""
    lines = ["| command | time | memory |", "|---|---|---|"]
    for case in dict.fromkeys(row.case for row in found):
        figures = {row.side: row.figure for row in found if row.case == case}
        memory = f"{figures['memory'].median:.0f} MB"
        lines.append(f"| {_code(case)} | {_seconds(figures['seconds'])} | {memory} |")
    return "## Whole commands\n\nEach run is a new process.\n\n" + "\n".join(lines) + "\n"


def _instructions(rows: Sequence[Row]) -> str:
    """Yield the table of instructions; for a doubled size, also the growth."""
    found = _of(rows, "instructions")
    if not found:
        return ""
    lines = ["| command | n | million instructions | added | times |", "|---|---|---|---|---|"]
    before = ("", 0.0, 0.0)
    for row in found:
        count = row.figure.median
        added = count - before[1] if before[0] == row.case else 0.0
        times = f"{added / before[2]:.2f}" if added and before[2] else ""
        cells = [_code(row.case), str(row.size or ""), f"{count:.0f}"]
        lines.append(f"| {' | '.join(cells)} | {f'{added:.0f}' if added else ''} | {times} |")
        before = (row.case, count, added)
    text = (
        "The instructions of a whole process, counted by valgrind; other work on the machine does\n"
        "not change them.  *added* is the increase from doubling, and *times* its ratio to the\n"
        "previous increase; 2 means linear."
    )
    return f"## Instructions\n\n{text}\n\n" + "\n".join(lines) + "\n"


def _code(case: str) -> str:
    return f"`{case}`" if case.startswith(("tffc", "python", "import")) else case


def _memory(rows: Sequence[Row], images: pathlib.Path) -> str:
    found = _of(rows, "memory")
    if not found:
        return ""
    plots.bars(found, images / "memory.svg")
    lines = ["| program | n | input | tffc | peer |", "|---|---|---|---|---|"]
    for case, size in dict.fromkeys((row.case, row.size) for row in found):
        figures = {r.side: r.figure.median for r in found if (r.case, r.size) == (case, size)}
        shown = (_megabytes(figures.get(side)) for side in ("input", "tffc", "peer"))
        lines.append(f"| {case} | {size} | {' | '.join(shown)} |")
    text = "The peak memory of a process that compiles to MapReduceForm."
    image = f"![Memory]({IMAGES}/memory.svg)"
    return f"## Memory\n\n{text}\n\n{image}\n\n" + "\n".join(lines) + "\n"


def _megabytes(value: float | None) -> str:
    return "" if value is None else f"{_three(value)} MB"


def _side_by_side(
    rows: Sequence[Row], sides: Sequence[str], case: str = "program", size: str | None = None
) -> str:
    """A table with a column for each side, and how many times tffc is as fast as the peer; where
    there are sizes, also how many times as long tffc takes for twice the size."""
    heads = [case, *([size] if size else []), *sides]
    heads += ["ratio"] if "peer" in sides else []
    heads += ["doubling"] if size else []
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    before = ("", 0, Figure(()))
    for name, number in dict.fromkeys((row.case, row.size) for row in rows):
        figures = {r.side: r.figure for r in rows if (r.case, r.size) == (name, number)}
        own, other = figures.get("tffc"), figures.get("peer")
        cells = [name, *([str(number)] if size else [])]
        cells += [_seconds(figures.get(side)) for side in sides]
        if "peer" in sides:
            cells.append(_ratio(other.median / own.median) if own and other else "")
        if size:
            cells.append(_growth(before[1:], (number, own)) if own and before[0] == name else "")
        before = (name, number, own) if own else before
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _growth(before: tuple[int, Figure], after: tuple[int, Figure]) -> str:
    """Return the factor by which each doubling between two sizes has multiplied the time."""
    (small, less), (large, more) = before, after
    return f"{(more.median / less.median) ** (1 / math.log2(large / small)):.2f}"


def _seconds(figure: Figure | None) -> str:
    if figure is None:
        return ""
    unit, scale = ("s", 1.0) if figure.median >= 1 else ("ms", 1e3)
    median, low, high = (
        _three(value * scale) for value in (figure.median, figure.low, figure.high)
    )
    spread = f" ({low}–{high})" if len(figure.runs) > 1 else ""
    return f"{median} {unit}{spread}"


def _ratio(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _three(value: float) -> str:
    """Return a number with three digits, or all before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
