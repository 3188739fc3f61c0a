"""Errors that a package raises between the user's code and ours point at the user's line."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.runtime.user_code.import_failures import import_failure
from tffc.runtime.user_code.source import distance
from tffc.support.errors import TffcError

LIBRARY = """
import numpy as np
import tffc as tff


def build(function):
    @tff.federated_computation(np.int32)
    def computed(x):
        return tff.federated_sum(function(x))

    return computed
"""

PLACES = ["site-packages/package", "tensorflow_federated/python/learning"]


@pytest.fixture(params=PLACES)
def build(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Any:
    path = tmp_path / request.param / "library.py"
    defined: dict[str, Any] = {"__name__": "library"}
    exec(compile(LIBRARY, str(path), "exec"), defined)
    return defined["build"]


def test_the_line_that_calls_the_package(build: Any) -> None:
    with pytest.raises(TffcError) as caught:
        build(lambda x: x)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
    assert caught.value.span.source_line().strip() == "build(lambda x: x)"


def test_the_line_that_the_package_calls(build: Any) -> None:
    def wrong(x: Any) -> Any:
        return tff.federated_mean(x)

    with pytest.raises(TffcError) as caught:
        build(wrong)
    assert caught.value.span is not None
    assert caught.value.span.source_line().strip() == "return tff.federated_mean(x)"


FORMER = [
    ("function", "initialize", "build_sgdm"),
    ("SGD", "initialize", "build_sgdm"),
    ("Sequential", "_is_compiled", "TF_USE_LEGACY_KERAS=1"),
]


@pytest.mark.parametrize(("kind", "name", "named"), FORMER)
def test_what_the_libraries_took_in_older_releases(
    kind: str, name: str, named: str, tmp_path: pathlib.Path
) -> None:
    words = f"{kind!r} object has no attribute {name!r}"
    for place, helps in (("tensorflow_federated/python/learning", True), ("mine", False)):
        path = tmp_path / place / "a.py"
        defined: dict[str, Any] = {}
        text = f"def build():\n    raise AttributeError({words!r})\n"
        exec(compile(text, str(path), "exec"), defined)
        with pytest.raises(AttributeError) as caught:
            defined["build"]()
        error = import_failure("old.py", caught.value)
        assert (named in (error.help or "")) is helps
        if helps:
            assert error.span is not None
            assert error.span.file == __file__


def test_distances() -> None:
    wheel = "/v/lib/site-packages/tensorflow_federated/python/learning/model.py"
    files = ["/home/me/a.py", "a.py", "/v/lib/python3/site-packages/optax/a.py", wheel]
    assert [distance(file) for file in files] == [0, 0, 1, 2]


@pytest.mark.tensorflow
def test_a_seed_of_the_graph_in_a_function_is_accepted_as_in_tff() -> None:
    tf = pytest.importorskip("tensorflow")

    @tf.function
    def drawn() -> Any:
        return tf.random.uniform([])

    def seeded() -> Any:
        tf.random.set_seed(1)
        return drawn()

    computation = tff.tf_computation(seeded)
    assert type(computation()) is np.float32
