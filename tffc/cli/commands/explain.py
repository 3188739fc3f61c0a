"""`tffc explain`: print the page about an error code."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

from tffc.cli.completion import complete_code
from tffc.cli.page import show_page
from tffc.support.explanations import SUBJECTS, codes, read_page
from tffc.support.near import near_names

CODE = re.compile(r"E\d{3}")


@click.command("explain")
@click.argument("code", required=False, shell_complete=complete_code)
def explain_command(code: str | None) -> None:
    """Print the page about an error: what it means, what causes it, and how to fix it.

    Without a code, lists all codes.

    \b
    Examples:
      tffc explain E471
      tffc explain | grep -i golden
    """
    known = codes()
    if code is None:
        click.echo(_listing(known))
        return
    wanted = f"E{code}" if code.isdecimal() else code.upper()
    if wanted not in known:
        raise click.UsageError(_unknown(code, wanted, known))
    show_page(read_page(wanted).text)


def _listing(known: list[str]) -> str:
    """Return all codes with the titles of their pages, grouped by subject."""
    return "\n\n".join(
        f"{subject}\n{_titles(code for code in known if code.startswith(prefix))}"
        for prefix, subject in SUBJECTS.items()
    )


def _titles(codes: Iterable[str]) -> str:
    """Return the codes and titles of pages, one per line."""
    return "\n".join(f"  {page.code}  {page.title}" for page in map(read_page, codes))


def _unknown(code: str, wanted: str, known: list[str]) -> str:
    """Return the message for a code that has no page."""
    longer = [each for each in known if each.startswith(wanted)]
    if longer:
        return f"there is no error code {code}; those that begin so are\n{_titles(longer)}"
    subject = [each for each in known if each.startswith(wanted[:2])]
    if CODE.fullmatch(wanted) and subject:
        about, codes = SUBJECTS[wanted[:2]], f"{subject[0]} to {subject[-1]}"
        return f"there is no error code {code}; those about {about} are {codes}"
    near = near_names(wanted, known, 2)
    if not near:
        return f"there is no error code {code}; `tffc explain` lists them all"
    return f"there is no error code {code}; did you mean {' or '.join(sorted(near))}?"
