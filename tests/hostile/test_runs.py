"""Runs that are kept: whose files were changed, which are others, or which somebody writes to."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.hostile.kills import contents
from tests.refusals import refusal
from tests.runtime.engines.programs import process_of
from tffc.backends.bundle.bundle import Bundle
from tffc.language import Literal, Node, TensorType, to_array
from tffc.runtime.data.identity import source_identity
from tffc.runtime.data.location import open_source
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.engines.rounds import run_rounds
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State, read_state
from tffc.runtime.runs.run_folder import FILES, FOLDERS, RunFolder
from tffc.runtime.runs.run_identity import RunIdentity, differences
from tffc.support.errors import DataError
from tffc.support.version import VERSION

FORM = "distribute-aggregate"
AT_SERVER, AT_CLIENTS = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)


@tff.federated_computation(AT_SERVER, AT_CLIENTS)
def total(state: Any, data: Any) -> Any:
    return tff.federated_sum(data), tff.federated_sum(data)


@tff.federated_computation(AT_SERVER, AT_CLIENTS)
def largest(state: Any, data: Any) -> Any:
    return tff.federated_max(data), tff.federated_max(data)


PROCESS = process_of(total, FORM)
SAMPLING = Sampling(2, 7)


@dataclasses.dataclass
class Setting:
    """The working directory with the data of four clients, and a run of two rounds in `run`.

    What `known` has about batches is what the engine gives with each round.
    """

    process: Process = PROCESS
    sampling: Sampling = SAMPLING
    skip_bad_clients: bool = False
    location: str = "data"
    known: Mapping[str, bool] = dataclasses.field(default_factory=dict)

    def run(self, rounds: int, *, resume: bool = True) -> None:
        """Go on with the run, up to a number of rounds."""
        source = open_source(self.location, self.process.data_type)
        identity = RunIdentity.of(
            self.process,
            self.sampling,
            source_identity(source),
            skip_bad_clients=self.skip_bad_clients,
        )
        with contextlib.closing(RunFolder(pathlib.Path("run"), self.process)) as folder:
            state = folder.begin(identity, None, resume=resume)
            state = state or State(np.int32(5), self.process.program, 0)
            left = rounds - state.rounds
            engine = LocalEngine(self.process, 1)
            for each in run_rounds(engine, state, source, left, self.sampling):
                spent = dataclasses.replace(each.spent, known=self.known or folder.batching)
                folder.save(dataclasses.replace(each, spent=spent))

    def refusal(self, rounds: int = 3, *, resume: bool = True) -> str:
        """The refusal to go on, after which the folder is as before."""
        before = contents(pathlib.Path("run"))
        with pytest.raises(DataError) as refused:
            self.run(rounds, resume=resume)
        assert contents(pathlib.Path("run")) == before
        return str(refused.value)


@pytest.fixture
def setting(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.chdir(tmp_path)
    pathlib.Path("data").mkdir()
    for number in range(4):
        np.savez(f"data/{number}.npz", np.int32(number))
    made = Setting()
    made.run(2)
    return made


PUT_BACK = "  help: put the file back as it was, or begin another run in a new folder"
DIGESTS = "  note: run.json says how the run has left its files, and nobody else writes to them\n"


def record(**changes: Any) -> None:
    file = pathlib.Path("run/run.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def rewrite(file: str, old: bytes, new: bytes) -> None:
    path = pathlib.Path("run", file)
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


def keep_first_state(setting: Setting) -> None:
    """Go on by a round, and put the state of the round before back."""
    shutil.copy("run/state.npz", "kept.npz")
    setting.run(3)
    shutil.copy("kept.npz", "run/state.npz")


ALTERED: dict[str, tuple[Callable[[Setting], object], str]] = {
    "the state is gone": (
        lambda _: os.remove("run/state.npz"),
        "state.npz is gone: it is not the state after round 2",
    ),
    "the state is another round's": (
        keep_first_state,
        "state.npz was changed: it is not the state after round 3",
    ),
    "the state is damaged": (
        lambda _: rewrite("state.npz", b"PK\x03\x04", b"PK\x03\x05"),
        "state.npz was changed: it is not the state after round 2",
    ),
    "fewer rounds": (
        lambda _: record(rounds=1),
        "run.json was changed: it says that 1 rounds are finished, which were 2",
    ),
    "rounds of a run without state": (
        lambda _: (record(state=None), os.remove("run/state.npz")),
        "run.json was changed: it says that 2 rounds are finished, which were 0",
    ),
    "a row is another": (
        lambda _: rewrite("metrics.jsonl", b'"clients": 2', b'"clients": 3'),
        "metrics.jsonl does not hold the rows that the run wrote",
    ),
    "a row is gone": (
        lambda _: pathlib.Path("run/metrics.jsonl").write_text(""),
        "metrics.jsonl does not hold the rows that the run wrote",
    ),
    "the rows are gone": (
        lambda _: os.remove("run/metrics.jsonl"),
        "metrics.jsonl does not hold the rows that the run wrote",
    ),
    "rows are added": (
        lambda _: pathlib.Path("run/metrics.jsonl").write_bytes(
            pathlib.Path("run/metrics.jsonl").read_bytes() * 2
        ),
        "metrics.jsonl does not hold the rows that the run wrote",
    ),
    "the kind of data": (
        lambda _: rewrite("run.json", b'"npz"', b'"csv"'),
        "run.json was changed: the 'kind' of its source is not that of source.json",
    ),
    "the number of clients": (
        lambda _: rewrite("run.json", b'"clients": 4', b'"clients": 5'),
        "run.json was changed: the 'clients' of its source is not that of source.json",
    ),
    "the names of clients": (
        lambda _: rewrite("source.json", b'"npz"', b'"csv"'),
        "source.json was changed",
    ),
}


@pytest.mark.parametrize("case", ALTERED)
def test_a_file_that_was_changed_is_named(setting: Setting, case: str) -> None:
    change, text = ALTERED[case]
    change(setting)
    assert setting.refusal(4) == f"run/{text} [E938]\n{DIGESTS}{PUT_BACK}"


LINES = {
    b"{": "it is not JSON",
    b"[" * 100_000: "it is not JSON",
    b"\xff": "it is not JSON",
    b"[1]": "it is not an object with round, clients, skipped and metrics",
    b'{"round": 3}': "it is not an object with round, clients, skipped and metrics",
    b'{"round": -3, "clients": 2, "skipped": 0, "metrics": {}}': "its 'round' is not a count",
    b'{"round": 3, "clients": true, "skipped": 0, "metrics": {}}': "its 'clients' is not a count",
    b'{"round": 3, "clients": 2, "skipped": 0, "metrics": 1}': "its 'metrics' is not an object",
    b'{"round": 3, "clients": 2, "skipped": 0, "metrics": {"a": NaN}}': "JSON has no NaN",
    b'{"round": 3, "round": 4}': "the key 'round' occurs twice in an object",
}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:50].decode(errors="replace"))
def test_a_line_that_is_no_row_is_named(setting: Setting, line: bytes) -> None:
    file = pathlib.Path("run/metrics.jsonl")
    file.write_bytes(file.read_bytes() + line + b"\n")
    assert setting.refusal() == (
        f"run/metrics.jsonl:3: this line is not the row of a round: {LINES[line]} [E938]\n"
        "  note: a run writes one row a round to this file and nobody else writes to it\n"
        f"{PUT_BACK}"
    )


RECORDS = {
    "no JSON": ("{", "it is not JSON"),
    "deep": ("[" * 100_000, "it is not JSON"),
    "a long number": (f'{{"rounds": {"9" * 5000}}}', "an integer has more than 64 bits"),
    "no object": ("[]", "it is not an object"),
    "a key twice": ('{"rounds": 1, "rounds": 2}', "the key 'rounds' occurs twice in an object"),
    "no number": ('{"seed": NaN}', "JSON has no NaN"),
    "a mark before it": ("\ufeff{}", "it is not JSON"),
}


@pytest.mark.parametrize("case", RECORDS)
def test_a_record_that_is_none_is_refused(setting: Setting, case: str) -> None:
    text, reason = RECORDS[case]
    pathlib.Path("run/run.json").write_text(text)
    assert (
        setting.refusal() == f"run/run.json is not what a run writes: {reason} [E938]\n{PUT_BACK}"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"rounds": -5},
        {"rounds": 2.0},
        {"rounds": True},
        {"rounds": 10**19},
        {"seed": "0"},
        {"clients_per_round": 0},
        {"programs": {}},
        {"programs": []},
        {"state": {"sha256": "../state"}},
        {"metrics": None},
        {"skip_bad_clients": 1},
    ],
    ids=str,
)
def test_a_wrong_value_in_a_record_is_refused(setting: Setting, changes: dict[str, Any]) -> None:
    record(**changes)
    (key,) = changes
    assert setting.refusal() == (
        f"run/run.json is not what a run writes: its {key!r} is not right [E938]\n{PUT_BACK}"
    )


def test_a_record_of_another_format_is_refused(setting: Setting) -> None:
    pathlib.Path("run/run.json").write_text('{"program": "0", "seed": 0, "clients_per_round": 2}')
    assert setting.refusal() == (
        "run/run.json is of a format without a version, and this tffc goes on with runs of format "
        "1.0 [E942]\n"
        "  help: use the version of tffc that began the run, or begin another in a new folder"
    )


def test_the_version_that_began_a_run_of_another_format_is_named(setting: Setting) -> None:
    record(format_version="2.0", tffc="3.1.4")
    assert setting.refusal() == (
        "run/run.json is of format 2.0, and this tffc goes on with runs of format 1.0 [E942]\n"
        "  help: use tffc 3.1.4, which began the run, or begin another in a new folder"
    )


def test_the_version_that_began_a_run_stays(setting: Setting) -> None:
    record(tffc="0.0.9")
    setting.run(3)
    content = json.loads(pathlib.Path("run/run.json").read_text())
    assert (content["tffc"], content["rounds"]) == ("0.0.9", 3)


def test_a_run_goes_on_that_does_not_say_who_began_it(setting: Setting) -> None:
    file = pathlib.Path("run/run.json")
    content = json.loads(file.read_text())
    assert content.pop("tffc") == VERSION
    file.write_text(json.dumps(content))
    setting.run(3)
    assert "tffc" not in json.loads(file.read_text())


def test_a_record_that_is_no_file_is_refused(setting: Setting) -> None:
    os.remove("run/run.json")
    os.mkfifo("run/run.json")
    assert refusal(DataError, setting.run, 3) == (
        "cannot read run/run.json: it is a FIFO, expected a regular file [E850]\n"
        "  note: going on with a run takes all of its files"
    )


@pytest.mark.parametrize("resume", [True, False])
def test_files_of_a_run_are_not_written_over(setting: Setting, resume: bool) -> None:
    os.remove("run/run.json")
    assert setting.refusal(resume=resume) == (
        "the folder run holds state.npz, and no run.json that says of which run [E861]\n"
        "  help: name another folder, or move away what is there"
    )


def rename_a_client(_: Setting) -> None:
    os.rename("data/3.npz", "data/four.npz")


def add_clients(_: Setting) -> None:
    for number in range(10, 17):
        shutil.copy("data/0.npz", f"data/{number}.npz")


OTHERS: dict[str, tuple[Callable[[Setting], object], str]] = {
    "program": (
        lambda s: setattr(s, "process", process_of(largest, FORM)),
        "the bundle is that of another program",
    ),
    "seed": (lambda s: setattr(s, "sampling", Sampling(2, 8)), "its seed is 7, and here 8"),
    "sample": (
        lambda s: setattr(s, "sampling", Sampling(None, 7)),
        "a round takes 2 clients, and here all clients",
    ),
    "bad clients": (
        lambda s: setattr(s, "skip_bad_clients", True),
        "a client whose data cannot be read fails its round, and here is left out",
    ),
    "value": (
        lambda _: np.savez("data/1.npz", np.int32(9)),
        "files of its data are not as they were: 1.npz",
    ),
    "client gone": (lambda _: os.remove("data/2.npz"), "clients of its data are gone: 2"),
    "clients new": (
        add_clients,
        "clients of its data are new: 10, 11, 12, 13, 14 and 2 more",
    ),
    "client renamed": (
        rename_a_client,
        "clients of its data are gone: 3\n  note: clients of its data are new: four",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_another_run_has_is_said(setting: Setting, case: str) -> None:
    change, text = OTHERS[case]
    change(setting)
    said = setting.refusal()
    assert said.startswith("the run in run is another one [E921]\n  note: ")
    assert f"  note: {text}\n" in said
    assert said.endswith(
        "\n  help: go on with what it was begun with, or begin another run in a new folder"
    )


def test_programs_that_print_alike_are_told_apart() -> None:
    def program(element: float) -> Node:
        array = np.zeros(3000, np.float32)
        array[1500] = element
        return Literal(to_array(array), TensorType(np.float32, [3000]))

    one, other = (Bundle(FORM, program(e), {"work": program(e)}, None, {}) for e in (1, 2))
    assert one.digests().keys() == {"computation", "components/work"}
    assert not set(one.digests().values()) & set(other.digests().values())


def test_components_and_form_are_told(setting: Setting) -> None:
    source = source_identity(open_source("data", PROCESS.data_type))
    one = RunIdentity.of(PROCESS, Sampling(), source, skip_bad_clients=False)
    programs = {**one.programs, "components/zero": "0" * 64}
    assert differences(one, dataclasses.replace(one, programs=programs)) == [
        "components/zero.pb of the bundle is another one"
    ]
    assert differences(one, dataclasses.replace(one, form="mapreduce", programs=programs)) == [
        "its form is distribute-aggregate, and here mapreduce"
    ]


def test_copied_data_is_the_same_and_another_kind_is_not(setting: Setting) -> None:
    shutil.copytree("data", "elsewhere")
    setting.location = "elsewhere"
    setting.run(3)
    rows = "".join(f"{number},{number}\n" for number in range(4))
    pathlib.Path("table.csv").write_text("client,0\n" + rows)
    setting.location = "csv:table.csv"
    said = setting.refusal(4)
    assert "  note: its data is of the kind npz, and here of the kind csv\n" in said
    assert "  note: its data has no option client, and here client=client\n" in said


def test_what_was_measured_about_batches_is_kept(setting: Setting) -> None:
    file = pathlib.Path("run/batching.json")
    assert not file.exists()
    setting.known = {"a kind": True, "another": False}
    setting.run(3)
    written = {"format_version": "1.0", "pays": setting.known}
    assert json.loads(file.read_text()) == written
    setting.known = {}
    setting.run(4)  # which goes on with what is known
    assert json.loads(file.read_text()) == written


def link_to(outside: str, name: str) -> None:
    """Put a link out of the run where one of its files or folders is."""
    path = pathlib.Path("run", name)
    target = pathlib.Path(outside, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        os.rename(path, target)
    else:
        target.mkdir() if name in FOLDERS else target.write_text("as it was")
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(target.resolve())


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FILES, *FOLDERS])
def test_nothing_of_a_run_is_a_link(setting: Setting, name: str) -> None:
    link_to("outside", name)
    before = contents(pathlib.Path("outside"))
    kind = "folder" if name in FOLDERS else "file"
    assert setting.refusal(4) == (
        f"run/{name} is a link, expected a {kind} [E938]\n{DIGESTS}{PUT_BACK}"
    )
    assert contents(pathlib.Path("outside")) == before


@pytest.mark.parametrize("name", ["source.json", "tensorboard", "run.json"])
def test_nothing_of_a_new_run_is_a_link(setting: Setting, name: str) -> None:
    shutil.rmtree("run")
    link_to("outside", name)
    pathlib.Path("outside", name).rmdir() if name in FOLDERS else os.remove(f"outside/{name}")
    assert f"run/{name} is a link" in setting.refusal(1)
    assert not os.listdir("outside")


@pytest.mark.slow
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.write_text("")])
@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_a_run_are_folders(
    setting: Setting, name: str, make: Callable[[pathlib.Path], object]
) -> None:
    path = pathlib.Path("run", name)
    if path.is_dir():
        shutil.rmtree(path)
    make(path)
    assert re.match(rf"run/{name} is a \w+, expected a folder \[E938\]", setting.refusal())


@pytest.mark.parametrize(
    "name", ["outputs/round-3.npz", "clients/round-3", "evaluations/round-3.npz"]
)
def test_links_of_an_unfinished_round_are_removed(setting: Setting, name: str) -> None:
    link_to("outside", name)
    before = contents(pathlib.Path("outside"))
    setting.run(4)
    assert contents(pathlib.Path("outside")) == before
    assert not pathlib.Path("run", name).is_symlink()


@pytest.mark.parametrize(
    "name",
    [
        "outputs/round-4.npz",
        "clients/round-4",
        "evaluations/round-10.npz",
        "outputs/round-0004.npz",
        f"outputs/round-{'9' * 200}.npz",
    ],
)
def test_there_is_nothing_of_later_rounds(setting: Setting, name: str) -> None:
    path = pathlib.Path("run", name)
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    assert setting.refusal(4) == (
        f"run/{name} is of a round after 3, the next one [E938]\n{DIGESTS}{PUT_BACK}"
    )


HOLDING = """\
import os, pathlib, sys
from tffc.support.files import locks
held = locks.take(pathlib.Path("run/run.lock"), wait=False)
os.write(held.descriptor, b"process 7 on there\\n")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_folder_that_is_written_to_is_refused_until_the_writer_dies(setting: Setting) -> None:
    command = [sys.executable, "-c", HOLDING]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert setting.refusal() == (
            "another process writes to the run in run [E939]\n"
            "  note: it is process 7 on there\n"
            "  help: wait until it ends, or name another folder"
        )
        holder.kill()
    assert pathlib.Path("run/run.lock").exists()
    setting.run(3)
    assert not pathlib.Path("run/run.lock").exists()


