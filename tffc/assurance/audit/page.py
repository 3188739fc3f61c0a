"""The report of an audit as one self-contained page without scripts, for whoever approves it."""

from __future__ import annotations

import html
import pathlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tffc.assurance.audit.leaves import below, gathered
from tffc.runtime.effects.consent import KINDS
from tffc.support.printable import printable
from tffc.support.web_page import SHARED, web_page

STYLE = SHARED + pathlib.Path(__file__).with_name("page.css").read_text(encoding="utf-8")

LONGEST_TYPE = 200
"""The most characters of a type that are shown before it is opened."""

MOST_RESULTS = 60
"""The most leaves of the state and the output that are shown before they are opened."""

PROTECTIONS = {
    "secure": ("secure sum", "the system learns only the sum"),
    "system": ("aggregated by the system", "whoever aggregates sees each client's contribution"),
    "program": (
        "aggregated by functions of the program",
        "these functions get each client's contribution",
    ),
    "none": ("released by itself", "each client's contribution is released as it is"),
}

MARKS = {"passes": ("good", "✓"), "violates": ("bad", "✕")}
"""The kind of a verdict and its sign; any other is open."""

STATES = {"holds": "good", "in use": "good", "violated": "bad", "ended": "bad"}
"""The kinds of the states of rules and exceptions; any other is open."""

UNPROVED = (
    "The components of this bundle are not proved to compute the program in it. This page is about"
    " the components, which are what runs."
)
NO_POLICY = "This page describes the program. Nothing says what would be allowed."
LIMITS = (
    "What a value may depend on holds for every argument: it may name more than the value depends"
    " on, never less. Times, and which clients take part, are not covered. A random draw is no"
    " claim of differential privacy."
)

NOT_SHOWN = "No differential privacy is claimed, because it does not follow from the program."

Plain = dict[str, Any]
"""Data that JSON can hold."""


def audit_page(document: Plain, lines: Sequence[str] = ()) -> str:
    """Return the page of a report, given as `report.document` returns it.

    `lines` are those of the user's files that the violations are at, in order.
    """
    file, _, name = document["source"].rpartition(":")
    body = [
        '<header class="top"><span class="brand">tffc</span> What leaves the clients of a round'
        "</header>",
        "<main>",
        f"<h1>{_breaking(name)}{f' <small>{_breaking(file)}</small>' if file else ''}</h1>",
        *_verdict(document),
        *_facts(document),
        *_policy(document["policy"]),
        *_violations(document["violations"], lines),
        *_Values(document["audit"]).sections(),
        *_privacy(document["privacy"]),
        *_approval(document),
        "</main>",
    ]
    return web_page(f"{_text(name)} · audit", STYLE, body)


# The verdict, and what was read.


def _verdict(document: Plain) -> Iterator[str]:
    verdict = document["verdict"]
    kind, mark = MARKS.get(verdict["word"], ("open", "–"))
    title, _, more = verdict["text"].partition(": ")
    as_of = "" if document["as_of"] is None else f", as of {document['as_of']}"
    shown = NO_POLICY
    if document["policy"] is not None:
        policy = _code(document["policy"]["path"] or "a policy")
        shown = f"{policy}{_text(as_of)}: {_text(more or 'no rule is violated')}"
    yield from _banner(kind, mark, _text(title[:1].upper() + title[1:]), shown)
    if document["read"]["what"] != "program":
        yield from _banner("doubtful", "!", "Read from the components", UNPROVED)


def _banner(kind: str, mark: str, title: str, more: str) -> Iterator[str]:
    yield f'<section class="verdict {kind}"><span class="mark" aria-hidden="true">{mark}</span>'
    yield f"<div><h2>{title}</h2>{f'<p>{more}</p>' if more else ''}</div></section>"


