"""What a shell completes: programs by name, topics, error codes and passes.

Nothing of the user's is imported: the names in a module are read from its text.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from tffc.support.errors import TffcError

if TYPE_CHECKING:
    import ast

SWITCH = "_TFFC_COMPLETE"
"""The environment variable by which a shell asks for completions."""

LONGEST = 2**22
"""The most bytes of a module that are read for its names."""

PARTS = ("initialize", "next")
"""The computations of an iterative process."""


def complete_program(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Return the names in the module before a colon, or ask the shell for files."""
    module, colon, begun = incomplete.rpartition(":")
    if not colon:
        return [CompletionItem(incomplete, type="file")]
    return _items((f"{module}:{name}" for name in names_in(module, begun)), incomplete)


def complete_topic(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Return topics of the documentation, commands and error codes; codes only if one is begun."""
    from tffc.cli.topics import topics

    root = context.find_root()
    commands = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    words = {*topics(), *commands}
    return _items(sorted(words), incomplete) or complete_code(context, parameter, incomplete)


def complete_code(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Return the error codes, with the titles of their pages."""
    from tffc.support.explanations import codes, read_page

    begun = incomplete.upper()
    return [
        CompletionItem(code, help=read_page(code).title)
        for code in codes()
        if code.startswith(begun)
    ]


def complete_pass(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Return passes; in a list of passes, after those that are there."""
    before, comma, _ = incomplete.rpartition(",")
    return _items((f"{before}{comma}{name}" for name in _passes()), incomplete)


def complete_printed(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Return passes, and the words for several of them."""
    return _items([*_passes(), "all", "change"], incomplete)


def complete_form(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Return the forms."""
    from tffc.backends.forms.kinds import FORMS

    return _items(FORMS, incomplete)


def names_in(module: str, begun: str) -> list[str]:
    """Return the names in a module that may be programs, and with a dot their parts.

    These are what calls return, except constants, and functions with decorators.
    """
    import ast

    path = pathlib.Path(module)
    if path.suffix != ".py":
        path = pathlib.Path(*module.split(".")).with_suffix(".py")
    try:
        with path.open("rb") as file:
            tree = ast.parse(file.read(LONGEST))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    names = list(dict.fromkeys(_names(tree.body)))
    if "." in begun:
        return [f"{name}.{part}" for name in names for part in PARTS]
    return names


def _names(statements: Iterable[ast.stmt]) -> Iterator[str]:
    import ast

    for statement in statements:
        if isinstance(statement, ast.FunctionDef) and statement.decorator_list:
            yield statement.name
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            for target in statement.targets:
                if isinstance(target, ast.Name) and not target.id.isupper():
                    yield target.id


def _passes() -> list[str]:
    from tffc.passes.table import all_passes

    with contextlib.suppress(TffcError):  # of an installed package
        return sorted(all_passes())
    return []


def _items(words: Iterable[str], incomplete: str) -> list[CompletionItem[str]]:
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


class ColonComplete(BashComplete):
    """Completion for Bash, which takes a colon as a word and completes only what is after it."""

    _cut = 0

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to complete, and that one, with colons inside words."""
        args, incomplete = super().get_completion_args()
        if incomplete == ":":
            args, incomplete = [*args, ":"], ""
        words: list[str] = []
        for word in [*args, incomplete]:
            if words and (word == ":" or words[-1].endswith(":")):
                words[-1] += word
            else:
                words.append(word)
        *before, last = words
        self._cut = len(last) - len(incomplete) if ":" in last else 0
        return before, last

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return a completion without what Bash takes as words before it."""
        return f"{item.type},{item.value[self._cut :]}"


def answer_shells() -> None:
    """Prepare for a shell that asks for completions, if one does."""
    if SWITCH in os.environ:
        add_completion_class(ColonComplete)
