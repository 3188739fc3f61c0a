"""All content of the explorer's page, as plain data: dictionaries, lists and texts."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tffc.assurance.audit.audit import SIDES, Audit, Channel, Protection, audit_round, size_of
from tffc.assurance.audit.breaking import Change, changes
from tffc.assurance.audit.bundles import program_digests
from tffc.assurance.audit.names import ASSIGNED
from tffc.assurance.audit.programs import RoundFlows, results_of, round_flows
from tffc.assurance.audit.report import Report, document, plain
from tffc.assurance.diff.programs import differences
from tffc.backends.compiler import normalized
from tffc.backends.forms.form import Form
from tffc.backends.forms.kinds import load_form
from tffc.backends.forms.stages import Half, Stage, StagedCall, StagedRound, assign_stages
from tffc.explorer.flowing import Flowing
from tffc.explorer.graphs import Graphs
from tffc.explorer.sources import SourceFiles, spans_of
from tffc.explorer.steps import steps_of
from tffc.explorer.texts import ProgramTexts, binding_lines, difference, lines_of
from tffc.explorer.wiring import RESULTS, Part, Wire, Wiring, first_stage, is_plumbing
from tffc.language.calls import uri_of
from tffc.language.nodes import Compiled, Intrinsic, Node, StructNode
from tffc.language.notation import formatted
from tffc.language.notation.labels import section_label
from tffc.language.traverse import walk
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import SequenceType, StructType, Type
from tffc.support.errors import TffcError
from tffc.support.version import VERSION

LONGEST_TYPE = 4000
"""The most characters of a type that are shown."""

COLUMNS = {
    Stage.PREPARE: ("Prepare", "at the server"),
    Stage.BROADCAST: ("Broadcast", "server to clients"),
    Stage.WORK: ("Work", "at each client"),
    Stage.AGGREGATE: ("Aggregate", "clients to server"),
    Stage.RESULT: ("Update", "at the server"),
}

PROTECTIONS = {
    Protection.SECURE: "The system adds the contributions by a protocol that reveals only the sum.",
    Protection.SYSTEM: "The system that aggregates sees each client's contribution.",
    Protection.PROGRAM: "Functions of the program get each client's contribution.",
    Protection.NONE: "Each client's contribution is released as it is.",
}

Plain = dict[str, Any]
"""Data that JSON can hold."""


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """The content of a page, and the error if the program cannot be compiled."""

    plain: Plain
    error: TffcError | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Older:
    """An older version of a round, and where it comes from.

    `lines` returns the lines of a file at that version, where the program does not know its files.
    `doubt` is why an older bundle was read from its components, and `more` are changes other than
    those of the program.
    """

    program: Node
    title: str = ""
    lines: Callable[[str], Sequence[str]] | None = None
    doubt: str | None = None
    more: Sequence[Change] = ()


def describe(
    program: Node,
    form: str,
    title: str,
    *,
    compiled: Form | None = None,
    initialize: Compiled | None = None,
    older: Older | None = None,
    report: Callable[[Audit], Report] | None = None,
) -> Description:
    """Return the content of the page of a round, compiled to a form.

    If it cannot be compiled, the page has the error and everything found before it.  `compiled` is
    the form of a bundle.  `older` is an older version of the program to show changes from.
    `report` makes a report of the audit, with a policy and what was read; without it, no policy is
    applied.

    Raises:
      PolicyError: the policy says something of what the round does not have.
    """
    texts, files, graphs = ProgramTexts(program), SourceFiles(), Graphs()
    refused = audited = None
    files.add(spans_of(program))
    content: Plain = {"tffc": VERSION, "title": title, "form": form, "type": _text(program.type)}
    try:
        flat = normalized(program, form, observers=[texts.observe])
        staged = assign_stages(flat)
        compiled = compiled or load_form(form).build(staged)
        flows = round_flows(staged)
        audited = audit_round(staged, compiled, form)
        content["round"] = _Round(staged, flows, audited, files, graphs).plain()
        components = dict(compiled.components())
        if initialize is not None:
            components["initialize"] = initialize
        content["components"] = [
            _component(name, node, load_form(form), graphs) for name, node in components.items()
        ]
        content["bindings"] = {
            style: binding_lines(flat, style, texts.plain()["texts"][-1][style])
            for style in ("typed", "formatted")
        }
    except TffcError as error:
        refused = error
        content["error"] = error_plain(error, files)
    if audited is not None:
        audit_report = (
            report(audited) if report else Report(title, audited, program_digests(program))
        )
        content["report"] = document(audit_report)
    if older is not None:
        content["changes"] = _changes(older, program, form)
    content |= {**texts.plain(), "sources": files.plain(), "graphs": graphs.plain()}
    return Description(content, refused)


def _changes(older: Older, program: Node, form: str) -> Plain:
    """Return the changes in the user's files and in the program, and what they break."""
    files = [SourceFiles(), SourceFiles()]
    files[0].add(spans_of(older.program))
    files[1].add(spans_of(program))
    before, after = (file.plain() for file in files)
    if older.lines is not None:
        texts = map(older.lines, files[1].paths())
        before = [{**line, "lines": list(text)} for line, text in zip(after, texts, strict=True)]
    pairs = zip(before, after, strict=False)
    parts = differences({"computation": older.program}, {"computation": program})
    return {
        "since": older.title,
        "doubt": older.doubt,
        **_breaking(older, program, form),
        "parts": [part._asdict() for part in parts],
        "sources": [
            {"before": old, "after": new, "diff": difference(old["lines"], new["lines"])}
            for old, new in pairs
            if old["lines"] != new["lines"]
        ],
    }


