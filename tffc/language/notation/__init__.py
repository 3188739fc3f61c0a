"""The printed forms of programs.

    compact     (x -> (let y=f(x) in <y,a=1>))     on one line
    formatted   the same, with the locals of blocks and the elements of structs on their own lines
    structural  the tree, drawn
    typed       the formatted one, with all that is needed to parse it

The first three are byte for byte what TensorFlow Federated 0.87 prints, except that compiled
sections are named by the fingerprint of their content, and data by its hash.  The text depends on
the program alone.  A node that is shared between places is printed at each of them; a program whose
text would be longer than `MAX_TEXT` characters is refused.

    parse(typed(node), sections(node)) == node
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tffc.language.notation.labels import MAX_TEXT, section_name
    from tffc.language.notation.lines import compact, formatted
    from tffc.language.notation.parser import parse
    from tffc.language.notation.section_folder import SectionFolder, sections, write_sections
    from tffc.language.notation.structural_text import structural
    from tffc.language.notation.typed_text import typed

_MODULES = {
    "MAX_TEXT": "labels",
    "SectionFolder": "section_folder",
    "compact": "lines",
    "formatted": "lines",
    "parse": "parser",
    "section_name": "labels",
    "sections": "section_folder",
    "structural": "structural_text",
    "typed": "typed_text",
    "write_sections": "section_folder",
}
"""The modules that define the names.  They are loaded at first use, because types and nodes print
themselves with this package, and printing does not need the parser."""

__all__ = [
    "MAX_TEXT",
    "SectionFolder",
    "compact",
    "formatted",
    "parse",
    "section_name",
    "sections",
    "structural",
    "typed",
    "write_sections",
]


def __getattr__(name: str) -> Any:
    """Return the object of this name, loading the module that defines it."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
