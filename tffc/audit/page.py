"""An audit as one self-contained HTML page, for whoever approves the program."""

from __future__ import annotations

import dataclasses
import datetime
import html
import os
import pathlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tffc.audit.audit import Audit, Broadcast, Channel, Depends, Effect, Protection
from tffc.audit.leaves import below, gathered
from tffc.audit.policy import RULES, Policy, Violation, Waiver
from tffc.audit.text import size_text
from tffc.effects.consent import KINDS
from tffc.errors import Span, shown_path
from tffc.printable import printable
from tffc.web_page import PALETTE, web_page

STYLE = PALETTE + pathlib.Path(__file__).with_name("page.css").read_text(encoding="utf-8")

LONGEST_TYPE = 200
"""The most characters of a type that are shown before it is opened."""

MOST_RESULTS = 60
"""The most leaves of the state and the output that are shown before they are opened."""

PROTECTIONS = {
    Protection.SECURE: "the system learns only the sum",
    Protection.SYSTEM: "whoever aggregates sees each client's contribution",
    Protection.PROGRAM: "functions of the program get each client's contribution",
    Protection.NONE: "each client's contribution is released as it is",
}

SEEN = (Protection.SYSTEM, Protection.PROGRAM)
"""The protections with which whoever aggregates sees each client's contribution."""


@dataclasses.dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """A policy with the name and digest of its file, and the day as of which it was applied."""

    name: str
    digest: str
    policy: Policy
    today: datetime.date


@dataclasses.dataclass(frozen=True, slots=True)
class Audited:
    """An audit, what it was made of and with, and the violations of the policy if one was applied.

    `reading` says in a sentence which of a bundle's program and components was read, and the answer
    of the prover; `is_doubtful` if the two are not proved to be the same.
    """

    audit: Audit
    source: str
    digest: str
    tool: str
    tool_digest: str
    reading: str
    is_doubtful: bool = False
    applied: AppliedPolicy | None = None
    violations: tuple[Violation, ...] = ()


def audit_html(audited: Audited) -> str:
    """Return an audit as one self-contained page without scripts."""
    file, name = _title(audited.source)
    audit = audited.audit
    body = [
        '<header class="top"><span class="brand">tffc</span> What leaves the clients of a round'
        "</header>",
        "<main>",
        f"<h1>{_text(name)}{f' <small>{_text(file)}</small>' if file else ''}</h1>",
        *_verdict(audited),
        *_facts(audited),
        *_rules(audited),
        *_violations(audited),
        *_Values(audit).sections(),
        *_approval(audited),
        "</main>",
    ]
    return web_page(f"{_text(name)} · audit", STYLE, body)


def _title(source: str) -> tuple[str, str]:
    """Return the file and the name of what was audited, without the folders of this machine."""
    path, colon, name = source.rpartition(":")
    if not colon:
        path, name = "", _shown(source)
    return (_shown(path) if path else ""), name


def _shown(file: str) -> str:
    """Return a path relative to the working directory, or only the last part of one outside it."""
    shown = shown_path(file)
    is_outside = os.path.isabs(shown) or shown.startswith(os.pardir)
    return os.path.basename(shown.rstrip(os.sep)) or shown if is_outside else shown


# The verdict, and what was read.


def _verdict(audited: Audited) -> Iterator[str]:
    applied = audited.applied
    open_ones = [each for each in audited.violations if each.excepted is None]
    allowed = len(audited.violations) - len(open_ones)
    if applied is None:
        yield from _banner("open", "–", "No policy was applied", NO_POLICY)
    else:
        by = f"Policy {_code(applied.name)}, as of {applied.today}. "
        exceptions = f"{_counted(allowed, 'violation')} allowed by an exception." if allowed else ""
        if open_ones:
            subjects = len({each.subject for each in open_ones})
            many = f"{_counted(len(open_ones), 'violation')} in {_counted(subjects, 'place')}. "
            yield from _banner("bad", "✕", "Violates the policy", by + many + exceptions)
        else:
            good = exceptions or "No rule is violated."
            yield from _banner("good", "✓", "Passes the policy", by + good)
    if audited.is_doubtful:
        yield from _banner("doubtful", "!", "Not the program, its components", DOUBTFUL)