def _breaking(older: Older, program: Node, form: str) -> Plain:
    """Return what the changes break, or why that cannot be told."""
    try:
        breaking = [*changes(older.program, program, form), *older.more]
    except TffcError as error:
        return {"breaking": [], "unknown": error.message}
    return {
        "breaking": [{**plain(change), "means": change.breaks.value} for change in breaking],
        "unknown": None,
    }


def refusal(error: TffcError, title: str) -> Description:
    """Return the content of a page with only an error, for a source without a program."""
    files = SourceFiles()
    content = {"tffc": VERSION, "title": title, "error": error_plain(error, files)}
    content |= {"texts": [], "passes": [], "sources": files.plain(), "graphs": []}
    return Description(content, error)


def error_plain(error: TffcError, files: SourceFiles) -> Plain:
    """Return an error with the places that it and its notes name."""
    files.add([error.span])
    return {
        "code": error.code,
        "message": error.message,
        "help": error.help,
        "place": files.place(error.span),
        "notes": [_note(note, files) for note in error.notes],
    }


def _note(note: str, files: SourceFiles) -> Plain:
    """Return a note, with its place as separate data if it has one."""
    for file, shown in files.paths().items():
        match = re.search(rf" at {re.escape(file)}:(\d+)(:\n.*)?$", note, re.DOTALL)
        if match is not None:
            place = {"file": shown, "line": int(match[1]), "end": int(match[1])}
            return {"text": note[: match.start()], "place": place}
    return {"text": note, "place": None}


class _Round:
    """The picture of a round."""

    def __init__(
        self,
        program: StagedRound,
        flows: RoundFlows,
        audited: Audit,
        files: SourceFiles,
        graphs: Graphs,
    ) -> None:
        self._round = program
        self._files = files
        self._graphs = graphs
        self._wires = list(Wiring(program).wires())
        self._stages = first_stage(program, self._wires)
        names = (staged.name for staged in program.aggregations())
        self._channels = dict(zip(names, audited.channels, strict=False))
        sent = (staged.name for staged in program.of_stage(Stage.BROADCAST))
        self._broadcasts = dict(zip(sent, audited.broadcasts, strict=True))
        called = {name: channel.name for name, channel in self._channels.items()}
        self._flowing = Flowing(program, flows, audited, called)
        self._released = [channel for channel in audited.channels if channel.operator == "output"]

    def plain(self) -> Plain:
        titles = self._titles()
        return {
            "stages": [
                {"key": stage.name.lower(), "title": title, "where": where}
                for stage, (title, where) in COLUMNS.items()
            ],
            "protections": {
                protection.name.lower(): {"title": protection.value, "means": means}
                for protection, means in PROTECTIONS.items()
            },
            "inputs": [self._input(0, "state"), self._input(1, "data")],
            "calls": [self._call(call, titles) for call in self._round.calls.values()],
            "edges": self._edges(),
            "outputs": self._outputs(),
        }

    def _titles(self) -> dict[str, str]:
        """Return a title for each call.

        It is the name in the audit; else the variable that the user's line assigns (only for the
        last shown call of that line); else the function or the operator.
        """
        last: dict[str, str] = {}
        for staged in self._round.calls.values():
            if staged.binding.span is not None and not is_plumbing(staged):
                last[str(staged.binding.span)] = staged.name
        assigned = set(last.values())
        return {
            staged.name: self._title(staged, is_last=staged.name in assigned)
            for staged in self._round.calls.values()
        }

    def _title(self, staged: StagedCall, *, is_last: bool) -> str:
        known = self._channels.get(staged.name) or self._broadcasts.get(staged.name)
        if known is not None:
            return known.name
        span = staged.binding.span
        match = ASSIGNED.match(span.source_line()) if span is not None and is_last else None
        return match[1] if match else self._function(staged) or _operator(staged)

    def _function(self, staged: StagedCall) -> str | None:
        return self._files.function_at(staged.binding.span) or _section_name(staged)

    def _input(self, half: int, otherwise: str) -> Plain:
        parameter = self._round.type.parameter
        assert isinstance(parameter, StructType)
        return {
            "name": ("state", "data")[half],
            "title": parameter.names[half] or otherwise,
            "where": ("server state", "client data")[half],
            **_value(parameter[half]),
        }

    def _outputs(self) -> list[Plain]:
        results = results_of(self._round)
        if "state" in results:
            stages = {"client_state": "work"}
            return [
                {
                    "name": RESULTS[name],
                    "title": RESULTS[name],
                    "stage": stages.get(name, "result"),
                    **_value(node.type),
                }
                for name, node in results.items()
            ]
        protection = self._released[0].protection.name.lower() if self._released else None
        output = {"stage": "work", "protection": protection, **_value(results["output"].type)}
        return [{"name": "output", "title": "output", **output}]

    def _call(self, staged: StagedCall, titles: Mapping[str, str]) -> Plain:
        span = staged.binding.span
        function = self._function(staged)
        named = self._files.function_at(span)
        channel = self._channels.get(staged.name)
        return {
            "name": staged.name,
            "title": titles[staged.name],
            "operator": _operator(staged),
            "function": function,
            "defined": self._files.definition(span, named),
            "stage": self._stages[staged.name].name.lower(),
            "runs": SIDES[staged.stage],
            "plumbing": is_plumbing(staged),
            "place": self._files.place(span),
            "graphs": [self._graphs.number(section) for section in _sections(staged.call)],
            "because": self._because(staged),
            "steps": steps_of(self._round, staged, self._graphs),
            "data": self._data(staged),
            **_value(staged.call.type),
            **({} if channel is None else _channel(channel)),
        }

    def _data(self, staged: StagedCall) -> list[str]:
        """Return the names of what a channel carries, or of what a call's result depends on."""
        channel = self._channels.get(staged.name)
        if channel is not None:
            return _carried(channel)
        return self._flowing.of(Part(staged.name, "", local_type(staged.call.type)))

    def _because(self, staged: StagedCall) -> str | None:
        """Return the call, among those shown, that keeps this one from running earlier."""
        because = staged.because
        while isinstance(because, str) and is_plumbing(self._round.calls[because]):
            because = self._round.calls[because].because
        return because if isinstance(because, str) else None

    def _edges(self) -> list[Plain]:
        """Return the edges; all wires between the same two calls are parts of one edge."""
        wires_of: dict[tuple[str, str], list[Wire]] = {}
        for wire in self._wires:
            source = wire.part.source
            start = source.value if isinstance(source, Half) else source
            wires_of.setdefault((start, wire.target), []).append(wire)
        return [
            {
                "from": start,
                "to": end,
                "parts": [
                    {
                        "path": wire.part.path,
                        "role": wire.role,
                        "data": self._flowing.of(wire.part),
                        **_value(wire.part.type),
                    }
                    for wire in wires
                ],
            }
            for (start, end), wires in wires_of.items()
        ]


