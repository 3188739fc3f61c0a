"""What a node and the server make of messages that somebody changed."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.hostile import federations
from tests.hostile.federations import NAMES, Here, changed_record, honest, round_of
from tests.runtime.masking.sums import Sum
from tffc.deploy.federation.engine import FederationEngine
from tffc.deploy.federation.masked_steps import MOST_PARTICIPANTS, pack_table, unpack_table
from tffc.deploy.federation.messages import Record, Reply, Request, program_digest
from tffc.deploy.federation.settings import RunSettings
from tffc.deploy.federation.store import read_digests
from tffc.runtime.engines.encoding import decode, encode
from tffc.runtime.masking.aggregator import Aggregator
from tffc.runtime.masking.terms import Keys
from tffc.support.errors import ExecutionError

OPEN, SIZED, ALONE = 0, 6, 7
"""Places of federations."""


def answers(at: int, name: str, totals: Callable[[Any], Any]) -> Any:
    """The result of a round in which a node answers other accumulators, and the server's log."""
    federation = federations.federations()[at]

    def change(kind: str, node: str, record: Record) -> list[Record]:
        reply = Reply.from_record(record)
        changed = dataclasses.replace(reply, totals=totals(reply.totals))
        return [changed.to_record() if node == name else record]

    return round_of(federation, Here(federation, change))


SHAPED: Mapping[str, Callable[[Any], Any]] = {
    "one more dimension": lambda totals: [*totals[:-1], (np.stack(totals[-1]),)],
    "many numbers": lambda totals: [*totals[:-1], (np.zeros((1, 10**6), np.int32),)],
    "another type of numbers": lambda totals: [*totals[:-1], (np.float64(1),)],
    "a tuple of accumulators": tuple,
    "too many accumulators": lambda totals: [*totals, None],
    "nothing": lambda totals: None,
    "deep": lambda totals: [*totals[:-1], ((((),),),)],
}


@pytest.mark.parametrize("how", SHAPED)
def test_accumulators_have_their_types(how: str) -> None:
    result, log = answers(OPEN, "silo-2", SHAPED[how])
    assert result.skipped == ("silo-2",)
    assert "round 1: silo-2 does not take part: what it answers does not fit the program" in log
    assert all(np.shape(part) == () for part in result.output)


@pytest.mark.parametrize("size", [0, 1, 3, 10])
def test_sums_of_sizes_that_only_clients_know(size: int) -> None:
    """The honest nodes agree on a size, and one that adds another does not take part."""
    vector = np.zeros(size, np.int32)
    result, log = answers(SIZED, "silo-0", lambda totals: [totals[0], vector])
    assert result.skipped == ("silo-0",)
    assert log == [
        "round 1: secure sums are not masked; the server sees parts",
        "round 1: silo-0 does not take part: its secure sums have another shape",
    ]
    assert len(result.output[0]) == 2


def test_nothing_is_added_up_where_clients_keep_their_results() -> None:
    result, _ = answers(ALONE, "silo-1", lambda totals: [np.int32(1)])
    assert result.skipped == ("silo-1",)


@pytest.mark.parametrize(
    "sent",
    [
        (),
        (np.int32(4), np.int32(4)),
        (np.zeros(1, np.int32),),
        (np.float32(4),),
        (b"4",),
        [np.int32(4)],
        np.int32(4),
        None,
    ],
)
def test_what_is_sent_to_clients_has_its_type(sent: Any) -> None:
    federation = federations.federations()[ALONE]
    log: list[str] = []
    node = federation.node(log)
    program = program_digest(federation.process)
    record = Request(program, 1, "attempt", "open", None, sent).to_record()
    assert Reply.from_record(node.answer(record)).error == "E763"
    assert "what it sends to the clients is not of the program's type" in log[0]


