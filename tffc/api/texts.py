"""The text of programs and bundles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from tffc.api.boundary import public
from tffc.api.programs import Source
from tffc.language import notation
from tffc.language.nodes import Node
from tffc.language.notation.lines import listing
from tffc.support.errors import LanguageValueError
from tffc.support.near import nearest

if TYPE_CHECKING:
    from tffc.backends.bundle.bundle import Bundle

Style: TypeAlias = Literal["compact", "formatted", "structural", "typed"]
"""How a program is written: on one line, on several, as a drawing of its tree, or with types."""

STYLES: tuple[Style, ...] = get_args(Style)


@public
def text(source: Source | Bundle, style: Style = "formatted") -> str:
    """Return the text of a program, or of all parts of a process or bundle, each below a line with
    its name and type.

    Raises:
      TffcError: there is no such program or bundle, or a part has no text in this style.
      LanguageValueError: there is no such style.
    """
    from tffc.api.opened_bundles import parts_of  # printing one program does without

    if style not in STYLES:
        raise LanguageValueError(
            "E706", f"there is no style {style!r}", help=nearest(str(style), STYLES)
        )
    return text_of(parts_of(source), style)


def text_of(parts: Mapping[str, Node], style: Style) -> str:
    """Return the text of programs; each of several stands below a line with its name and type."""
    show: Callable[[Node], str] = getattr(notation, style)  # loads no other style
    if len(parts) == 1:
        (program,) = parts.values()
        return show(program)
    return listing(parts, show).removesuffix("\n")