def _channel(channel: Channel) -> Plain:
    return {
        "protection": channel.protection.name.lower(),
        "bound": channel.bound,
        "gives": channel.size,
        "reads": _read(channel),
        "reaches": list(channel.goes_to),
    }


def _read(channel: Channel) -> list[str]:
    """Return the names of what a channel may depend on of a client."""
    listed = channel.depends.listed()
    return [
        name if kind == "data" else f"{kind} {name}"
        for kind in ("data", "how many", "shape of")
        for name in listed.get(kind, ())
    ]


def _carried(channel: Channel) -> list[str]:
    return _read(channel) or list(channel.depends.state)


def _operator(staged: StagedCall) -> str:
    return uri_of(staged.call) if isinstance(staged.call.function, Intrinsic) else "call"


def _sections(program: Node) -> list[Compiled]:
    """Return the sections of a program, each once."""
    return list(dict.fromkeys(node for node in walk(program) if isinstance(node, Compiled)))


def _section_name(staged: StagedCall) -> str | None:
    """Return the name of a call's section operand, if it has one."""
    call = staged.call
    function = call.argument if isinstance(call.function, Intrinsic) else call.function
    first = function.values[0] if isinstance(function, StructNode) and function.values else function
    return f"comp#{section_label(first)}" if isinstance(first, Compiled) else None


def _component(name: str, node: Node, form: type[Form], graphs: Graphs) -> Plain:
    side = form.component_fields().get(name, {}).get("side")
    return {
        "name": name,
        "side": side.value if side is not None else "once, before the first round",
        "type": _text(node.type),
        "text": None if isinstance(node, Compiled) else lines_of(formatted, node),
        "graphs": [
            {
                "title": f"comp#{section_label(section)}",
                "number": (number := graphs.number(section)),
            }
            | {"nodes": graphs.size(number)}
            for section in _sections(node)
        ],
    }


def _value(kind: Type) -> Plain:
    local = local_type(kind)
    return {"type": _text(local), "brief": _brief(local), "bytes": size_of(local)}


def _brief(kind: Type) -> str:
    """Return a type in a word or two, for the label of an edge."""
    if isinstance(kind, SequenceType):
        return "a sequence"
    if not isinstance(kind, StructType):
        return str(kind)
    count = len(leaves(kind))
    return f"{count} tensor{'' if count == 1 else 's'}"


def _text(kind: Type) -> str:
    text = str(kind)
    return text if len(text) <= LONGEST_TYPE else f"{text[:LONGEST_TYPE]}..."
