"""What users see of the core is what TensorFlow Federated 0.87 shows them.

Its answers stand in `core/*.txt`; `python -m tests.tff.core` writes them with its Python.
"""

from __future__ import annotations

import functools
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

import tffc
import tffc.tff.federated_language  # which gives types the names of today's language
from tests.tff.core import session
from tests.tff.wheel import has_wheel
from tffc.frontend.execution import SyncExecutionContext, set_default_context

FOLDER = pathlib.Path(session.__file__).parent
FILES = sorted(path.stem for path in FOLDER.glob("*.txt"))
CASES = [(name, case) for name in FILES for case in session.read(FOLDER / f"{name}.txt").cases]

PAGE = FOLDER.parents[2] / "docs" / "migrate-from-tff.md"

OF_THE_WHEEL = {"files_of_the_wheel", "framework", "program"}
"""Sessions with modules of TFF's that run as they are."""


@functools.cache
def start(name: str) -> dict[str, Any]:
    tffc.install_as_tensorflow_federated()
    return session.namespace(session.read(FOLDER / f"{name}.txt"))


@pytest.fixture(autouse=True)
def own_context() -> Iterator[None]:
    """What one case sets as the default context is not that of the next."""
    set_default_context(SyncExecutionContext())
    yield
    set_default_context(SyncExecutionContext())


def test_each_difference_is_of_a_kind_that_users_are_told() -> None:
    told = set(re.findall(r"^\| ([a-z]+) \|", PAGE.read_text(), flags=re.MULTILINE))
    assert {case.kind for _, case in CASES if case.own is not None} == told - {"kind"}


@pytest.mark.parametrize(("name", "case"), CASES, ids=lambda part: getattr(part, "source", part))
def test_answers(name: str, case: session.Case) -> None:
    if name in OF_THE_WHEEL and not has_wheel():
        pytest.skip("TFF's wheel is not installed")
    found = session.answer(case.source, start(name))
    expected = case.answer if case.own is None else case.own
    assert session.agrees(found, expected), found
