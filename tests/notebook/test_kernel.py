"""A notebook in a kernel of its own: quiet TensorFlow, HTML, and a run that is interrupted."""

from __future__ import annotations

import pathlib
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

CELLS = (
    "%load_ext tffc\nimport numpy as np, os, signal, time\nimport tffc as tff",
    """\
@tff.tensorflow.computation(np.int32)
def slow(x):
    return x

@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def total(state, data):
    return state, tff.federated_sum(tff.federated_map(slow, data))

class Slow:
    clients = ("a",)
    waits = False

    def read(self, client):
        if self.waits and len(run.rows) == 2:
            # As the kernel does when the user interrupts the cell.
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(3)
        return np.int32(3)

data = Slow()
data.waits = True
run = tff.run(total, data, 4, state=0)
total""",
    "run.finish()",
    "print(len(run.rows))",
    "data.waits = False\nrun.finish()",
    "print([row.round for row in run.rows], run.output)",
)


def test_an_interrupted_cell_keeps_its_rounds(tmp_path: pathlib.Path) -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    client = NotebookClient(
        book, timeout=120, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    texts = ["".join(text_of(output) for output in cell.outputs) for cell in book.cells]
    assert texts[0] == "", "TensorFlow says nothing"
    assert "federated_sum" in texts[1]
    assert "KeyboardInterrupt" in texts[2]
    assert texts[3] == "2\n"
    assert "4 of 4 rounds finished" in texts[4]
    assert texts[5] == "[1, 2, 3, 4] 3\n"


def text_of(output: Any) -> str:
    match output.output_type:
        case "stream":
            return output.text
        case "error":
            return output.ename
        case _:
            return output.data.get("text/html", output.data.get("text/plain", ""))
