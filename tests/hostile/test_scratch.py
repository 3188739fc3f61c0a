"""Temporary files are removed in the end, and those of killed processes by the next one."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import pytest

from tffc.runtime.engines.scratch import KEPT, LOCK, scratch_folder, temporary_files_in


@pytest.fixture(autouse=True)
def root(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_nothing_stays(root: pathlib.Path) -> None:
    with pytest.raises(KeyboardInterrupt), scratch_folder() as folder:  # noqa: PT012 - it is raised there
        with temporary_files_in(folder):
            assert os.path.dirname(tempfile.mkdtemp()) == folder
        assert tempfile.gettempdir() == str(root)
        raise KeyboardInterrupt
    assert os.listdir(root) == []


HOLDING = """
import os, signal, sys, tempfile
from tffc.runtime.engines.scratch import scratch_folder
tempfile.tempdir = sys.argv[1]
with scratch_folder() as folder:
    open(os.path.join(folder, "kept"), "w").close()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_folders_of_killed_processes_go_and_those_in_use_stay(root: pathlib.Path) -> None:
    command = [sys.executable, "-c", HOLDING, str(root)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        held = process.stdout.readline().rstrip()
        with scratch_folder():
            assert set(os.listdir(held)) == {LOCK, "kept"}
        process.send_signal(signal.SIGKILL)
    assert os.path.exists(held)
    with scratch_folder() as folder:
        assert os.listdir(root) == [os.path.basename(folder)]


def test_what_is_not_ours_is_left_alone(root: pathlib.Path) -> None:
    elsewhere = root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch()
    (root / f"{KEPT}link").symlink_to(elsewhere)
    (root / f"{KEPT}file").touch()
    (root / f"{KEPT}new").mkdir()  # no lock in it says whose it is
    (root / f"my-{KEPT}x").mkdir()
    before = set(os.listdir(root))
    with scratch_folder():
        pass
    assert set(os.listdir(root)) == before
    assert (elsewhere / LOCK).exists()