def test_each_file_of_a_bundle_is_sent_once() -> None:
    """However often a node says that it lacks it."""
    federation = federations.federations()[ALONE]
    digest = "0" * 64
    sent: list[Record] = []

    class Greedy(Here):
        def send(self, kind: str, records: Mapping[str, Record], *, more: bool = False) -> None:
            sent.extend(records.values() if kind == "keep" else ())
            super().send(kind, records)

    def answer(kind: str, name: str, record: Record) -> Record:
        return Record({"digests": ",".join([digest] * 10_000)}, ())

    here = Greedy(federation, answer=answer)
    settings = RunSettings(min_replies=1)
    engine = FederationEngine(federation.process, here, settings, [].append, {digest: b"content"})
    engine.supply(NAMES)
    assert [len(record.arrays) for record in sent] == [1] * len(NAMES)
    assert len(read_digests(answer("", "", sent[0]))) == 10_000


@pytest.mark.parametrize("keys", [Keys(bytes(32), bytes(32)), Keys(b"", b"short"), "another's"])
def test_the_server_leaves_out_keys_that_nobody_would_go_on_with(keys: Any) -> None:
    """Were they forwarded, every other participant would refuse, and there would be no sum."""
    masked = Sum()
    said = masked.keys()
    first, last = masked.names[0], masked.names[-1]
    server = Aggregator(masked.names, masked.terms)
    for name in masked.names[:-1]:
        server.receive_keys(name, said[name])
    with pytest.raises(ExecutionError):
        server.receive_keys(last, said[first] if keys == "another's" else keys)
    every = server.all_keys()
    assert sorted(every) == masked.names[:-1]
    for name in every:
        server.receive_shares(name, masked.people[name].shares(every))
    assert sorted(server.all_shares()) == masked.names[:-1]


def test_the_server_leaves_out_shares_of_other_sizes() -> None:
    masked = Sum()
    every = masked.keys()
    for name, keys in every.items():
        masked.server.receive_keys(name, keys)
    masked.server.all_keys()
    for name in masked.names:
        dealt = masked.people[name].shares(every)
        if name == masked.names[2]:
            dealt[masked.names[3]] = dealt[masked.names[3]][:-1]
            with pytest.raises(ExecutionError, match=r"another size than shares \[E860\]"):
                masked.server.receive_shares(name, dealt)
        else:
            masked.server.receive_shares(name, dealt)
    assert masked.names[2] not in masked.server.all_shares()


def test_a_sum_has_a_limited_number_of_participants() -> None:
    """Splitting secrets for all takes time in the square of their number."""
    names = {f"{number:06}": b"" for number in range(MOST_PARTICIPANTS + 1)}
    with pytest.raises(ExecutionError, match=r"or too many \[E763\]"):
        unpack_table(pack_table(names))


@pytest.mark.parametrize("letter", [b"S", b"A" + (1).to_bytes(8, "little")])
def test_a_value_has_a_limited_number_of_dimensions(letter: bytes) -> None:
    """The product of a million sizes would take longer than all else."""
    ranks, size = (10**5).to_bytes(8, "little"), (2**62).to_bytes(8, "little")
    with pytest.raises(ValueError, match="an array has too many dimensions"):
        decode(letter + ranks + size * 10**5)


def test_a_boolean_is_true_or_false() -> None:
    content = encode(np.array([True, False]))
    with pytest.raises(ValueError, match="a boolean is neither true nor false"):
        decode(content[:-1] + b"\x07")


def test_a_few_changed_messages() -> None:
    """`python -m tests.hostile.long --only requests --only answers` tries many."""
    for case in range(15):
        federations.run_request(random.Random(f"request 0 {case}"), ALONE)
        federations.run_answer(random.Random(f"answer 0 {case}"), ALONE)


def test_records_are_changed_in_many_ways() -> None:
    """What is tried is neither always nor never what was sent."""
    messages = honest(ALONE)
    record = messages[0][3]
    changed = [
        changed_record(random.Random(case), record, [each[4] for each in messages])
        for case in range(60)
    ]
    assert len({repr(each) for each in changed}) > 40
