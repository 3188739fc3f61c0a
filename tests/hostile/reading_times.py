"""Time that readers of a stranger's text take for texts that make regular expressions slow.

    python -m tests.hostile.reading_times [--size N] [--only READER]

Each text is a short piece again and again.  A text that takes long is tried at half its length too,
and told if the whole took more than four times as long.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from tffc.assurance.audit.patterns import Pattern
from tffc.assurance.golden.cases import read_cases
from tffc.cli.screen import wrapped
from tffc.graphs.operations.effects import calls_python
from tffc.language.notation import parse
from tffc.language.notation.pygments_lexer import NotationLexer
from tffc.passes.pipeline_text import parse_passes, parse_pipeline
from tffc.passes.table import PASSES
from tffc.runtime.data.location import open_data
from tffc.runtime.frameworks.tensorflow.runner import _first_line
from tffc.runtime.user_code.exception_hints import likely_mistake
from tffc.support.errors import TffcError, abridge
from tffc.support.files.strict_json import read_json
from tffc.support.files.yaml_file import read_yaml
from tffc.support.printable import printable_lines

READERS: dict[str, Callable[[str], Any]] = {
    "typed text": lambda text: parse(text, {}),
    "highlighted text": lambda text: list(NotationLexer().get_tokens(text)),
    "wrapped lines": lambda text: wrapped(text, 80, "    "),
    "escaped lines": printable_lines,
    "messages": abridge,
    "passes": lambda text: parse_passes(text, PASSES),
    "options of passes": lambda text: parse_passes(f"a{{{text}", PASSES),
    "pipelines": lambda text: parse_pipeline(text[: 2**18], "it", PASSES),
    "cases of passes": lambda text: read_cases(text, "it", "a"),
    "titles of cases": lambda text: read_cases(f"=== {text}", "it", "a"),
    "YAML": lambda text: read_yaml(text[: 2**18]),
    "JSON": read_json,
    "patterns": lambda text: Pattern(text).covered(["a.b[0].c"]),
    "paths of patterns": lambda text: Pattern("**.a*b.*.**.c").covered([text]),
    "locations": lambda text: open_data(f"csv:a?{text}"),
    "names of callbacks": calls_python,
    "messages of TensorFlow": _first_line,
    "messages of exceptions": lambda text: likely_mistake(text, text[:1000]),
}
"""What reads a text, or refuses it."""

PIECES = (
    "(", "<", "{", "[", "[[", "a", "a,", "a ", "a.", "a{b=c},", '"', "\\", '\\"', "'", 'b"', "#",
    "=", "==", "->", "@", "::", "let x=x in ", "(let x=x,", "x[0]", "<a=", "0", "1 ", "1,", "-",
    "_", "&", "*", "*a", ".**", "[*]", "**.", "a: ", "- ", "? ", ": ", "!a ", "&a ", "*a ", "<<: ",
    "|\n", ">\n ", "\n", " ", "\t", "{a: ", "===\n", "=== a\n---\n", "---\n", "{{", "{{node ",
    "`", "``a", "é", "\u202e", "\x1b[", "'a'(shape=", "python", "where\n", "a=b&", "%", "1e",
    "0x", "int32[", "int32[?,", "sha256:", "comp#", '"""', "Tensor", "() argument must be ",
)  # fmt: skip

NOTABLE = 0.5
"""Seconds below which nothing is compared."""

QUADRATIC = 4.0


def slow_texts(size: int, only: str | None = None) -> Iterator[str]:
    """Yield the readers and pieces whose time grows faster than the text does."""
    for name, read in READERS.items():
        for piece in PIECES if only in (None, name) else ():
            whole = _seconds(read, (piece * size)[:size])
            if whole > NOTABLE:
                half = _seconds(read, (piece * size)[: size // 2])
                if whole > QUADRATIC * half:
                    yield f"{name} with {piece!r}: {half:.2f} s, then {whole:.2f} s"


def _seconds(read: Callable[[str], Any], text: str) -> float:
    """Return the least processor time of three runs, if the first is notable."""
    least = _once(read, text)
    for _ in range(2 if least > NOTABLE else 0):
        least = min(least, _once(read, text))
    return least


def _once(read: Callable[[str], Any], text: str) -> float:
    begun = time.process_time()
    with contextlib.suppress(TffcError, yaml.YAMLError, ValueError):
        read(text)
    return time.process_time() - begun


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.reading_times")
    parser.add_argument("--size", type=int, default=2**17)
    parser.add_argument("--only", choices=READERS)
    options = parser.parse_args()
    found = list(slow_texts(options.size, options.only))
    for line in found:
        print(line)
    print(f"{len(READERS)} readers, {len(PIECES)} texts of {options.size} characters")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