def test_what_is_not_a_run_is_left_alone(setting: Setting) -> None:
    kept = pathlib.Path("run/notes.tmp")
    kept.write_text("mine")
    pathlib.Path("run/.tffc-0123456789abcdef.new").write_text("left by a kill")
    setting.run(3)
    assert kept.read_text() == "mine"
    assert not any(re.match(r"\.tffc-", name) for name in os.listdir("run"))


def test_a_state_of_another_format_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "old.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("state.json", '{"type": "int32", "program": "0", "rounds": 3}')
    assert refusal(DataError, read_state, path, TensorType(np.int32), "0") == (
        f"{path}: its member state.json is of another format than 1.0 [E942]\n"
        "  note: in another format, it says in another way which program the state is of\n"
        "  help: use the version of tffc that saved it; or start again from its arrays, in a file "
        "without state.json"
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"format_version": "1.0", "program": "0", "rounds": 3}',
        '{"format_version": "1.0", "type": null, "program": "0", "rounds": 3}',
        '{"format_version": "1.0", "type": "int32", "program": "0", "rounds": 3, "rounds": 4}',
        *(
            f'{{"format_version": "1.0", "type": "int32", "program": "0", "rounds": {rounds}}}'
            for rounds in ("NaN", "-1", "-5", str(2**63), "true", "1.5", '"3"')
        ),
    ],
)
def test_what_a_state_says_of_itself_is_whole(tmp_path: pathlib.Path, text: str) -> None:
    path = tmp_path / "state.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("state.json", text)
    with pytest.raises(DataError, match=r"its member state\.json is not what tffc writes \[E627\]"):
        read_state(path, TensorType(np.int32), "0")