def _facts(document: Plain) -> Iterator[str]:
    program, tool, policy = document["program"], document["tool"], document["policy"]
    yield '<dl class="facts">'
    what = document["read"]["what"].capitalize()
    yield from _fact(_text(what), _digest(program["digest"]) + _parts(program["digests"]))
    yield from _fact("Read", _text(document["read"]["text"]))
    yield from _fact("Compiled to", f"{_text(program['form'])} {_folded('type', program['type'])}")
    if policy is not None:
        path = _text(policy["path"] or "in Python")
        yield from _fact("Policy", f"{path} {_digest(policy['digest'])}")
    maker = _text(f"{tool['name']} {tool['version']}")
    yield from _fact("Made by", f"{maker} {_digest(tool['digest'])}" if "digest" in tool else maker)
    yield "</dl>"


def _parts(digests: dict[str, str]) -> str:
    """Return the digests of all programs of a bundle, folded."""
    if len(digests) < 2:
        return ""
    parts = "<br>".join(f"{_breaking(name)} {_code(digest)}" for name, digest in digests.items())
    return f"<details><summary>of each part</summary>{parts}</details>"


def _digest(digest: str | None) -> str:
    return "" if digest is None else f'<span class="soft">SHA-256</span> {_code(digest)}'


# The policy.


def _policy(policy: Plain | None) -> Iterator[str]:
    if policy is None:
        return
    yield '<section><h2>The policy</h2><ul class="rules">'
    for rule in policy["rules"]:
        count = rule["violations"]
        text = _counted(count, "violation") if count else rule["verdict"]
        yield f"<li><div><strong>{_text(rule['rule'])}</strong> {_code(rule['requires'])} "
        yield f'<span class="soft">{_text(rule["means"])}</span></div>'
        yield f"{_state(rule['verdict'], text)}</li>"
    yield "</ul>" if policy["rules"] else "<li>It has no rules.</li></ul>"
    if policy["exceptions"]:
        yield '<h3>Exceptions</h3><ul class="rules">'
        yield from map(_exception, policy["exceptions"])
        yield "</ul>"
    yield "</section>"


def _exception(waiver: Plain) -> str:
    ends = "ended on" if waiver["state"] == "ended" else f"{waiver['state']}, until"
    state = _state(waiver["state"], f"{ends} {waiver['expires']}")
    return (
        f"<li><div><strong>{_breaking(waiver['channel'])}</strong> may violate "
        f"{_code(waiver['rule'])}<br>{_text(waiver['reason'])}<br>"
        f'<span class="soft">content</span> {_code(waiver["content"])}</div>{state}</li>'
    )


def _state(state: str, text: str) -> str:
    return f'<span class="state {STATES.get(state, "open")}">{_text(text)}</span>'


def _violations(violations: Sequence[Plain], lines: Sequence[str]) -> Iterator[str]:
    """Yield the violations by the channel or effect that they are of."""
    groups: dict[tuple[str, str], list[Plain]] = {}
    shown: dict[tuple[str, str], str] = {}
    for violation, line in zip(violations, lines or [""] * len(violations), strict=True):
        key = (violation["subject"], violation["content"])
        groups.setdefault(key, []).append(violation)
        shown.setdefault(key, line.strip())
    if not groups:
        return
    yield "<section><h2>Violations</h2>"
    for key, own in groups.items():
        kind = (
            "excepted" if all(violation["excepted"] is not None for violation in own) else "broken"
        )
        yield f'<article class="entry {kind}"><div><h3>{_breaking(key[0])}</h3>'
        yield f'{_at(own[0]["span"])}</div><ul class="broken-rules">'
        yield from map(_violation, own)
        yield f"</ul>{_line(shown[key])}</article>"
    yield "</section>"


def _line(text: str) -> str:
    """Return a line of the user's file."""
    return f'<pre class="user-line">{_text(text)}</pre>' if text else ""


