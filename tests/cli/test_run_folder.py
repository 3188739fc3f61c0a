"""Runs that are kept in a folder: its content, and resuming after any interruption."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest
from click.testing import CliRunner

from tests.cli.conftest import Run
from tests.processes import ENVIRONMENT, ROOT, run_python
from tffc.cli.application import application
from tffc.runtime.runs.command_record import COMMANDS
from tffc.runtime.runs.observed import OBSERVED
from tffc.runtime.runs.round_sampling import read_round_samplings
from tffc.runtime.runs.run_record import read_record

pytestmark = pytest.mark.slow

ROUND = """\
import collections
import numpy as np
import tensorflow as tf
import tffc as tff

{pause}

@tff.tf_computation(np.float32, np.float32)
def add(state, total):
    return state * 0.5 + total

@tff.federated_computation(tff.types.at_server(np.float32), tff.types.at_clients(np.float32))
def next_(state, data):
    mean = tff.federated_mean(data)
    return tff.federated_map(add, (state, mean)), mean

@tff.tf_computation
def first():
    return 1.0

@tff.federated_computation
def initialize():
    return tff.federated_eval(first, tff.SERVER)

process = tff.templates.IterativeProcess(initialize, next_)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with a bundle, and with data of a hundred clients."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "module.py").write_text(ROUND.format(pause=""))
    tffc(folder, "compile", "module.py:process", "--form", "mapreduce", "--out", "bundle")
    (folder / "data").mkdir()
    for number in range(100):
        np.savez(folder / "data" / f"{number:03}.npz", np.float32(number))
    return folder


