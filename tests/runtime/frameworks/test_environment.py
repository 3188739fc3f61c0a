"""What frameworks are told before they look for devices."""

from __future__ import annotations

import os

import pytest

from tffc.runtime.frameworks.environment import prepare_environment


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "--xla_cpu_enable_fast_min_max=false"),
        ("--a=1", "--a=1 --xla_cpu_enable_fast_min_max=false"),
        ("--xla_cpu_enable_fast_min_max=true", "--xla_cpu_enable_fast_min_max=true"),
    ],
)
def test_settings_of_the_user_stay(
    monkeypatch: pytest.MonkeyPatch, before: str | None, after: str
) -> None:
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "false")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    if before is not None:
        monkeypatch.setenv("XLA_FLAGS", before)
    prepare_environment()
    prepare_environment()
    assert os.environ["XLA_FLAGS"] == after
    assert os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] == "false"
