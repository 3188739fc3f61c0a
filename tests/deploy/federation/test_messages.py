"""What the two sides say is read as it was written, or refused."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tffc.deploy.federation.messages import Record, Reply, Request, name_record, read_name
from tffc.support.errors import ExecutionError

REQUEST = Request("p" * 64, 3, "attempt", "open", None, (np.ones((2, 3)), np.int32(7), [b"x"]))
REPLY = Reply("p" * 64, 3, "attempt", 5, 1, [(np.arange(4.0),), None])


def test_what_is_written_is_read() -> None:
    for message in (REQUEST, REPLY):
        record = message.to_record()
        found = type(message).from_record(record)
        assert repr(dataclasses.astuple(found)) == repr(dataclasses.astuple(message))
        assert all(isinstance(array, np.ndarray) for array in record.arrays)
        assert all(isinstance(v, (str, int, bytes)) for v in record.entries.values())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"round": "3"}, "its 'round' is not a count"),
        ({"round": -1}, "its 'round' is not a count"),
        ({"round": True}, "its 'round' is not a count"),
        ({"program": 3}, "its 'program' is not a text, or too long"),
        ({"attempt": "x" * 1001}, "its 'attempt' is not a text, or too long"),
        ({"rest": "N"}, "it holds no value"),
        ({"rest": b"N"}, "something follows the value"),
        ({"rest": b""}, "no value begins with b''"),
    ],
)
def test_messages_that_are_not_ours(changes: dict[str, Any], reason: str) -> None:
    record = REPLY.to_record()
    with pytest.raises(ExecutionError) as caught:
        Reply.from_record(record._replace(entries={**record.entries, **changes}))
    assert str(caught.value) == (
        f"a message of the federation is not one of tffc's: {reason} [E763]\n"
        "  help: run the same version of tffc at the server and at every node"
    )


def test_a_request_holds_two_values() -> None:
    record = REQUEST.to_record()
    with pytest.raises(ExecutionError, match="it does not hold two values"):
        Request.from_record(Record({**record.entries, "rest": b"N"}, ()))


def test_a_request_says_how_secure_sums_are_added() -> None:
    record = REQUEST.to_record()
    changed = record._replace(entries={**record.entries, "secure-sums": "Masked"})
    with pytest.raises(ExecutionError, match="its 'secure-sums' is neither open nor masked"):
        Request.from_record(changed)


ENTRIES = st.dictionaries(
    st.sampled_from(sorted({*REQUEST.to_record().entries, *REPLY.to_record().entries})),
    st.text(max_size=3) | st.integers(-2, 2) | st.binary(max_size=20) | st.booleans(),
)


@given(ENTRIES)
def test_anything_is_a_message_or_refused(changes: dict[str, Any]) -> None:
    for message in (REQUEST, REPLY):
        record = message.to_record()
        with contextlib.suppress(ExecutionError):
            type(message).from_record(record._replace(entries={**record.entries, **changes}))


@pytest.mark.parametrize(
    ("said", "name"),
    [("silo-1", "silo-1"), ("", ""), ("a b", ""), ("x" * 65, ""), (7, ""), ("\x1b[2J", "")],
)
def test_names_of_nodes(said: Any, name: str) -> None:
    assert read_name(Record({"name": said}, ())) == name


def test_a_name_is_read_as_it_was_written() -> None:
    assert read_name(name_record("north")) == "north"
