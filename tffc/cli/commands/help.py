"""`tffc help`: print pages of the documentation and the help of commands."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import click

from tffc.cli.application import COMMANDS
from tffc.cli.completion import complete_topic
from tffc.cli.page import show_page
from tffc.cli.topics import group, title, topics
from tffc.support.explanations import has_page, read_page
from tffc.support.near import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator


@click.command("help")
@click.argument("words", metavar="[TOPIC|COMMAND|CODE]", nargs=-1, shell_complete=complete_topic)
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Print a page of the documentation, the help of a command, or the page about an error code.

    Without a topic, lists all topics.

    \b
    Examples:
      tffc help
      tffc help forms
      tffc help data pack
    """
    if not words:
        click.echo("\n".join(_listing()))
        return
    page = _page(" ".join(words))
    command = None if page is not None else _command(ctx, words)
    if page is not None:
        show_page(page)
    elif command is not None:
        click.echo(command.get_help())
    else:
        raise click.UsageError(_unknown(words))


def _page(topic: str) -> str | None:
    """Return the text of a page of the documentation or about an error."""
    if has_page(code := topic.upper()):
        return read_page(code).text
    path = topics().get(topic.lower())
    return None if path is None else path.read_text(encoding="utf-8")


def _command(ctx: click.Context, words: tuple[str, ...]) -> click.Context | None:
    """Return the context of a command, or of one in a group."""
    found = ctx.find_root()
    for word in words:
        command = found.command
        inner = command.get_command(found, word) if isinstance(command, click.Group) else None
        if inner is None:
            return None
        found = click.Context(inner, parent=found, info_name=word)
    return found


def _listing() -> Iterator[str]:
    pages = topics()
    width = max(map(len, pages), default=0)
    for heading, names in itertools.groupby(pages, key=lambda name: group(pages[name])):
        yield heading
        for name in names:
            yield f"  {name:<{width}}  {title(pages[name])}"
        yield ""
    yield "Commands: " + ", ".join(sorted(COMMANDS))
    yield "Error codes: `tffc explain` lists them"


def _unknown(words: tuple[str, ...]) -> str:
    wanted = " ".join(words)
    meant = did_you_mean(wanted, [*topics(), *COMMANDS]) or "`tffc help` lists them all"
    return f"there is no topic, command or error code {wanted}; {meant}"
