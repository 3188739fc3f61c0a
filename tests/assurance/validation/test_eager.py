"""PyTorch computations are compared with PyTorch itself in verifications."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

import tffc as tff
from tffc.frontend.torch import lowering, translations
from tffc.support.errors import ValidationError

VECTOR = tff.TensorType(np.float32, [3])


def program(function: Any, *types: Any) -> Any:
    traced = tff.torch.computation(function, *types)

    @tff.federated_computation(tff.types.at_clients(tff.types.to_type(list(types))))
    def sums(values: Any) -> Any:
        return tff.federated_sum(tff.federated_map(traced, values))

    return sums


@pytest.fixture
def wrong_sigmoid(monkeypatch: pytest.MonkeyPatch) -> None:
    right = translations.OWN["aten.sigmoid.default"]

    def wrong(result: Any, x: Any) -> Any:
        return right(result, x) * 1.001

    monkeypatch.setattr(translations, "OWN", {**translations.OWN, "aten.sigmoid.default": wrong})
    monkeypatch.setattr(lowering, "OWN", translations.OWN)


def logistic(x: Any, y: Any) -> Any:
    return torch.sigmoid(x) + y


def test_the_report_says_how_much_was_compared() -> None:
    report = tff.verify(program(logistic, VECTOR, VECTOR), "mapreduce", trials=3)
    assert re.search(r"PyTorch itself, for 1 PyTorch computation in \d+ calls", str(report))


@pytest.mark.usefixtures("wrong_sigmoid")
def test_a_wrong_translation_is_seen() -> None:
    wrong = program(logistic, VECTOR, VECTOR)
    with pytest.raises(ValidationError, match="'logistic' computes something else") as caught:
        tff.verify(wrong, "mapreduce", trials=5)
    assert caught.value.code == "E589"
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def test_arguments_that_pytorch_refuses_are_counted() -> None:
    def chosen(x: Any, index: Any) -> Any:
        return torch.nn.functional.one_hot(index, 3) * x

    report = tff.verify(program(chosen, VECTOR, tff.TensorType(np.int64)), "mapreduce", trials=4)
    assert "it refuses the arguments of" in str(report)


def test_draws_are_the_same_in_pytorch() -> None:
    def noisy(x: Any, seed: Any) -> Any:
        with tff.torch.draws(seed):
            return torch.nn.functional.dropout(x, 0.5) + torch.randn(3)

    report = tff.verify(program(noisy, VECTOR, tff.TensorType(np.int64)), "mapreduce", trials=4)
    assert "PyTorch itself" in str(report)
