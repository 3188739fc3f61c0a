"""Messages as bytes, and what is refused of bytes that are no message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tffc.deploy.federation.messages import OPEN, Record, Reply, Request
from tffc.deploy.nvflare.packed import pack, unpack
from tffc.runtime.engines.encoding import encode
from tffc.support.errors import ExecutionError

VALUES: list[Any] = [
    None,
    (),
    np.float32(1.5),
    [np.arange(6, dtype=np.int64).reshape(2, 3), np.zeros([0, 4], np.float32)],
    (np.array([b"a", b"\0"], object), np.array(True)),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_what_is_packed_is_read(value: Any) -> None:
    reply = Reply("p", 3, "a", clients=2, skipped=1, totals=value)
    found = Reply.from_record(unpack(pack(reply.to_record())))
    assert (found.program, found.round, found.attempt, found.clients, found.skipped) == (
        "p",
        3,
        "a",
        2,
        1,
    )
    assert encode(found.totals) == encode(value)
    request = Request("p", 1, "a", OPEN, value, (value, value))
    assert encode(Request.from_record(unpack(pack(request.to_record()))).sent) == encode(
        (value, value)
    )


def test_the_same_message_has_the_same_bytes() -> None:
    one, two = (Reply("p", 3, "a", totals=[np.arange(3)]).to_record() for _ in range(2))
    assert pack(one) == pack(two)


GOOD = pack(Record({"round": 1}, [np.arange(3)]))

WRONG: dict[str, tuple[object, str]] = {
    "missing": (None, "it is not bytes"),
    "text": ("x", "it is not bytes"),
    "short": (GOOD[:-1], ""),
    "long": (GOOD + b"N", ""),
    "value": (encode(np.int32(3)), "it does not have three parts"),
    "parts": (encode((b"{}", b"")), "it does not have three parts"),
    "head": (encode((None, b"", [])), "its parts are others"),
    "arrays": (encode((b"{}", b"", [b"x"])), "its parts are others"),
    "tuple": (encode((b"{}", b"", ())), "its parts are others"),
    "json": (encode((b"{", b"", [])), ""),
    "list": (encode((b"[]", b"", [])), "what it says of itself is not an object"),
}


@pytest.mark.parametrize("case", WRONG)
def test_other_bytes_are_refused(case: str) -> None:
    content, reason = WRONG[case]
    with pytest.raises(ExecutionError) as refused:
        unpack(content)
    assert refused.value.code == "E763"
    assert refused.value.message.startswith("a message of the federation is not one of tffc's: ")
    assert refused.value.message.endswith(reason)
