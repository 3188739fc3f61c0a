"""`tffc explore`: write an HTML page about a round."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import os
import pathlib
from typing import Any

import click

from tffc.api.pages import describe_bundle, describe_program, older_bundle
from tffc.assurance.audit.policy import Policy
from tffc.assurance.audit.policy_reading import read_policy
from tffc.assurance.audit.report import Report, judged, source_name
from tffc.assurance.privacy.question import PrivacyQuestion
from tffc.backends.bundle.bundle import read_bundle
from tffc.backends.forms.kinds import form_for
from tffc.cli.breaking import unproved
from tffc.cli.collector import collector_paused
from tffc.cli.completion import complete_program
from tffc.cli.options import (
    form_option,
    path_option,
    refuse_without_effect,
    show_repeatedly,
    size_option,
    tff_source_option,
    watch_option,
)
from tffc.cli.output import say, write_text
from tffc.cli.privacy import privacy_options, privacy_question, question_of
from tffc.cli.progress import step
from tffc.cli.proving import read_proved
from tffc.cli.revisions import at_revision, is_revision, lines_at, revision_of
from tffc.cli.sources import read_older, read_round, refuse_form_of_bundle
from tffc.explorer.description import Description, Older, refusal
from tffc.explorer.page import page
from tffc.support.errors import TffcError


@click.command("explore")
@click.argument(
    "source", metavar="MODULE[:NAME]|FILE.pb|FILE.sexpr|BUNDLE", shell_complete=complete_program
)
@form_option("The form to compile the program to; a bundle has its own form.")
@click.option(
    "-o",
    "--out",
    metavar="FILE.html",
    default="explore.html",
    show_default=True,
    help="Write the page to this file; `-` is stdout.",
)
@click.option(
    "--since",
    metavar="OLDER",
    help="Show what has changed since this older program or bundle, or git:REF, the same source at "
    "that revision.",
)
@path_option("--policy", metavar="FILE.yaml", help="Show the verdict of this policy.")
@click.option(
    "--as-of",
    metavar="DATE",
    type=click.DateTime(["%Y-%m-%d"]),
    help="Evaluate exceptions as of this day.  [default: today]",
)
@privacy_options()
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@watch_option
@size_option
@tff_source_option
def explore_command(
    source: str,
    form: str | None,
    out: str,
    since: str | None,
    policy: pathlib.Path | None,
    as_of: datetime.datetime | None,
    is_opened: bool,
    watch: bool,
    **privacy: Any,
) -> None:
    """Write an HTML page about a round: its stages, your source, passes, graphs and audit.

    The page is a single file that needs no network. It shows every call of the round as a box and
    every value between two calls as an edge, with its type, bytes and protection; the source line
    of each call, and what each line compiled to; the changes of every pass; the graph of every
    component; the audit; and the text of the program. The round is not run.

    A bundle whose components are not proved to compute its program is shown from its components.

    For a program that cannot be traced or compiled, the page shows the error at its line, and the
    command exits with 1.

    \b
    Examples:
      tffc explore examples/temperature/temperature.py:mean_temperature \\
          -o build/mean.html
      # Show what has changed since a bundle was compiled.
      tffc explore examples/digits/federated_averaging.py:training \\
          --since build/training -o build/training.html
      # Show the verdict of a policy.
      tffc explore round.pb --policy policy.yaml -o build/round.html
      # Show which differential privacy follows.
      tffc explore examples/private_averaging/private_averaging.py:training \\
          --privacy --rounds 30 -o build/private.html
    """
    if policy is None:
        refuse_without_effect("add --policy", "as_of")
    question = privacy_question(**privacy)
    for option, is_given in (("--open", is_opened), ("--watch", watch)):
        if is_given and out == "-":
            raise click.UsageError(f"'{option}' needs a file: give --out a name")
    left = [pathlib.Path(out)] if is_opened else []

    def explore() -> None:
        known = None if policy is None else read_policy(policy)
        day = None if as_of is None else as_of.date()
        asked = question_of(known, question)
        description = _describe(_Asked(source, form, since, known, day, asked))
        write_text(page(description.plain), out)
        if left:
            _open(left.pop())
        if description.error is not None:
            raise description.error

    refuse_form_of_bundle(source, form)
    show_repeatedly(source, watch, explore)


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    """What a page is about: a source and its form, an older version, a policy with the day as of
    which its exceptions are evaluated, and what is asked about privacy."""

    source: str
    form: str | None
    since: str | None
    policy: Policy | None
    as_of: datetime.date | None
    question: PrivacyQuestion | None

    def judged(self, report: Report) -> Report:
        """Return a report with the policy and its violations; say the verdict."""
        if self.policy is None:
            return report
        report = judged(report, self.policy, self.as_of)
        say(f"verdict: {report.sentence()}")
        return report

    def older(self, form: str) -> Older | None:
        """Return the older version that the page shows the changes since."""
        if self.since is None:
            return None
        more = tuple(unproved(self.source))
        if os.path.isdir(self.since):
            reading = read_proved(self.since, read_bundle(pathlib.Path(self.since)))
            older = older_bundle(source_name(self.since), reading)
            return dataclasses.replace(older, more=more)
        program = read_older(self.since, self.source, form)
        if not is_revision(self.since):
            return Older(program, source_name(self.since), more=more)
        revision = revision_of(at_revision(self.since, self.source)).name
        return Older(program, self.since, functools.partial(lines_at, revision), more=more)


@collector_paused()
def _describe(asked: _Asked) -> Description:
    source = asked.source
    if os.path.isdir(source):
        bundle = read_bundle(pathlib.Path(source))
        reading = read_proved(source, bundle)
        older = asked.older(bundle.form)
        step(f"exploring {source}")
        return describe_bundle(source, bundle, reading, older, asked.judged, asked.question)
    try:
        program = read_round(source, asked.form)
    except TffcError as error:
        if error.span is None:
            raise
        return refusal(error, source_name(source))
    form = asked.form or form_for(program.computation)
    older = asked.older(form)
    step(f"exploring {source}")
    return describe_program(source, program, form, older, asked.judged, asked.question)


def _open(path: pathlib.Path) -> None:
    # Imported late, because it takes long to load.
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        say(f"no browser was found: open {path} in one")