def _violation(violation: Plain) -> str:
    state, end = "violated", ""
    if violation["excepted"] is not None:
        state = "holds"
        end = f'<br><span class="soft">allowed: {_text(violation["excepted"])}</span>'
    elif violation["expired"] is not None:
        end = f'<br><span class="ended">the exception ended on {_text(violation["expired"])}</span>'
    rule = _state(state, violation["rule"])
    return f"<li>{rule} <span>{_text(violation['message'])}{end}</span></li>"


# What the audit says of values.


class _Values:
    """What an audit says of channels, broadcasts, effects and results."""

    def __init__(self, audit: Plain) -> None:
        self._audit = audit
        self._state = below(leaf["name"] for leaf in audit["state"])
        self._leaves = below(leaf["name"] for leaf in (*audit["state"], *audit["output"]))

    def sections(self) -> Iterator[str]:
        audit = self._audit
        yield "<section><h2>What leaves each client</h2>"
        yield from self._notes()
        yield from map(self._channel, audit["channels"])
        if not audit["channels"]:
            yield "<p>Nothing.</p>"
        yield "</section>"
        yield from _section("What each client is sent", map(self._broadcast, audit["broadcasts"]))
        if "resources" in audit:
            read = map(self._resource, audit["resources"])
            yield from _section("What each node is sent once, and no round again", read)
        yield from _section("Effects outside the channels", map(self._effect, audit["effects"]))
        yield from _section("What is kept and put out", self._results())

    def _notes(self) -> Iterator[str]:
        audit = self._audit
        yield '<dl class="facts wide-labels">'
        seen = "Seen of each client by whoever aggregates"
        yield from _fact(seen, _listed(audit["seen_by_aggregator"]))
        if "in_groups" in audit:
            yield from _fact("Clients in groups", audit["in_groups"])
        if "buffered" in audit:
            yield from _fact("Buffered rounds", audit["buffered"])
        yield from _fact("In no channel", _listed(audit["in_no_channel"]))
        if audit["only_in_effects"]:
            label = '<span class="ended">Of these, in effects at the clients</span>'
            yield from _fact(label, _listed(audit["only_in_effects"]))
        yield from _fact(
            "May be in the texts of its errors, besides shapes", _listed(audit["in_errors"])
        )
        for kind, (label, means) in PROTECTIONS.items():
            if any(channel["protection"] == kind for channel in audit["channels"]):
                yield from _fact(f'<span class="protection {kind}">{label}</span>', means)
        yield "</dl>"

    def _channel(self, channel: Plain) -> str:
        facts = [
            *self._depends(channel),
            ("goes to", _names(channel["goes_to"], self._leaves)),
            ("as", f"{_code(channel['operator'])} of {_sized(channel)}"),
            ("content", _code(channel["content"])),
        ]
        if channel["single"] is not None:
            facts.insert(-2, ("one client", f"may be released: {_text(channel['single'])}"))
        return _entry(
            channel["protection"],
            f'<h3>{_breaking(channel["name"])}</h3><div class="protection">'
            f"{_text(channel['shown_protection'])}</div>{_at(channel['span'])}",
            facts,
        )

    def _resource(self, read: Plain) -> str:
        return _entry(
            "",
            f"<h3>{_code(read['type'])}</h3>",
            [
                ("read in", f"{_text(read['component'])}, at the {_text(read['side'])}"),
                ("bytes", f"{read['size']:,}"),
                ("SHA-256", _code(read["digest"])),
            ],
        )

    def _broadcast(self, sent: Plain) -> str:
        return _entry(
            "",
            f"<h3>{_breaking(sent['name'])}</h3>{_at(sent['span'])}",
            [*self._depends(sent), ("as", _sized(sent))],
        )

    def _effect(self, effect: Plain) -> str:
        """Return an effect; what clients' own code shows is marked, as it leaves outside a
        channel."""
        is_shown = effect["kind"] not in KINDS and effect["side"] == "clients"
        means = KINDS.get(effect["kind"], "shows what it is given, outside any channel")
        listed = self._depends(effect) if effect["depends"]["listed"] else []
        return _entry(
            "none" if is_shown else "",
            f"<h3>{_breaking(effect['operation'])}</h3>{_at(effect['span'])}",
            [
                (f"at the {_text(effect['side'])}", f"{_text(effect['kind'])}: {_text(means)}"),
                *listed,
                ("content", _code(effect["content"])),
            ],
        )

    def _results(self) -> Iterator[str]:
        """Yield the leaves of the state, the output, and what clients keep; those after the first
        ones are folded."""
        rows = [
            f"<tr><th>{_breaking(leaf['name'])}</th><td>{_type(leaf['type'])}</td>"
            f"<td>{'; '.join(f'{label} {names}' for label, names in self._depends(leaf))}</td></tr>"
            for part in ("state", "output", "client_state")
            for leaf in self._audit[part]
        ]
        if not rows:
            return
        head = "<tr><th>value</th><th>type</th><th>may depend on</th></tr>"
        shown = "".join(rows[:MOST_RESULTS])
        yield f"<table><thead>{head}</thead><tbody>{shown}</tbody></table>"
        if len(rows) > MOST_RESULTS:
            yield f"<details><summary>{len(rows) - MOST_RESULTS:,} more</summary>"
            yield f"<table><tbody>{''.join(rows[MOST_RESULTS:])}</tbody></table></details>"

    def _depends(self, value: Plain) -> list[tuple[str, str]]:
        """Return the kinds of what a value may depend on, and their names."""
        listed = value["depends"]["listed"]
        if not listed:
            return [("data", "nothing, and no state, channel or draw")]
        return [
            (label, _names(names, self._state) if label == "state" else _listed(names))
            for label, names in listed.items()
        ]


