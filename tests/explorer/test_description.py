"""The description of a round as plain data."""

from __future__ import annotations

import collections
import datetime
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

import tffc as tff
from tests.explorer import programs
from tests.explorer.conftest import LATE, ROUND, Describe
from tests.explorer.pages import ROOT
from tests.large import each_example
from tests.programs import broadcast_rounds, rounds
from tffc.assurance.audit.audit import Audit, audit
from tffc.assurance.audit.breaking import changes
from tffc.assurance.audit.bundles import program_digests
from tffc.assurance.audit.policy import Policy, violations
from tffc.assurance.audit.report import Report, document
from tffc.backends import compile_form
from tffc.cli.sources import read_round
from tffc.explorer.description import Older, describe, refusal
from tffc.explorer.page import page
from tffc.language import Node, StructType, wire
from tffc.linking.arithmetic import GraphArithmetic
from tffc.linking.builder import GraphBuilder
from tffc.support.errors import LanguageTypeError, Span, TffcError


def picture(found: dict[str, Any]) -> Iterator[str]:
    """Return the shown calls and the edges of a round, one line each."""
    for call in found["calls"]:
        if not call["plumbing"]:
            line = call["place"] and call["place"]["line"]
            kind = f"; {call['protection']}" if "protection" in call else ""
            yield f"{call['stage']}: {call['title']} = {call['operator']}, line {line}{kind}"
    titles = {call["name"]: call["title"] for call in found["calls"]}
    for edge in found["edges"]:
        ends = (titles.get(edge[end], edge[end]) for end in ("from", "to"))
        parts = (f"{p['path']} {p['type']} {p['bytes']} {p['role']}" for p in edge["parts"])
        yield f"{' -> '.join(ends)}: {'; '.join(part.strip() for part in parts)}"


def test_the_picture_has_calls_in_stages_and_values_between_them(described: Describe) -> None:
    assert list(picture(described().plain["round"])) == [
        "broadcast: sent = federated_broadcast, line 12",
        "aggregate: size = federated_secure_sum_bitwidth, line 13; secure",
        "aggregate: score = federated_weighted_mean, line 14; system",
        "aggregate: max = federated_max, line 15; system",
        "state -> sent: int32 4",
        "data -> size: .size int32 4",
        "data -> score: .score float32[3] 12; .weight float32 4 weight",
        "sent -> max: int32 4",
        "size -> new state: int32 4",
        "score -> output: float32[3] 12",
        "max -> output: int32 4",
    ]


def test_a_value_is_followed_through_structs_that_pack_and_select(described: Describe) -> None:
    text = ROUND.replace("data.size, bitwidth", "swapped[1].inner, bitwidth").replace(
        "    size =",
        "    swapped = tff.federated_zip(\n"
        "        (data.weight, collections.OrderedDict(inner=data.size))\n    )\n    size =",
    )
    lines = list(picture(described(text).plain["round"]))
    assert "data -> size: .size int32 4" in lines


def test_an_aggregation_is_opened(described: Describe) -> None:
    calls = {call["title"]: call for call in described().plain["round"]["calls"]}
    both = "<float32[3],float32>"
    assert [(s["name"], s["type"], s["rule"]) for s in calls["score"]["steps"]] == [
        ("zero", f"() -> {both}", "two totals of zeros"),
        (
            "accumulate",
            f"({both}, {both}) -> {both}",
            "adds value · weight and weight to the totals",
        ),
        ("merge", f"({both}, {both}) -> {both}", "adds the totals"),
        ("report", f"({both}) -> {both}", "both totals; the server divides them"),
    ]
    assert calls["size"]["steps"] == []
    assert calls["size"]["bound"] == "10"


def test_the_steps_of_an_aggregation_have_graphs(described: Describe) -> None:
    found = described().plain
    (score,) = (call for call in found["round"]["calls"] if call["title"] == "score")
    graphs = [found["graphs"][step["graph"]] for step in score["steps"]]
    operations = [
        sorted({graph["words"][row[0]] for row in graph["scopes"][0]["rows"]}) for graph in graphs
    ]
    adds = ["AddV2", "Identity", "argument"]
    assert operations == [["Const", "Identity"], adds, adds, ["Identity", "argument"]]


def test_a_pass_says_what_it_changed(described: Describe) -> None:
    found = described().plain
    assert [(p["name"], p["before"], p["after"]) for p in found["passes"]] == [
        ("drop-identity-maps", 0, 0),
        ("call-dominant", 0, 1),
        ("lower-select", 1, 1),
    ]
    for style in ("typed", "formatted"):
        before, after = (text[style] for text in found["texts"])
        assert rebuilt(before, after, found["passes"][1]["diff"][style]) == after


