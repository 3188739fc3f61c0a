"""The bundle in a Flower app: what is read is what was written, within Flower's limits."""

from __future__ import annotations

import hashlib
import json
import pathlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refusal
from tests.runtime.engines.programs import every_aggregation, process_of
from tffc.backends.bundle.bundle import decode_bundle
from tffc.deploy.flower.bundle_file import (
    LIMIT,
    decode_bundle_file,
    encode_bundle_file,
    named_files,
    read_app_bundle,
)
from tffc.support.errors import BundleError

FILES = {"manifest.json": b"{}", "computation.pb": b"\x00" * 300, "components/work.pb": b"w" * 200}
PATH = pathlib.Path("app/bundle.json")


def test_what_is_written_is_read() -> None:
    assert decode_bundle_file(encode_bundle_file(FILES), "f") == FILES


def test_a_bundle() -> None:
    bundle = process_of(every_aggregation, "mapreduce").bundle
    content = encode_bundle_file(bundle.encode())
    assert content == encode_bundle_file(bundle.encode())
    assert decode_bundle(decode_bundle_file(content, "f"), PATH).encode() == bundle.encode()


def test_the_largest_files_are_only_named_where_there_is_no_room() -> None:
    whole = encode_bundle_file(FILES)
    less = encode_bundle_file(FILES, len(whole) - 1)
    found = json.loads(less)["files"]
    assert [path for path, entry in found.items() if "base64" not in entry] == ["computation.pb"]
    assert len(less) < len(whole)
    least = encode_bundle_file(FILES, 500)
    assert "base64" not in str(json.loads(least))
    kept = {hashlib.sha256(content).hexdigest(): content for content in FILES.values()}
    assert decode_bundle_file(least, "f", lambda digest, size: kept[digest]) == FILES
    assert refusal(BundleError, decode_bundle_file, less, "b.json") == (
        "b.json names computation.pb, of 300 bytes, and does not hold it [E762]\n"
        "  help: say where the bundle is, with 'bundle' in the configuration"
    )
    with pytest.raises(BundleError, match=r"computation\.pb has 1 bytes, not 300"):
        decode_bundle_file(less, "f", lambda digest, size: b"x")


def test_large_graphs_stay_below_the_limit_of_flower() -> None:
    files = {**FILES, "components/update.pb": bytes(9 * 2**20)}
    assert len(encode_bundle_file(files)) < LIMIT


def test_too_many_files() -> None:
    assert refusal(BundleError, encode_bundle_file, FILES, 100) == (
        "the bundle has 3 files, too many to name them in a Flower app [E761]\n"
        "  help: write the program with fewer components"
    )


def changed(path: str, **entry: Any) -> bytes:
    found = json.loads(encode_bundle_file(FILES))
    found["files"][path] = {**found["files"].get(path, {}), **entry}
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is not JSON"),
        (b"[]", "it is not an object of format 1.0"),
        (b'{"format_version": "2.0", "files": {}}', "it is not an object of format 1.0"),
        (b'{"format_version": "1.0", "files": []}', "its 'files' are not right"),
        (b'{"files": {}, "files": {}}', "the key 'files' occurs twice in an object"),
        (changed("computation.pb", sha256="0"), "its 'files' are not right"),
        (changed("computation.pb", bytes=-1), "its 'files' are not right"),
        (changed("computation.pb", bytes=2**40), "its 'files' are not right"),
        (changed("computation.pb", more=1), "its 'files' are not right"),
        (changed("../x.pb", sha256="0" * 64, bytes=0, base64=""), "its 'files' are not right"),
        (changed("/etc/x.pb", sha256="0" * 64, bytes=0, base64=""), "its 'files' are not right"),
        (changed("computation.pb", base64="%"), "the content of computation.pb is not in base64"),
        (changed("computation.pb", base64="AAAA"), "computation.pb has 3 bytes, not 300"),
        (
            changed("computation.pb", base64="AAAA", bytes=3),
            "computation.pb does not have its hash",
        ),
    ],
)
def test_files_that_hold_no_bundle(content: bytes, reason: str) -> None:
    assert refusal(BundleError, decode_bundle_file, content, "b.json") == (
        f"b.json does not hold a bundle: {reason} [E760]\n"
        "  help: write the app again, with tffc export --to flower"
    )


@pytest.mark.parametrize("read", [read_app_bundle, named_files])
def test_an_app_without_its_bundle(read: Any, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "bundle.json"
    assert refusal(BundleError, read, path) == (
        f"{path} does not hold a bundle: it cannot be read: No such file or directory [E760]\n"
        "  help: write the app again, with tffc export --to flower"
    )


def test_a_bundle_without_one_of_its_files() -> None:
    files = process_of(every_aggregation, "mapreduce").bundle.encode()
    del files["components/work.sexpr"]
    assert refusal(BundleError, decode_bundle, files, PATH) == (
        "the bundle app/bundle.json has no components/work.sexpr [E760]\n"
        "  help: export the bundle again"
    )


def test_a_bundle_with_a_damaged_file() -> None:
    files = process_of(every_aggregation, "mapreduce").bundle.encode()
    damaged = {**files, "components/work.pb": b"x"}
    with pytest.raises(BundleError, match="E606"):
        decode_bundle(damaged, PATH)


@given(st.binary(max_size=40), st.integers(0, 2000))
def test_damaged_files_are_refused_or_read_whole(noise: bytes, at: int) -> None:
    whole = encode_bundle_file(FILES)
    content = whole[:at] + noise + whole[at + len(noise) :]
    try:
        assert decode_bundle_file(content, "f") == FILES
    except BundleError:
        return
