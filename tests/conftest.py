"""What holds in all tests: what passes make is verified; properties are tried on a few examples.

The few are the same in every run, so that what fails is what was changed.
`--hypothesis-profile=thorough` tries thousands, others each time.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tffc.passes.instruments import verify_step
from tffc.passes.pipeline import observing

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "quick", max_examples=40, deadline=None, suppress_health_check=SLOW, derandomize=True
)
settings.register_profile(
    "thorough", settings.get_profile("quick"), max_examples=3000, derandomize=False
)
settings.load_profile("quick")

# Processes that tests start keep what Python made of our modules, for the others.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What is said of work that takes long depends on the machine.
os.environ.setdefault("TFFC_PROGRESS", "off")

# A shell that starts the tests in the background has Ctrl-C ignored, by all that they start too.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Let Python's collector look less often, and not at the thousands of tests: they stay."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@pytest.fixture(autouse=True)
def verify_each(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Verify after each pass, except in tests of what happens where nobody does."""
    if request.node.get_closest_marker("unverified") is not None:
        yield
        return
    monkeypatch.setenv("TFFC_VERIFY_EACH", "1")
    with observing(verify_step):
        yield


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps what commands put into the user's cache in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
