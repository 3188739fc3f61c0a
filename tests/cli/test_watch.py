"""`--watch` shows a program or its error again when its files are saved, until Ctrl-C."""

from __future__ import annotations

import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import click
import pytest

from tests.cli.conftest import ROUND, Run
from tests.cli.terminal import open_terminal
from tests.processes import ENVIRONMENT
from tffc.cli import watch as watching
from tffc.cli.watch import watch
from tffc.support.errors import LoadError

INTERRUPTED = 130

PROGRAM = """\
import numpy as np
import tffc as tff
from {module} import operator


@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def count(state, data):
    return state, getattr(tff, operator)(data)
"""

Step = Callable[[], object]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restores the setting for bytecode and the imported modules."""
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
    before = set(sys.modules)
    yield
    for name in {"m", "near", "far", "far.inner"} & (set(sys.modules) - before):
        del sys.modules[name]


@pytest.fixture
def then(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs these steps in order, each when the command waits, and presses Ctrl-C at the end."""

    def happen(*steps: Step) -> None:
        def pauses() -> Iterator[None]:
            for step in steps:
                step()
                # Two looks find the change, and that nothing changes any more.
                yield
                yield
            raise KeyboardInterrupt

        pause = pauses()
        monkeypatch.setattr(watching, "sleep", lambda seconds: next(pause))

    return happen


def save(name: str, text: str) -> Step:
    """Return a step that saves a file as editors do, by renaming a new file."""

    def step() -> None:
        path = pathlib.Path(name)
        path.parent.mkdir(exist_ok=True)
        staged = path.with_suffix(".tmp")
        staged.write_text(text)
        os.replace(staged, path)

    return step


def operators(text: str) -> list[str]:
    return re.findall(r"federated_(?!computation)\w+", text)


def test_saves_of_the_program_and_of_what_it_imports_are_shown(
    run: Run, then: Callable[..., None]
) -> None:
    save("m.py", PROGRAM.format(module="near"))()
    save("near.py", "operator = 'federated_sum'\n")()
    then(
        save("near.py", "operator = 'federated_max'  # larger\n"),
        save("far/inner.py", "operator = 'federated_min'\n"),
        save("m.py", PROGRAM.format(module="far.inner")),
        save("far/inner.py", "operator = 'federated_mean'[:-4] + 'sum'\n"),
    )
    ran = run("print", "m.py:count", "--watch")
    assert operators(ran.stdout) == [
        "federated_sum",
        "federated_max",
        "federated_min",
        "federated_sum",
    ]
    assert ran.stderr == (
        "watching 2 files; Ctrl-C ends it\n"
        "watching 2 files; Ctrl-C ends it\n"
        "watching 3 files; Ctrl-C ends it\n"
        "watching 3 files; Ctrl-C ends it\n"
        "\ninterrupted\n"
    )
    assert ran.code == INTERRUPTED


def test_nothing_is_shown_again_where_nothing_is_saved(run: Run, then: Callable[..., None]) -> None:
    save("m.py", ROUND)()
    save("other.py", "")()
    then(lambda: None, save("other.py", "x = 1\n"), save("m.txt", "x"))
    assert run("print", "m.py", "--watch").stdout.count("federated_sum") == 1


def test_errors_are_said_and_watching_goes_on(run: Run, then: Callable[..., None]) -> None:
    save("m.py", PROGRAM.format(module="near"))()
    then(
        save("near.py", "operator ="),
        save("near.py", "operator = 'federated_sum'\n"),
        save("m.py", ROUND.replace("sum(data)", "sum(state)")),
        lambda: os.remove("m.py"),
        save("m.py", ROUND),
    )
    ran = run("print", "m.py", "--watch")
    said = re.findall(r"error\[(E\d+)\].*|^ --> (.*)", ran.stderr, re.MULTILINE)
    assert [code or place for code, place in said] == [
        *("E437", "m.py:3:1"),
        *("E437", "near.py:1:11"),
        *("E471", "m.py:7:19"),
        "E434",
    ]
    assert operators(ran.stdout) == ["federated_sum"] * 2
    assert ran.code == INTERRUPTED


