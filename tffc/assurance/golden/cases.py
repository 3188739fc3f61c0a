"""Tests of passes written as text.

A file named after a pass holds cases, each a title, a program and the expected result:

    === a map of the identity is dropped
    (v: {int32}@CLIENTS -> federated_map:(...)(<(x: int32 -> x),v>))
    ---
    (v: {int32}@CLIENTS -> v)

Programs are in the typed notation; line breaks and spaces do not matter.  Options of the pass are
given in braces at the end of the title.  If the pass must refuse the program, the expected result
is the line `error E122: message`.  Before the first case there may be a table of compiled sections
for all programs of the file; their content is in the folder `sections` beside it.  Results are
compared without the table.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from tffc.assurance.diff.unified import unified
from tffc.language.notation import parse, typed
from tffc.language.notation.lexer import Source
from tffc.language.verify import holding, verify
from tffc.passes.pipeline import Pass
from tffc.passes.pipeline_text import parse_passes
from tffc.support.errors import PipelineError, TffcError

TITLE = re.compile(r"=== *(?P<title>.*?) *(?P<options>\{[^{}]*\})?")
SEPARATOR = "---"
TABLE = re.compile(r"^where\n.*", re.MULTILINE | re.DOTALL)
"""Matches the table of sections of a typed text."""


@dataclasses.dataclass(frozen=True, slots=True)
class PassCase:
    """One case of a file: a program and the expected result of the pass `step`.

    `lines` are the line of the title and the line after the case's last one, counted from 1.
    """

    file: str
    lines: tuple[int, int]
    title: str
    step: str
    program: str
    expected: str
    table: str = ""

    def run(self, passes: Mapping[str, Pass], sections: Mapping[str, bytes]) -> str:
        """Return the result of the pass: typed text without the table, or the error's line.

        Raises:
          NotationError: the program is not in the notation.
          VerificationError: the program or the result is not sound.
        """
        program = parse(self.program + self.table, sections, self.file)
        verify(program, ())
        try:
            pipeline = parse_passes(self.step, passes, holding(program))
            after = pipeline.run(program)
        except TffcError as error:
            return f"error {error.code}: {error.message}"
        verify(after, pipeline.holds(1))
        return TABLE.sub("", typed(after)).rstrip()

    def difference(self, result: str) -> str | None:
        """Return a unified diff from the expected text to `result`, or None if they are equal."""
        if result == self.expected or _words(result) == _words(self.expected):
            return None
        lines = unified(self.expected.splitlines(), result.splitlines(), "expected", "found")
        return "\n".join(lines)


def _words(text: str) -> list[str]:
    """Split a typed text into words, ignoring spaces and line breaks."""
    if text.startswith("error "):
        return [text]
    try:
        return [word.text for word in Source(text, "<case>").words]
    except TffcError:
        return [text]


def read_cases(text: str, file: str, step: str) -> list[PassCase]:
    """Return the cases in the text of a file for the pass `step`.

    Raises:
      PipelineError: a case has no program or no expectation.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("===")]
    table = "\n".join(lines[: starts[0]] if starts else [])
    cases: list[PassCase] = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        title = TITLE.fullmatch(lines[start])
        body = lines[start + 1 : end]
        if title is None or body.count(SEPARATOR) != 1:
            raise PipelineError(
                "E379",
                f"{file}:{start + 1}: a case is a title, a program, a line {SEPARATOR} and the "
                "expected result",
            )
        split = body.index(SEPARATOR)
        program, expected = ("\n".join(part).strip() for part in (body[:split], body[split + 1 :]))
        cases.append(
            PassCase(
                file,
                (start + 1, end + 1),
                title["title"],
                step + (title["options"] or ""),
                program,
                expected,
                f"\n{table}" if table.strip() else "",
            )
        )
    return cases
