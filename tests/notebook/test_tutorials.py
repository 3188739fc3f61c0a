"""The tutorials show what their cells show now, and tell what they are."""

from __future__ import annotations

import re

import nbformat
import pytest

from tests.notebook.tutorials import FOLDER, cells, executed, names, shown, written


def committed(name: str) -> nbformat.NotebookNode:
    """The notebook as it is in the repository."""
    return nbformat.reads(written(name).read_text(encoding="utf-8"), as_version=4)


@pytest.mark.parametrize("name", names())
def test_a_notebook_has_the_cells_of_its_text(name: str) -> None:
    book = committed(name)
    nbformat.validate(book)
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert [cell.source for cell in book.cells] == [cell.source for cell in cells(source)]


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] if name == "torch_model" else [])
        for name in names()
    ],
)
def test_cells_show_what_they_showed(name: str) -> None:
    assert shown(executed(name)) == shown(committed(name))


@pytest.mark.parametrize("name", names())
def test_links_of_tutorials_lead_to_files(name: str) -> None:
    text = "\n".join(cell.source for cell in committed(name).cells)
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (FOLDER / target).is_file(), target
