"""Files of bundles that are too large for an app: nodes keep what the app names, and no more."""

from __future__ import annotations

import hashlib
import pathlib

import numpy as np
import pytest

from tests.refusals import refusal
from tffc.deploy.federation.messages import Record
from tffc.deploy.federation.settings import NodeSettings
from tffc.deploy.federation.store import (
    Store,
    answer_keep,
    answer_lacks,
    files_record,
    read_digests,
    store_of,
)
from tffc.support.errors import DataError, ExecutionError

FILES = [b"one", b"another"]
NAMED = {hashlib.sha256(content).hexdigest(): len(content) for content in FILES}


def test_what_is_sent_is_kept(tmp_path: pathlib.Path) -> None:
    store = Store(tmp_path / "cache")
    assert read_digests(answer_lacks(store, NAMED)) == sorted(NAMED)
    kept = answer_keep(store, NAMED, files_record(FILES))
    assert read_digests(kept) == list(NAMED)
    assert read_digests(answer_lacks(store, NAMED)) == []
    assert [store.fetch(*each) for each in NAMED.items()] == FILES
    assert store.fetch("0" * 64, 3) == b""


def test_what_was_damaged_is_sent_again(tmp_path: pathlib.Path) -> None:
    store = Store(tmp_path / "cache")
    first, second = [store.put(content) for content in FILES]
    (tmp_path / "cache" / first).write_bytes(b"other")
    (tmp_path / "outside").write_bytes(b"as it was")
    (tmp_path / "cache" / second).unlink()
    (tmp_path / "cache" / second).symlink_to(tmp_path / "outside")
    assert sorted(store.lacks([first, second])) == sorted([first, second])
    answer_keep(store, NAMED, files_record(FILES))
    assert store.lacks([first, second]) == []
    assert (tmp_path / "outside").read_bytes() == b"as it was"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (files_record([b"mine"]), "it brings a file that the app does not name"),
        (Record({}, [np.ones(3)]), "it brings an array that is not a file"),
        (Record({}, [np.ones((3, 1), np.uint8)]), "it brings an array that is not a file"),
    ],
)
def test_nothing_else_is_kept(record: Record, reason: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ExecutionError, match=reason):
        answer_keep(Store(tmp_path / "cache"), NAMED, record)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "cache"
    assert refusal(DataError, lambda: Store(folder).put(b"one")) == (
        f"cannot keep a file of the bundle in {folder}: Not a directory [E851]\n"
        "  help: let the folder be written, or name another one as 'cache'"
    )


def test_answers_that_are_no_hashes() -> None:
    assert read_digests(Record({"digests": "a,../b," + "0" * 64}, ())) == ["0" * 64]
    assert read_digests(Record({"digests": 7}, ())) == []


def test_the_folder_is_the_cache_of_the_user(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    digest = store_of(NodeSettings("data")).put(b"one")
    assert (tmp_path / "tffc" / "flower" / digest).read_bytes() == b"one"
    named = NodeSettings("data", cache=tmp_path / "own")
    assert store_of(named).lacks([digest]) == [digest]
