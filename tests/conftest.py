"""What holds in all tests: what passes make is verified; properties are tried on a few examples.

The few are the same in every run, so that what fails is what was changed.
`--hypothesis-profile=thorough` tries thousands, others each time.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from tffc.ir.nodes import Node
from tffc.passes.instruments import verify_step
from tffc.passes.pipeline import Observer, OnFailure, Pipeline

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "quick", max_examples=40, deadline=None, suppress_health_check=SLOW, derandomize=True
)
settings.register_profile(
    "thorough", settings.get_profile("quick"), max_examples=3000, derandomize=False
)
settings.load_profile("quick")

# A shell that starts the tests in the background has Ctrl-C ignored, by all that they start too.
signal.signal(signal.SIGINT, signal.default_int_handler)

run = Pipeline.run


def verified_run(
    pipeline: Pipeline,
    program: Node,
    observers: Iterable[Observer] = (),
    on_failure: OnFailure = lambda rest, program, error: None,
) -> Node:
    """Runs a pipeline as ever, and looks at the program after each step."""
    return run(pipeline, program, (*observers, verify_step), on_failure)


@pytest.fixture(autouse=True)
def verify_each(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verifies after each pass, except in tests of what happens where nobody does."""
    if request.node.get_closest_marker("unverified") is None:
        monkeypatch.setenv("TFFC_VERIFY_EACH", "1")
        monkeypatch.setattr(Pipeline, "run", verified_run)


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps what commands put into the user's cache in a folder of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
