"""Readers of what nodes and servers of a federation send, and of what a node remembers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tests.fuzz.reader import Reader, damage_bytes, damage_text, folder, refused
from tests.hostile.bundles import seeds as seed_bundles
from tffc.deploy.federation.messages import OPEN, Record, Reply, Request, read_name
from tffc.deploy.federation.past import FILE, history_of, remembered
from tffc.deploy.federation.round_counts import FILE as COUNTS
from tffc.deploy.federation.round_counts import read_counts
from tffc.deploy.flower.bundle_file import decode_bundle_file, encode_bundle_file, named_files
from tffc.deploy.nvflare.packed import pack, unpack
from tffc.deploy.nvflare.sites import SITE_FILE, read_site_settings
from tffc.runtime.engines.encoding import encode
from tffc.runtime.masking.history import History
from tffc.support.errors import TffcError

ABOUT = {"program": "0" * 64, "round": 1, "attempt": "a", "clients": 2, "skipped": 0, "error": ""}
ARRAYS = [np.arange(4, dtype=np.int32), np.ones((2, 3), np.float32), np.array([True])]
HISTORY = b'{"%s": {"label": "00", "round": 3}}' % (b"0" * 64)


def read_message(data: bytes) -> bool:
    """Read a request and a reply with this value."""
    record = Record({**ABOUT, "secure-sums": OPEN, "name": "silo", "rest": data}, ())
    read_name(record)
    return _is_read(Request, record) or _is_read(Reply, record)


def _is_read(kind: Any, record: Record) -> bool:
    try:
        kind.from_record(record)
    except TffcError as error:
        return refused(error)
    return True


def read_bundle_file(data: bytes) -> bool:
    """Read a bundle in one file."""
    path = folder("bundle-file") / "bundle.json"
    path.write_bytes(data)
    named_files(path)
    decode_bundle_file(data, "bundle.json")
    return True


def read_history(data: bytes) -> bool:
    """Read the history of a node, from its memory and from its folder."""
    place = folder("history")
    (place / FILE).write_bytes(data)
    with remembered(place, History()):
        history_of(b'{"history": %b}' % data)
    return True


def read_rounds(data: bytes) -> bool:
    """Read how many rounds a node has taken part in."""
    place = folder("rounds")
    (place / COUNTS).write_bytes(data)
    read_counts(place)
    return True


def read_packed(data: bytes) -> bool:
    """Read the bytes of a message, and the request or reply that it is."""
    record = unpack(data)
    return _is_read(Request, record) or _is_read(Reply, record)


def read_site(data: bytes) -> bool:
    """Read the configuration of a site."""
    place = folder("site")
    (place / SITE_FILE).write_bytes(data)
    read_site_settings(place, "site-1", ["site-1", "site-2"])
    return True


def _seed_packed() -> list[bytes]:
    request = Request("0" * 64, 1, "a", OPEN, [ARRAYS[0]], (ARRAYS[1], np.float32(2)))
    reply = Reply("0" * 64, 1, "a", clients=2, totals=[ARRAYS[2]])
    return [pack(message.to_record()) for message in (request, reply)]


def _seed_messages() -> list[bytes]:
    values: tuple[Any, ...] = (
        (np.int32(1), np.array([b"x"], object)),
        ((), None),
        (ARRAYS[0], (ARRAYS[1], [ARRAYS[0], ARRAYS[0]])),
        [ARRAYS[2], np.float32(2)],
        None,
    )
    return [encode(value) for value in values]


def _seed_histories() -> list[bytes]:
    history = History()
    history.begin("0" * 64, 1, b"label")
    history.end("0" * 64, 1)

    return [b"{}", HISTORY, json.dumps(history.to_json()).encode()]


SITES = (
    b'{"data": "csv:visits.csv"}',
    b'{"data": "d", "partition-id": 0, "num-partitions": 2, "policy": "p", "key": "k"}',
)

READERS = {
    "packed-message": Reader(
        read_packed, _seed_packed, damage_bytes, ("a message of a federation",)
    ),
    "site": Reader(read_site, lambda: list(SITES), damage_text, ("the configuration of a site",)),
    "federation-message": Reader(
        read_message, _seed_messages, damage_bytes, ("a message of a federation",)
    ),
    "bundle-file": Reader(
        read_bundle_file,
        lambda: [encode_bundle_file(files) for files in seed_bundles()],
        damage_text,
        ("a bundle in one file",),
    ),
    "round-counts": Reader(
        read_rounds,
        lambda: [b"{}", b'{"%s": 3}' % (b"0" * 64)],
        damage_text,
        ("a node's memory of rounds",),
    ),
    "history": Reader(read_history, _seed_histories, damage_text, ("a history of masked sums",)),
}
