"""The configurations of a job and of its sites, and what is refused of them."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping

import pytest

from tests.refusals import refusal
from tffc.deploy.federation.settings import NodeSettings, RunSettings
from tffc.deploy.nvflare.job_folder import SHOWN
from tffc.deploy.nvflare.sites import SERVER_FILE, SITE_FILE, read_run_settings, read_site_settings
from tffc.support.errors import LanguageValueError

TABLES = "  help: docs/nvflare.md has tables of all entries"


def write(folder: pathlib.Path, **entries: object) -> pathlib.Path:
    (folder / SITE_FILE).write_text(
        json.dumps({k.replace("_", "-"): v for k, v in entries.items()})
    )
    return folder


def test_a_run(tmp_path: pathlib.Path) -> None:
    config = {"rounds": 3, "min-nodes": 4, "out": "", "secure-sums": "masked"}
    assert read_run_settings(config, tmp_path, tmp_path) == RunSettings(
        rounds=3, min_nodes=4, out=tmp_path, secure_sums="masked"
    )


def serve(folder: pathlib.Path, **entries: str) -> pathlib.Path:
    """Write the configuration of the server."""
    allowed = {name.replace("_", "-"): value for name, value in entries.items()}
    (folder / SERVER_FILE).write_text(json.dumps(allowed))
    return folder


@pytest.mark.parametrize("out", ["1", "a/1", "ABSOLUTE", "a/../1"])
def test_a_run_in_the_folder_that_the_server_gives_to_runs(
    tmp_path: pathlib.Path, out: str
) -> None:
    runs = tmp_path / "runs"
    serve(tmp_path, out=str(runs), allow_effects="files, python")
    config = {"out": out.replace("ABSOLUTE", f"{runs}/1"), "resume": True}
    settings = read_run_settings({**config, "allow-effects": "files"}, tmp_path, tmp_path)
    place = runs / ("a/1" if out == "a/1" else "1")
    assert settings == RunSettings(out=place, resume=True, allow_effects=frozenset({"files"}))


@pytest.mark.parametrize("out", ["/runs/1", "../1", "a/../../1", ".", "link/1", "link"])
@pytest.mark.parametrize("gives", [True, False])
def test_a_run_elsewhere_at_the_server(tmp_path: pathlib.Path, out: str, gives: bool) -> None:
    """Whoever submits a job would write, and read with `resume`, what the server's process can."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path)
    serve(tmp_path, **({"out": str(tmp_path / "runs")} if gives else {}))
    assert refusal(LanguageValueError, read_run_settings, {"out": out}, tmp_path, tmp_path) == (
        f"the server does not let runs keep their folder in {out!r} [E766]\n"
        "  help: leave 'out' out, or name a folder in the one that the operator of the server "
        "gives to runs"
    )


@pytest.mark.parametrize("allowed", ["", "network"])
def test_effects_that_the_server_does_not_allow(tmp_path: pathlib.Path, allowed: str) -> None:
    """A job without code of its own must not get to run some by a bundle."""
    serve(tmp_path, allow_effects=allowed)
    config = {"allow-effects": "network,python,files" if allowed else "python,files"}
    assert refusal(LanguageValueError, read_run_settings, config, tmp_path, tmp_path) == (
        "the server does not let bundles have these effects: files, python [E766]\n"
        "  help: the operator of the server allows them, and not who submits a run"
    )


def test_a_configuration_of_the_server_that_is_none(tmp_path: pathlib.Path) -> None:
    serve(tmp_path, effects="files")
    assert refusal(LanguageValueError, read_run_settings, {}, tmp_path, tmp_path) == (
        f"'effects' in {SERVER_FILE} is not an entry [E766]\n  help: did you mean 'allow-effects'?"
    )


def test_the_entries_of_a_job_are_those_of_a_run(tmp_path: pathlib.Path) -> None:
    usual = RunSettings()
    config = {name: getattr(usual, name.replace("-", "_")) for name in SHOWN}
    assert read_run_settings(config, tmp_path, tmp_path) == RunSettings(out=tmp_path)


