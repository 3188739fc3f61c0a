"""Finding functions in the user's source, for errors about what they declare or return."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import TypeAlias

from tffc.support.errors import Span
from tffc.support.source_text import source_lines

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

Definitions: TypeAlias = dict[tuple[str, int], list[Definition]]
"""The definitions in a module, by the name and first line that code objects state."""

_parsed: dict[str, tuple[Sequence[str], Definitions]] = {}
"""The definitions of each file asked about so far, with the lines that they were parsed from."""


def definition_span(function: object) -> Span | None:
    """Return the span of the name in a function's definition; of a lambda, the whole.

    The first line if there is no source, None for a callable that is not written in Python.
    """
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    node = _definition(code)
    if node is None:
        return Span(code.co_filename, code.co_firstlineno)
    if isinstance(node, ast.Lambda):
        return _span(code, node)
    keyword = "async def " if isinstance(node, ast.AsyncFunctionDef) else "def "
    end = node.col_offset + len(f"{keyword}{node.name}".encode())
    return Span(code.co_filename, node.lineno, node.col_offset, node.lineno, end)


def result_span(function: object) -> Span | None:
    """Return the span of a function's returned expression if there is a single one, else its
    definition."""
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType) and (node := _definition(code)) is not None:
        returned = list(_returned(node))
        if len(returned) == 1:
            return _span(code, returned[0])
    return definition_span(function)


def _definition(code: CodeType) -> Definition | None:
    """Return the definition that `code` was compiled from, if exactly one matches."""
    file, lines = code.co_filename, source_lines(code.co_filename)
    if file not in _parsed or _parsed[file][0] is not lines:
        _parsed[file] = lines, _definitions("".join(lines))
    candidates = _parsed[file][1].get((code.co_name, code.co_firstlineno), [])
    return candidates[0] if len(candidates) == 1 else None


def _definitions(source: str) -> Definitions:
    definitions: Definitions = {}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return definitions
    for node in ast.walk(tree):
        if isinstance(node, Definition):
            definitions.setdefault(_key(node), []).append(node)
    return definitions


def _key(node: Definition) -> tuple[str, int]:
    if isinstance(node, ast.Lambda):
        return "<lambda>", node.lineno
    return node.name, (node.decorator_list[0] if node.decorator_list else node).lineno


def _returned(root: Definition) -> Iterator[ast.expr]:
    """Yield the expressions that a function returns, ignoring functions inside it."""
    if isinstance(root, ast.Lambda):
        yield root.body
        return
    stack: list[ast.AST] = list(root.body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
        elif not isinstance(node, (Definition, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def _span(code: CodeType, node: ast.expr) -> Span:
    return Span(
        code.co_filename, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
    )
