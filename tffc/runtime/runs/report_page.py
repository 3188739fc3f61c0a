"""The report of a run as one self-contained page without scripts.

It depends only on the report, so the same folder always gives the same bytes.
"""

from __future__ import annotations

import html
import pathlib
from collections.abc import Iterable, Mapping, Sequence

from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.speed import PARTS, REST
from tffc.runtime.runs.kept_states import FLOWER
from tffc.runtime.runs.metrics import MetricsRow, curves
from tffc.runtime.runs.number_column import NumberColumn
from tffc.runtime.runs.observed import Observed
from tffc.runtime.runs.plot import Panel, PlotArea, Points, draw_panel, panels_of
from tffc.runtime.runs.report import RunReport
from tffc.runtime.runs.run_identity import RunIdentity
from tffc.support.printable import printable
from tffc.support.web_page import web_page

NARROW = PlotArea(width=290, height=150, left=74, right=16, names_axis=False)
"""The size of a panel that fits a phone."""

MOST_PANELS = 200
"""The most metrics that are drawn."""

MOST_POINTS = 500
"""The most points of a curve that are drawn; if there are more, see `_thinned`."""

MOST_ROWS = 200
"""The most rows of a table of rounds (the last ones) or of left-out clients."""

MOST_ROUNDS = 20
"""The most rounds that are named for a left-out client."""

TALL = 24
"""Tables with more rows scroll vertically too."""

LONGEST_NAME = 200
"""The most characters of a name that are shown."""

LONGEST_LINE = 2000
"""The most characters of a command line that are shown."""

UNKNOWN = "not known"

STYLE = pathlib.Path(__file__).with_suffix(".css").read_text()


def report_page(report: RunReport) -> str:
    """Return the report of a run as HTML."""
    title = f"Run {_text(report.name)}"
    body = [
        "<main>",
        f"<h1>{title}</h1>",
        *_facts(report),
        *_metrics(report.rows),
        *_times(report),
        *_left_out(report),
        *_exchanges(report),
        *_commands(report),
        *_identity(report),
        *_rounds(report),
        "</main>",
    ]
    return web_page(title, STYLE, body)


def _facts(report: RunReport) -> list[str]:
    """Return the first lines: the kind of run, and its totals."""
    identity, rows = report.record.identity, report.rows
    about = f"{identity.form}, {_place(identity)}"
    if report.commands:
        about = f"{_abridged(report.commands[-1].program)}: {about}"
    if not rows:
        return [f"<p>{_text(about, LONGEST_LINE)}. No round is finished.</p>"]
    timed = _timed(report)
    seconds = sum(observed.seconds for _, observed in timed)
    facts = {
        "rounds": f"{len(rows):,}" if rows[0].round == 1 else _range([row.round for row in rows]),
        f"{_members(report)} a round": _range([row.clients for row in rows]),
        "left out": f"{sum(row.skipped for row in rows):,}",
        "time in all": _time(seconds) if timed else UNKNOWN,
        **_speed(report, timed, seconds),
    }
    parts = [f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items()]
    return [f"<p>{_text(about, LONGEST_LINE)}.</p>", '<dl class="facts">', *parts, "</dl>"]


def _place(identity: RunIdentity) -> str:
    """Return where the data of a run was."""
    if identity.source.kind == FLOWER:
        return "on nodes of a Flower federation"
    return f"on data of {len(identity.source.clients):,} clients"


def _members(report: RunReport) -> str:
    """Return what took part in the rounds of a run."""
    return "nodes" if report.record.identity.source.kind == FLOWER else "clients"


def _timed(report: RunReport) -> list[tuple[MetricsRow, Observed]]:
    """Return the rounds of which it is known how long they took."""
    seen = report.observed
    pairs = ((row, seen[row.round]) for row in report.rows if row.round in seen)
    return [(row, observed) for row, observed in pairs if observed.is_timed]


def _speed(
    report: RunReport, timed: Sequence[tuple[MetricsRow, Observed]], seconds: float
) -> dict[str, str]:
    """Return how many clients a second there were, or what was exchanged with nodes."""
    if _members(report) == "clients":
        clients = sum(row.clients for row, _ in timed)
        return {"clients a second": f"{clients / seconds:.3g}" if seconds else UNKNOWN}
    exchanges = [each.exchange for each in report.observed.values() if each.exchange is not None]
    if not exchanges:
        return dict.fromkeys(("clients a round", "attempts", "sent", "received"), UNKNOWN)
    return {
        "clients a round": _range([sum(each.clients.values()) for each in exchanges]),
        "attempts": f"{sum(each.attempts for each in exchanges):,}",
        "sent": _size(sum(each.sent for each in exchanges)),
        "received": _size(sum(each.received for each in exchanges)),
    }


