"""Releases of PyTorch and torchax, what is said where they are missing, and what loads them."""

from __future__ import annotations

import pathlib
import pickle
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import tffc as tff
from tests.frontend.torch import zoo
from tests.frontend.torch.test_forms import data, process
from tests.frontend.torch.zoo_training import trainer
from tests.processes import run_python
from tffc.frontend.torch.releases import load_torch, load_translations
from tffc.support.errors import TffcError


@pytest.fixture(autouse=True)
def loaded() -> Iterator[None]:
    """Translations that are loaded before and after a test that hides what they need."""
    load_translations()
    yield
    load_translations.cache_clear()


def traced() -> object:
    return tff.torch.computation(lambda x: x + 1, np.float32)


def test_a_release_of_pytorch_that_was_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "9.1.0")
    with pytest.raises(TffcError) as caught:
        load_torch()
    assert str(caught.value) == (
        "PyTorch 9.1.0 has not been tried with this tffc [E586]\n"
        "  note: tried are 2.13\n"
        "  help: install a release that was: pip install 'tffc[torch]'"
    )


def test_a_release_of_torchax_that_was_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    load_translations.cache_clear()
    monkeypatch.setattr(sys.modules["torchax"], "__version__", "9.1.0")
    with pytest.raises(TffcError, match=r"torchax 9\.1\.0 has not been tried"):
        load_translations()


@pytest.mark.parametrize("package", ["torch", "torchax"])
def test_a_missing_package(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load_translations.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TffcError) as caught:
        load_translations()
    assert caught.value.code == "E701"
    assert "pip install 'tffc[torch]'" in str(caught.value)


def test_importing_translations_leaves_pytorch_as_it_was() -> None:
    fast = torch.backends.mha.get_fastpath_enabled()
    traced()
    assert torch.backends.mha.get_fastpath_enabled() == fast


WITHOUT = """
import sys
for name in ("torch", "torchax", "jax", "jaxlib"):
    sys.modules[name] = None
import tffc
bundle = sys.argv[1]
print(tffc.prove(bundle).is_proved)
print(len(str(tffc.audit(bundle))) > 100)
import pickle
state = tffc.run(bundle, pickle.load(open(sys.argv[2], "rb")), 1).finish().state
print(sorted(state["trained"]))
"""


@pytest.mark.slow
def test_a_bundle_needs_neither_pytorch_nor_jax(tmp_path: pathlib.Path) -> None:
    each = trainer(zoo.MODELS["mlp"])
    tff.compile(process(each), "mapreduce").save(tmp_path / "bundle")
    (tmp_path / "data").write_bytes(pickle.dumps(data(each)))
    ended = run_python("-c", WITHOUT, str(tmp_path / "bundle"), str(tmp_path / "data"))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split("\n")[:2] == ["True", "True"]
    assert "trained" not in ended.stdout