def test_a_file_that_is_saved_in_steps_is_shown_once(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    save("m.py", ROUND)()
    texts = [ROUND[:-30], ROUND[:-10], ROUND + "# done\n"]

    def pause(seconds: float) -> None:
        if not texts:
            raise KeyboardInterrupt
        pathlib.Path("m.py").write_text(texts.pop(0))

    monkeypatch.setattr(watching, "sleep", pause)
    ran = run("print", "m.py", "--watch")
    assert "error" not in ran.stderr
    assert ran.stderr.count("watching") == 1


@pytest.mark.parametrize("name", ["m.py", "near.py"])
def test_what_is_saved_while_it_is_shown_is_shown_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    save("m.py", "from near import x\n")()
    save("near.py", "x = 1\n")()
    shown: list[int] = []
    pauses = iter(range(20))

    def show() -> None:
        found: dict[str, int] = {}
        exec("import near; x = near.x", found)
        shown.append(found["x"])
        if len(shown) == 1:
            save("near.py", "x = 22\n")()
            save(name, pathlib.Path(name).read_text() + "# saved\n")()

    def pause(seconds: float) -> None:
        if len(shown) == 2 or next(pauses, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(watching, "sleep", pause)
    with pytest.raises(KeyboardInterrupt), click.Context(click.Command("print")):
        watch("m.py", show)
    assert shown == [1, 22]


def test_checks_are_made_again(run: Run, then: Callable[..., None]) -> None:
    save("m.py", ROUND)()
    late = ROUND.replace(
        "    return state, tff.federated_sum(data)",
        "    total = tff.federated_broadcast(tff.federated_sum(data))\n"
        "    return state, tff.federated_sum(total)",
    )
    then(save("m.py", late), save("m.py", ROUND))
    ran = run("check", "m.py", "--form", "mapreduce", "--watch", "--json")
    found = re.findall(r'"compatible": (\w+)', ran.stdout)
    assert (found, ran.code) == (["true", "false", "true"], INTERRUPTED)
    then(save("m.py", late), save("m.py", ROUND))
    ran = run("check", "m.py", "--form", "mapreduce", "--watch")
    assert ran.stderr.count("m.py can be compiled to mapreduce") == 2
    assert ran.stderr.count("error[") == 1


def test_pages_are_written_again(run: Run, then: Callable[..., None]) -> None:
    save("m.py", ROUND)()
    pages: list[str] = []

    def keep() -> None:
        pages.append(pathlib.Path("page.html").read_text())

    late = ROUND.replace("return state", "return tff.federated_broadcast(state)")
    then(
        keep,
        save("m.py", ROUND.replace("federated_sum", "federated_max")),
        keep,
        save("m.py", ROUND.replace("):", ") is late:")),
        keep,
        save("m.py", late),
        keep,
    )
    ran = run("explore", "m.py", "-o", "page.html", "--watch")
    assert ran.code == INTERRUPTED, ran.stderr
    first, second, third, last = pages
    assert "federated_sum" in first
    assert "federated_sum" not in second
    assert '"error":{"code":"E437"' in third
    assert '"place":{"file":0,"line":6,"end":6}' in third
    assert "federated_broadcast" in last
    assert re.findall(r"error\[(E\d+)\]", ran.stderr) == ["E437", "E510"]
    ran = run("explore", "m.py", "-o", "-", "--watch")
    assert (ran.code, "'--watch' needs a file: give --out a name" in ran.stderr) == (2, True)


def test_texts_messages_and_bundles_are_watched(run: Run, then: Callable[..., None]) -> None:
    save("m.py", ROUND)()
    for number, operator in enumerate(("sum", "max")):
        save("m.py", ROUND.replace("federated_sum", f"federated_{operator}"))()
        assert run("trace", "m.py", "-o", f"{number}.pb").code == 0
        made = run("compile", f"{number}.pb", "--form", "mapreduce", "--out", f"b{number}")
        assert made.code == 0, made.stderr
        text = run("print", f"{number}.pb", "--style", "typed").stdout
        pathlib.Path(f"{number}.sexpr").write_text(text)
    for suffix in (".pb", ".sexpr"):
        shutil.copy(f"0{suffix}", f"x{suffix}")
        then(lambda suffix=suffix: shutil.copy(f"1{suffix}", f"x{suffix}"))
        ran = run("print", f"x{suffix}", "--watch")
        assert operators(ran.stdout)[-1] == "federated_max", ran.stderr
        assert "watching 1 file;" in ran.stderr
    os.symlink("b0", "b")

    def exchange() -> None:
        os.symlink("b1", "other")
        os.replace("other", "b")

    then(exchange, lambda: os.remove("b1/manifest.json"))
    ran = run("print", "b", "--watch")
    assert [*dict.fromkeys(operators(ran.stdout))] == ["federated_sum", "federated_max"]
    assert ran.stderr.count("error[") == 1


def test_a_program_that_is_not_there_cannot_be_watched(run: Run, then: Callable[..., None]) -> None:
    then()
    ran = run("print", "nowhere.py", "--watch")
    assert (ran.code, ran.stdout, ran.stderr) == (
        LoadError.exit_code,
        "",
        "error[E434]: there is no file nowhere.py\n",
    )
    ran = run("print", "nowhere.pb", "--watch")
    assert ran.code == LoadError.exit_code
    ran = run("print", "-", "--watch")
    assert ran.code == 2
    assert "stdin cannot be watched: give a file or a module" in ran.stderr


def test_whoever_reads_nothing_any_more_ends_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "m.py").write_text(ROUND)
    command = [sys.executable, "-m", "tffc", "print", "m.py", "--watch"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        while b"watching" not in started.stderr.readline():
            pass
        # What was shown is there before the next save.
        assert select.select([started.stdout], [], [], 0)[0]
        started.stdout.close()
        (tmp_path / "m.py").write_text(ROUND + "# saved\n")
        started.stderr.read()
        assert started.wait() == 141


GOLDENS = """\
sums:
  target: m.py:count
  forms: []
"""


def test_golden_files_are_checked_again(
    run: Run, then: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    save("m.py", PROGRAM.format(module="near"))()
    save("near.py", "operator = 'federated_sum'\n")()
    save("golden/golden.yaml", GOLDENS)()
    assert run("golden", "update").code == 0
    del sys.modules["near"]  # The next command is another process.
    then(
        save("../near.py", "operator = 'federated_max'  # larger\n"),
        save("../near.py", "operator = 'federated_sum'\n"),
        save("../golden/golden.yaml", GOLDENS.replace("m.py", "gone.py")),
    )
    pathlib.Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    ran = run("golden", "check", "--folder", "../golden", "--watch")
    assert operators(ran.stdout) == ["federated_sum", "federated_max"]
    said = [line for line in ran.stderr.splitlines() if not line.startswith("watching")]
    assert said[:3] == [
        "1 example as before",
        "1 change; review them with `tffc golden review`",
        "1 example as before",
    ]
    assert said[3] == "error[E434]: there is no file gone.py"
    assert ran.code == INTERRUPTED


TENSORFLOW = """\
import sys
loaded_before = "tensorflow" in sys.modules

import numpy as np
import tensorflow as tf
import tffc as tff

print("loaded before:", loaded_before)

@tff.tf_computation(np.int32)
def more(x):
    return x + 1

@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(np.int32))
def count(state, data):
    return state, tff.federated_sum(tff.federated_map(more, data))
"""


@pytest.mark.slow
def test_in_a_process_of_its_own_tensorflow_stays_loaded(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "m.py"
    file.write_text(TENSORFLOW)
    ours, theirs = open_terminal(80)
    started = subprocess.Popen(
        [sys.executable, "-m", "tffc", "print", "m.py:count", "--watch"],
        cwd=tmp_path,
        env={**ENVIRONMENT, "TERM": "xterm", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = _read_until(ours, "watching 1 file")
    time.sleep(0.05)  # so that the file has another time
    file.write_text(TENSORFLOW.replace("x + 1", "x + 23"))
    again = _read_until(ours, "watching 1 file")
    started.send_signal(signal.SIGINT)
    end = _read_until(ours, "interrupted")
    assert started.wait() == INTERRUPTED, end
    os.close(ours)
    assert "loaded before: True" not in written
    assert "loaded before: True" in again
    # The screen is cleared, and shows another graph.
    assert "\x1b[2J" not in written
    assert "\x1b[2J" in again
    first, second = (re.findall(r"comp#\w+", text) for text in (written, again))
    assert first != second
    assert len(first) == len(second) == 1


def _read_until(terminal: int, word: str) -> str:
    written = b""
    while word.encode() not in written:
        written += os.read(terminal, 2**16)
    return written.decode()
