"""Every refusal says what to do: in its help, or in a message that says what was expected.

Programs, graphs and bytes that are not sound are refused with what is wrong with them, and where.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.package_source import MODULES, PACKAGE, nodes

CODE = re.compile(r"E\d{3}")
SAYS = re.compile(r"\b(expected|must|has to|have to|needs|takes)\b")
"""What a message says that tells what should have been there."""


UNSOUND = ("graphs", "language", "linking", "passes")
"""Packages that refuse what is not sound; only its author can mend it."""

WITHOUT = {
    "assurance/golden/examples.py": "the words of the YAML library say it",
    "cli/reproducer.py": "the message quotes the line that was changed",
    "frontend/computation.py": "bytes are expected, as the message says",
    "frontend/type_conversions.py": "the words of the user's own container say it",
    "runtime/data/arrays.py": "the words of the decoder say it",
    "runtime/data/python_function.py": "the words of the user's own function say it",
    "runtime/frameworks/jax/runner.py": "the type says what was promised",
    "runtime/frameworks/tensorflow/runner.py": "the type says what was promised",
    "support/plugins.py": "the author of a package reads it, and the message names its part",
    "tff/structure.py": "the counts say it",
    "tff/type_instances.py": "the types say it",
}
"""Modules with a refusal that says nothing more, and why."""


def refusals() -> Iterator[tuple[str, ast.Call]]:
    """Every error that is made with a code, with the module that makes it."""
    for path in MODULES:
        module = path.relative_to(PACKAGE).as_posix()
        for node in nodes(path):
            if isinstance(node, ast.Call) and is_error(node.func):
                arguments = (*node.args, *(keyword.value for keyword in node.keywords))
                codes = [a.value for a in arguments if isinstance(a, ast.Constant)]
                if any(CODE.fullmatch(str(code)) for code in codes):
                    yield module, node


def is_error(function: ast.expr) -> bool:
    """Whether a call makes an error: of a class by its name, or of one that is handed on."""
    name = ast.unparse(function)
    return name.endswith(("Error", ".error", "super().__init__"))


def says_what_to_do(call: ast.Call) -> bool:
    """Whether a refusal has a help, or a message that says what was expected."""
    is_helped = any(keyword.arg in ("help", None) for keyword in call.keywords)
    return is_helped or SAYS.search(ast.unparse(call)) is not None


def test_every_refusal_says_what_to_do() -> None:
    silent = {
        module
        for module, call in refusals()
        if not says_what_to_do(call) and not module.startswith(UNSOUND)
    }
    assert silent == set(WITHOUT)