def _metrics(rows: Sequence[MetricsRow]) -> list[str]:
    """Return the plots of metrics; one that is also in evaluations has both curves in one panel."""
    panels = panels_of(rows)
    lines = ["<h2>Metrics</h2>"]
    if not panels:
        return [*lines, "<p>No round has put out a number.</p>"]
    lines += ['<ul class="panels">', *map(_panel, panels[:MOST_PANELS]), "</ul>"]
    if len(panels) > MOST_PANELS:
        lines.append(f"<p>{len(panels) - MOST_PANELS} more are in the table of the run.</p>")
    return lines


def _panel(panel: Panel) -> str:
    shown = _text(panel.name)
    first, last = panel.points[0], panel.points[-1]
    about = f"{shown}, from {first[1]:.4g} in round {first[0]} to {last[1]:.4g} in round {last[0]}"
    size = f"0 0 {NARROW.outer_width} {panel.height(NARROW)}"
    parts = [
        f'<li><svg viewBox="{size}" role="img" aria-label="{about}">',
        f"<title>{about}</title>",
        *draw_panel(_abridged(panel.name, 40), list(map(_thinned, panel.series)), NARROW),
    ]
    return "".join([*parts, "</svg></li>"])


def _thinned(points: Points) -> Points:
    """Return at most `MOST_POINTS` points that look the same: the extremes of neighbours."""
    if len(points) <= MOST_POINTS:
        return points
    extremes: list[tuple[int, float]] = []
    groups = MOST_POINTS // 2
    for group in range(groups):
        begin, end = (len(points) * place // groups for place in (group, group + 1))
        some = points[begin:end]
        ends = {min(some, key=lambda point: point[1]), max(some, key=lambda point: point[1])}
        extremes += sorted(ends)
    return extremes


def _times(report: RunReport) -> list[str]:
    """Return the plots of time over rounds, and the table of where it went."""
    lines = ["<h2>Time</h2>"]
    seen = _timed(report)
    if not seen:
        return [*lines, "<p>How long the rounds took was not kept.</p>"]
    took = [(observed.round, observed.seconds) for _, observed in seen]
    speed = [
        (observed.round, row.clients / observed.seconds)
        for row, observed in seen
        if observed.seconds
    ]
    measured = [(e.round, e.evaluation) for _, e in seen if e.evaluation is not None]
    panels = {
        f"{_members(report)} a second": speed,
        "seconds a round": took,
        "seconds an evaluation": measured,
    }
    drawn = [_panel(Panel(name, points)) for name, points in panels.items() if points]
    lines += ['<ul class="panels">', *drawn, "</ul>"]
    known = [observed for _, observed in seen if observed.parts and observed.workers is not None]
    if not known:
        return [*lines, "<p>The engine did not tell where the time went.</p>"]
    parts: dict[str, float] = {}
    for observed in known:
        for part, seconds in observed.parts.items():
            parts[part] = parts.get(part, 0.0) + seconds
    whole = sum(observed.seconds * (observed.workers or 1) for observed in known)
    order = [*(part for part in PARTS if part in parts), *sorted(parts.keys() - {*PARTS})]
    rest = max(0.0, whole - sum(parts.values()))
    rows = [
        (
            _text(part),
            f"{1e3 * seconds / len(known):.1f}",
            f"{seconds / whole:.0%}" if whole else "",
            _bar(seconds / whole if whole else 0.0),
        )
        for part, seconds in (*((part, parts[part]) for part in order), (REST, rest))
    ]
    workers = _range([observed.workers or 1 for observed in known])
    about = f"Time of {len(known)} rounds, of {workers} workers together"
    head = ("part", "ms a round", "share", "")
    return [
        *lines,
        f"<p>{about}:</p>",
        *_table(about, head, rows, ("", "number", "number", "share")),
    ]


def _bar(share: float) -> str:
    width = 100 * min(1.0, share)
    return (
        '<svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="bar" width="{width:.1f}" height="4"/></svg>'
    )


def _left_out(report: RunReport) -> list[str]:
    """Return the clients, or nodes, with the rounds that left them out."""
    members = _members(report)
    about = f"{members.capitalize()} left out"
    lines = [f"<h2>{about}</h2>"]
    count = sum(row.skipped for row in report.rows)
    if count == 0:
        return [*lines, "<p>None.</p>"]
    rounds: dict[str, list[int]] = {}
    for number in sorted(report.observed):
        for client in report.observed[number].skipped:
            rounds.setdefault(client, []).append(number)
    named = sum(map(len, rounds.values()))
    order = sorted(rounds, key=lambda client: (-len(rounds[client]), client))
    rows = [
        (_code(client), f"{len(rounds[client]):,}", _numbers(rounds[client]))
        for client in order[:MOST_ROWS]
    ]
    if rows:
        head = (members[:-1], "times", "rounds")
        lines += _table(about, head, rows, ("", "number", ""))
    more: list[str] = []
    if len(order) > MOST_ROWS:
        more.append(f"{len(order) - MOST_ROWS:,} more {members} were left out")
    if named < count:
        more.append(f"of {count - named:,} times it was not kept who was left out")
    return [*lines, *(f"<p>{line[0].upper()}{line[1:]}.</p>" for line in more)]


def _exchanges(report: RunReport) -> list[str]:
    """Return the table of what the last rounds exchanged with nodes, if there were any."""
    known = [(each.round, each.exchange) for each in report.observed.values() if each.exchange]
    if _members(report) == "clients":
        return []
    about = "Exchange with nodes"
    if not known:
        return [f"<h2>{about}</h2>", "<p>What was exchanged was not kept.</p>"]
    rows = [
        (
            f"{number}",
            f"{exchange.attempts:,}",
            _size(exchange.sent),
            _size(exchange.received),
            _listed({node: f"{count:,}" for node, count in exchange.clients.items()}),
            _listed(exchange.left_out),
        )
        for number, exchange in sorted(known, key=lambda each: each[0])[-MOST_ROWS:]
    ]
    head = ("round", "attempts", "sent", "received", "clients of nodes", "left out")
    kinds = (*("number",) * 4, "", "")
    return [f"<h2>{about}</h2>", *_table(about, head, rows, kinds)]


def _listed(values: Mapping[str, str]) -> str:
    shown = [f"{name}: {value}" for name, value in sorted(values.items())]
    more = [f"… and {len(shown) - MOST_ROUNDS:,} more"] if len(shown) > MOST_ROUNDS else []
    return "<br>".join(map(_text, shown[:MOST_ROUNDS] + more))


def _numbers(rounds: Sequence[int]) -> str:
    shown = ", ".join(map(str, rounds[:MOST_ROUNDS]))
    return shown + (" …" if len(rounds) > MOST_ROUNDS else "")


def _commands(report: RunReport) -> list[str]:
    """Return what ran, how and when; nothing of it identifies the run."""
    commands, ended = report.commands, [seen.at for seen in report.observed.values() if seen.at]
    first, last = (commands[0], commands[-1]) if commands else (None, None)
    rows = {
        "program": UNKNOWN if last is None else _text(last.program, LONGEST_LINE),
        "command": UNKNOWN if first is None else _code(first.command, LONGEST_LINE),
        "begun": UNKNOWN if first is None else _moment(first.at),
    }
    if first is not None and last is not None and len(commands) > 1:
        resumed = "once" if len(commands) == 2 else f"{len(commands) - 1:,} times"
        rows["resumed"] = f"{resumed}, last on {_moment(last.at)}"
        if last.command != first.command:
            rows["last command"] = _code(last.command, LONGEST_LINE)
    if report.rows:
        rows[f"round {report.rows[-1].round:,} finished"] = (
            _moment(max(ended)) if ended else UNKNOWN
        )
    rows["tffc"] = UNKNOWN
    if commands:
        rows["tffc"] = _text(", then ".join(dict.fromkeys(each.version for each in commands)))
    about = "How it was run"
    return [f"<h2>{about}</h2>", *_table(about, ("", ""), rows.items(), ("", ""))]


def _moment(at: str) -> str:
    """Return a time of a record for people."""
    return f"{at[:10]} {at[11:19]} UTC"


def _identity(report: RunReport) -> list[str]:
    """Return what identifies the run, which is needed to continue it."""
    record = report.record
    identity = record.identity
    source, sampling = identity.source, identity.sampling
    drawn = "all"
    if sampling.rate is not None:
        drawn = f"each with probability {sampling.rate}, drawn by {_seed(sampling)}"
    elif sampling.clients is not None:
        drawn = f"{sampling.clients:,}, drawn by {_seed(sampling)}"
    options = ", ".join(f"{name}={value}" for name, value in source.options.items())
    rows = {
        "form": _text(identity.form),
        **_origin(report),
        f"{_members(report)} a round": drawn,
        **_bad_data(identity),
        **_groups(identity),
        **({} if identity.timing is None else {"time": _text(str(identity.timing))}),
        **_privacy(report),
        "data": _text(
            (
                _place(identity)
                if source.kind == FLOWER
                else f"{source.kind}, {len(source.clients):,} clients, {len(source.files):,} files"
            )
            + (f"; {options}" if options else "")
        ),
        "SHA-256 of clients and files": _code(record.source),
        **{f"SHA-256 of {_text(name)}": _code(value) for name, value in identity.programs.items()},
    }
    if record.state is not None:
        rows[f"SHA-256 of the state after round {record.rounds:,}"] = _code(record.state)
        rows["SHA-256 of the metrics"] = _code(record.metrics.digest)
    about = "What the run is"
    return [f"<h2>{about}</h2>", *_table(about, ("", ""), rows.items(), ("", ""))]


def _seed(sampling: Sampling) -> str:
    return "a secret seed" if sampling.seed_is_secret else f"the seed {sampling.seed}"


def _bad_data(identity: RunIdentity) -> dict[str, str]:
    """Return what happens with data that cannot be read, unless each node decides that."""
    if identity.source.kind == FLOWER:
        return {}
    done = "is left out" if identity.skip_bad_clients else "fails its round"
    return {"data that cannot be read": done}


def _groups(identity: RunIdentity) -> dict[str, str]:
    """Return how the clients of a round come in groups, if they do."""
    if identity.groups is None:
        return {}
    lost = "is left out" if identity.groups.skip_bad else "fails its round"
    return {"groups of clients": f"{identity.groups.count:,}", "a group that fails": lost}


def _privacy(report: RunReport) -> dict[str, str]:
    """Return what the rounds have spent of the budget of privacy, if there is one."""
    budget = report.record.identity.privacy
    spent = {} if report.privacy is None else {"privacy": _text(report.privacy, LONGEST_LINE)}
    if budget is None:
        return spent
    return {**spent, "privacy budget": _text(f"ε = {budget.epsilon:g} at δ = {budget.delta:g}")}


def _origin(report: RunReport) -> dict[str, str]:
    """Return where the first state came from, if that is known."""
    origin = report.record.origin
    if origin is None:
        return {"first state": "the program's own"} if report.commands else {}
    if origin.program is None:
        whose = "from a file"
    elif origin.program == report.record.identity.programs["computation"]:
        whose = f"of this program after round {origin.rounds:,}"
    else:
        whose = f"of another program after round {origin.rounds:,}"
    return {"first state": whose, "SHA-256 of the first state's file": _code(origin.sha256)}


def _rounds(report: RunReport) -> list[str]:
    """Return the table of the last rounds."""
    rows = report.rows[-MOST_ROWS:]
    if not rows:
        return []
    names = list(dict.fromkeys(name for row in rows for name in _numbers_of(row)))[:MOST_PANELS]
    columns = {name: NumberColumn(5) for name in names}
    for name, column in columns.items():
        column.see(values[name] for row in rows if name in (values := _numbers_of(row)))
    lines: list[tuple[str, ...]] = []
    for row in rows:
        seen, values = report.observed.get(row.round), _numbers_of(row)
        lines.append(
            (
                f"{row.round}",
                f"{row.clients:,}",
                f"{row.skipped:,}",
                _time(seen.seconds) if seen and seen.is_timed else "",
                *(columns[name].text(values[name]) if name in values else "" for name in names),
            )
        )
    head = ("round", _members(report), "left out", "time", *map(_text, names))
    kinds = ("number",) * len(head)
    about = "Rounds" if len(rows) == len(report.rows) else f"The last {len(rows)} rounds"
    return [f"<h2>{about}</h2>", *_table(about, head, lines, kinds)]


def _numbers_of(row: MetricsRow) -> Mapping[str, float]:
    return {name: points[0][1] for name, points in curves([row]).items()}


def _table(
    about: str, head: Sequence[str], rows: Iterable[Sequence[str]], kinds: Sequence[str]
) -> list[str]:
    """Return a table that scrolls separately from the page; its cells are HTML."""
    lines = list(rows)
    kind = "wide tall" if len(lines) > TALL else "wide"

    def cells(tag: str, row: Sequence[str]) -> str:
        texts: list[str] = []
        for cell, kind in zip(row, kinds, strict=True):
            # An empty cell is not a heading.
            name = tag if cell else "td"
            texts.append(
                f'<{name} class="{kind}">{cell}</{name}>' if kind else f"<{name}>{cell}</{name}>"
            )
        return "".join(texts)

    return [
        f'<div class="{kind}" role="region" aria-label="{about}" tabindex="0"><table>',
        *([f"<thead><tr>{cells('th', head)}</tr></thead>"] if any(head) else []),
        "<tbody>",
        *(f"<tr>{cells('td', row)}</tr>" for row in lines),
        "</tbody></table></div>",
    ]


def _range(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _time(seconds: float) -> str:
    """Return a duration in words."""
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min"


def _size(count: int) -> str:
    """Return a number of bytes in words."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def _abridged(text: str, longest: int = LONGEST_NAME) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _text(text: str, longest: int = LONGEST_NAME) -> str:
    return html.escape(printable(_abridged(text, longest)))


def _code(text: str, longest: int = LONGEST_NAME) -> str:
    return f"<code>{_text(text, longest)}</code>"
