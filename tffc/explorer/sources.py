"""The user's source files, found through the program's spans."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from typing import Any

from tffc.assurance.audit.places import report_path
from tffc.language.nodes import Block, Lambda, Node
from tffc.language.traverse import walk
from tffc.support.errors import Span
from tffc.support.files.reading import read_named

LONGEST = 2_000_000
"""The most bytes of a file that is shown."""

TAKING_FUNCTIONS = ("federated_map", "federated_apply", "federated_eval", "federated_aggregate")


class SourceFiles:
    """The files that spans refer to, numbered; each is read once."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._code: dict[str, _Code] = {}

    def add(self, spans: Iterable[Span | None]) -> None:
        """Give numbers to the files of these spans, in the order of their paths."""
        for file in sorted({span.file for span in spans if span is not None}):
            if file not in self._lines:
                self._lines[file] = _read(file)

    def paths(self) -> dict[str, int]:
        """Return the numbers of the files by path."""
        return {file: number for number, file in enumerate(self._lines)}

    def place(self, span: Span | None) -> dict[str, Any] | None:
        """Return a span as plain data, or None."""
        if span is None:
            return None
        self.add([span])
        return {
            "file": self.paths()[span.file],
            "line": span.line,
            "end": span.end_line or span.line,
        }

    def plain(self) -> list[dict[str, Any]]:
        """Return the files: their paths and lines; no lines if a file cannot be read."""
        return [{"path": report_path(file), "lines": lines} for file, lines in self._lines.items()]

    def function_at(self, span: Span | None) -> str | None:
        """Return the name of the function passed to the operator call at a span, if any."""
        if span is None:
            return None
        position = span.line, span.column, span.end_line, span.end_column
        call = self._code_of(span).calls.get(position)
        if call is None or not isinstance(call.func, ast.Attribute | ast.Name):
            return None
        called = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
        if called not in TAKING_FUNCTIONS or not call.args:
            return None
        function = call.args[0]
        return ast.unparse(function) if isinstance(function, ast.Name | ast.Attribute) else None

    def definition(self, span: Span | None, function: str | None) -> dict[str, Any] | None:
        """Return the place of a function's definition in the file of a span, if there is just
        one."""
        if span is None or function is None:
            return None
        lines = self._code_of(span).definitions.get(function, [])
        return self.place(Span(span.file, lines[0])) if len(lines) == 1 else None

    def _code_of(self, span: Span) -> _Code:
        self.add([span])
        if span.file not in self._code:
            self._code[span.file] = _Code(self._lines[span.file])
        return self._code[span.file]


class _Code:
    """The calls in a file by their positions, and the lines of the functions of each name."""

    def __init__(self, lines: list[str]) -> None:
        self.calls: dict[tuple[int | None, ...], ast.Call] = {}
        self.definitions: dict[str, list[int]] = {}
        for node in ast.walk(_parsed("\n".join(lines))):
            if isinstance(node, ast.Call):
                position = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
                self.calls[position] = node
            elif isinstance(node, ast.FunctionDef):
                self.definitions.setdefault(node.name, []).append(node.lineno)


def spans_of(program: Node) -> list[Span]:
    """Return all spans in a program."""
    spans: list[Span | None] = []
    for node in walk(program):
        if isinstance(node, Block):
            spans.extend(binding.span for binding in node.locals)
        elif isinstance(node, Lambda):
            spans.append(node.span)
    return [span for span in spans if span is not None]


def _read(file: str) -> list[str]:
    try:
        data = read_named(file, LONGEST)
    except OSError:
        return []
    return data.decode("utf-8", errors="replace").splitlines()


def _parsed(code: str) -> ast.Module:
    """Return Python code as a tree; an empty one if it is not valid."""
    try:
        # The user has already seen these warnings.
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])
