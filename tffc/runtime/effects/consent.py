"""Consent to the side effects of a program.

A program read from a file may be anybody's.  Its use of files, the network and Python, and unknown
operations, are found before anything runs, and refused unless the user has consented to that kind.
Printing needs no consent.

Functions of Python, and functions that XLA is told to find in its process, exist only in the
process that traced the program.  A program from a file that calls one is refused whatever the user
consents to: the name by which it calls the function may be that of any other here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from tffc.language.lines import walk_with_lines
from tffc.language.nodes import Compiled, Node
from tffc.runtime.effects.outside import Use, outside_uses
from tffc.support.errors import ConsentError, LanguageValueError, Span
from tffc.support.printable import printable

KINDS = {
    "files": "reads or writes files",
    "network": "talks to other processes",
    "python": "calls Python",  # told by audits and policies; consent does not let it run
    "unknown": "does what tffc does not know to be harmless",
}
"""The kinds of effects that can be consented to, described."""

SHOWN = 10
"""The number of operations that an error lists."""

LONGEST = 60
"""The number of characters of a constant that are shown."""


class ComponentUse(NamedTuple):
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


def read_kinds(kinds: Collection[str]) -> frozenset[str]:
    """Return the kinds that a user consents to.

    Raises:
      LanguageValueError: one of them is not a kind.
    """
    names = [kinds] if isinstance(kinds, str) else kinds
    for name in names:
        if name not in KINDS or isinstance(kinds, str):
            raise LanguageValueError(
                "E706",
                f"{name!r} is not a kind of effect",
                notes=(f"the kinds are {', '.join(KINDS)}",),
                help="give a tuple of kinds, such as allow_effects=('files',)",
            )
    return frozenset(names)


def find_outside(programs: Mapping[str, Node]) -> Iterator[ComponentUse]:
    """Find the operations with effects in programs, given by the names of their components.

    Raises:
      GraphError: a section that may have effects is malformed.
      WireError: its message is malformed.
    """
    for component, program in programs.items():
        for node, span in walk_with_lines(program):
            if isinstance(node, Compiled):
                yield from (ComponentUse(component, use, span) for use in outside_uses(node))


def check_consent(programs: Mapping[str, Node], allowed: Collection[str]) -> None:
    """Check that programs from files have no effects other than those allowed.

    Raises:
      ConsentError: one has, or calls what no consent lets run.
      GraphError: a section is malformed.
      WireError: its message is malformed.
    """
    uses = list(find_outside(programs))
    _refuse_what_never_runs(uses)
    refused = [placed for placed in uses if placed.use.kind not in allowed]
    if not refused:
        return
    first = refused[0]
    kinds = kinds_of(refused)
    raise ConsentError(
        "E705",
        f"`{_name(first.component)}` {KINDS[first.use.kind]}, and nobody has consented to that: "
        f"{first}",
        notes=_noted(refused),
        help="if you trust whoever made the program, consent: "
        f"allow_effects=({', '.join(map(repr, kinds))},)",
        span=first.span,
        kinds=kinds,
    )


def check_can_run(programs: Mapping[str, Node]) -> None:
    """Check that programs from files call nothing that no consent lets run.

    Raises:
      ConsentError: one does.
      GraphError: a section is malformed.
      WireError: its message is malformed.
    """
    _refuse_what_never_runs(list(find_outside(programs)))


def _refuse_what_never_runs(uses: Sequence[ComponentUse]) -> None:
    refused = [placed for placed in uses if placed.use.never_runs]
    if not refused:
        return
    first = refused[0]
    raise ConsentError(
        "E908",
        f"`{_name(first.component)}` calls a function that is not in it and stayed in the process "
        f"that traced it: {first}",
        notes=_noted(refused),
        help="a program from a file never calls Python or other functions of this process, "
        "whatever is consented to; run its module instead, or have it written without them",
        span=first.span,
    )


def _noted(uses: Sequence[ComponentUse]) -> tuple[str, ...]:
    notes = [f"{placed.use.kind}: {placed} in {placed.place()}" for placed in uses[:SHOWN]]
    more = (f"and {len(uses) - SHOWN} more",) if len(uses) > SHOWN else ()
    return (*notes, *more)


def kinds_of(uses: Sequence[ComponentUse]) -> tuple[str, ...]:
    """Return the kinds of the operations found, in the usual order."""
    kinds = {placed.use.kind for placed in uses}
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
