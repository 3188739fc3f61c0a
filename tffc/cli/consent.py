"""Consent on the command line: what a refusal says to do, and a line about a program that will
need it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping

from tffc.cli.output import say
from tffc.effects import consent
from tffc.effects.consent import find_outside, kinds_of
from tffc.errors import ConsentError, TffcError
from tffc.ir.nodes import Node

MOST_TOLD = 3
"""How many operations the line names."""


def check_consent(programs: Mapping[str, Node], allowed: frozenset[str]) -> None:
    """Do as `tffc.effects.consent.check_consent`; the refusal names the option."""
    with naming_the_option():
        consent.check_consent(programs, allowed)


@contextlib.contextmanager
def naming_the_option() -> Generator[None]:
    """Have a refusal for want of consent say which option gives it."""
    try:
        yield
    except ConsentError as error:
        kinds = ",".join(error.kinds)
        error.help = f"if you trust whoever made the program: --allow-effects {kinds}"
        raise


def tell_effects(programs: Mapping[str, Node]) -> None:
    """Say in a line on stderr what programs do besides computing, if they do.

    Nothing is said about a program that cannot be read: running it says why.
    """
    try:
        found = list(find_outside(programs))
    except TffcError:
        return
    if not found:
        return
    shown = list(dict.fromkeys(str(each) for each in found))
    more = f" and {len(shown) - MOST_TOLD} more" if len(shown) > MOST_TOLD else ""
    line = f"to run this needs consent to {', '.join(kinds_of(found))}: "
    line += "; ".join(shown[:MOST_TOLD]) + more
    say(f"note: {line}")
