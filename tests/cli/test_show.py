"""`tffc show`: states, outputs and runs as text, parts of them, and exported files."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

from tests.cli.conftest import Run
from tffc.language import to_type
from tffc.runtime.data.arrays import ArrayLayout
from tffc.runtime.data.identity import SourceIdentity
from tffc.runtime.data.npz import encode_npz
from tffc.runtime.engines.sampling import Sampling
from tffc.runtime.engines.state import State, encode_state
from tffc.runtime.runs.metrics_file import Extent
from tffc.runtime.runs.run_identity import RunIdentity
from tffc.runtime.runs.run_record import RunRecord, encode_source, sha256

MODEL = [("weights", (np.float32, [10, 2])), ("bias", np.float32)]
STATE = to_type([("model", MODEL), ("names", (np.str_, [2]))])
OUTPUT = to_type([("counts", (np.int64, [3])), ("word", np.str_)])
PROGRAM = "ab" * 32


@pytest.fixture
def kept(run: Run, tmp_path: pathlib.Path) -> Run:
    """Runs commands beside `run`, the folder of a run of two rounds."""
    folder = tmp_path / "run"
    (folder / "outputs").mkdir(parents=True)
    (folder / "clients" / "round-2").mkdir(parents=True)
    (folder / "clients" / "round-2" / "ada.npz").touch()
    weights = np.arange(20, dtype=np.float32).reshape(10, 2) / 10
    names = np.array([b"green tea", b"a\0"], object)
    state = encode_state(State(((weights, np.float32(0.5)), names), PROGRAM, 2), STATE, "state")
    (folder / "state.npz").write_bytes(state)
    for number in (1, 2):
        output = ArrayLayout(OUTPUT).encode((np.array([2**62, -1, number]), b"\x1b[2J"), "output")
        (folder / "outputs" / f"round-{number}.npz").write_bytes(encode_npz(output, {}))
    source = SourceIdentity("npz", {}, ["ada"], {})
    identity = RunIdentity("mapreduce", {"computation": PROGRAM}, Sampling(), False, source)
    content = encode_source(source)
    record = RunRecord(identity, sha256(content), 2, sha256(state), Extent(0, sha256(b"")))
    (folder / "source.json").write_bytes(content)
    (folder / "run.json").write_bytes(record.encode())
    return run


def shown(run: Run, *args: str) -> str:
    ran = run("show", *args)
    assert (ran.code, ran.stderr) == (0, "")
    return ran.stdout


STATE_TEXT = f"""\
run/state.npz: the state after round 2, 3 tensors
  type `{STATE}`
  program {PROGRAM}
