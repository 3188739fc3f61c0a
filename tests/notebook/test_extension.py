"""The extension of IPython: what `%load_ext tffc` sets up, the cell magic, errors and progress."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from tests.api.test_cells import Reader
from tffc.api.progress import progress_of, show_progress, silent
from tffc.notebook import progress_bar as bars
from tffc.notebook.extension import has_display
from tffc.runtime.user_code.keras import LEGACY_KERAS, legacy_keras

pytestmark = pytest.mark.tensorflow

ROUND = """\
@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def total(state, data):
    return state, tff.federated_sum({value})
"""


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    shell = InteractiveShell.instance()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(LEGACY_KERAS, "0")  # So that it stays as it is for other tests.
        shell.run_line_magic("load_ext", "tffc")
    shell.run_cell("import numpy as np\nimport tffc as tff")
    yield shell
    shell.run_line_magic("unload_ext", "tffc")
    InteractiveShell.clear_instance()


@dataclasses.dataclass(frozen=True)
class RanCell:
    """The result of a cell, with what it has written and displayed."""

    result: Any
    stdout: str
    stderr: str
    outputs: list[Any]


def run(shell: Any, cell: str) -> RanCell:
    with capture_output() as captured:
        result = shell.run_cell(cell).result
    return RanCell(result, captured.stdout, captured.stderr, list(captured.outputs))


def test_a_cell_becomes_a_bundle(shell: Any) -> None:
    options = "--form mapreduce --out bundle --prove --audit --verify"
    ran = run(shell, f"%%tffc {options}\n{ROUND.format(value='data')}")
    assert repr(shell.user_ns["bundle"]) == "<bundle of total: mapreduce, 10 components>"
    shown = [output.data.get("text/html", "") for output in ran.outputs][:3]
    kinds = ("Verification", "Proof", "Audit")
    assert [kind for kind, text in zip(kinds, shown, strict=True) if kind in text] == list(kinds)
    assert run(shell, "bundle.run([1, 2], 2, state=0).finish().output").result == 3


@pytest.mark.parametrize("names", ["data", "data, others"])
def test_a_cell_may_have_a_query(shell: Any, names: str) -> None:
    types = ", ".join("tff.types.at_clients(np.int32)" for _ in names.split())
    cell = f"""\
%%tffc
@tff.federated_computation({types})
def total({names}):
    return tff.federated_sum(data)
"""
    assert "<bundle of total: mapreduce, 10 components>" in run(shell, cell).stdout


def test_audits_name_the_cell(shell: Any) -> None:
    run(shell, f"%%tffc --out audited\n{ROUND.format(value='data')}")
    audit = shell.user_ns["audited"].audit()
    assert re.search(r"Cell In\[\d+\]:4", str(audit))
    assert re.search(r"Cell In\[\d+\]:4", audit._repr_html_())


def test_keras_is_that_of_tff_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LEGACY_KERAS, raising=False)
    legacy_keras()
    expected = "1" if importlib.util.find_spec("tf_keras") else None
    assert os.environ.get(LEGACY_KERAS) == expected
    monkeypatch.setenv(LEGACY_KERAS, "0")
    legacy_keras()
    assert os.environ[LEGACY_KERAS] == "0"


def test_the_round_may_be_named(shell: Any) -> None:
    cell = ROUND.format(value="data") + "\n" + ROUND.format(value="data").replace("total", "other")
    for options, name in (("", "other"), ("--name total", "total")):
        run(shell, f"%%tffc --out chosen {options}\n{cell}")
        assert shell.user_ns["chosen"].name == name


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (
            f"%%tffc\n{ROUND.format(value='state')}",
            "is of type `int32@SERVER` [E471]\n  at Cell In[",
        ),
        (f"%%tffc\n{ROUND.format(value='state')}", "]:4\n        return state, tff.federated_sum"),
        (f"1\n2\n{ROUND.format(value='state')}", "]:5\n        return state, tff.federated_sum"),
        (f"%%tffc --form broadcast\n{ROUND.format(value='data')}", "[E510]\n  at Cell In["),
        ("%%tffc --form x\n1", "%%tffc: argument --form: invalid choice: 'x'"),
        ("%%tffc\nx = 1", "the cell defines no round and no iterative process [E465]"),
        ("%%tffc --name missing\nx = 1", "the notebook defines nothing named 'missing' [E439]"),
        ("tff.run('nowhere', [1], -1)", "cannot run -1 rounds [E706]\n  at Cell In["),
        ("tff.run('nowhere', [1])", "no bundle: there is no folder nowhere [E604]"),
    ],
)
def test_errors_point_into_the_cell(shell: Any, cell: str, words: str) -> None:
    ran = run(shell, cell)
    assert words in ran.stderr, ran.stderr
    assert "Traceback" not in ran.stderr + ran.stdout
    assert "site-packages" not in ran.stderr


def test_tff_is_tffc(shell: Any) -> None:
    ran = run(shell, "import tensorflow_federated\ntensorflow_federated.federated_computation")
    assert ran.result is run(shell, "tff.federated_computation").result


def test_a_bar_shows_long_work_and_is_replaced_in_place(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert has_display(shell)
    monkeypatch.setattr(bars, "AT_ONCE", 0)
    monkeypatch.setattr(bars, "OFTEN", 0)
    show_progress(bars.progress_bar)
    with capture_output() as captured, progress_of("rounds <1> to 3") as progress:
        progress(1, 3)
        progress(3, 3)
    show_progress(silent)
    texts = [output.data["text/html"] for output in captured.outputs]
    assert ["1 of 3" in texts[0], "3 of 3" in texts[-1]] == [True, True]
    assert "rounds <1> to 3" in Reader(texts[0]).text
    ids = {output.transient["display_id"] for output in captured.outputs}
    assert len(ids) == 1


def test_short_work_shows_nothing(shell: Any) -> None:
    show_progress(bars.progress_bar)
    with capture_output() as captured, progress_of("x") as progress:
        progress(1, 1)
    show_progress(silent)
    assert captured.outputs == []