def rebuilt(before: list[str], after: list[str], hunks: list[list[int]]) -> list[str]:
    """Return the second text, from the first and the lines that a difference adds."""
    made: list[str] = []
    for removed, added, kept in hunks:
        made += after[len(made) : len(made) + added]
        before = before[removed:]
        made, before = made + before[:kept], before[kept:]
    assert before == []
    return made


def test_lines_of_the_text_are_those_of_calls(described: Describe) -> None:
    found = described().plain
    for style in ("typed", "formatted"):
        lines = found["texts"][-1][style]
        assert list(found["bindings"][style]) == [c["name"] for c in found["round"]["calls"]]
        for name, number in found["bindings"][style].items():
            assert lines[number - 1].strip().startswith(name)


def test_components_have_sides_and_graphs(described: Describe) -> None:
    found = described().plain
    assert [(c["name"], c["side"]) for c in found["components"]][:3] == [
        ("prepare", "once, at the server"),
        ("work", "once at every client"),
        ("zero", "where clients' updates come together, at the server or on the way to it"),
    ]
    numbers = [graph["number"] for c in found["components"] for graph in c["graphs"]]
    assert max(numbers) < len(found["graphs"])


def test_components_of_programs_have_texts(described: Describe) -> None:
    found = described(form="distribute-aggregate").plain
    assert [component["text"][0][:14] for component in found["components"]] != []


def test_the_source_is_there_and_definitions_are_found(described: Describe) -> None:
    found = described().plain
    assert found["sources"] == [{"path": "round.py", "lines": ROUND.splitlines()}]


@pytest.mark.slow
def test_a_message_has_no_lines_and_the_same_picture(described: Describe) -> None:
    described()
    program = wire.from_bytes(wire.to_bytes(read_round("round.py", None).computation))
    found = describe(program, "mapreduce", "round.pb").plain
    assert found["sources"] == []
    assert next(line for line in picture(found["round"]) if "->" in line) == (
        "state -> broadcast: int32 4"
    )


def test_a_refused_program_has_the_lines_that_refuse_it(described: Describe) -> None:
    found = described(LATE)
    assert found.error is not None
    assert found.error.code == "E511"
    error = found.plain["error"]
    assert error["place"] == {"file": 0, "line": 8, "end": 8}
    assert [note["place"] for note in error["notes"]] == [{"file": 0, "line": 7, "end": 7}]
    assert error["notes"][0]["text"].startswith("it needs `")
    assert "round" not in found.plain
    assert [text["title"] for text in found.plain["texts"]] == ["as traced"]


def test_an_error_without_a_program_has_its_line(described: Describe) -> None:
    described()
    span = Span(str(pathlib.Path("round.py").absolute()), 3)
    found = refusal(LanguageTypeError("E101", "no", span=span), "round.py").plain
    assert found["error"]["place"] == {"file": 0, "line": 3, "end": 3}
    assert found["sources"][0]["lines"] == ROUND.splitlines()


def test_changes_since_an_older_version_are_told(described: Describe) -> None:
    described()
    older = Older(read_round("round.py", None).computation)
    text = ROUND.replace("federated_max", "federated_min")
    found = described(text, older=older).plain["changes"]
    (change,) = found["parts"]
    lines = [line for line in change["lines"] if "federated_m" in line and line[0] in "+-"]
    assert lines == [
        "-fc_count_symbol_3: int32@SERVER = federated_max(fc_count_symbol_0)",
        "+fc_count_symbol_3_1: int32@SERVER = federated_min(fc_count_symbol_0)",
    ]
    same = described(ROUND, older=older).plain["changes"]
    assert (same["parts"], same["breaking"], same["sources"]) == ([], [], [])


def test_what_changes_break_is_told_as_by_the_command(described: Describe) -> None:
    described()
    program = read_round("round.py", None).computation
    text = ROUND.replace("data.size, bitwidth=10", "data.size, bitwidth=12").replace(
        "federated_mean(data.score, weight=data.weight)", "federated_sum(data.score)"
    )
    changed = described(text, older=Older(program, "older")).plain["changes"]
    newer = read_round("round.py", None).computation
    expected = [
        (each.breaks.name.lower(), each.subject, each.message, each.span and each.span.line)
        for each in changes(program, newer, "mapreduce")
    ]
    assert len(expected) >= 2
    assert [
        (each["breaks"], each["subject"], each["message"], each["span"] and each["span"]["line"])
        for each in changed["breaking"]
    ] == expected


