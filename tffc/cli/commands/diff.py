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
@click.option("--breaking", is_flag=True, help="Say of rounds what the change from A to B breaks.")
@form_option("With --breaking, the form that the rounds are compiled to.")
@click.option(
    "--fail-on",
    metavar="KINDS",
    help="With --breaking, what exits with 2.  [default: state,data,wire,privacy,result]",
)
@click.option(
    "--format",
    "format",
    type=click.Choice(("text", "json", "github", "sarif")),
    help="With --breaking, how changes are shown.  [default: text]",
)
@size_option
def diff_command(**options: Any) -> None:
    """Compare two programs, each a module, a .pb file, a typed text or a bundle.

    Of a bundle, all components are compared with those of another bundle, and with anything else
    the round that it was compiled from.

    Components are compared by name, and in each the bindings by what they are bound to: renaming
    makes no difference.  Compiled sections are the same if their graphs are, however nodes are
    named or ordered; otherwise the constants, attributes, edges, operations and functions that
    changed are shown, the first few of each section, and the line that calls it.

    With --breaking, each change of a round is named by what it breaks: STATE, a saved state cannot
    go on; DATA, clients' data have to change; WIRE, clients and servers of the two versions cannot
    meet; PRIVACY, something more leaves the clients, or in less protection; RESULT, the server puts
    out something else; INSIDE, none of these.  A may be git:REF, which is B as it was there.

    Exits with 0 if both are the same, with 1 on an error, and with 2 if they differ, or if what
    --fail-on names is broken.

    \b
    Examples:
      tffc diff build/mean round.pb
      tffc diff before.pb after.pb --json
      tffc diff examples/slides.py:simple simple.sexpr
      tffc diff --breaking build/mean round.pb
    """
    from tffc.cli import diff

    diff.show_difference(**options)