@pytest.fixture
def here(run: Run, place: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this folder."""
    monkeypatch.chdir(place)
    return run


def tffc(folder: pathlib.Path, *arguments: str) -> str:
    """Run a command to its end in this process, which has already loaded TensorFlow."""
    with contextlib.chdir(folder):
        ran = CliRunner(catch_exceptions=False).invoke(application, arguments)
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


SAMPLED = ("run", "bundle", "--data", "data", "--clients-per-round", "50")


def contents(folder: pathlib.Path) -> dict[str, bytes]:
    """Return the files of a folder, except commands and times, which differ."""
    files = (
        each
        for each in folder.rglob("*")
        if each.is_file() and each.name not in (OBSERVED, COMMANDS)
    )
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_what_is_in_the_folder(here: Run, tmp_path: pathlib.Path) -> None:
    ran = here(*SAMPLED, "--rounds", "2", "--out", str(tmp_path / "kept"))
    assert ran.code == 0, ran.stderr
    commands = (tmp_path / "kept" / COMMANDS).read_text().splitlines()
    (command,) = (json.loads(line) for line in commands)
    assert command["program"] == "bundle"
    assert command["command"] == shlex.join(
        ["tffc", *SAMPLED, "--rounds", "2", "--out", str(tmp_path / "kept")]
    )
    assert sorted(contents(tmp_path / "kept")) == [
        "metrics.jsonl",
        "outputs/round-1.npz",
        "outputs/round-2.npz",
        "run.json",
        "source.json",
        "state.npz",
    ]
    lines = (tmp_path / "kept" / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    with np.load(tmp_path / "kept" / "outputs" / "round-2.npz") as output:
        about = {"round": 2, "clients": 50, "skipped": 0}
        assert rows[1] == {**about, "metrics": {"output": output["0"]}}


def test_a_run_goes_on_by_its_secret_seed(here: Run, tmp_path: pathlib.Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    sampled = ("run", "bundle", "--data", "data", "--sampling-rate", "0.2")
    assert here(*sampled, "--rounds", "2", "--out", str(one)).code == 0
    shutil.copytree(one, two)
    for out, rounds in ((one, 6), (two, 3), (two, 6)):
        page = tmp_path / "page.html"
        went = here(
            *sampled, "--rounds", str(rounds), "--out", str(out), "--resume", "--report", str(page)
        )
        assert went.code == 0, went.stderr
    assert contents(one) == contents(two)
    record = read_record(one)
    assert record is not None
    sampling = record.identity.sampling
    assert sampling.seed_is_secret
    clients = tuple(f"{number:03}" for number in range(100))
    drawn = [len(sampling.draw(clients, number)) for number in range(1, 7)]
    assert [each.took_part for each in read_round_samplings(one)] == drawn
    assert "drawn by a secret seed" in page.read_text()
    assert f"{sampling.seed:032x}" not in page.read_text()
    assert str(sampling.seed) not in page.read_text()


@pytest.mark.long
def test_resuming_after_kills_gives_what_an_undisturbed_run_gives(place: pathlib.Path) -> None:
    tffc(place, *SAMPLED, "--rounds", "150", "--out", "whole")
    command = [sys.executable, "-m", "tffc", *SAMPLED, "--rounds", "150", "--out", "killed"]
    kept = place / "killed" / "metrics.jsonl"
    for least in (1, 40):
        running = subprocess.Popen(
            [*command, "--resume"], cwd=place, env=ENVIRONMENT, stdout=subprocess.DEVNULL
        )
        while running.poll() is None and (not kept.exists() or _lines(kept) < least):
            time.sleep(0.01)
        running.send_signal(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL
    assert _lines(kept) < 150
    tffc(place, *SAMPLED, "--rounds", "150", "--out", "killed", "--resume")
    assert contents(place / "killed") == contents(place / "whole")


HOLDING = """\
import pathlib, time
import numpy as np

hold = pathlib.Path("hold")

def clients():
    return {f"{number:03}": lambda number=number: _read(number) for number in range(100)}

def _read(number):
    if number == 70 and hold.exists() and pathlib.Path(hold.read_text(), "state.npz").exists():
        pathlib.Path("reached").touch()
        while hold.exists():
            time.sleep(0.01)
    return np.float32(number)
"""
HELD = ("run", "bundle", "--data", "python:holding.py:clients", "--rounds", "3")


@pytest.fixture
def held(place: pathlib.Path) -> Iterator[subprocess.Popen[str]]:
    """A run in its second round, in which a client waits until the file `hold` is removed."""
    (place / "holding.py").write_text(HOLDING)
    (place / "hold").write_text("held")
    command = [sys.executable, "-m", "tffc", *HELD, "--out", "held", "--plot", "held.svg"]
    running = subprocess.Popen(
        command, cwd=place, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    while running.poll() is None and not (place / "reached").exists():
        time.sleep(0.01)
    with running:
        yield running
    (place / "reached").unlink()
    (place / "held.svg").unlink(missing_ok=True)
    shutil.rmtree(place / "held")


def test_a_kill_within_a_round_loses_that_round_alone(
    place: pathlib.Path, held: subprocess.Popen[str]
) -> None:
    held.kill()
    assert held.wait() == -signal.SIGKILL
    (place / "hold").unlink()
    assert _lines(place / "held" / "metrics.jsonl") == 1
    tffc(place, *HELD, "--out", "held", "--resume")
    tffc(place, *HELD, "--out", "whole-held")
    assert contents(place / "held") == contents(place / "whole-held")


def test_an_interruption_before_the_rounds_tells_that_a_run_is_as_it_was(
    place: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    # Ctrl-C comes while TensorFlow is loaded for the first round.
    (tmp_path / "tensorflow.py").write_text("raise KeyboardInterrupt\n")
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    tffc(place, *SAMPLED, "--rounds", "2", "--out", "begun")
    kept = contents(place / "begun")
    for more, said in (
        (
            ("--out", "begun", "--resume"),
            "no further round was finished; the run in begun is as it was",
        ),
        (("--out", "new"), "no round was finished"),
    ):
        command = ("-m", "tffc", *SAMPLED, "--rounds", "4", *more)
        ran = run_python(*command, cwd=place, env=environment)
        assert ran.returncode == 130
        assert ran.stderr == f"\ninterrupted before the first round\n{said}\n"
    assert contents(place / "begun") == kept


def test_an_interrupted_round_is_abandoned(
    place: pathlib.Path, held: subprocess.Popen[str]
) -> None:
    held.send_signal(signal.SIGINT)
    time.sleep(0.5)  # the interrupt comes before the client is done, and a second is its grace
    (place / "hold").unlink()
    _, said = held.communicate()
    assert held.returncode == 130
    assert said == "\ninterrupted in round 2\nthe state after round 1 is in held/state.npz\n"
    assert sorted(contents(place / "held" / "outputs")) == ["round-1.npz"]
    assert (place / "held.svg").read_text().count("<circle ") == 1


def _lines(path: pathlib.Path) -> int:
    return path.read_bytes().count(b"\n")


def test_a_full_disk_keeps_the_rounds_before(place: pathlib.Path) -> None:
    tffc(place, *SAMPLED, "--rounds", "3", "--out", "full")
    before = contents(place / "full")

    def no_room() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    command = ("-m", "tffc", *SAMPLED, "--rounds", "6", "--out", "full", "--resume")
    # What Python compiles would be cut off too, and spoil later processes.
    environment = {**ENVIRONMENT, "PYTHONDONTWRITEBYTECODE": "1"}
    ran = run_python(*command, cwd=place, env=environment, preexec_fn=no_room)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error[E922]: cannot write full/")
    assert "make space on the disk, or let the folder be written; then --resume" in ran.stderr
    assert contents(place / "full")["state.npz"] == before["state.npz"]
    tffc(place, *SAMPLED, "--rounds", "6", "--out", "full", "--resume")
    tffc(place, *SAMPLED, "--rounds", "6", "--out", "roomy")
    assert contents(place / "full") == contents(place / "roomy")


def test_a_run_is_not_begun_twice(here: Run) -> None:
    assert here(*SAMPLED, "--rounds", "1", "--out", "twice").code == 0
    assert here(*SAMPLED, "--rounds", "1", "--out", "twice").stderr == (
        "error[E920]: the folder twice already holds a run\n"
        " = help: go on with it, or name another folder; --resume continues it\n"
    )
    again = here(*SAMPLED, "--rounds", "1", "--out", "twice", "--resume", "--seed", "1")
    assert again.stderr.startswith("error[E921]: the run in twice is another one\n")


def test_another_program_continues_from_a_run(here: Run, place: pathlib.Path) -> None:
    """With the same state, the rounds go on being counted, and other clients are drawn."""
    other = ROUND.format(pause="").replace("state * 0.5", "state * 0.25")
    (place / "other.py").write_text(other)
    sampled = ("--data", "data", "--clients-per-round", "50")
    assert here(*SAMPLED, "--rounds", "2", "--out", "earlier").code == 0
    whole = here(*SAMPLED, "--rounds", "3").stdout.splitlines()
    resumed = here(
        "run", "other.py:process", *sampled, "--rounds", "3", "--out", "earlier", "--resume"
    )
    assert resumed.stderr.startswith("error[E921]: the run in earlier is another one\n")
    assert "; --continue-from names this one there, to go on" in resumed.stderr
    words = ("run", "other.py:process", *sampled, "--rounds", "1")
    counted = here(*words, "--state-in", "earlier")
    assert counted.stdout.splitlines()[1:] == whole[1:2], "the first round's clients"
    assert "rounds count from 1; --continue-from counts on from round 2\n" in counted.stderr
    later = here(*words, "--continue-from", "earlier", "--out", "later", "--report", "later.html")
    assert (later.code, later.stdout.splitlines()) == (0, [whole[0], whole[3]])
    record = json.loads((place / "later" / "run.json").read_text())
    assert (record["rounds"], record["origin"]["rounds"]) == (3, 2)
    assert "of another program after round 2" in (place / "later.html").read_text()
    resume = ("--rounds", "4", "--out", "later", "--resume")
    assert here("run", "other.py:process", *sampled, *resume).stdout.split()[2] == "4"


def test_what_does_not_say_its_round_is_not_continued(here: Run, place: pathlib.Path) -> None:
    np.savez(place / "plain.npz", np.float32(0.0))
    ran = here(*SAMPLED, "--rounds", "1", "--continue-from", "plain.npz")
    assert (ran.code, ran.stderr) == (
        1,
        "error[E871]: plain.npz does not say after which round its state is\n"
        " = note: states that a run saves say it\n"
        " = help: give a run or a state that a run has saved; --state-in takes this one, and "
        "counts rounds from 1\n",
    )


def test_a_run_that_could_not_begin_leaves_its_folder_free(here: Run) -> None:
    ran = here(*SAMPLED, "--clients-per-round", "10000", "--rounds", "1", "--out", "corrected")
    assert ran.stderr.startswith("error[E662]: cannot sample 10000 clients of ")
    assert here(*SAMPLED, "--rounds", "1", "--out", "corrected").code == 0


def test_resuming_needs_the_folder(here: Run) -> None:
    ran = here(*SAMPLED, "--rounds", "1", "--resume")
    assert ran.code == 2
    assert "--resume needs --out DIR, the run folder" in ran.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ("--out", "ignored", "--resume", "--state-in", "state.npz"),
            "--resume continues from the state in the run folder: omit --state-in",
        ),
        (("--seed", "3"), "--seed selects the sampled clients: add --clients-per-round K"),
        (
            ("--out", "kept", "--state-out", "kept/../kept/run.json"),
            "kept is the run folder, which keeps the state itself: omit --state-out, or give it",
        ),
    ],
)
def test_what_would_be_ignored_is_refused(
    here: Run, place: pathlib.Path, options: tuple[str, ...], text: str
) -> None:
    ran = here("run", "bundle", "--data", "data", "--rounds", "1", *options)
    assert ran.code == 2
    assert text in ran.stderr
    assert not (place / "ignored").exists()


def test_a_state_is_saved_where_no_round_is_left(here: Run, place: pathlib.Path) -> None:
    assert here(*SAMPLED, "--rounds", "2", "--out", "saved").code == 0
    again = ("--rounds", "1", "--out", "saved", "--resume", "--state-out", "saved.npz")
    assert here(*SAMPLED, *again).code == 0
    assert (place / "saved.npz").read_bytes() == (place / "saved" / "state.npz").read_bytes()


def test_logs(here: Run) -> None:
    few = ("--clients-per-round", "2")
    lines = here(*SAMPLED, *few, "--rounds", "2", "--log", "jsonl").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["round"], row["clients"]) for row in rows] == [(1, 2), (2, 2)]
    table = here(*SAMPLED, *few, "--rounds", "2", "--log", "csv").stdout.splitlines()
    assert table[0] == "round,clients,skipped,metrics.output"
    assert table[1] == f"1,2,0,{rows[0]['metrics']['output']}"


def test_tensorboard_reads_the_metrics(here: Run, place: pathlib.Path) -> None:
    pytest.importorskip("tensorboard", reason="an optional package")
    from tensorflow.python.summary.summary_iterator import summary_iterator

    assert here(*SAMPLED, "--rounds", "2", "--log", "tensorboard", "--out", "board").code == 0
    (file,) = (place / "board" / "tensorboard").iterdir()
    tags = [(e.step, v.tag) for e in summary_iterator(str(file)) for v in e.summary.value]
    kinds = ("round/clients", "round/skipped", "metrics/output")
    assert tags == [(number, kind) for number in (1, 2) for kind in kinds]


def test_without_tensorboard_its_log_is_refused(here: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    ran = here(*SAMPLED, "--rounds", "1", "--log", "tensorboard", "--out", "none")
    assert ran.stderr == (
        "error[E701]: TensorBoard is not installed, and its log is written by it\n"
        " = help: pip install tensorboard\n"
    )


def test_the_picture_of_the_metrics(here: Run, place: pathlib.Path) -> None:
    assert here(*SAMPLED, "--rounds", "3", "--plot", "mean.svg").code == 0
    picture = (place / "mean.svg").read_text()
    assert picture.startswith("<svg ")
    assert picture.count("<circle ") == 3
    (place / "folder.svg").mkdir()
    refused = here(*SAMPLED, "--rounds", "1", "--plot", "folder.svg")
    assert refused.stderr == (
        "error[E851]: cannot write folder.svg: Is a directory\n"
        " = help: give the path of a file in an existing, writable folder, on a disk with enough "
        "space\n"
    )


def test_bad_clients_are_left_out_and_counted(here: Run, tmp_path: pathlib.Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    np.savez(data / "good.npz", np.float32(3))
    np.savez(data / "other.npz", np.float64(0.1))
    (data / "worse.npz").write_text("no zip file")
    command = ("run", "bundle", "--data", str(data), "--rounds", "1")
    assert here(*command).code == 1
    ran = here(*command, "--skip-bad-clients")
    assert ran.stdout == "round    output\n    1     3.000  (2 clients left out)\n"


def test_what_was_measured_about_batches_is_used_again(
    place: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    arguments = ("--data", "data", "--batching", "auto", "--out", str(tmp_path / "run"))
    tffc(place, "run", "bundle", "--rounds", "1", *arguments)
    kept = tmp_path / "run" / "batching.json"
    kind = "vectorised over the clients of a batch: clients without sequences"
    measured = {"format_version": "1.0", "pays": {kind: True}}
    kept.write_text(json.dumps(measured))
    going_on = ("run", "bundle", "--rounds", "3", *arguments, "--resume")
    with contextlib.chdir(place):
        ran = CliRunner().invoke(application, [*going_on, "--explain-speed"])
    assert ran.exit_code == 0, ran.stderr
    assert "computing in batches" in ran.stderr
    assert "one client a call" not in ran.stderr
    assert json.loads(kept.read_text()) == measured
    kept.write_text(f'{{"format_version": "1.0", "pays": {{"{kind}": 1}}}}')
    with contextlib.chdir(place):
        ran = CliRunner().invoke(application, ["run", "bundle", "--rounds", "9", *going_on[4:]])
    assert ran.exit_code != 0
    assert "batching.json is not what a run writes: its 'pays' is not right" in ran.stderr
