"""Files of strangers that `tffc show` is given: refused with a code, or shown without harm."""

from __future__ import annotations

import io
import os
import pathlib
import zipfile
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.cli.conftest import run as run


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def write(path: pathlib.Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array(["2026-01-01"], "datetime64[D]"), "datetime64[D][1]"),
        (np.zeros([1], [("a", "i2")]), "void16[1]"),
        (np.zeros([1], "V3"), "void24[1]"),
        (np.zeros([2**40, 0], np.int8), "int8[1099511627776,0]"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--to", "json"], ["--all"]])
def test_arrays_that_no_tensor_is(
    run: Run, tmp_path: pathlib.Path, array: Any, text: str, more: list[str]
) -> None:
    write(tmp_path / "x.npz", {"x.npy": npy(array)})
    assert run("show", "x.npz", *more).stderr == (
        f"error[E842]: x.npz: the array 'x' is {text}, which is not a tensor\n"
        " = help: save numbers, truth values or strings\n"
    )


def test_names_and_strings_do_not_act_on_a_terminal(run: Run, tmp_path: pathlib.Path) -> None:
    about = b'{"format_version": "1.0", "type": "\\u001b[2J", "program": "\\n", "rounds": 1}'
    array = npy(np.array(b"\x1b]0;x\a\n"))
    write(tmp_path / "x.npz", {"\x1b[2J.npy": array, "state.json": about})
    for more in ([], ["--all"], ["--to", "json"], ["--to", "csv"], ["--part", "\x1b[2J"]):
        ran = run("show", "x.npz", *more)
        assert ran.code == 0
        assert "\x1b" not in ran.stdout
        assert "\a" not in ran.stdout
    assert run("show", "x.npz", "--part", "\x1b[3J").stderr == (
        "error[E803]: there is no part '\\x1b[3J'\n"
        " = note: there are \\x1b[2J\n"
        " = help: did you mean '\\x1b[2J'?\n"
    )


@pytest.mark.parametrize(
    ("about", "code"),
    [
        (b"[]", "E627"),
        (b"[" * 100_000, "E627"),
        (b'{"format_version": "2.0"}', "E942"),
        (b'{"format_version": "1.0", "type": 1, "program": "", "rounds": 1}', "E627"),
        (b'{"format_version": "1.0", "type": "", "rounds": 1}', "E627"),
        (b'{"format_version": "1.0", "type": "", "program": [], "rounds": 1}', "E627"),
        (b"\xff", "E627"),
    ],
)
def test_what_a_state_says_of_itself_is_checked(
    run: Run, tmp_path: pathlib.Path, about: bytes, code: str
) -> None:
    write(tmp_path / "x.npz", {"0.npy": npy(np.int32(1)), "state.json": about})
    ran = run("show", "x.npz")
    assert (ran.code, ran.stdout, ran.stderr[:12]) == (1, "", f"error[{code}]:")


def test_strings_whose_halves_do_not_fit(run: Run, tmp_path: pathlib.Path) -> None:
    halves = {"x.bytes.npy": npy(np.zeros([3], np.uint8)), "x.lengths.npy": npy(np.array([2]))}
    write(tmp_path / "x.npz", halves)
    assert run("show", "x.npz").stderr.startswith("error[E627]: x.npz is not an .npz file")
    write(tmp_path / "x.npz", {**halves, "x.npy": npy(np.int32(7))})
    assert run("show", "x.npz").stdout == (
        "x.npz: 3 tensors\n"
        "  x.bytes    uint8[3]  [0, 0, 0]\n"
        "  x.lengths  int64[1]  [2]\n"
        "  x          int32     7\n"
    )


def test_what_is_not_a_file(run: Run, tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "x.npz")
    assert run("show", "x.npz").stderr.startswith("error[E626]: cannot read x.npz: it is a FIFO")
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "run.json").write_text("{}")
    assert run("show", "r:1").stderr.startswith("error[E942]: ")


def test_more_than_fits_in_memory(run: Run, tmp_path: pathlib.Path) -> None:
    write(tmp_path / "x.npz", {"x.npy": npy(np.zeros([2**24 + 1], "S1"))})
    assert run("show", "x.npz").stderr.startswith("error[E629]: x.npz: with the array 'x' ")
