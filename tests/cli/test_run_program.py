"""Rounds of programs that are not compiled yet, and evaluations between rounds."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
from collections.abc import Callable

import numpy as np
import pytest

import tffc
from tests.cli.conftest import Run
from tests.refusals import error_without_place
from tffc.api import running
from tffc.backends.bundle.bundle import Bundle
from tffc.cli import runnable
from tffc.cli.runnable import KEPT, cache_folder
from tffc.runtime.data.clients import source_of
from tffc.support.errors import DataError, LanguageValueError

MODULE = """\
import collections

import numpy as np
import tffc as tff

SERVER, CLIENTS = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)


@tff.federated_computation
def initialize():
    return tff.federated_value(0, tff.SERVER)


@tff.federated_computation(SERVER, CLIENTS)
def add(state, data):
    total = tff.federated_sum(data)
    return total, total


counting = tff.templates.IterativeProcess(initialize, add)


@tff.federated_computation(SERVER, CLIENTS)
def look(state, data):
    return state, tff.federated_zip(
        collections.OrderedDict(state=state, most=tff.federated_max(data))
    )


@tff.federated_computation(np.int32, np.int32)
def first(one, two):
    return one


@tff.federated_computation(SERVER, CLIENTS)
def show(state, data):
    return tff.federated_map(first, tff.federated_zip((data, tff.federated_broadcast(state))))


@tff.federated_computation(tff.types.at_server(np.float32), CLIENTS)
def other(state, data):
    return state, tff.federated_sum(data)
"""

Write = Callable[[str, str], pathlib.Path]


@pytest.fixture
def module(write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> str:
    """The module, clients' data in `data` and `held`, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for folder, values in (("data", (1, 2, 4)), ("held", (10, 20))):
        (tmp_path / folder).mkdir()
        for number, value in enumerate(values):
            np.savez(tmp_path / folder / f"client{number}.npz", np.int32(value))
    write("m.py", MODULE)
    return "m.py"


def table(run: Run, *args: str) -> str:
    ran = run("run", *args)
    assert ran.code == 0, ran.stderr
    return ran.stdout


def cached() -> list[str]:
    return sorted(path.name for path in cache_folder().iterdir() if not path.name.startswith("."))


def test_a_program_is_compiled_once(run: Run, module: str, write: Write) -> None:
    args = (f"{module}:counting", "--data", "data", "--rounds", "2")
    first = table(run, *args)
    assert first == "round  output\n    1       7\n    2       7\n"
    (name,) = cached()
    made = (cache_folder() / name / "manifest.json").stat().st_mtime_ns
    assert table(run, *args) == first
    assert (cache_folder() / name / "manifest.json").stat().st_mtime_ns == made
    write(
        module,
        MODULE.replace(
            "federated_sum(data)\n    return total", "federated_max(data)\n    return total"
        ),
    )
    assert table(run, *args) == first.replace("7", "4")
    assert len(cached()) == 2


def never(program: object, form: str) -> Bundle:
    raise AssertionError("it must not be compiled")