NO_POLICY = "This page describes the program. Nothing says what would be allowed."
DOUBTFUL = (
    "The components of this bundle are not proved to compute the program in it. This page is about"
    " the components, which are what runs."
)


def _banner(kind: str, mark: str, title: str, more: str) -> Iterator[str]:
    yield f'<section class="verdict {kind}"><span class="mark" aria-hidden="true">{mark}</span>'
    yield f"<div><h2>{title}</h2><p>{more}</p></div></section>"


def _facts(audited: Audited) -> Iterator[str]:
    audit = audited.audit
    yield '<dl class="facts">'
    yield from _fact("Program", f"SHA-256 {_code(audited.digest)}")
    yield from _fact("Compiled to", f"{_text(audit.form)} {_type(audit.type, is_open=False)}")
    yield from _fact("Read", _text(audited.reading))
    digest = f", SHA-256 {_code(audited.tool_digest)}" if audited.tool_digest else ""
    yield from _fact("Made by", _text(audited.tool) + digest)
    if audited.applied is not None:
        applied = audited.applied
        yield from _fact("Policy", f"{_text(applied.name)}, SHA-256 {_code(applied.digest)}")
    yield "</dl>"


# The policy.


def _rules(audited: Audited) -> Iterator[str]:
    if audited.applied is None:
        return
    policy = audited.applied.policy
    yield "<section><h2>The policy</h2>"
    yield '<ul class="rules">'
    unrestricted = Policy()
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        if field.name != "exceptions" and value != getattr(unrestricted, field.name):
            yield from _rule(field.name.replace("_", "-"), value, audited.violations)
    yield "</ul>"
    if policy.exceptions:
        yield "<h3>Exceptions</h3>"
        yield '<ul class="rules">'
        for each in policy.exceptions:
            yield from _exception(each, audited)
        yield "</ul>"
    yield "</section>"


def _rule(rule: str, value: Any, violations: Iterable[Violation]) -> Iterator[str]:
    broken = sum(each.rule == rule and each.excepted is None for each in violations)
    state = _state("bad", _counted(broken, "violation")) if broken else _state("good", "holds")
    meaning = _text(RULES.get(rule, ""))
    yield f'<li><div><strong>{rule}</strong> <span class="soft">{meaning}</span><br>'
    yield f"{_value(value)}</div>{state}</li>"


def _value(value: Any) -> str:
    """Return what a policy demands."""
    match value:
        case Protection():
            return _code(value.name.lower())
        case tuple():
            return ", ".join(_code(str(each)) for each in value) or "none"
        case int() if not isinstance(value, bool):
            return f"{value:,}"
        case bool():
            return "yes" if value else "no"
        case str():
            return _code(value)
        case _:
            return "; ".join(f"{_text(side)}: {_value(each)}" for side, each in value.items())


def _exception(waiver: Waiver, audited: Audited) -> Iterator[str]:
    assert audited.applied is not None
    uses = [
        each
        for each in audited.violations
        if (each.subject, each.rule) == (waiver.channel, waiver.rule)
    ]
    if waiver.expires < audited.applied.today:
        state = _state("bad", f"ended on {waiver.expires}")
    elif any(each.excepted is not None for each in uses):
        state = _state("good", f"until {waiver.expires}")
    else:
        state = _state("open", f"not needed, until {waiver.expires}")
    subject = f"<strong>{_breaking(waiver.channel)}</strong> may violate {_code(waiver.rule)}"
    yield f"<li><div>{subject}<br>"
    yield f'<span class="soft">{_text(waiver.reason)}</span></div>{state}</li>'


