"""`tffc diff`: how two programs or bundles differ."""

from __future__ import annotations

from typing import Any

import click

from tffc.cli.options import form_option, size_option
from tffc.cli.usage import all_missing
from tffc.printable import printable_lines


class DiffCommand(click.Command):
    """A command whose exit code for wrong usage is 1, because 2 says that the programs differ."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            click.UsageError(printable_lines(all_missing(error)), error.ctx).show()
            raise click.exceptions.Exit(1) from None


@click.command("diff", cls=DiffCommand)
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print the differences as JSON.")
@click.option("--breaking", is_flag=True, help="Say what the change from A to B breaks.")
@form_option("With --breaking, the form to compile the rounds to.")
@click.option(
    "--fail-on",
    metavar="KINDS",
    help="With --breaking, kinds that exit with 2.  [default: state,data,wire,privacy,result]",
)
@click.option(
    "--format",
    "format",
    type=click.Choice(("text", "json", "github", "sarif")),
    help="With --breaking, the format of the changes.  [default: text]",
)
@size_option
def diff_command(**options: Any) -> None:
    """Compare two programs, each a module, a .pb file, a typed text or a bundle.

    For two bundles, compares all components. For a bundle and anything else, compares the round
    that the bundle was compiled from.

    Components are matched by name, and their bindings by value, so renaming makes no difference.
    Compiled sections are equal if their graphs are, regardless of the names and the order of nodes.
    Otherwise, the first few changed constants, attributes, edges, operations and functions of each
    section are shown, with the line that calls it.

    With --breaking, classifies each change of a round by what it breaks: STATE, a run cannot resume
    from a saved state; DATA, clients' data has to change; WIRE, clients and servers of the two
    versions cannot work together; PRIVACY, more leaves the clients, or with less protection;
    RESULT, the server's output changes; INSIDE, nothing. A may be git:REF, which is B at that
    revision.

    Exits with 0 if both are the same, with 1 on an error, and with 2 if they differ or if a change
    is of a kind in --fail-on.

    \b
    Examples:
      tffc diff build/mean round.pb
      tffc diff before.pb after.pb --json
      tffc diff examples/slides.py:simple simple.sexpr
      tffc diff --breaking build/mean round.pb
    """
    from tffc.cli import diff

    diff.show_difference(**options)
