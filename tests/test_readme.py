"""The commands of the README, and those on digits to get started, print what the pages show."""

from __future__ import annotations

import pathlib
import re
import shlex

import pytest
from click.testing import CliRunner

from tests.processes import ROOT
from tffc.cli.application import application

README = (ROOT / "README.md").read_text()
STARTED = (ROOT / "docs" / "getting-started.md").read_text()
NUMBER = re.compile(r" +\d+(?:\.\d+)?(?:e-?\d+)?(?=[ \n])")


def consoles() -> list[tuple[str, str]]:
    """The commands in the pages' console blocks, each with the output shown below it."""
    blocks = re.findall(r"```console\n(.*?)```", README + STARTED, re.DOTALL)
    found = (re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:] for block in blocks)
    return [pair for parts in found for pair in zip(parts[::2], parts[1::2], strict=True)]


def run(command: str) -> str:
    program, *args = shlex.split(command)
    assert program == "tffc"
    result = CliRunner().invoke(application, args)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """What the commands print, in the order of the pages, and what the pages show."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "examples").symlink_to(ROOT / "examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return [(run(command), shown) for command, shown in consoles()]


@pytest.mark.slow
def test_the_text_is_as_shown(outputs: list[tuple[str, str]]) -> None:
    for printed, shown in outputs:
        assert without_numbers(printed) == without_numbers(shown)


def without_numbers(text: str) -> str:
    """The text with N for each number, and for the spaces that align it."""
    return NUMBER.sub("N", text)


@pytest.mark.slow
def test_the_numbers_are_close_to_those_shown(outputs: list[tuple[str, str]]) -> None:
    for printed, shown in outputs:
        for found, expected in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
            assert float(found) == pytest.approx(float(expected), abs=0.05)


@pytest.mark.slow
def test_accuracy_rises_and_is_measured_on_held_out_images(outputs: list[tuple[str, str]]) -> None:
    *_, (table, _) = outputs
    head, *lines = table.splitlines()[:21]
    assert head.split() == ["round", "loss", "accuracy", "evaluation.loss", "evaluation.accuracy"]
    rows = [line.split() for line in lines]
    accuracy = [float(row[2]) for row in rows]
    assert max(accuracy[:3]) < min(accuracy[10:])
    assert [int(row[0]) for row in rows if len(row) == 5] == [5, 10, 15, 20]
    assert float(rows[-1][4]) >= 0.90


def test_the_program_shown_is_the_example() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert shown in (ROOT / "examples" / "temperature" / "temperature.py").read_text()


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))])
def test_links_lead_somewhere(page: pathlib.Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (page.parent / link).exists(), link