def _state(kind: str, text: str) -> str:
    return f'<span class="state {kind}">{_text(text)}</span>'


def _violations(audited: Audited) -> Iterator[str]:
    """Yield the violations by what they are of, in the order of the report."""
    groups: dict[str, list[Violation]] = {}
    for each in audited.violations:
        groups.setdefault(each.subject, []).append(each)
    if not groups:
        return
    yield "<section><h2>Violations</h2>"
    for subject, own in groups.items():
        kind = "excepted" if all(each.excepted is not None for each in own) else "broken"
        yield f'<article class="entry {kind}"><div><h3>{_breaking(subject)}</h3>{_at(own[0].span)}'
        yield f'</div><ul class="broken-rules">{"".join(map(_violation, own))}</ul>'
        line = own[0].span.source_line().strip() if own[0].span is not None else ""
        if line:
            yield f'<pre class="line">{_text(line)}</pre>'
        yield "</article>"
    yield "</section>"


def _violation(each: Violation) -> str:
    state = _state("bad", each.rule)
    end = ""
    if each.excepted is not None:
        state = _state("good", each.rule)
        end = f'<br><span class="soft">allowed: {_text(each.excepted)}</span>'
    elif each.expired is not None:
        end = f'<br><span class="ended">the exception ended on {each.expired}</span>'
    return f"<li>{state} <span>{_text(each.message)}{end}</span></li>"


# What the audit says of values.


