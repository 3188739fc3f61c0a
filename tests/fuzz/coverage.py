"""A run of a fuzzer that is guided by coverage, which needs `pip install atheris`.

    python -m tests.fuzz.coverage READER FOLDER [OPTION...]

Begins with what FOLDER holds, with whole inputs and with the corpus that is kept here, and writes
to FOLDER what reaches other code.  Options are those of libFuzzer, such as `-max_total_time=1800`.
Ends at the first input that is neither read nor refused, which it writes beside FOLDER.

    python -m tests.fuzz.coverage --keep READER FOLDER

keeps a few inputs of FOLDER that together run most of what all run, in `tests/fuzz/corpus`.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pathlib
import random
import sys
from types import CodeType, FrameType
from typing import Any

LIMITS = ("-timeout=30", "-rss_limit_mb=4096", "-max_len=4096")
MOST, LARGEST_KEPT = 60, 1000
"""How many inputs are kept for a reader, and of how many bytes at most."""

CORPUS = pathlib.Path(__file__).with_name("corpus")
"""A file for each reader, with one input a line in hexadecimal digits."""


def fuzz(name: str, folder: pathlib.Path, options: list[str]) -> None:
    """Try inputs without end, or as long as the options say."""
    atheris = importlib.import_module("atheris")

    with atheris.instrument_imports(include=["tffc"]):
        from tests.fuzz import readers

    folder.mkdir(parents=True, exist_ok=True)
    for data in (*readers.READERS[name].seeds(), *readers.corpus(name)):
        (folder / hashlib.sha256(data).hexdigest()[:20]).write_bytes(data)
    command = [sys.argv[0], str(folder), f"-artifact_prefix={folder}-", *LIMITS, *options]
    damage = readers.READERS[name].damage

    def mutated(data: bytes, largest: int, seed: int) -> bytes:
        """Change bytes without knowing what they are, or as the reader's format has them."""
        generator = random.Random(seed)
        if generator.random() < 0.5:
            return atheris.Mutate(data, largest)
        return damage(generator, data)[:largest]

    atheris.Setup(command, lambda data: readers.read_or_refuse(name, data), custom_mutator=mutated)
    atheris.Fuzz()


def keep(name: str, folder: pathlib.Path) -> None:
    """Keep a few inputs that together run most of what the inputs in a folder run."""
    read = sorted(path.read_bytes() for path in folder.iterdir())
    left = {data: _lines(name, data) for data in read if len(data) <= LARGEST_KEPT}
    kept: list[bytes] = []
    while left and len(kept) < MOST:
        # The shorter one of two that run as many new lines.
        best = max(left, key=lambda data: (len(left[data]), -len(data)))
        new = left.pop(best)
        if not new:
            break
        kept.append(best)
        left = {data: lines - new for data, lines in left.items()}
    lines = "".join(f"{data.hex()}\n" for data in sorted(kept, key=lambda data: (len(data), data)))
    (CORPUS / f"{name}.txt").write_text(lines)


def _lines(name: str, data: bytes) -> set[tuple[CodeType, int]]:
    """Return the lines of tffc that reading the bytes runs."""
    from tests.fuzz import readers

    found: set[tuple[CodeType, int]] = set()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if f"{os.sep}tffc{os.sep}" not in frame.f_code.co_filename:
            return None
        found.add((frame.f_code, frame.f_lineno))
        return trace

    readers.read_or_refuse(name, data)  # which fills what is kept between inputs
    sys.settrace(trace)
    try:
        readers.read_or_refuse(name, data)
    finally:
        sys.settrace(None)
    return found


if __name__ == "__main__":
    if sys.argv[1] == "--keep":
        keep(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        fuzz(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:])
