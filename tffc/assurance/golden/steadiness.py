"""Checking whether tracing is deterministic, by tracing a module again in another process.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from tffc.assurance.diff.programs import called_at
from tffc.frontend.load import load
from tffc.language.lines import walk_with_lines
from tffc.language.nodes import Compiled, Literal, Node
from tffc.language.notation import compact
from tffc.language.notation.labels import section_label
from tffc.support.errors import Span, TffcError

HASH_SEEDS = ("1", "2")
"""The seeds of string hashing in the process, which change the order of sets; the second is for
those who run tffc with the first."""

Outline: TypeAlias = list[list[str]]
"""The constants and sections of a program in order, each with the line that uses it."""


def unsteady(
    targets: Mapping[str, str], traced: Mapping[str, Sequence[Node]], root: pathlib.Path
) -> dict[str, str]:
    """Return, for each target that is traced differently now, the first line that differs.

    `traced` are its programs in the order of `Files.programs`.  The line is empty if it is unknown.
    A target that cannot be traced in another process is left out.
    """
    with contextlib.ExitStack() as running:
        process = running.enter_context(_start(targets, root))
        # After an interruption it does not go on.
        running.callback(process.kill)
        again = _outlines(process)
    varying: dict[str, str] = {}
    for name in targets.keys() & again.keys():
        with contextlib.chdir(root):
            before = [line for program in traced[name] for line in outline(program)]
        if [text for text, _ in before] != [text for text, _ in again[name]]:
            lines = zip(before, again[name], strict=False)
            varying[name] = next((here[1] for here, there in lines if here[0] != there[0]), "")
    return {name: varying[name] for name in targets if name in varying}


def _start(targets: Mapping[str, str], root: pathlib.Path) -> subprocess.Popen[str]:
    seed = next(seed for seed in HASH_SEEDS if seed != os.environ.get("PYTHONHASHSEED"))
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
        yield name, [line for part in reversed(loaded.parts) for line in outline(part.node)]


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
