"""The tutorials that are notebooks: written as text, and run into notebooks with outputs.

A file `docs/notebooks/NAME.py` has cells that begin with `# %%`, or with `# %% [markdown]` for text
in comments.  A magic stands in a comment: `# %load_ext tffc`.

    python -m tests.notebook.tutorials [NAME ...]     runs them and writes NAME.ipynb beside them
"""

from __future__ import annotations

import pathlib
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.processes import ROOT

FOLDER = ROOT / "docs" / "notebooks"
CELL = re.compile(r"^# %%(?P<text> \[markdown\])?\n", re.MULTILINE)
MAGIC = re.compile(r"^# (?=%\w)", re.MULTILINE)
COMMENT = re.compile(r"^# ?", re.MULTILINE)
TIME_LIMIT = 300
"""The most seconds that a cell may take on a busy machine."""


def names() -> list[str]:
    """The names of the tutorials."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def cells(source: str) -> Iterator[Any]:
    """The cells of a text, without outputs."""
    starts = [*CELL.finditer(source)]
    ends = [start.start() for start in starts[1:]] + [len(source)]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        content = source[start.end() : end].strip("\n")
        if start["text"]:
            cell = nbformat.v4.new_markdown_cell(COMMENT.sub("", content))
        else:
            cell = nbformat.v4.new_code_cell(MAGIC.sub("", content))
        cell.id = f"cell-{number}"
        yield cell


def executed(name: str) -> Any:
    """A tutorial with the outputs of its cells, run in an empty folder."""
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    book = nbformat.v4.new_notebook(cells=list(cells(source)))
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
    }
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(book, timeout=TIME_LIMIT, kernel_name="python3", resources=place).execute()
    book.metadata.pop("language_info", None)
    for cell in book.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            # What was shown meanwhile are bars, which depend on how long something took.
            cell.outputs = _joined(
                each for each in cell.outputs if each.output_type != "display_data"
            )
    return book


def _joined(outputs: Iterable[Any]) -> list[Any]:
    """Outputs in which neighbouring texts of a stream, which come in parts, are one."""
    joined: list[Any] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last is not None and output.output_type == "stream" == last.output_type:
            if output.name == last.name:
                last.text += output.text
                continue
        joined.append(output)
    return joined


def shown(book: Any) -> list[tuple[str, list[str]]]:
    """What every code cell shows: texts, and of richer outputs their kind, as these have times."""
    return [
        (cell.source, [_shown(output) for output in cell.outputs])
        for cell in book.cells
        if cell.cell_type == "code"
    ]


def _shown(output: Any) -> str:
    if output.output_type == "stream":
        return f"{output.name}: {output.text}"
    kinds = sorted(output.get("data", {}))
    return output.data["text/plain"] if kinds == ["text/plain"] else ", ".join(kinds)


def written(name: str) -> pathlib.Path:
    """The file of a tutorial as a notebook."""
    return FOLDER / f"{name}.ipynb"


def main() -> None:
    for name in sys.argv[1:] or names():
        text = nbformat.writes(executed(name))
        written(name).write_text(f"{text.strip()}\n", encoding="utf-8")
        print(f"wrote {written(name).relative_to(ROOT)}")


if __name__ == "__main__":
    main()
