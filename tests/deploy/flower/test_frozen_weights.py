"""Nodes of a Flower federation are sent frozen weights once, apart from the app."""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.backends.bundle.bundle import Bundle, read_bundle, write_bundle
from tffc.language.values.resources import STORE
from tffc.support.errors import TffcError

pytest.importorskip("flwr", reason="needs tffc[flower]")

from tests.deploy.flower.test_sides import parts, run, write, write_client
from tffc.deploy.flower.bundle_file import fetch_from, named_files, read_app_bundle

BIG = np.full(3_000_000, 2, np.int32)
DIGEST = hashlib.sha256(BIG.tobytes()).hexdigest()


@pytest.fixture
def bundle() -> Bundle:
    small, big = tff.resource(np.array([1, 2], np.int32)), tff.resource(BIG)

    @tff.tf_computation([np.float32, np.int32])
    def scaled(values: Any) -> Any:
        return values[1] * small()[1] + big()[7]

    @tff.federated_computation(
        tff.types.at_server(()), tff.types.at_clients([np.float32, np.int32])
    )
    def total(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(scaled, data))

    return tff.compile(total, form="mapreduce")


@pytest.fixture
def forgetting() -> Iterator[None]:
    """The store of another process, which knows nothing that this one does."""
    tables: list[dict[Any, Any]] = [STORE._arrays, STORE._sources, STORE._typed]
    before = [dict(table) for table in tables]
    for table in tables:
        table.clear()
    yield
    for table, kept in zip(tables, before, strict=True):
        table.clear()
        table.update(kept)


@pytest.fixture
def numbers(tmp_path: pathlib.Path) -> str:
    """A folder with the data of twelve clients."""
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(12):
        write_client(folder, f"{number:02}", np.float32(0), np.int32(number))
    return str(folder)


@pytest.fixture
def app(bundle: Bundle, tmp_path: pathlib.Path, forgetting: None) -> pathlib.Path:
    """An app, whose bundle lies beside it."""
    for values in (BIG, np.array([1, 2], np.int32)):
        tff.resource(values)
    write_bundle(bundle, tmp_path / "bundle")
    made = write(bundle, tmp_path / "app")
    STORE._arrays.clear()
    STORE._typed.clear()
    return made


def test_an_app_names_large_arrays_and_holds_small_ones(app: pathlib.Path) -> None:
    file = app / "tffc_app" / "bundle.json"
    entries = json.loads(file.read_bytes())["files"]
    held = {path for path, entry in entries.items() if "base64" in entry}
    assert set(entries) - held == {f"resources/{DIGEST}"}
    assert named_files(file) == {DIGEST: BIG.nbytes}
    assert file.stat().st_size < 2**20


def test_nodes_are_sent_them_once(
    app: pathlib.Path,
    tmp_path: pathlib.Path,
    numbers: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    nodes = {n: {**c, "cache": str(tmp_path / c["name"])} for n, c in parts(numbers).items()}
    config = {"bundle": str(tmp_path / "bundle"), "rounds": 2}
    with caplog.at_level("INFO", "flwr"):
        rounds, grid = run(app, nodes, config)
    assert [each.output for each in rounds] == [sum(range(12)) * 2 + 12 * 2] * 2
    assert sum("was sent 1 files" in message for message in caplog.messages) == 3
    for number in range(3):
        assert (tmp_path / f"silo-{number}" / DIGEST).stat().st_size == BIG.nbytes
    work = [m for m in grid.sent if m.metadata.message_type == "train.work"]
    assert len(work) == 6
    records = [record for message in work for record in message.content.array_records.values()]
    sizes = [len(array.data) for record in records for array in record.values()]
    assert sum(sizes) < 1000
    caplog.clear()
    with caplog.at_level("INFO", "flwr"):
        _, grid = run(app, nodes, config)
    assert "was sent" not in caplog.text
    assert "train.keep" not in [message.metadata.message_type for message in grid.sent]


def test_a_node_finds_them_in_its_folder(app: pathlib.Path, tmp_path: pathlib.Path) -> None:
    file = app / "tffc_app" / "bundle.json"
    with pytest.raises(TffcError, match=f"names resources/{DIGEST}, of 12000000 bytes, and does"):
        read_app_bundle(file)
    found = read_app_bundle(file, fetch_from(tmp_path / "bundle"))
    assert found == read_bundle(tmp_path / "bundle")
    content = STORE.content(DIGEST)
    assert content.tobytes() == BIG.tobytes()
    assert f"{tmp_path}/bundle/resources/{DIGEST}" in pathlib.Path("/proc/self/maps").read_text()