def test_changes_that_cannot_be_classified_are_shown_with_the_reason(described: Describe) -> None:
    described(LATE)
    late = read_round("round.py", None).computation
    changed = described(older=Older(late)).plain["changes"]
    assert changed["breaking"] == []
    assert "broadcast" in changed["unknown"]
    assert changed["parts"] != []


def test_changes_of_the_source_are_told(described: Describe, tmp_path: pathlib.Path) -> None:
    (tmp_path / "older.py").write_text(ROUND.replace("bitwidth=10", "bitwidth=12"))
    older = Older(read_round(str(tmp_path / "older.py"), None).computation)
    (source,) = described(older=older).plain["changes"]["sources"]
    assert (source["before"]["path"], source["after"]["path"]) == ("older.py", "round.py")
    assert source["diff"] == [[0, 0, 12], [1, 1, 2]]


def test_a_program_without_lines_has_those_of_its_revision(described: Describe) -> None:
    described()
    program = wire.from_bytes(wire.to_bytes(read_round("round.py", None).computation))
    old = ROUND.replace("bitwidth=10", "bitwidth=12").splitlines()
    older = Older(program, "git:HEAD", lambda file: old)
    (source,) = described(older=older).plain["changes"]["sources"]
    assert source["before"]["lines"] == old
    assert source["diff"] == [[0, 0, 12], [1, 1, 2]]


NESTED = ROUND.replace(
    "    size=np.int32,",
    "    size=np.int32, place=collections.OrderedDict(zip=np.int32, city=np.int32),",
).replace("data.size, bitwidth", "data.place.zip, bitwidth")


def test_values_between_calls_are_named_by_the_data_in_them(described: Describe) -> None:
    picture = described().plain["round"]
    titles = {call["name"]: call["title"] for call in picture["calls"]}
    edges = {
        (titles.get(edge["from"], edge["from"]), titles.get(edge["to"], edge["to"])): [
            part["data"] for part in edge["parts"]
        ]
        for edge in picture["edges"]
    }
    largest = next(title for title in titles.values() if title.startswith("max"))
    assert edges == {
        ("state", "sent"): [["state"]],
        ("data", "size"): [["data.size"]],
        ("data", "score"): [["data.score"], ["data.weight"]],
        ("sent", largest): [["state"]],
        ("size", "new state"): [["size"]],
        ("score", "output"): [["score"]],
        (largest, "output"): [[largest]],
    }
    shown = {call["title"]: call["data"] for call in picture["calls"] if not call["plumbing"]}
    assert shown == {
        "sent": ["state"],
        "size": ["data.size"],
        "score": ["data.score", "data.weight"],
        largest: ["state"],
    }


def test_only_the_part_of_a_struct_that_flows_is_named(described: Describe) -> None:
    picture = described(NESTED).plain["round"]
    (size,) = (call for call in picture["calls"] if call["title"] == "size")
    (edge,) = (each for each in picture["edges"] if each["to"] == size["name"])
    assert edge["parts"][0]["data"] == size["data"] == ["data.place.zip"]


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_the_audit_is_the_report_of_the_command(described: Describe, form: str) -> None:
    shown = described(form=form).plain["report"]
    program = read_round("round.py", None).computation
    report = Report("round.py:count", audit(program, form), program_digests(program))
    assert shown == document(report)


def test_a_policy_is_applied(described: Describe) -> None:
    def report(audited: Audit) -> Report:
        policy = Policy(largest_bytes=4, path="policy.yaml")
        found = violations(audited, policy, datetime.date(2030, 1, 1))
        return Report("round.py:count", audited, {}, policy=policy, violations=found)

    found = described(report=report).plain["report"]
    assert found["verdict"]["word"] == "violates"
    assert [(each["subject"], each["rule"]) for each in found["violations"]] == [
        ("score", "largest-bytes")
    ]


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_the_same_program_has_the_same_description(described: Describe, form: str) -> None:
    first, second = (json.dumps(described(form=form).plain) for _ in range(2))
    assert first == second


def test_what_stays_with_each_client_is_said() -> None:
    program = tff.federated_computation(
        lambda state, data: tff.federated_zip((tff.federated_broadcast(state), data)),
        tff.types.at_server(np.int32),
        tff.types.at_clients(np.int32),
    )
    found = describe(program.node, "broadcast", "x").plain["round"]
    (output,) = found["outputs"]
    assert (output["name"], output["stage"], output["protection"]) == ("output", "work", "none")


