"""The page about TFF's public names says what is there, and why the rest is not."""

from __future__ import annotations

import importlib

import pytest

from tests.tff import names_page
from tests.tff.wheel import needs_wheel, programs
from tffc.tff import federated_language
from tffc.tff.names import LIBRARIES

FRAMEWORK = importlib.import_module("tffc.tff.federated_language.framework")


@pytest.mark.tensorflow
def test_the_page_is_as_the_script_writes_it() -> None:
    assert names_page.page() == names_page.PAGE.read_text(), "python -m tests.tff.names_page"


def test_every_reason_is_for_a_recorded_name() -> None:
    assert set(names_page.reasons()) <= set(names_page.recorded_names())
    assert all(names_page.reasons().values())


def test_the_names_of_today_are_there() -> None:
    recorded = names_page.recorded_names()
    assert {f"tff.{name}" for name in names_page.TODAY} <= set(recorded)
    in_files = names_page.names_of_today()["federated_language.program"] | {*FRAMEWORK.IN_FILES}
    for name in recorded:
        module, *path = names_page.today(name).strip("`").split(".")
        if module != "fl":
            continue
        if path[-1] in in_files:
            continue
        part: object = federated_language
        for word in path:
            part = FRAMEWORK if word == "framework" else getattr(part, word)


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore")
@needs_wheel
def test_the_names_of_the_libraries_are_there() -> None:
    programs()
    names = [name for name in names_page.recorded_names() if names_page.of_library(name)]
    assert {name.split(".")[1] for name in names} == LIBRARIES
    assert [name for name in names if not names_page.has(name)] == []