def test_data_is_checked_before_a_program_is_compiled(
    run: Run, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez("data/client3.npz", np.float32(0.5))
    monkeypatch.setattr(runnable, "compiled", never)
    refused = run("run", f"{module}:counting", "--data", "data", "--rounds", "1").refusal
    assert refused.startswith("error[E677]: data/client3.npz")
    monkeypatch.setattr(running, "compiled", never)
    with pytest.raises(DataError, match="is a dict of 1 elements, but should be"):
        tffc.run(f"{module}:counting", [{"x": np.zeros(3)}])


class Held:
    """What tffc uses of a `ClientData`."""

    client_ids = ("ada",)

    def create_tf_dataset_for_client(self, name: str) -> list[object]:
        return [{"x": np.zeros(2, np.float32)}]


def test_data_of_a_client_data_can_be_preprocessed(module: str) -> None:
    batches = tffc.SequenceType({"x": tffc.TensorType(np.float32, [None, 2])})
    with pytest.raises(DataError) as refused:
        source_of(Held(), batches).read("ada")
    assert refused.value.help == (
        "the elements are batches of examples: batch the dataset, dataset.batch(20); "
        "data.preprocess(f) does so, where f prepares the dataset of each client"
    )


def test_a_damaged_bundle_of_the_cache_is_replaced(run: Run, module: str) -> None:
    args = (f"{module}:counting", "--data", "data", "--rounds", "1")
    first = table(run, *args)
    (name,) = cached()
    part = cache_folder() / name / "components" / "work.pb"
    content = part.read_bytes()
    part.write_bytes(content[:-1])
    assert table(run, *args) == first
    assert part.read_bytes() == content


def test_the_cache_keeps_what_was_used_last(run: Run, module: str) -> None:
    table(run, f"{module}:counting", "--data", "data", "--rounds", "1")
    (used,) = cached()
    older = [f"{number:064}" for number in range(KEPT)]
    for number, name in enumerate(older):
        (cache_folder() / name).mkdir()
        os.utime(cache_folder() / name, (number, number))
    table(
        run,
        f"{module}:look",
        "--data",
        "data",
        "--rounds",
        "1",
        "--state-in",
        state_file(run, module),
    )
    kept = set(cached())
    assert len(kept) == KEPT
    assert used in kept
    assert kept & set(older) == set(older[2:])


def state_file(run: Run, module: str) -> str:
    table(run, f"{module}:counting", "--data", "data", "--rounds", "1", "--state-out", "s.npz")
    return "s.npz"


def test_no_cache_is_needed(run: Run, module: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "cache").write_text("not a folder")
    printed = table(run, f"{module}:counting", "--data", "data", "--rounds", "1")
    assert printed == "round  output\n    1       7\n"


@pytest.mark.parametrize("parent", [0, 1], ids=["tffc", "the cache"])
def test_a_folder_that_others_can_exchange_is_no_cache(run: Run, module: str, parent: int) -> None:
    args = (f"{module}:counting", "--data", "data", "--rounds", "1")
    table(run, *args)
    (name,) = cached()
    folder = cache_folder().parents[parent]
    for mode, is_used in ((0o777, False), (0o1777, parent == 1), (0o775, False), (0o755, True)):
        folder.chmod(mode)
        os.utime(cache_folder() / name, (1, 1))
        table(run, *args)
        assert ((cache_folder() / name).stat().st_mtime != 1) == is_used


def test_a_link_is_no_cache(run: Run, module: str, tmp_path: pathlib.Path) -> None:
    args = (f"{module}:counting", "--data", "data", "--rounds", "1")
    table(run, *args)
    (name,) = cached()
    cache_folder().rename(tmp_path / "elsewhere")
    cache_folder().symlink_to(tmp_path / "elsewhere")
    os.utime(cache_folder() / name, (1, 1))
    table(run, *args)
    assert (cache_folder() / name).stat().st_mtime == 1


def test_a_folder_that_others_can_write_to_is_no_cache(run: Run, module: str) -> None:
    args = (f"{module}:counting", "--data", "data", "--rounds", "1")
    first = table(run, *args)
    (name,) = cached()
    assert cache_folder().stat().st_mode & 0o777 == 0o700
    cache_folder().chmod(0o777)
    kept = (cache_folder() / name / "manifest.json").stat()
    os.utime(cache_folder() / name, (1, 1))
    assert table(run, *args) == first
    assert (cache_folder() / name).stat().st_mtime == 1
    assert (cache_folder() / name / "manifest.json").stat() == kept


def test_a_bundle_of_another_program_under_the_name_of_this_one_is_replaced(
    run: Run, module: str
) -> None:
    state = state_file(run, module)
    (counting,) = cached()
    args = (f"{module}:look", "--data", "data", "--rounds", "1", "--state-in", state)
    first = table(run, *args)
    (look,) = set(cached()) - {counting}
    shutil.rmtree(cache_folder() / look)
    shutil.copytree(cache_folder() / counting, cache_folder() / look)
    assert table(run, *args) == first
    assert (cache_folder() / look / "manifest.json").read_bytes() != (
        cache_folder() / counting / "manifest.json"
    ).read_bytes()


@pytest.mark.parametrize("place", ["", "relative", "/" + "a" * 5000])
def test_no_home_and_no_place_for_a_cache(
    run: Run, module: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This happens in a container whose user is not in its table of users."""
    monkeypatch.setenv("XDG_CACHE_HOME", place)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    printed = table(run, f"{module}:counting", "--data", "data", "--rounds", "1")
    assert printed == "round  output\n    1       7\n"
    assert not pathlib.Path("relative").exists()


def test_the_form_follows_from_the_output(run: Run, module: str) -> None:
    state = state_file(run, module)
    args = (f"{module}:show", "--data", "data", "--rounds", "1", "--state-in", state)
    table(run, *args, "--out", "out")
    assert sorted(path.name for path in pathlib.Path("out/clients/round-1").iterdir()) == [
        "client0.npz",
        "client1.npz",
        "client2.npz",
    ]
    forms = {
        json.loads((cache_folder() / name / "manifest.json").read_text())["form"]
        for name in cached()
    }
    assert forms == {"mapreduce", "broadcast"}
    printed = table(
        run,
        f"{module}:counting",
        "--data",
        "data",
        "--rounds",
        "1",
        "--form",
        "distribute-aggregate",
    )
    assert printed == "round  output\n    1       7\n"


LOCAL = """\
import numpy as np
import tffc as tff


@tff.federated_computation(np.int32)
def local(x):
    return x


@tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.int32))
def total(state, data):
    return state, tff.federated_sum(data)
