"""`tffc report` and `tffc run --report`: pages about runs."""

from __future__ import annotations

import os
import pathlib
import re
import shutil

import numpy as np
import pytest

from tests.cli.conftest import Run

MODULE = """\
import numpy as np
import tffc as tff

@tff.federated_computation(tff.types.at_server(np.float32), tff.types.at_clients(np.float32))
def mean(state, data):
    average = tff.federated_mean(data)
    return average, average
"""


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The working directory, with a program and the data of three good clients and a bad one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mean.py").write_text(MODULE)
    (tmp_path / "data").mkdir()
    for number, name in enumerate(("ada", "ben", "cleo")):
        np.savez(tmp_path / "data" / f"{name}.npz", np.float32(number))
    (tmp_path / "data" / "<b>.npz").write_bytes(b"no archive")
    np.savez(tmp_path / "state.npz", np.float32(0))
    return tmp_path


RUN = ("run", "mean.py", "--data", "data", "--skip-bad-clients", "--state-in", "state.npz")


@pytest.mark.slow
def test_a_page_about_a_run(run: Run, place: pathlib.Path) -> None:
    ran = run(*RUN, "--rounds", "3", "--out", "kept", "--report", "told.html")
    assert ran.code == 0, ran.stderr
    made = run("report", "kept", "-o", "made.html")
    assert (made.code, made.stdout, made.stderr) == (0, "", "wrote made.html\n")
    told = (place / "told.html").read_text()
    assert told == (place / "made.html").read_text() == run("report", "kept").stdout
    assert "<title>Run kept</title>" in told
    assert "<td><code>&lt;b&gt;</code></td>" in told
    assert '<td class="number">3</td><td>1, 2, 3</td>' in told
    assert "reading data" in told

    # Going on adds rounds, and the folder may be moved.
    assert run(*RUN[:-2], "--rounds", "5", "--out", "kept", "--resume").code == 0
    os.rename("kept", "moved")
    later = run("report", "moved").stdout
    assert "<title>Run moved</title>" in later
    assert "<td>1, 2, 3, 4, 5</td>" in later

    # Without what was seen the page says less.
    pathlib.Path("moved/observed.jsonl").unlink()
    assert "How long the rounds took was not kept." in run("report", "moved").stdout


@pytest.mark.slow
def test_a_run_that_is_kept_in_no_folder_has_a_page_too(run: Run, place: pathlib.Path) -> None:
    ran = run(*RUN, "--rounds", "2", "--report", "told.html")
    assert ran.code == 0, ran.stderr
    told = (place / "told.html").read_text()
    assert "<title>Run mean.py</title>" in told
    assert "output, from 1 in round 1 to 1 in round 2" in told
    assert "the state after round" not in told


def test_what_is_no_run_is_refused(run: Run, place: pathlib.Path) -> None:
    assert run("report", "data").refusal == (
        "error[E996]: data is not the folder of a run: it has no run.json\n"
        " = help: give the folder of a run; tffc run --out writes one\n"
    )


@pytest.mark.slow
def test_a_run_that_was_changed_is_refused(run: Run, place: pathlib.Path) -> None:
    assert run(*RUN, "--rounds", "1", "--out", "kept").code == 0
    shutil.copytree("kept", "other")
    metrics = pathlib.Path("other/metrics.jsonl")
    metrics.write_text(metrics.read_text().replace("1.0", "2.0"))
    ran = run("report", "other")
    assert ran.code == 1
    assert re.match(r"error\[E941\]: other/metrics.jsonl does not hold the rows", ran.stderr)
    # The row of a round that is not finished may follow.
    with open("kept/metrics.jsonl", "a") as file:
        file.write('{"round": 2, "cl')
    assert run("report", "kept").code == 0


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("run.txt", 2, "--report writes an HTML file, whose name ends in .html, not run.txt"),
        ("no/run.html", 1, "cannot write no/run.html: there is no folder no"),
    ],
)
def test_where_a_report_cannot_be(
    run: Run, place: pathlib.Path, name: str, code: int, said: str
) -> None:
    ran = run(*RUN, "--rounds", "1", "--report", name)
    assert ran.code == code
    assert said in ran.stderr
