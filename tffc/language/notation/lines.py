"""The compact and the formatted form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tffc.language.notation.labels import SectionName, check_size, section_label
from tffc.language.notation.pieces import Mark, expanded, layout, max_text, on_one_line
from tffc.language.term import Term


def compact(root: Term, section_name: SectionName = section_label) -> str:
    """Return the program on one line.

    Raises:
      NotationError: the text is longer than MAX_TEXT characters.
    """
    return on_one_line(_pieces(root, section_name), max_text()).rstrip()


def formatted(root: Term, section_name: SectionName = section_label) -> str:
    """Return the program with the locals of blocks and the elements of structs on their own lines.

    Raises:
      NotationError: the text is longer than MAX_TEXT characters.
    """
    return layout(_pieces(root, section_name), max_text())


def listing(programs: Mapping[str, Any], show: Callable[[Any], str] = formatted) -> str:
    """Return the texts of several programs, each below a line with its name and type."""
    parts = (f"; {name}: {program.type}\n{show(program)}\n" for name, program in programs.items())
    return "\n".join(parts)


def _pieces(root: Term, section_name: SectionName) -> Iterator[str | Mark]:
    check_size(root)
    return expanded([root], lambda node: node.pieces(section_name))