"""


@pytest.mark.parametrize(
    "command",
    [
        ("run", "l.py", "--data", "data", "--rounds", "1"),
        ("run", "l.py", "--data", "data", "--rounds", "1", "--form", "mapreduce"),
        ("compile", "l.py", "--form", "mapreduce", "--out", "b"),
        ("check", "l.py", "--form", "distribute-aggregate"),
        ("verify", "l.py", "--form", "mapreduce", "--trials", "1"),
        ("data", "describe", "data", "--for", "l.py"),
    ],
    ids=" ".join,
)
def test_the_only_round_is_taken(
    run: Run, module: str, write: Write, command: tuple[str, ...]
) -> None:
    write("l.py", LOCAL)
    ran = run(*command)
    assert ran.code == 0, ran.stderr
    assert ran.stderr.startswith(
        "took l.py:total, the only round in the module; the others are local\n"
    )


def test_of_several_rounds_one_must_be_named(run: Run, module: str) -> None:
    ran = run("run", module, "--data", "data", "--rounds", "1")
    assert ran.code == 1
    assert ran.stderr.startswith("error[E449]: m.py has 4 candidates, so one must be named\n")
    assert ran.stderr.endswith("for example m.py:counting\n")
    assert "first" not in ran.stderr


def test_a_part_of_a_process_is_run(run: Run, module: str) -> None:
    args = (f"{module}:counting.next", "--data", "data", "--rounds", "1")
    assert table(run, *args, "--state-in", state_file(run, module)).endswith("    2       7\n")


def test_a_state_from_the_folder_of_a_run(run: Run, module: str) -> None:
    args = (f"{module}:counting", "--data", "data", "--rounds", "1")
    table(run, *args, "--out", "first")
    ran = run("run", *args, "--state-in", "first")
    assert (ran.code, ran.stdout) == (0, "round  output\n    2       7\n")
    assert ran.stderr.startswith("starts from first/state.npz, the state of that run\n")
    ran = run("run", *args, "--state-in", ".")
    assert ran.code == 1
    assert ran.stderr.startswith("error[E626]: cannot read .: Is a directory\n")
    assert "did you mean first/state.npz?" in ran.stderr


@pytest.mark.parametrize(("value", "is_told"), [("2", True), ("[2]", False)])
def test_skipping_is_told_of_where_a_client_is_good(
    run: Run, module: str, write: Write, value: str, is_told: bool
) -> None:
    write("d.py", f"def data():\n    return {{'a': [3], 'b': {value}}}\n")
    ran = run("run", f"{module}:counting", "--data", "python:d.py:data", "--rounds", "1")
    assert ran.stderr.startswith("error[E620]: d.py:data: the data of client a is a list")
    assert ("--skip-bad-clients" in ran.stderr) == is_told


def test_a_bundle_has_its_form(run: Run, module: str) -> None:
    run("compile", f"{module}:counting", "--form", "mapreduce", "--out", "bundle")
    ran = run("run", "bundle", "--data", "data", "--rounds", "1", "--form", "mapreduce")
    assert ran.code == 2
    assert ran.stderr.endswith(
        "Error: bundle is a folder, and a bundle has its own form: omit --form\n"
    )


EVALUATED = ("--evaluate", "m.py:look", "--evaluate-data", "held")


def test_states_are_evaluated_in_the_same_table(run: Run, module: str) -> None:
    args = (f"{module}:counting", "--data", "data", "--rounds", "5", *EVALUATED)
    assert table(run, *args, "--every", "2") == (
        "round  output  evaluation.state  evaluation.most\n"
        "    1       7\n"
        "    2       7                 7               20\n"
        "    3       7\n"
        "    4       7                 7               20\n"
        "    5       7                 7               20\n"
    )


def test_evaluations_are_logged_and_kept(run: Run, module: str) -> None:
    args = (f"{module}:counting", "--data", "data", *EVALUATED, "--every", "2", "--out", "out")
    lines = table(run, *args, "--rounds", "2", "--log", "jsonl", "--plot", "x.svg")
    assert [json.loads(line).get("evaluation", "none") for line in lines.splitlines()] == [
        None,
        {"state": 7, "most": 20},
    ]
    assert "evaluation.most" in pathlib.Path("x.svg").read_text()
    assert pathlib.Path("out/metrics.jsonl").read_text() == lines
    assert table(run, *args, "--rounds", "4", "--log", "csv", "--resume") == (
        "round,clients,skipped,metrics.output,evaluation.state,evaluation.most\n"
        "3,3,0,7,,\n"
        "4,3,0,7,7,20\n"
    )


LONG = """\
import collections
import numpy as np
import tffc as tff