def check_described(program: Node, form: str) -> None:
    """Checks that a round has a page whose edges never lead backwards."""
    found = describe(program, form, "x")
    assert found.error is None
    drawn = found.plain["round"]
    order = [stage["key"] for stage in drawn["stages"]]
    stages = {call["name"]: order.index(call["stage"]) for call in drawn["calls"]}
    ends = {"state": 0, "data": 2}
    outputs = {output["name"]: order.index(output["stage"]) for output in drawn["outputs"]}
    assert outputs.keys() <= {"new state", "output", "client's new state"}
    ends |= outputs
    assert not stages.keys() & ends.keys()
    for edge in drawn["edges"]:
        assert (stages | ends)[edge["from"]] <= (stages | ends)[edge["to"]]
    assert {wire["to"] for wire in drawn["edges"]} <= {*stages, *outputs}
    json.dumps(found.plain, allow_nan=False)


@pytest.mark.slow
@given(rounds(secure=True, noisy=True), st.sampled_from(["mapreduce", "distribute-aggregate"]))
def test_every_round_is_described(program: Node, form: str) -> None:
    try:
        compile_form(program, form)
    except TffcError:
        assume(False)
    check_described(program, form)


@pytest.mark.slow
@given(broadcast_rounds())
def test_every_round_without_aggregations_is_described(program: Node) -> None:
    check_described(program, "broadcast")


GOLDEN = yaml.safe_load((ROOT / "golden" / "golden.yaml").read_text())


@pytest.mark.slow
@each_example("name", [name for name, entry in GOLDEN.items() if "forms" in entry])
def test_every_example_is_described(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for form in GOLDEN[name]["forms"]:
        check_described(read_round(GOLDEN[name]["target"], form).computation, form)


@pytest.mark.slow
def test_the_page_of_the_digits_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    target = "examples/digits/federated_averaging.py:training"
    program = read_round(target, None).computation
    assert len(page(describe(program, "mapreduce", target).plain)) <= 1_500_000


@pytest.mark.slow
def test_calls_say_what_they_run_need_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    target = "examples/temperature/temperature.py:mean_temperature"
    found = describe(read_round(target, None).computation, "mapreduce", target).plain
    shown = [call for call in found["round"]["calls"] if not call["plumbing"]]
    summaries, mean = shown
    assert (summaries["title"], summaries["function"]) == ("summaries", "summarise")
    (source,) = found["sources"]
    assert source["lines"][summaries["defined"]["line"] - 1] == "def summarise(readings):"
    assert mean["because"] == summaries["name"]
    assert mean["reads"] == ["readings", "how many readings"]
    assert (mean["function"], mean["defined"]) == (None, None)


def halves() -> Node:
    """Return a round that halves two of a client's values in one section, and adds each."""
    pair = StructType([programs.FLOAT, programs.FLOAT])
    builder = GraphBuilder()
    parameter = builder.parameter(pair)
    assert isinstance(parameter, tuple)
    arithmetic = GraphArithmetic(builder)
    twice = tuple(arithmetic.plus(each, each) for each in parameter)
    work = tff.Computation.from_node(builder.finish(twice, pair))
    person = collections.OrderedDict(user=np.float32, username=np.float32, age=np.float32)

    def run(state: tff.Value, data: tff.Value) -> tuple[tff.Value, tuple[tff.Value, ...]]:
        both = tff.federated_map(work, (data.user, data.age))
        return state, (tff.federated_sum(both[0]), tff.federated_max(both[1]))

    return tff.federated_computation(
        run, tff.types.at_server(np.float32), tff.types.at_clients(person)
    ).node


def test_each_part_of_a_result_is_named_by_its_own_data() -> None:
    picture = describe(halves(), "mapreduce", "x").plain["round"]
    calls = {call["name"]: call["operator"] for call in picture["calls"]}
    edges = [
        (calls.get(edge["from"], edge["from"]), part["path"], part["data"])
        for edge in picture["edges"]
        for part in edge["parts"]
        if calls.get(edge["to"]) in ("federated_map", "federated_sum", "federated_max")
    ]
    assert sorted(edges) == [
        ("data", ".age", ["data.age"]),
        ("data", ".user", ["data.user"]),
        ("federated_map", "[0]", ["data.user"]),
        ("federated_map", "[1]", ["data.age"]),
    ]
    shown = (call for call in picture["calls"] if not call["plumbing"])
    work = next(call for call in shown if call["operator"] == "federated_map")
    assert work["data"] == ["data.user", "data.age"]
