"""An HTML page about a round."""

from __future__ import annotations

import datetime
import os
import pathlib
from collections.abc import Callable

from tffc.api.audits import asked_question, report_on_bundle, report_on_program
from tffc.api.boundary import public
from tffc.api.opened_bundles import name_of, opened
from tffc.api.programs import Program, Source, round_of
from tffc.assurance.audit.audit import Audit
from tffc.assurance.audit.bundles import Reading, read_for_audit
from tffc.assurance.audit.policy_reading import PolicySource, PrivacySource, policy_of
from tffc.assurance.audit.report import Report, judged, source_name, with_privacy
from tffc.assurance.privacy.question import PrivacyQuestion
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.compiler import compile_initialize
from tffc.backends.forms.kinds import form_for
from tffc.explorer.description import Description, Older, describe
from tffc.explorer.page import page
from tffc.support.cell import framed
from tffc.support.errors import LoadError
from tffc.support.files import atomic


class HtmlPage(str):
    """A self-contained HTML page, which a notebook shows in a frame of its own."""

    __slots__ = ()

    @public
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file.

        Raises:
          LoadError: it cannot be written.
        """
        try:
            atomic.write_file(pathlib.Path(path), self.encode())
        except OSError as error:
            raise LoadError(
                "E851",
                f"cannot write {os.fspath(path)}: {error.strerror}",
                help="give the path of a file in a folder that exists and can be written",
            ) from error

    def _repr_html_(self) -> str:
        return framed(self)


@public
def explore(
    source: Source | Bundle,
    form: str | None = None,
    *,
    since: Source | Bundle | None = None,
    policy: PolicySource | None = None,
    as_of: datetime.date | None = None,
    privacy: PrivacySource | None = None,
) -> HtmlPage:
    """Return an HTML page about a round: its stages, your source, passes, graphs and audit.

    The page is a single file that needs no network; a notebook shows it in the cell.  `since` is an
    older version to show changes from; `policy`, `as_of` and `privacy` are as for `tffc.audit`.  A
    bundle whose components are not proved to compute its program is shown from its components.

    Raises:
      TffcError: the program cannot be read or compiled, or the policy is not one.
    """
    known = None if policy is None else policy_of(policy)

    def judge(report: Report) -> Report:
        return report if known is None else judged(report, known, as_of)

    question = asked_question(known, privacy)
    name, source = name_of(source), opened(source, form)
    if isinstance(source, Bundle):
        older = None if since is None else older_version(since, source.form)
        reading = read_for_audit(source)
        description = describe_bundle(name, source, reading, older, judge, question)
    else:
        program = round_of(source, form)
        older = None if since is None else older_version(since, form)
        name = name_of(source, program)
        description = describe_program(name, program, form, older, judge, question)
    if description.error is not None:
        raise description.error
    return HtmlPage(page(description.plain))


def older_version(source: Source | Bundle, form: str | None) -> Older:
    """Return an older version of a round, for the changes since then.

    Raises:
      TffcError: it cannot be read.
    """
    title = source_name(name_of(source))
    source = opened(source)
    if isinstance(source, Bundle):
        return older_bundle(title, read_for_audit(source))
    return Older(round_of(source, form).computation, title)


def older_bundle(title: str, reading: Reading) -> Older:
    """Return the older version that was read of a bundle."""
    doubt = None if reading.error is None else reading.error.message
    return Older(reading.program, title, doubt=doubt)


def describe_program(
    name: str,
    program: Program,
    form: str | None,
    older: Older | None,
    judge: Callable[[Report], Report],
    question: PrivacyQuestion | None = None,
) -> Description:
    """Return the content of the page about a program; `judge` adds a verdict to its audit, which
    has the answer to a question about privacy, if there is one.

    Raises:
      TffcError: its first state cannot be compiled.
      MissingExtraError: `dp-accounting` is not installed.
    """
    round_, first = program.computation, program.initialize

    def report(audited: Audit) -> Report:
        report = report_on_program(name, round_, audited)
        return judge(with_privacy(report, round_, first, question))

    return describe(
        round_,
        form or form_for(round_),
        source_name(name),
        initialize=None if first is None else compile_initialize(first),
        older=older,
        report=report,
    )


def describe_bundle(
    name: str,
    bundle: Bundle,
    reading: Reading,
    older: Older | None,
    judge: Callable[[Report], Report],
    question: PrivacyQuestion | None = None,
) -> Description:
    """Return the content of the page about a bundle: about its program if its components are proved
    to compute it, else about what they compute.  `judge` adds a verdict to its audit, which has the
    answer to a question about privacy, if there is one.

    Raises:
      FormError: the components are not those of the form.
      MissingExtraError: `dp-accounting` is not installed.
    """

    def report(audited: Audit) -> Report:
        report = report_on_bundle(name, bundle, reading, audited)
        return judge(with_privacy(report, reading.program, bundle.initialize, question))

    return describe(
        reading.program,
        bundle.form,
        source_name(name),
        compiled=bundle.read_form(),
        initialize=bundle.initialize,
        older=older,
        report=report,
    )
