"""What is said where releases were not tried or packages are missing, and what loading leaves."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

import tffc as tff
from tests.refusals import error_without_place, refusal
from tffc.frontend.torch.releases import load_translations
from tffc.support.errors import ExecutionError, MissingExtraError


def doubled() -> tff.Computation:
    return tff.torch.computation(lambda x: 2 * x, np.float32)


def test_another_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "2.9.1")
    assert str(error_without_place(ExecutionError, doubled)) == (
        "PyTorch 2.9.1 has not been tried with this tffc [E586]\n"
        "  note: tried are 2.13\n"
        "  help: install a release that was, in tffc's checkout: pip install '.[torch]'"
    )
    assert "[E586]" in refusal(ExecutionError, tff.torch.weights, torch.nn.Linear(1, 1))


def test_another_torchax(monkeypatch: pytest.MonkeyPatch) -> None:
    doubled()
    monkeypatch.setattr(sys.modules["torchax"], "__version__", "0.0.9")
    assert refusal(ExecutionError, load_translations.__wrapped__) == (
        "torchax 0.0.9 has not been tried with this tffc [E586]\n"
        "  note: tried is 0.0.13\n"
        "  help: install the release that was, in tffc's checkout: pip install '.[torch]'"
    )


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert str(error_without_place(MissingExtraError, doubled)) == (
        "a PyTorch computation needs torch, which cannot be imported [E701]\n"
        "  note: import of torch halted; None in sys.modules\n"
        "  help: in tffc's checkout: pip install '.[torch]'"
    )


def test_without_torchax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchax", None)
    assert refusal(MissingExtraError, load_translations.__wrapped__) == (
        "a PyTorch computation needs torchax, which cannot be imported [E701]\n"
        "  note: import of torchax halted; None in sys.modules\n"
        "  help: in tffc's checkout: pip install '.[torch]'"
    )


def test_without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    assert "needs JAX, which cannot be imported [E701]" in refusal(MissingExtraError, doubled)


def test_loading_translations_leaves_pytorch_as_it_was() -> None:
    fast = torch.backends.mha.get_fastpath_enabled()
    load_translations.__wrapped__()
    assert torch.backends.mha.get_fastpath_enabled() == fast
