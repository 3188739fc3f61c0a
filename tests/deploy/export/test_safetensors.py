"""Arrays of trained states as files of safetensors."""

from __future__ import annotations

import collections
import pathlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tffc as tff
from tffc.support.errors import ExportError, LanguageValueError

safetensors = pytest.importorskip("safetensors.numpy")

WEIGHTS = collections.OrderedDict(
    [
        ("0.weight", np.arange(6, dtype=np.float32).reshape(2, 3)),
        ("0.half", np.ones(3, ml_dtypes.bfloat16)),
        ("mask", np.array([True, False])),
        ("scale", np.float64(2.5)),
    ]
)
STATE = collections.OrderedDict(model=WEIGHTS, rounds=np.int32(3))


def saved(state: Any, out: pathlib.Path, **settings: Any) -> dict[str, Any]:
    tff.export(state, "safetensors", out, **settings)
    return safetensors.load_file(out)


def check(found: dict[str, Any], expected: Any) -> None:
    assert sorted(found) == sorted(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_a_part_of_a_state(tmp_path: pathlib.Path) -> None:
    out = tmp_path / "model.safetensors"
    check(saved(STATE, out, part="model"), WEIGHTS)
    with pytest.raises(ExportError, match="already exists"):
        saved(STATE, out)
    found = saved(STATE, out, replace=True)
    check(found, {f"model/{n}": w for n, w in WEIGHTS.items()} | {"rounds": np.int32(3)})


def test_the_same_state_gives_the_same_bytes(tmp_path: pathlib.Path) -> None:
    files = [tmp_path / f"{number}.safetensors" for number in range(2)]
    for file in files:
        saved(STATE, file, part="model")
    assert files[0].read_bytes() == files[1].read_bytes()


def test_torch_reads_the_file(tmp_path: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(3, 2)
    state = collections.OrderedDict(weight=WEIGHTS["0.weight"], bias=np.array([1, 2], np.float32))
    tff.export({"model": state}, "safetensors", tmp_path / "m.safetensors", part="model")
    load = pytest.importorskip("safetensors.torch").load_file
    module.load_state_dict(load(tmp_path / "m.safetensors"), strict=True)
    np.testing.assert_array_equal(module.weight.detach(), state["weight"])


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "an array": (STATE, {"part": "rounds"}, "which is no struct"),
    "text": ({"a": np.array("x", object)}, {}, "a is text"),
    "no part": (STATE, {"part": "mdel"}, "the state has no part 'mdel'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: pathlib.Path) -> None:
    state, settings, message = REFUSED[name]
    with pytest.raises(ExportError, match=message):
        saved(state, tmp_path / "m.safetensors", **settings)
    assert not list(tmp_path.iterdir())


def test_another_suffix_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ExportError, match=r"ends in \.safetensors, not"):
        tff.export(STATE, "safetensors", tmp_path / "m.bin")


def test_a_program_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(LanguageValueError, match="takes a state alone, without a program"):
        tff.export("m.py:f", "safetensors", tmp_path / "m.safetensors", state=STATE)
