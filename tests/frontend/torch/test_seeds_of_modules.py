"""Weights that PyTorch draws while a module is loaded are the same each time."""

from __future__ import annotations

import pathlib

import pytest
import torch

from tests.processes import run_python
from tffc.runtime.user_code.modules import import_source

SOURCE = """\
import torch
WEIGHT = torch.nn.Linear(1, 1).weight.item()
"""


def weight(folder: pathlib.Path) -> float:
    return import_source(str(folder / "model.py")).WEIGHT


@pytest.mark.slow
def test_a_module_draws_the_same_weights_in_every_process(tmp_path: pathlib.Path) -> None:
    (tmp_path / "model.py").write_text(SOURCE)
    state = torch.get_rng_state()
    here = weight(tmp_path)
    assert weight(tmp_path) == here
    assert torch.equal(torch.get_rng_state(), state)
    path = str(tmp_path / "model.py")
    code = "import sys; from tffc.runtime.user_code.modules import import_source; "
    code += "print(import_source(sys.argv[1]).WEIGHT)"
    assert float(run_python("-c", code, path, check=True).stdout) == here