# What is shown of differential privacy.


def _privacy(privacy: Plain | None) -> Iterator[str]:
    """Yield the derivation of privacy, if it was asked for."""
    if privacy is None:
        return
    yield "<section><h2>Differential privacy</h2>"
    kind, mark = ("good", "✓") if privacy["shown"] else ("open", "–")
    title, _, more = privacy["text"].partition(" at δ")
    yield from _banner(kind, mark, _text(title), _text(f"At δ{more}" if more else NOT_SHOWN))
    yield '<dl class="facts wide-labels">'
    yield from _fact("Neighbours", _text(privacy["neighbours"]))
    yield from _fact("Clients' data", _listed(privacy["data"]))
    yield from _fact("Clients of a round", _text(privacy["sampling"]))
    yield from _fact("Each round", "<br>".join(map(_text, privacy["round"])) or "no mechanism")
    if privacy["all_rounds"]:
        together = "<br>".join(map(_text, privacy["all_rounds"]))
        yield from _fact("All rounds together", together)
    if privacy["accountant"] is not None:
        yield from _fact("Accountant", _text(privacy["accountant"]))
    yield "</dl>"
    yield from map(_missing, privacy["missing"])
    for number, mechanism in enumerate(privacy["mechanisms"], start=1):
        yield _mechanism(number, mechanism)
    yield from map(_bound, privacy["bounds"])
    yield from _releases(privacy["releases"])
    yield '<h3>This rests on</h3><ul class="rules">'
    yield from (f"<li>{_text(assumption)}</li>" for assumption in privacy["rests_on"])
    yield "</ul></section>"


def _missing(step: Plain) -> str:
    at = [] if step["at"] is None else [("at", _breaking(step["at"]))]
    head = f'<h3>{_text(step["step"])}</h3><span class="ended">not shown</span>'
    return _entry(
        "none", head, [("of", _code(step["subject"])), *at, ("why", _text(step["reason"]))]
    )


def _mechanism(number: int, mechanism: Plain) -> str:
    facts = [
        ("of", _listed(mechanism["leaves"])),
        ("combined", _text(mechanism["combination"])),
        ("scale", _text(mechanism["scale"])),
        ("drawn", _code(mechanism["drawn"])),
        ("added", _code(mechanism["added"])),
    ]
    return _entry("", f"<h3>mechanism {number}</h3>{_text(mechanism['distribution'])} noise", facts)