"""


def test_a_run(kept: Run) -> None:
    assert shown(kept, "run") == (
        "run: round 2 of 2; 1 client, such as run/clients/round-2/ada.npz\n"
        f"{STATE_TEXT}"
        "  state/model/weights  float32[10,2]  [[0.0, 0.1], ...]\n"
        "  state/model/bias     float32        0.5\n"
        '  state/names          str[2]         ["green tea", a\\x00]\n'
        "run/outputs/round-2.npz: 2 tensors\n"
        "  output/counts  int64[3]  [4611686018427387904, -1, 2]\n"
        '  output/word    str       "\\x1b[2J"\n'
    )


def test_an_earlier_round(kept: Run) -> None:
    assert shown(kept, "run:1") == (
        "run: round 1 of 2\n"
        "run/outputs/round-1.npz: 2 tensors\n"
        "  output/counts  int64[3]  [4611686018427387904, -1, 1]\n"
        '  output/word    str       "\\x1b[2J"\n'
    )


def test_a_state(kept: Run) -> None:
    assert shown(kept, "run/state.npz").startswith(
        f"{STATE_TEXT}  model/weights  float32[10,2]  [[0.0, 0.1], ...]\n"
    )


def test_a_file_of_numpy(run: Run, tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "x.npz", np.zeros([20], ">i2"), odd=np.zeros([1000000, 0]), s=["thé"])
    assert shown(run, "x.npz") == (
        "x.npz: 3 tensors\n"
        "  odd    float64[1000000,0]  [[], ...]\n"
        "  s      str[1]              [thé]\n"
        "  arr_0  int16[20]           [0, 0, 0, 0, 0, 0, ...]\n"
    )


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("state/model/bias", "state/model/bias  float32  0.5\n"),
        ("state/model/weights[2]", "state/model/weights[2]  float32[2]  [0.4, 0.5]\n"),
        ("state/model/weights[-1,0]", "state/model/weights[-1,0]  float32  1.8\n"),
        (
            "state/model/weights[0:2]",
            "state/model/weights[0:2]  float32[2,2]\n[[0.0, 0.1],\n [0.2, 0.3]]\n",
        ),
        ("state/names[1:]", "state/names[1:]  str[1]  [a\\x00]\n"),
        (
            "output/",
            "output/counts  int64[3]  [4611686018427387904, -1, 2]\n"
            'output/word    str       "\\x1b[2J"\n',
        ),
    ],
)
def test_parts(kept: Run, part: str, text: str) -> None:
    assert shown(kept, "run", "--part", part) == text


def test_all_is_all(kept: Run) -> None:
    lines = shown(kept, "run", "--all").splitlines()
    assert lines[:3] == ["state/model/weights  float32[10,2]", "[[0.0, 0.1],", " [0.2, 0.3],"]
    assert lines[10:12] == [" [1.8, 1.9]]", "state/model/bias     float32        0.5"]
    assert len(lines) == 15


def test_json_has_everything(kept: Run) -> None:
    found = json.loads(shown(kept, "run", "--to", "json"))
    assert found["state"] == {"type": str(STATE), "program": PROGRAM, "rounds": 2}
    assert np.array(found["values"]["state/model/weights"]).shape == (10, 2)
    del found["values"]["state/model/weights"]
    assert found["values"] == {
        "state/model/bias": 0.5,
        "state/names": ["green tea", "a\0"],
        "output/counts": [2**62, -1, 2],
        "output/word": "\x1b[2J",
    }


def test_csv_is_a_table(kept: Run) -> None:
    weights = "--part=state/model/weights[::9]"
    assert shown(kept, "run", weights, "--part=state/names", "--to=csv") == (
        "state/model/weights[::9][0],state/model/weights[::9][1],state/names\n"
        "0.0,0.10000000149011612,green tea\n"
        '1.7999999523162842,1.899999976158142,"""a\\u0000"""\n'
    )


def test_npy_is_an_array_of_numpy(kept: Run, tmp_path: pathlib.Path) -> None:
    for part in ("state/model/weights[1]", "output/word"):
        ran = kept("show", "run", "--part", part, "-o", "x.npy")
        assert (ran.code, ran.stdout, ran.stderr) == (0, "", f"wrote x.npy: {part}\n")
        kind = "S" if part == "output/word" else "f"
        assert np.load(tmp_path / "x.npy").dtype.kind == kind


def test_the_suffix_decides(kept: Run, tmp_path: pathlib.Path) -> None:
    assert kept("show", "run:1", "-o", "x.json").code == 0
    assert json.loads((tmp_path / "x.json").read_text())["values"]["output/counts"][2] == 1
    ran = kept("show", "run", "-o", "x.txt")
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.endswith(
        "Error: x.txt does not say in its suffix what to write: name it .csv, .json or .npy, or "
        "add --to\n"
    )
    assert kept("show", "run", "--to", "npy").code == 2


def test_rows_of_any_number_of_dimensions(run: Run, tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "w.npz", w=np.arange(12).reshape(2, 3, 1, 2))
    assert shown(run, "w.npz", "--all") == (
        "w  int64[2,3,1,2]\n"
        "[[[[0, 1]],\n  [[2, 3]],\n  [[4, 5]]],\n [[[6, 7]],\n  [[8, 9]],\n  [[10, 11]]]]\n"
    )


@pytest.mark.parametrize("options", [["--all"], ["--part", "w"], ["--to", "csv"], ["--to", "json"]])
def test_arrays_too_long_for_text(run: Run, tmp_path: pathlib.Path, options: list[str]) -> None:
    np.savez(tmp_path / "w.npz", w=np.zeros((2**22 + 1, 1), np.int8))
    assert run("show", "w.npz", *options).stderr == (
        "error[E816]: 4194305 elements would be written as text, more than the 4194304 that are "
        "written\n"
        " = help: write an array with --to npy -o FILE.npy, or a part of it, as with "
        "--part 'NAME[0:1000]'\n"
    )
    assert shown(run, "w.npz", "--part", "w[0:1000]").count("\n") == 1001


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (
            ["run:7"],
            "error[E803]: the run in run has no round 7: 2 rounds are finished\n"
            " = help: give the number of one that is, such as run:2\n",
        ),
        (
            ["run:1", "--part", "output/count"],
            "error[E803]: there is no part 'output/count'\n"
            " = note: there are output/counts, output/word\n"
            " = help: did you mean 'output/counts'?\n",
        ),
        *(
            (
                ["run", "--part", name],
                f"error[E803]: there is no part {name!r}\n"
                " = note: there are state/model/weights, state/model/bias, state/names, "
                "output/counts, output/word\n"
                f" = help: did you mean {meant!r}?\n",
            )
            for name, meant in {
                "bais": "state/model/bias",
                "model/weights[0]": "state/model/weights",
                "stat": "state",
                "state/modle/": "state/model",
            }.items()
        ),
        *(
            (
                ["run", "--part", f"state/model/bias[{cut}]"],
                f"error[E803]: 'state/model/bias' is float32, of which [{cut}] is not a slice\n"
                " = help: give positions or ranges, one for each of the first dimensions, such as "
                "[0:3] or [-1,2:4]\n",
            )
            for cut in ("0", "", "x", "::0", "1:2:3:4")
        ),
        (
            ["run:1", "--to", "csv"],
            "error[E816]: tensors of different lengths cannot be the columns of one table\n"
            " = note: output/counts has length 3, output/word has length 1\n"
            " = help: choose one, or those of one length; or write JSON\n",
        ),
        (
            ["run:1", "-o", "x.npy"],
            "error[E816]: a .npy file holds one array, and there are 2\n"
            " = note: they are output/counts, output/word\n"
            " = help: choose one\n",
        ),
        (
            ["run", "--part", "state/names", "-o", "x.npy"],
            "error[E816]: the strings of 'state/names' end in zero bytes, which a .npy file does "
            "not keep\n"
            " = help: write JSON, which does\n",
        ),
        (
            ["run/stat.npz"],
            "error[E626]: cannot read run/stat.npz: No such file or directory\n"
            " = help: did you mean run/state.npz?\n",
        ),
    ],
)
def test_refusals(kept: Run, args: list[str], text: str) -> None:
    assert kept("show", *args).refusal == text
