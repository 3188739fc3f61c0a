"""A saved state is given back in Python containers, the user's own where they are known."""

from __future__ import annotations

import collections
import pathlib
from typing import Any, NamedTuple

import numpy as np
import pytest

import tffc as tff
from tests.refusals import error_without_place
from tffc.runtime.data.npz import encode_npz
from tffc.runtime.engines.state import State, write_state
from tffc.support.errors import DataError, NotationError


class Model(NamedTuple):
    kernel: Any
    bias: Any


MODEL = Model(tff.TensorType(np.float32, [2]), tff.TensorType(np.str_))
STATE = collections.OrderedDict(
    [("model", MODEL), ("a/b c", [np.int32, np.int32]), ("none", []), ('"<x>=\n', np.bool_)]
)
VALUE = ((np.array([1, 2], np.float32), b"x"), (np.int32(3), np.int32(4)), (), np.bool_(True))


@pytest.fixture
def saved(tmp_path: pathlib.Path) -> pathlib.Path:
    write_state(tmp_path / "state.npz", State(VALUE, "program", 3), tff.to_type(STATE))
    return tmp_path


@pytest.mark.parametrize("file", ["state.npz", "."])
def test_names_come_with_the_file(saved: pathlib.Path, file: str) -> None:
    state = tff.load_state(saved / file)
    model = collections.OrderedDict(kernel=VALUE[0][0], bias=b"x")
    np.testing.assert_equal(
        state,
        collections.OrderedDict(
            [("model", model), ("a/b c", (3, 4)), ("none", ()), ('"<x>=\n', True)]
        ),
    )
    assert state["a/b c"][0].dtype == np.int32


def test_containers_come_with_the_type(saved: pathlib.Path) -> None:
    state = tff.load_state(saved / "state.npz", STATE)
    assert isinstance(state["model"], Model)
    assert state["model"].bias == b"x"
    assert isinstance(state["a/b c"], list)


def test_a_state_of_another_type(saved: pathlib.Path) -> None:
    with pytest.raises(DataError, match="holds a state of type"):
        tff.load_state(saved / "state.npz", np.int32)


def test_a_state_by_hand_needs_its_type(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, kernel=np.ones(2, np.float32), bias=np.bytes_(b"y"))
    assert tff.load_state(path, MODEL).bias == b"y"
    assert str(error_without_place(DataError, lambda: tff.load_state(path))) == (
        f"{path} does not say which type its state is of [E871]\n"
        "  note: states that a run saves say it in their member state.json\n"
        "  help: give the type, or a state that a run has saved"
    )


@pytest.mark.parametrize(
    ("about", "error"),
    [
        ('{"type": 3}', DataError),
        ("{}", DataError),
        ('{"type": "int32 int32"}', NotationError),
        ('{"type": "int"}', NotationError),
        ('{"type": "' + "<" * 100_000 + '"}', NotationError),
    ],
)
def test_a_type_that_is_none(tmp_path: pathlib.Path, about: str, error: type[Exception]) -> None:
    path = tmp_path / "state.npz"
    path.write_bytes(encode_npz({"0": np.array(1, np.int32)}, {"state.json": about}))
    with pytest.raises(error):
        tff.load_state(path)


def test_a_type_of_no_value(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "state.npz"
    about = '{"format_version": "1.0", "program": "", "rounds": 0, "type": "( -> int32)"}'
    path.write_bytes(encode_npz({"0": np.array(1, np.int32)}, {"state.json": about}))
    with pytest.raises(DataError, match="cannot be kept in a file"):
        tff.load_state(path)


def test_deep_states(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "state.npz"
    kind: Any = tff.TensorType(np.int32)
    value: Any = np.int32(5)
    for _ in range(2000):
        kind, value = tff.StructType([kind]), (value,)
    write_state(path, State(value, "", 0), kind)
    state = tff.load_state(path)
    for _ in range(2000):
        (state,) = state
    assert state == 5
