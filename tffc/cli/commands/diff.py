"""`tffc diff`: show how two programs or bundles differ."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import click

from tffc.assurance.diff.programs import ProgramDifference, differences
from tffc.cli.collector import collector_paused
from tffc.cli.completion import complete_program
from tffc.cli.options import (
    form_option,
    json_option,
    refuse_without_effect,
    size_option,
    tff_source_option,
)
from tffc.cli.output import show_json, show_line, show_styled
from tffc.cli.revisions import at_revision
from tffc.cli.screen import GREEN, RED, colors
from tffc.cli.sources import read_parts, read_round_or_bundle
from tffc.cli.usage import all_missing
from tffc.language import Node
from tffc.support.printable import printable, printable_lines


class DiffCommand(click.Command):
    """A command whose exit code for wrong usage is 1, because 2 means that the programs differ."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            click.UsageError(printable_lines(all_missing(error)), error.ctx).show()
            raise click.exceptions.Exit(1) from None


DIFFERS = 2
COLORS = {"-": RED, "+": GREEN}


@click.command("diff", cls=DiffCommand)
@click.argument("first", metavar="A", shell_complete=complete_program)
@click.argument("second", metavar="B", shell_complete=complete_program)
@json_option
@click.option("--breaking", is_flag=True, help="Classify the changes by what they break.")
@form_option("With --breaking, the form to compile the rounds to.")
@click.option(
    "--fail-on",
    metavar="KINDS",
    help="With --breaking, the kinds of changes to exit with 2 for.  [default: "
    "state,data,wire,privacy,result]",
)
@click.option(
    "--format",
    "format",
    type=click.Choice(("text", "json", "github", "sarif")),
    help="With --breaking, the format of the changes.  [default: text]",
)
@size_option
@tff_source_option
@collector_paused()
def diff_command(
    first: str,
    second: str,
    as_json: bool,
    breaking: bool,
    form: str | None,
    fail_on: str | None,
    format: str | None,
) -> None:
    """Compare two programs, each a module, a .pb file, a typed text or a bundle.

    A may be git:REF, which is B at that revision.

    For two bundles, compares all components. For a bundle and anything else, compares the round
    that the bundle was compiled from.

    A bundle whose components are not proved to compute its program is read from its components.

    Components are matched by name, and their bindings by value, so renaming makes no difference.
    Compiled sections are equal if their graphs are, regardless of the names and the order of nodes.
    Otherwise, the first few changed constants, attributes, edges, operations and functions of each
    section are shown, with the line that calls it.

    With --breaking, classifies each change of a round by what it breaks: STATE, a run cannot resume
    from a saved state; DATA, clients' data has to change; WIRE, clients and servers of the two
    versions cannot work together; PRIVACY, more leaves the clients, or with less protection;
    RESULT, the server's output changes; INSIDE, nothing.

    Exits with 0 if both are the same, with 1 on an error, and with 2 if they differ or if a change
    is of a kind in --fail-on.

    \b
    Examples:
      tffc diff build/mean round.pb
      tffc diff before.pb after.pb --json
      tffc diff examples/slides.py:simple simple.sexpr
      tffc diff --breaking build/mean round.pb
    """
    if breaking:
        from tffc.cli.breaking import show_changes

        if as_json and format not in (None, "json"):
            raise click.UsageError("--json and --format exclude each other")
        show_changes(first, second, form, fail_on, "json" if as_json else format or "text")
        return
    refuse_without_effect("add --breaking", "form", "fail_on", "format")
    found = list(differences(*_comparable(at_revision(first, second), second)))
    if as_json:
        show_json([each._asdict() for each in found])
    else:
        for each in found:
            _show(each)
    if found:
        raise click.exceptions.Exit(DIFFERS)


def _comparable(first: str, second: str) -> Iterator[dict[str, Node]]:
    """Yield the parts of both sources, or only their rounds if just one is a bundle.

    The round of a bundle is its program only if its components are proved to compute it.
    """
    are_bundles = [pathlib.Path(source).is_dir() for source in (first, second)]
    for source, is_bundle in zip((first, second), are_bundles, strict=True):
        if not all(are_bundles) and is_bundle:
            yield {"computation": read_round_or_bundle(source, None)[0]}
            continue
        parts = read_parts(source)
        if is_bundle:
            # Imported late: programs need neither the prover nor audits.
            from tffc.backends.bundle.bundle import read_bundle
            from tffc.cli.proving import round_of_bundle

            round_of_bundle(source, read_bundle(pathlib.Path(source)))
        elif any(are_bundles):
            from tffc.backends.forms.queries import as_round

            parts = {"computation": as_round(parts.get("next") or parts["computation"])}
        yield parts


def _show(difference: ProgramDifference) -> None:
    title = printable(f"{difference.component}: {difference.change}")
    click.secho(title, bold=True, color=colors())
    for line in difference.lines:
        show_styled(f"  {line}", fg=COLORS.get(line[0]))
    for line in difference.sections:
        show_line(f"  {line}")
