"""The modules of the package and their syntax trees, which tests of the source share."""

from __future__ import annotations

import ast
import functools
import pathlib

from tests.processes import ROOT

PACKAGE = ROOT / "tffc"
MODULES = sorted(PACKAGE.rglob("*.py"))


@functools.cache
def tree(path: pathlib.Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


@functools.cache
def nodes(path: pathlib.Path) -> list[ast.AST]:
    """Return all nodes of the syntax tree of a file."""
    return list(ast.walk(tree(path)))
