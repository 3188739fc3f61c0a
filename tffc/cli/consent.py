"""Consent to side effects on the command line: errors that name the option, and a note about a
program's effects."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence

from tffc.cli.output import say
from tffc.language.nodes import Node
from tffc.runtime.effects import consent
from tffc.runtime.effects.consent import ComponentUse, find_outside, kinds_of
from tffc.support.errors import ConsentError, TffcError

MOST_TOLD = 3
"""The most operations that the note names."""


def check_consent(programs: Mapping[str, Node], allowed: frozenset[str]) -> None:
    """Check consent as `tffc.runtime.effects.consent.check_consent` does; errors name the
    option."""
    with naming_the_option():
        consent.check_consent(programs, allowed)


@contextlib.contextmanager
def naming_the_option() -> Generator[None]:
    """Make errors about missing consent name the option that gives it."""
    try:
        yield
    except ConsentError as error:
        kinds = ",".join(error.kinds)
        if not kinds:  # no consent helps
            raise
        error.help = f"if you trust whoever made the program: --allow-effects {kinds}"
        raise


def tell_effects(programs: Mapping[str, Node]) -> None:
    """Print a note on stderr about the side effects of programs, if they have any.

    A program that cannot be read is ignored: running it reports the reason.
    """
    try:
        uses = list(find_outside(programs))
    except TffcError:
        return
    if not uses:
        return
    never = [each for each in uses if each.use.never_runs]
    if never:
        say(f"note: this runs in the process that traces it, never from a file: {_listed(never)}")
        return
    say(f"note: to run this needs consent to {', '.join(kinds_of(uses))}: {_listed(uses)}")


def _listed(uses: Sequence[ComponentUse]) -> str:
    shown = list(dict.fromkeys(str(each) for each in uses))
    more = f" and {len(shown) - MOST_TOLD} more" if len(shown) > MOST_TOLD else ""
    return "; ".join(shown[:MOST_TOLD]) + more
