"""Consent to the side effects of a program.

A program read from a file may be anybody's.  Its use of files, the network and Python, and unknown
operations, are found before anything runs, and refused unless the user has consented to that kind.
Printing needs no consent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from tffc.effects.outside import Use, outside_uses
from tffc.errors import ConsentError, LanguageValueError, Span
from tffc.ir.lines import walk_with_lines
from tffc.ir.nodes import Compiled, Node
from tffc.printable import printable

KINDS = {
    "files": "reads or writes files",
    "network": "talks to other processes",
    "python": "calls Python",
    "unknown": "does what tffc does not know to be harmless",
}
"""The kinds of effects that can be consented to, described."""

SHOWN = 10
"""The number of operations that an error lists."""

LONGEST = 60
"""The number of characters of a constant that are shown."""


class Found(NamedTuple):
    """An operation with an effect: its component, and the user's source line if known."""

    component: str
    use: Use
    span: Span | None

    def __str__(self) -> str:
        """Return the operation and what it accesses, such as `ReadFile 'secret'`."""
        return " ".join((_name(self.use.operation), *_listed(self.use)))

    def place(self) -> str:
        """Return the component, and the path to the operation in it."""
        return " > ".join((_name(self.component), *map(_name, self.use.path)))


def read_kinds(given: Collection[str]) -> frozenset[str]:
    """Return the kinds that a user consents to.

    Raises:
      LanguageValueError: one of them is not a kind.
    """
    names = [given] if isinstance(given, str) else given
    for name in names:
        if name not in KINDS or isinstance(given, str):
            raise LanguageValueError(
                "E706",
                f"{name!r} is not a kind of effect",
                notes=(f"the kinds are {', '.join(KINDS)}",),
                help="give a tuple of kinds, such as allow_effects=('files',)",
            )
    return frozenset(names)


def find_outside(programs: Mapping[str, Node]) -> Iterator[Found]:
    """Find the operations with effects in programs, given by the names of their components.

    Raises:
      GraphError: a section that may have effects is malformed.
      WireError: its message is malformed.
    """
    for component, program in programs.items():
        for node, span in walk_with_lines(program):
            if isinstance(node, Compiled):
                yield from (Found(component, use, span) for use in outside_uses(node))


def check_consent(programs: Mapping[str, Node], allowed: Collection[str]) -> None:
    """Check that programs have no effects other than those allowed.

    Raises:
      ConsentError: one has.
      GraphError: a section is malformed.
      WireError: its message is malformed.
    """
    found = [each for each in find_outside(programs) if each.use.kind not in allowed]
    if not found:
        return
    first = found[0]
    kinds = kinds_of(found)
    notes = [f"{each.use.kind}: {each} in {each.place()}" for each in found[:SHOWN]]
    if len(found) > SHOWN:
        notes.append(f"and {len(found) - SHOWN} more")
    raise ConsentError(
        "E705",
        f"`{_name(first.component)}` {KINDS[first.use.kind]}, and nobody has consented to that: "
        f"{first}",
        notes=tuple(notes),
        help="if you trust whoever made the program, consent: "
        f"allow_effects=({', '.join(map(repr, kinds))},)",
        span=first.span,
        kinds=kinds,
    )


def kinds_of(found: Sequence[Found]) -> tuple[str, ...]:
    """Return the kinds of the operations found, in the usual order."""
    kinds = {each.use.kind for each in found}
    return tuple(kind for kind in KINDS if kind in kinds)


def _listed(use: Use) -> Iterator[str]:
    texts = [repr(_short(text.decode(errors="replace"))) for text in use.constants]
    if use.computed:
        texts.append("(a computed name)")
    if texts:
        yield printable(", ".join(texts))


def _name(name: str) -> str:
    return printable(_short(name))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