def _bound(bound: Plain) -> str:
    facts = [
        ("of", _listed(bound["leaves"])),
        (_text(bound["norm"]), f"at most {_text(bound['at_most'])}"),
        ("by", _listed([operation for operation in bound["by"] if operation])),
    ]
    return _entry("", "<h3>bound of each client</h3>", facts)


def _releases(releases: Sequence[Plain]) -> Iterator[str]:
    rows: list[str] = []
    for release in releases:
        parts = [f"mechanism {number + 1}" for number in release["mechanisms"]]
        parts += ["mechanisms of earlier rounds"] * release["of_earlier_rounds"]
        parts += ['<span class="ended">a sum without noise</span>'] * release["without_noise"]
        of = ", ".join(parts) or "nothing of clients"
        name, kind = _breaking(release["name"]), _text(release["kind"])
        rows.append(f"<tr><th>{name}</th><td>{kind}</td><td>{of}</td></tr>")
    if rows:
        yield "<table><thead><tr><th>release</th><th>kind</th><th>made of</th></tr></thead>"
        yield f"<tbody>{''.join(rows)}</tbody></table>"


def _names(names: Sequence[str], leaves: Counter[str]) -> str:
    """Return names, with one name for a part all of whose leaves are among them."""
    shown = (
        _code(name) + (f" (all {count})" if count > 1 else "")
        for name, count in gathered(names, leaves)
    )
    return ", ".join(shown) or "nothing"


def _section(title: str, entries: Iterable[str]) -> Iterator[str]:
    yield f"<section><h2>{title}</h2>"
    yield from list(entries) or ["<p>None.</p>"]
    yield "</section>"


def _entry(kind: str, head: str, facts: Iterable[tuple[str, str]]) -> str:
    rows = "".join(line for label, value in facts for line in _fact(label, value))
    return f'<article class="entry {kind}"><div>{head}</div><dl>{rows}</dl></article>'


def _fact(label: str, value: str) -> Iterator[str]:
    yield f"<div><dt>{label}</dt><dd>{value}</dd></div>"


def _sized(value: Plain) -> str:
    size = value["size"]
    many = "a size that is not fixed" if size is None else f"{size:,} bytes"
    return f"{many}, {_type(value['type'])}"


def _at(span: Plain | None) -> str:
    if span is None:
        return ""
    return f'<div class="at">{_breaking(span["file"])}:{span["line"]}</div>'


def _type(text: str) -> str:
    """Return a type, folded if it is long."""
    return _code(text) if len(text) <= LONGEST_TYPE else _folded("type", text)


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>{_code(text)}</details>"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_code, names)) or "nothing"


def _approval(document: Plain) -> Iterator[str]:
    is_program = document["read"]["what"] == "program"
    what = "program that has" if is_program else "components that have"
    yield '<section class="approval"><h2>Approval</h2>'
    yield f"<p>I have read this page, and approve the {what} the {_digest(_of(document))}.</p>"
    part = document["program"]["clients_part"]
    if part is not None:
        yield f"<p>What runs at the clients and adds up their values has the {_digest(part)}.</p>"
        yield f"<pre>tffc approve {_text(part)} --key KEY --store DIR --reason TEXT</pre>"
    yield '<div class="signed">'
    yield from (f"<div>{label}</div>" for label in ("Name", "Date", "Signature"))
    yield f'</div></section><footer class="soft">{LIMITS}</footer>'


def _of(document: Plain) -> str:
    return document["program"]["digest"] or "(none: it cannot be stored)"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _code(text: str) -> str:
    return f"<code>{_breaking(text)}</code>"


def _breaking(text: str) -> str:
    """Return a name that a narrow column can break where its parts end."""
    return re.sub(r"(?<=[a-z0-9])([_./,])(?=\w)(?!py\b)", r"\1<wbr>", _text(text))


def _text(text: str) -> str:
    return html.escape(printable(str(text)))
