"""The folder in which JAX keeps compiled code."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable

import pytest

from tffc.runtime.frameworks.jax.compiled import VARIABLE, keep_compiled


@pytest.fixture(autouse=True)
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # So that the test leaves the variable as it was.
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.delenv(VARIABLE)
    return tmp_path / "tffc"


def test_is_private_and_holds_files(cache: pathlib.Path) -> None:
    keep_compiled()
    folder = pathlib.Path(os.environ.pop(VARIABLE))
    assert folder.parent == cache
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "jit_f-cache").write_bytes(b"code")
    (folder / "xla_gpu_per_fusion_autotune_cache_dir").mkdir()
    keep_compiled()
    assert os.environ.pop(VARIABLE) == str(folder)
    folder.chmod(0o777)
    keep_compiled()
    assert VARIABLE not in os.environ


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_nothing_that_jax_would_wait_for(make: Callable[[pathlib.Path], object]) -> None:
    keep_compiled()
    make(pathlib.Path(os.environ.pop(VARIABLE)) / "jit_f-cache")
    keep_compiled()
    assert VARIABLE not in os.environ
