"""The page about rounds: a table and a plot, between marks in `performance.md`."""

from __future__ import annotations

import datetime
import os
import pathlib
from collections.abc import Mapping, Sequence

from matplotlib import pyplot as plt

from benchmarks import plots
from benchmarks.rounds.rows import RoundRow, shown
from benchmarks.rounds.workloads import WORKLOADS

BEGIN, END = "<!-- rounds -->", "<!-- end of rounds -->"
IMAGE = "performance/rounds.svg"

TEXT = """\
## Rounds compared with other libraries

Made by `python -m benchmarks.rounds`.

Federated averaging in tffc's local engine, with `--batching auto`, compared with the same algorithm
written by hand and in other libraries: clients train with plain gradient descent, and the server
adds the mean of their changes.  Weights after three rounds agree: *difference* is the largest
difference between a side and tffc.  All sides run in turn, each in its own environment, after a few
seconds of warm-up rounds.  A run is at least one round, or as many in a row as take 0.2 s; figures
are medians of runs.  Other work slows the clock more than it adds processor time, so *ratio* is
processor time relative to tffc's with clients in memory: above 1 is slower than tffc.

tffc parses each file of a *folder* of `.npz` files, one for each client, once, and keeps the values
in memory; *packed* data stays on disk.  tffc has one worker for each core, or
*one worker*.  An operation takes one thread in tffc, as in `tffc run`, and in PyTorch; JAX and
TensorFlow Federated choose for themselves.  FedJAX fills up a client's last batch with its first
examples, so W1 differs there.  NumPy's own threads wait busily, which takes processor time while
other work uses the cores.
"""


def write_page(
    rows: Sequence[RoundRow], versions: Mapping[str, str], runs: int, folder: pathlib.Path
) -> pathlib.Path:
    """Write the section into `performance.md`, in place of the present one."""
    page = folder / "performance.md"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    text = text.replace(section_of(page), "").rstrip()
    section = f"{BEGIN}\n\n{_section(rows, versions, runs)}\n{END}\n"
    (folder / IMAGE).parent.mkdir(parents=True, exist_ok=True)
    _plot(rows, folder / IMAGE)
    page.write_text(f"{text}\n\n{section}".lstrip(), encoding="utf-8")
    return page


def section_of(page: pathlib.Path) -> str:
    """Return the section in a page; empty if there is none."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    if BEGIN not in text:
        return ""
    return BEGIN + text.partition(BEGIN)[2].partition(f"{END}\n")[0] + f"{END}\n"


def _section(rows: Sequence[RoundRow], versions: Mapping[str, str], runs: int) -> str:
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    parts = [
        TEXT,
        f"- {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {os.cpu_count()} processors, load "
        f"{load}; {runs} runs of each\n- "
        + ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
        + f"\n\n![Rounds]({IMAGE})\n",
    ]
    for workload in dict.fromkeys(row.workload for row in rows):
        own = [row for row in rows if row.workload == workload]
        base = _base(own)
        title, clients = WORKLOADS[workload].title, WORKLOADS[workload].clients
        lines = [
            f"### {workload}: {title}, {clients:,} clients",
            "",
            "| side | processor | clock | ratio | difference |",
            "|---|---|---|---|---|",
        ]
        for row in own:
            ratio = f"{row.processor.median / base:.2g}" if base else ""
            cells = (row.name, shown(row.processor), shown(row.clock), ratio, row.difference)
            lines.append(f"| {' | '.join(cells)} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _base(rows: Sequence[RoundRow]) -> float:
    """Return the processor time of tffc with clients in memory, if it was measured."""
    own = [r.processor.median for r in rows if (r.side, r.way) == ("tffc", "memory")]
    return own[0] if own else 0.0


def _plot(rows: Sequence[RoundRow], path: pathlib.Path) -> None:
    """Plot processor time as bars on a logarithmic axis, a panel for each workload."""
    workloads = list(dict.fromkeys(row.workload for row in rows))
    figure, panels = plt.subplots(
        1, max(1, len(workloads)), figsize=(3.6 * max(1, len(workloads)), 3.4), squeeze=False
    )
    for panel, workload in zip(panels[0], workloads, strict=False):
        own = [row for row in rows if row.workload == workload]
        times = [1e3 * row.processor.median for row in own]
        colors = ["C0" if row.side == "tffc" else "0.6" for row in own]
        panel.barh([row.name for row in own], times, color=colors)
        panel.set(xscale="log", title=workload, xlabel="milliseconds of processor time")
        panel.invert_yaxis()
    plots.save(figure, path)