class _Values:
    """What an audit says of channels, broadcasts, effects and results."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._state = below(each.name for each in audit.state)
        self._leaves = below(each.name for each in (*audit.state, *audit.output))

    def sections(self) -> Iterator[str]:
        audit = self._audit
        yield "<section><h2>What leaves each client</h2>"
        yield from self._notes()
        yield from map(self._channel, audit.channels)
        if not audit.channels:
            yield "<p>Nothing.</p>"
        yield "</section>"
        yield from _section("What each client is sent", map(self._broadcast, audit.broadcasts))
        yield from _section("Effects outside the channels", map(self._effect, audit.effects))
        yield from _section("What is kept and put out", self._results())

    def _notes(self) -> Iterator[str]:
        audit = self._audit
        seen = [each.name for each in audit.channels if each.protection in SEEN]
        yield '<dl class="facts">'
        yield from _fact("Seen of each client by whoever aggregates", _listed(seen))
        yield from _fact("In no channel", _listed(audit.in_no_channel))
        for protection, means in PROTECTIONS.items():
            if any(channel.protection is protection for channel in audit.channels):
                kind = protection.name.lower()
                label = f'<span class="protection {kind}">{protection.value}</span>'
                yield from _fact(label, means)
        yield "</dl>"

    def _channel(self, channel: Channel) -> str:
        return _entry(
            channel.protection.name.lower(),
            f'<h3>{_breaking(channel.name)}</h3><div class="protection">'
            f"{_text(channel.shown_protection)}</div>{_at(channel.span)}",
            [
                *self._depends(channel.depends),
                ("goes to", _gathered(channel.goes_to, self._leaves)),
                ("as", f"{_code(channel.operator)} of {_sized(channel.size, channel.type)}"),
            ],
        )

    def _broadcast(self, sent: Broadcast) -> str:
        return _entry(
            "",
            f"<h3>{_breaking(sent.name)}</h3>{_at(sent.span)}",
            [*self._depends(sent.depends), ("as", _sized(sent.size, sent.type))],
        )

    def _effect(self, effect: Effect) -> str:
        """Return an effect; what clients' own code shows is marked, as it leaves outside a
        channel."""
        is_shown = effect.kind not in KINDS and effect.side == "clients"
        means = KINDS.get(effect.kind, "shows what it is given, outside any channel")
        listed = self._depends(effect.depends) if effect.depends != Depends() else []
        return _entry(
            "none" if is_shown else "",
            f"<h3>{_breaking(effect.operation)}</h3>{_at(effect.span)}",
            [(f"at the {_text(effect.side)}", f"{_text(effect.kind)}: {_text(means)}"), *listed],
        )

    def _results(self) -> Iterator[str]:
        """Yield the leaves of the state and the output; those after the first ones are folded."""
        rows = [
            f"<tr><th>{_breaking(each.name)}</th><td>{_type(each.type)}</td>"
            f"<td>{self._inline(each.depends)}</td></tr>"
            for each in (*self._audit.state, *self._audit.output)
        ]
        if not rows:
            return
        head = "<tr><th>value</th><th>type</th><th>may depend on</th></tr>"
        shown = "".join(rows[:MOST_RESULTS])
        yield f"<table><thead>{head}</thead><tbody>{shown}</tbody></table>"
        if len(rows) > MOST_RESULTS:
            yield f"<details><summary>{len(rows) - MOST_RESULTS:,} more</summary>"
            yield f"<table><tbody>{''.join(rows[MOST_RESULTS:])}</tbody></table></details>"

    def _depends(self, depends: Depends) -> list[tuple[str, str]]:
        listed = depends.listed()
        if not listed:
            return [("data", "nothing: a constant")]
        return [
            (label, _gathered(names, self._state) if label == "state" else _listed(names))
            for label, names in listed.items()
        ]

    def _inline(self, depends: Depends) -> str:
        return "; ".join(f"{label} {names}" for label, names in self._depends(depends))


def _gathered(names: Sequence[str], leaves: Counter[str]) -> str:
    """Return names, with one name for a part all of whose leaves are among them."""
    shown = (
        _code(name) + (f" (all {count})" if count > 1 else "")
        for name, count in gathered(names, leaves)
    )
    return ", ".join(shown) or "nothing"


def _section(title: str, entries: Iterable[str]) -> Iterator[str]:
    yield f"<section><h2>{title}</h2>"
    yield from list(entries) or ["<p>Nothing.</p>"]
    yield "</section>"


def _entry(kind: str, head: str, facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(line for label, value in facts for line in _fact(label, value))
    return f'<article class="entry {kind}"><div>{head}</div><dl>{rows}</dl></article>'


def _fact(label: str, value: str) -> Iterator[str]:
    yield f"<div><dt>{label}</dt><dd>{value}</dd></div>"


def _sized(size: int | None, type: str) -> str:
    many = "a size that is not fixed" if size is None else f"{size_text(size)} bytes"
    return f"{many}, {_type(type)}"


def _at(span: Span | None) -> str:
    if span is None:
        return ""
    return f'<div class="at">{_breaking(_shown(span.file))}:{span.line}</div>'


def _type(text: str, *, is_open: bool = True) -> str:
    """Return a type, folded if it is long."""
    if is_open and len(text) <= LONGEST_TYPE:
        return _code(text)
    return f"<details><summary>type</summary>{_code(text)}</details>"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_code, names)) or "nothing"


def _approval(audited: Audited) -> Iterator[str]:
    yield '<section class="approval"><h2>Approval</h2>'
    yield f"<p>{APPROVAL} {_code(audited.digest[:16])}…</p>"
    yield '<div class="lines">'
    for label in ("Name", "Date", "Signature"):
        yield f"<div>{label}</div>"
    yield f'</div></section><footer class="soft">{LIMITS}</footer>'


APPROVAL = "I have read this page. My approval is of the program whose digest begins with"
LIMITS = (
    "What a value may depend on holds for every argument: it may name more than the value depends"
    " on, never less. Times, and which clients take part, are not covered. A random draw is no"
    " claim of differential privacy."
)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _code(text: str) -> str:
    return f"<code>{_breaking(text)}</code>"


def _breaking(text: str) -> str:
    """Return a name that a narrow column can break where its parts end."""
    return re.sub(r"(?<=[a-z0-9])([_./,])(?=\w)(?!py\b)", r"\1<wbr>", _text(text))


def _text(text: str) -> str:
    return html.escape(printable(text))
