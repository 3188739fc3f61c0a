"""Checking whether tracing is deterministic, by tracing a module in two more processes.

A module that reads the clock, draws from the system's entropy, or iterates over a set of strings
during import or tracing gives another program each time, which no golden file can match.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from tffc.assurance.diff.programs import called_at
from tffc.frontend.load import load
from tffc.language.lines import walk_with_lines
from tffc.language.nodes import Compiled, Literal, Node
from tffc.language.notation import compact
from tffc.language.notation.labels import section_label
from tffc.support.errors import Span, TffcError

HASH_SEEDS = ("1", "2")
"""The seeds of string hashing in the two processes, which change the order of sets."""

Outline: TypeAlias = list[list[str]]
"""The constants and sections of a program in order, each with the line that uses it."""


def unsteady(targets: Mapping[str, str], root: pathlib.Path) -> dict[str, str]:
    """Return, for each target that varies between traces, the first line that differs.

    The line is empty if it is unknown.  A target that cannot be traced in another process is left
    out.
    """
    with contextlib.ExitStack() as running:
        # After an interruption none of them goes on.
        processes = [running.enter_context(_start(targets, root, seed)) for seed in HASH_SEEDS]
        for process in processes:
            running.callback(process.kill)
        first, second = map(_outlines, processes)
    varying: dict[str, str] = {}
    for name in targets:
        one, other = first.get(name), second.get(name)
        if one is not None and other is not None and one != other:
            lines = zip(one, other, strict=False)
            varying[name] = next((here[1] for here, there in lines if here[0] != there[0]), "")
    return varying


def _start(targets: Mapping[str, str], root: pathlib.Path, seed: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", __name__, json.dumps(dict(targets))],
        cwd=root,
        # It ends when this is closed, even by a kill.
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _outlines(process: subprocess.Popen[str]) -> dict[str, Outline]:
    assert process.stdout is not None
    written = process.stdout.read()
    return json.loads(written) if process.wait() == 0 else {}


def outline(program: Node) -> Outline:
    """Return the constants and sections of a program in order, each with the line that uses it."""
    return [[text, "" if at is None else called_at(at)] for text, at in _leaves(program)]


def _leaves(program: Node) -> Iterator[tuple[str, Span | None]]:
    for node, span in walk_with_lines(program):
        if isinstance(node, Compiled):
            yield section_label(node), span
        elif isinstance(node, Literal):
            yield compact(node), span


def _trace(targets: Mapping[str, str]) -> Iterator[tuple[str, Outline]]:
    for name, target in targets.items():
        try:
            loaded = load(target)
        except TffcError:
            continue
        lines = outline(loaded.computation.node)
        if loaded.initialize is not None:
            lines = outline(loaded.initialize.node) + lines
        yield name, lines


def main(arguments: Iterable[str]) -> None:
    """Write the outlines of targets to stdout, and the output of their modules to stderr."""
    (targets,) = arguments
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        json.dump(dict(_trace(json.loads(targets))), out)


def _end_with_parent() -> None:
    """End this process when the one that has started it has ended."""
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
