"""A cache that was damaged, that others can write to, that is full, or that two processes fill."""

from __future__ import annotations

import errno
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.hostile.kills import contents
from tests.processes import ENVIRONMENT
from tffc.cli.runnable import KEPT, cache_folder, read_runnable
from tffc.support.files import atomic

FORM = "distribute-aggregate"

PROGRAM = """
import numpy as np
import tffc as tff

@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def total(state, data):
    return tff.federated_sum(data), tff.federated_sum(data)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "total.py").write_text(PROGRAM)


def compiled() -> dict[str, str]:
    """The digests of the program's components, from the cache or not."""
    return read_runnable("total.py:total", FORM).bundle.digests()


def entry() -> pathlib.Path:
    (path,) = (each for each in cache_folder().iterdir() if len(each.name) == 64)
    return path


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that are compiled from now on."""
    seen: list[str] = []
    from tffc.cli import runnable

    compiled = runnable.compiled
    monkeypatch.setattr(
        runnable, "compiled", lambda *given: (seen.append("compiled"), compiled(*given))[1]
    )
    return seen


def cut_component(path: pathlib.Path) -> None:
    part = next((path / "components").iterdir())
    part.write_bytes(part.read_bytes()[:-1])


def link_entry(path: pathlib.Path) -> None:
    path.rename("elsewhere")
    path.symlink_to(pathlib.Path("elsewhere").resolve())


def link_component(path: pathlib.Path) -> None:
    part = next((path / "components").iterdir())
    part.rename("elsewhere")
    part.symlink_to(pathlib.Path("elsewhere").resolve())


DAMAGES: dict[str, Callable[[pathlib.Path], object]] = {
    "a component is cut": cut_component,
    "the manifest is empty": lambda path: (path / "manifest.json").write_text(""),
    "the manifest is another": lambda path: (path / "manifest.json").write_text("[" * 100_000),
    "the manifest is a FIFO": lambda path: (
        (path / "manifest.json").unlink(),
        os.mkfifo(path / "manifest.json"),
    ),
    "a component is gone": lambda path: shutil.rmtree(path / "components"),
    "it is an empty folder": lambda path: (shutil.rmtree(path), path.mkdir()),
    "it is a link to elsewhere": link_entry,
    "it is a file": lambda path: (shutil.rmtree(path), path.write_text("a file")),
    "it is a link to nothing": lambda path: (shutil.rmtree(path), path.symlink_to("nowhere")),
    "a component is a link to elsewhere": link_component,
}


QUICK = "it is a link to elsewhere"


@pytest.mark.parametrize(
    "damage",
    [each if each == QUICK else pytest.param(each, marks=pytest.mark.slow) for each in DAMAGES],
)
def test_a_damaged_bundle_is_compiled_again(damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compiled()
    path = entry()
    kept = contents(path)
    DAMAGES[damage](path)
    outside = contents(pathlib.Path("elsewhere"))
    seen = reads(monkeypatch)
    assert (compiled(), compiled()) == (whole, whole)
    assert seen == ["compiled"]
    assert contents(path) == kept
    assert contents(pathlib.Path("elsewhere")) == outside


@pytest.mark.slow
@pytest.mark.parametrize("part", ["", "manifest.json", "components"])
def test_a_bundle_that_others_can_write_to_is_not_used(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled()
    path = entry() / part
    cache_folder().chmod(0o755)
    seen = reads(monkeypatch)
    compiled()
    assert not seen
    path.chmod(path.stat().st_mode | 0o022)
    compiled()
    assert seen
    cache_folder().chmod(0o700)
    seen.clear()
    path.chmod(path.stat().st_mode | 0o022)
    compiled()
    assert not seen  # Nobody else can reach it.


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compiled()

    def refuse(*given: object, **more: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "utime", refuse)
    seen = reads(monkeypatch)
    assert compiled() == whole
    assert not seen


@pytest.mark.slow
@pytest.mark.parametrize("function", ["fsync", "replace", "mkdir", "rename"])
def test_a_full_disk_costs_the_cache_only(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(os, function, refuse)
        first = compiled()
    left = list(cache_folder().iterdir()) if cache_folder().is_dir() else []
    assert [each.name for each in left if len(each.name) == 64] in (
        [],
        [entry().name] if left else [],
    )
    assert compiled() == first


@pytest.mark.slow
def test_only_bundles_are_removed() -> None:
    compiled()
    kept = [f"{number:02}" for number in range(KEPT + 2)]
    for name in kept:
        (cache_folder() / name).mkdir()
        os.utime(cache_folder() / name, (1, 1))
    shutil.rmtree(entry())
    compiled()
    assert {each.name for each in cache_folder().iterdir()} == {entry().name, *kept}


def test_what_a_killed_process_left_is_removed() -> None:
    compiled()
    left = cache_folder() / ".tffc-0123456789abcdef.new"
    used = cache_folder() / ".tffc-00000000000000ff.new"
    for path in (left, used):
        path.mkdir()
        (path / "manifest.json").write_text("{}")
    shutil.rmtree(entry())
    held = atomic.locks.take(used.with_suffix(".lock"), wait=False)
    try:
        compiled()
    finally:
        held.release()
    assert not left.exists()
    assert used.exists()


TWICE = """
import os, sys
from tffc.cli.runnable import cache_folder, read_runnable
sys.stdin.readline()
for _ in range(20):
    bundle = read_runnable("total.py:total", "distribute-aggregate").bundle
    print(sorted(bundle.digests().items()))
    import shutil
    shutil.rmtree(cache_folder(), ignore_errors=True)
"""


@pytest.mark.slow
def test_processes_that_fill_and_empty_it_at_once() -> None:
    command = [sys.executable, "-c", TWICE]
    environment = {**ENVIRONMENT, "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
    running = [
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(3)
    ]
    said = [each.communicate("\n", timeout=120)[0] for each in running]
    assert len({line for text in said for line in text.splitlines()}) == 1
    assert [len(text.splitlines()) for text in said] == [20, 20, 20]
