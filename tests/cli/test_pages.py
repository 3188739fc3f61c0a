"""The pages show what the commands print."""

from __future__ import annotations

import pathlib
import re

import pytest
from click.testing import CliRunner

from tests.cli.pages import BEAM_PAGES, DOCS, PAGES, reference, render_in
from tests.engines.test_beam import needs_beam
from tffc.cli.application import application

UPDATE = "write it anew: python -m tests.cli.pages"


@pytest.mark.parametrize(
    "name", [*PAGES, *(pytest.param(name, marks=needs_beam) for name in BEAM_PAGES)]
)
def test_page(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    found, shown = render_in(tmp_path, name), (DOCS / name).read_text(encoding="utf-8")
    if name.startswith("examples/"):
        check_close(found, shown)
    else:
        assert found == shown, UPDATE


FLOAT = re.compile(r"\d+\.\d+(?:e-?\d+)?")


DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def check_close(found: str, shown: str) -> None:
    """Checks that texts are the same but for digests of programs, whose names depend on what the
    process has traced before, and for the last digits of floats, which machines decide."""
    found, shown = DIGEST.sub("D", found), DIGEST.sub("D", shown)
    assert FLOAT.sub("F", found) == FLOAT.sub("F", shown), UPDATE
    for one, other in zip(FLOAT.findall(found), FLOAT.findall(shown), strict=True):
        assert float(one) == pytest.approx(float(other), rel=0.02, abs=0.02), UPDATE


def test_reference_of_commands() -> None:
    assert reference() == (DOCS / "commands.md").read_text(encoding="utf-8"), UPDATE


@pytest.mark.parametrize(
    ("words", "position", "expected"),
    [
        ("tffc ver", 1, ["verify"]),
        ("tffc compile --form m", 3, ["mapreduce"]),
        ("tffc explain --", 2, ["--help"]),
    ],
)
def test_completion(words: str, position: int, expected: list[str]) -> None:
    environment = {"_TFFC_COMPLETE": "bash_complete", "COMP_WORDS": words}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**environment, "COMP_CWORD": str(position)}.items():
            patch.setenv(name, value)
        result = CliRunner().invoke(application, prog_name="tffc")
    assert [line.partition(",")[2] for line in result.output.splitlines()] == expected


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    pages = sorted(path.name for path in DOCS.glob("*.md"))
    assert [name for name in pages if f"docs/{name}" not in readme] == []