WRONG: Mapping[str, tuple[Mapping[str, object], str]] = {
    "bundle": (
        {"bundle": "/b"},
        "'bundle' in the job's configuration has no effect: the job holds the whole bundle [E766]\n"
        "  help: leave it out",
    ),
    "buffered": (
        {"buffer": 2, "in-flight": 3},
        "'buffer' in the job's configuration has no effect: rounds on NVFlare are not buffered "
        "[E766]\n  help: leave it out",
    ),
    "unknown": (
        {"round": 2},
        "'round' in the job's configuration is not an entry [E766]\n  help: did you mean 'rounds'?",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_run(tmp_path: pathlib.Path, case: str) -> None:
    config, text = WRONG[case]
    assert refusal(LanguageValueError, read_run_settings, config, tmp_path, tmp_path) == text


def test_a_site(tmp_path: pathlib.Path) -> None:
    write(tmp_path, data="/clients", policy="/p.yaml", demands="/d.yaml", skip_bad_clients=True)
    assert read_site_settings(tmp_path, "ward", ()) == NodeSettings(
        data="/clients",
        policy=pathlib.Path("/p.yaml"),
        demands=pathlib.Path("/d.yaml"),
        skip_bad_clients=True,
        name="ward",
    )


def test_sites_of_a_simulation_share_the_clients(tmp_path: pathlib.Path) -> None:
    write(tmp_path, data="/clients")
    names = ["site-2", "site-1", "site-10"]
    parts = {name: read_site_settings(tmp_path, name, names) for name in names}
    assert {name: part.partition_id for name, part in parts.items()} == {
        "site-1": 0,
        "site-10": 1,
        "site-2": 2,
    }
    assert {part.num_partitions for part in parts.values()} == {3}
    write(tmp_path, data="/clients", partition_id=1, num_partitions=2)
    settings = read_site_settings(tmp_path, "site-2", names)
    assert (settings.partition_id, settings.num_partitions) == (1, 2)


def read(folder: pathlib.Path) -> str:
    return refusal(LanguageValueError, read_site_settings, folder, "site-1", ())


@pytest.mark.parametrize("content", [None, "{}", '{"data": ""}'])
def test_a_site_that_does_not_say_where_its_data_is(
    tmp_path: pathlib.Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / SITE_FILE).write_text(content)
    assert read(tmp_path) == (
        "the site's configuration does not say where its clients' data is [E766]\n"
        f'  help: write {{"data": "/path/to/data"}} to {tmp_path / SITE_FILE}'
    )


def test_entries_without_effect_at_a_site(tmp_path: pathlib.Path) -> None:
    write(tmp_path, data="/d", worker="/w")
    assert read(tmp_path) == (
        "'worker' in tffc.json has no effect: NVFlare keeps the site's process [E766]\n"
        "  help: leave it out"
    )
    write(tmp_path, data="/d", polcy="/p")
    assert read(tmp_path) == (
        "'polcy' in tffc.json is not an entry [E766]\n  help: did you mean 'policy'?"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[]", "it is not an object"),
        ("{", "it is not JSON"),
        ('{"data": "a", "data": "b"}', "the key 'data' occurs twice in an object"),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: pathlib.Path, content: str, reason: str) -> None:
    (tmp_path / SITE_FILE).write_text(content)
    text = read(tmp_path)
    assert text.startswith(f"{tmp_path / SITE_FILE} cannot be read: ")
    assert text.endswith(f" [E766]\n{TABLES}")
    assert reason in text


def test_a_file_that_is_no_file(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / SITE_FILE)
    assert read(tmp_path) == (
        f"{tmp_path / SITE_FILE} cannot be read: it is a FIFO, expected a regular file [E766]\n"
        f"{TABLES}"
    )