MANY = tff.TensorType(np.int32, [5000])

@tff.federated_computation(tff.types.at_server(np.int32), tff.types.at_clients(MANY))
def long(state, data):
    total = tff.federated_sum(data)
    return state, tff.federated_zip(collections.OrderedDict(sums=total, state=state))

def clients():
    return {"ada": np.full([5000], 3, np.int32)}
"""


def test_long_evaluations_are_kept_beside_the_metrics(run: Run, module: str, write: Write) -> None:
    write("long.py", LONG)
    args = (f"{module}:counting", "--data", "data", "--rounds", "1", "--out", "out")
    ran = run(
        "run", *args, "--evaluate", "long.py:long", "--evaluate-data", "python:long.py:clients"
    )
    assert ran.stderr == (
        "too long for the table: evaluation.sums; tffc show out:1 shows them\n"
        "the state after round 1 is in out/state.npz\n"
    )
    (line,) = pathlib.Path("out/metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["evaluation"] == {
        "sums": {"type": "int32[5000]", "file": "evaluations/round-1.npz"},
        "state": 7,
    }
    assert run("show", "out:1").stdout.splitlines()[-3:] == [
        "out/evaluations/round-1.npz: 2 tensors",
        "  evaluation/sums   int32[5000]  [3, 3, 3, 3, 3, 3, ...]",
        "  evaluation/state  int32        7",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--evaluate", "m.py:look"], "--evaluate and --evaluate-data go together"),
        (["--evaluate-data", "held"], "--evaluate and --evaluate-data go together"),
        (["--every", "2"], "--every says how often to evaluate: add --evaluate PROGRAM"),
    ],
)
def test_options_that_need_each_other(
    run: Run, module: str, options: list[str], message: str
) -> None:
    ran = run("run", f"{module}:counting", "--data", "data", "--rounds", "1", *options)
    assert ran.code == 2
    assert ran.stderr.endswith(f"Error: {message}\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "show",
            "error[E915]: an evaluation has to give its output at the server, and clients have "
            "that of this one\n"
            " = help: aggregate what clients measure, for example with tff.federated_mean\n",
        ),
        (
            "other",
            "error[E853]: the evaluation takes a state of type `float32`, and the rounds give one "
            "of type `int32`\n"
            " = help: evaluate with a program that takes the state which the rounds give\n",
        ),
    ],
)
def test_evaluations_that_do_not_fit(run: Run, module: str, name: str, message: str) -> None:
    ran = run(
        "run", f"{module}:counting", "--data", "data", "--rounds", "1",
        "--evaluate", f"m.py:{name}", "--evaluate-data", "held",
    )  # fmt: skip
    assert (ran.code, ran.stdout, ran.stderr) == (1, "", message)


def test_evaluating_from_python(run: Run, module: str) -> None:
    for name in ("counting", "look"):
        run("compile", f"{module}:{name}", "--form", "mapreduce", "--out", name)
    rounds = tffc.run("counting", [1, 2], 3, evaluate="look", evaluate_data=[5], evaluate_every=2)
    assert [each.evaluation for each in rounds] == [
        None,
        {"state": 3, "most": 5},
        {"state": 3, "most": 5},
    ]
    without_data = error_without_place(
        LanguageValueError, lambda: tffc.run("counting", [1, 2], 3, evaluate="look")
    )
    assert str(without_data) == (
        "an evaluation needs both a program and clients' data [E729]\n"
        "  help: give evaluate and evaluate_data, or neither"
    )
    options = {"evaluate": "look", "evaluate_data": [5], "evaluate_every": 0}
    never = error_without_place(LanguageValueError, lambda: tffc.run("counting", [1], 3, **options))
    assert str(never) == (
        "cannot evaluate every 0 rounds [E706]\n  help: give a positive number of rounds"
    )
