"""Programs that use every public name of federated_language get the answers of the package itself.

The answers stand in `sessions/*.txt`; `python -m tests.tff.language.session` writes them with it.
"""

from __future__ import annotations

import functools
import json
import pathlib
import re
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import Any

import pytest

import tffc
from tests.tff.core.session import Case, agrees, read
from tests.tff.language import session
from tffc.frontend.execution import SyncExecutionContext, set_default_context
from tffc.tff.federated_language import tracing

NAMES = pathlib.Path(__file__).parent / "recorded" / "names.json"
CASES = [
    (path.stem, case) for path in sorted(session.FOLDER.glob("*.txt")) for case in read(path).cases
]
OF_FILES = "files"
"""The session of names that run from the package's own files."""


@functools.cache
def start(name: str) -> dict[str, Any]:
    tffc.install_as_federated_language()
    return session.namespace(read(session.FOLDER / f"{name}.txt"))


@pytest.fixture(autouse=True)
def own_context() -> Iterator[None]:
    """What one case sets is not there for the next."""
    set_default_context(SyncExecutionContext())
    yield
    set_default_context(SyncExecutionContext())
    tracing.set_tracing_providers([tracing.LoggingTracingProvider()])


def test_the_programs_use_every_name() -> None:
    text = "\n".join(path.read_text() for path in session.FOLDER.glob("*.txt"))
    for module, shown in (("", "fl"), (".framework", "F"), (".program", "P")):
        used = set(re.findall(rf"\b{shown}\.(\w+)", text))
        names = set(json.loads(NAMES.read_text())[f"federated_language{module}"])
        assert names - used == set()


@pytest.mark.parametrize(("name", "case"), CASES, ids=lambda part: getattr(part, "source", part))
def test_answers(name: str, case: Case) -> None:
    if name == OF_FILES and PathFinder.find_spec("federated_language") is None:
        pytest.skip("federated_language is not installed")
    answer = session.answer(case, start(name))
    assert agrees(answer, case.answer if case.own is None else case.own), answer
