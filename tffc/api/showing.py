"""The text of programs and bundles, and an HTML page about a round."""

from __future__ import annotations

import datetime
import os
import pathlib
from collections.abc import Callable
from typing import Literal, TypeAlias

from tffc.api.programs import Source, bundle_of, name_of, parts_of, round_of
from tffc.assurance.audit.audit import Audit
from tffc.assurance.audit.bundles import program_digests, read_for_audit
from tffc.assurance.audit.policy import Policy, read_policy
from tffc.assurance.audit.report import Report, judged, source_name
from tffc.backends.bundle.bundle import Bundle, listing
from tffc.backends.compiler import compile_initialize
from tffc.backends.forms.kinds import form_for
from tffc.explorer.description import Description, Older, describe
from tffc.explorer.page import page
from tffc.language.nodes import Node
from tffc.language.notation import compact, formatted, structural, typed

Style: TypeAlias = Literal["compact", "formatted", "structural", "typed"]
"""How a program is written: on one line, on several, as a drawing of its tree, or with types."""

STYLES: dict[Style, Callable[[Node], str]] = {
    "compact": compact,
    "formatted": formatted,
    "structural": structural,
    "typed": typed,
}


def text(source: Source | Bundle, style: Style = "formatted") -> str:
    """Return the text of a program, or of all parts of a process or bundle, each below a line with
    its name and type.

    Raises:
      TffcError: there is no such program or bundle, or a part has no text in this style.
    """
    parts = parts_of(source)
    if len(parts) == 1:
        (program,) = parts.values()
        return STYLES[style](program)
    return listing(parts, STYLES[style]).removesuffix("\n")


def explore(
    source: Source | Bundle,
    form: str | None = None,
    *,
    since: Source | Bundle | None = None,
    policy: Policy | str | os.PathLike[str] | None = None,
    as_of: datetime.date | None = None,
) -> str:
    """Return an HTML page about a round: its stages, your source, passes, graphs and audit.

    The page is a single file that needs no network.  `since` is an older version to show changes
    from; `policy` and `as_of` are as for `tffc.audit`.  A bundle whose components are not proved to
    compute its program is shown from its components.

    Raises:
      TffcError: the program cannot be read or compiled, or the policy is not one.
    """
    known = policy
    if isinstance(known, (str, os.PathLike)):
        known = read_policy(pathlib.Path(known))

    def report(report: Report) -> Report:
        return report if known is None else judged(report, known, as_of)

    older = None if since is None else _older(since, form)
    description = explored(source, form, older=older, report=report)
    if description.error is not None:
        raise description.error
    return page(description.plain)


def _older(source: Source | Bundle, form: str | None) -> Older:
    title = source_name(name_of(source))
    bundle = bundle_of(source)
    if bundle is not None:
        reading = read_for_audit(bundle)
        doubt = None if reading.error is None else reading.error.message
        return Older(reading.program, title, doubt=doubt)
    assert not isinstance(source, Bundle)
    return Older(round_of(source, form).computation, title)


def explored(
    source: Source | Bundle,
    form: str | None = None,
    *,
    older: Older | None = None,
    report: Callable[[Report], Report] = lambda report: report,
) -> Description:
    """Return the content of the page about a round; `report` adds a verdict to the audit.

    Raises:
      TffcError: the program or bundle cannot be read.
    """
    title = source_name(name_of(source))
    bundle = bundle_of(source)
    if bundle is not None:
        reading = read_for_audit(bundle)

        def of_bundle(audit: Audit) -> Report:
            is_other = not reading.is_proved
            own = Report(name_of(source), audit, bundle.digests(), is_other, reading.answer())
            return report(own)

        return describe(
            reading.program,
            bundle.form,
            title,
            compiled=bundle.read_form(),
            initialize=bundle.initialize,
            older=older,
            report=of_bundle,
        )
    assert not isinstance(source, Bundle)
    program = round_of(source, form)
    round_ = program.computation
    first = None if program.initialize is None else compile_initialize(program.initialize)

    def of_program(audit: Audit) -> Report:
        return report(Report(name_of(source, program), audit, program_digests(round_)))

    return describe(
        round_, form or form_for(round_), title, initialize=first, older=older, report=of_program
    )
