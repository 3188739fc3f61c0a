"""The pure optimizers take the steps of torch.optim."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tffc as tff
from tests.refusals import error_without_place
from tffc.support.errors import LanguageValueError

STEPS = 20
SHAPES = {"matrix": (3, 2), "bias": (3,), "number": ()}

# The names in torch.optim and in tff.torch, and the settings.
SETTINGS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "sgd": ("SGD", "sgd", {"lr": 0.1}),
    "sgd, decay": ("SGD", "sgd", {"lr": 0.1, "weight_decay": 0.3}),
    "sgd, momentum": ("SGD", "sgd", {"lr": 0.1, "momentum": 0.9}),
    "sgd, dampening": ("SGD", "sgd", {"lr": 0.1, "momentum": 0.9, "dampening": 0.4}),
    "sgd, nesterov": (
        "SGD",
        "sgd",
        {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    ),
    "sgd, all": (
        "SGD",
        "sgd",
        {"lr": 0.1, "momentum": 0.5, "dampening": 0.1, "weight_decay": 0.2},
    ),
    "adam": ("Adam", "adam", {"lr": 0.1}),
    "adam, defaults": ("Adam", "adam", {}),
    "adam, betas": ("Adam", "adam", {"lr": 0.05, "betas": (0.5, 0.8), "eps": 1e-3}),
    "adam, no first beta": ("Adam", "adam", {"lr": 0.05, "betas": (0.0, 0.9)}),
    "adam, decay": ("Adam", "adam", {"lr": 0.1, "weight_decay": 0.3}),
    "adam, amsgrad": ("Adam", "adam", {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1}),
    "adamw": ("AdamW", "adamw", {"lr": 0.1}),
    "adamw, defaults": ("AdamW", "adamw", {}),
    "adamw, decay": ("AdamW", "adamw", {"lr": 0.1, "weight_decay": 0.3, "betas": (0.8, 0.9)}),
    "adamw, amsgrad": ("AdamW", "adamw", {"lr": 0.1, "amsgrad": True}),
}


def numbers(step: int, dtype: torch.dtype) -> OrderedDict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    return OrderedDict(
        (name, torch.randn(shape, generator=generator, dtype=dtype))
        for name, shape in SHAPES.items()
    )


def theirs(name: str, settings: dict[str, Any], dtype: torch.dtype) -> list[dict[str, np.ndarray]]:
    """Return the weights after each step of torch.optim."""
    weights = {n: torch.nn.Parameter(w) for n, w in numbers(99, dtype).items()}
    optimizer = getattr(torch.optim, name)(weights.values(), **settings)
    after = []
    for step in range(STEPS):
        for each, slope in zip(weights.values(), numbers(step, dtype).values(), strict=True):
            each.grad = slope
        optimizer.step()
        after.append({n: w.detach().numpy().copy() for n, w in weights.items()})
    return after


def arrays(memory: Any) -> Any:
    if isinstance(memory, torch.Tensor):
        return memory.numpy()
    return OrderedDict((name, arrays(value)) for name, value in memory.items())


@pytest.mark.slow
# In float32, the steps of torch.optim itself are up to 1.3e-6 from those in float64.
@pytest.mark.parametrize(
    ("dtype", "bound"),
    [
        (torch.float32, 2e-6),
        pytest.param(torch.float64, 1e-12, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("case", SETTINGS)
def test_steps(case: str, dtype: torch.dtype, bound: float) -> None:
    name, own, settings = SETTINGS[case]
    optimizer = getattr(tff.torch, own)(**settings)
    first = numbers(99, dtype)
    types = tff.torch.types(first)
    compiled = tff.torch.computation(optimizer.step, types, types, optimizer.type(types))
    weights: Any = arrays(first)
    memory: Any = arrays(optimizer.first(first))
    function: Any = first, optimizer.first(first)
    for step, expected in enumerate(theirs(name, settings, dtype)):
        slopes = numbers(step, dtype)
        weights, memory = compiled(weights, arrays(slopes), memory)
        function = optimizer.step(function[0], slopes, function[1])
        for each, value in expected.items():
            assert np.abs(value - weights[each]).max() <= bound
            assert np.abs(value - function[0][each].numpy()).max() <= bound
            assert weights[each].dtype == value.dtype
    assert memory["steps"] == STEPS


def test_weights_without_a_slope_stay() -> None:
    weights = numbers(1, torch.float32)
    slopes = {"bias": weights["bias"]}
    optimizer = tff.torch.adamw(0.1)
    moved, memory = optimizer.step(weights, slopes, optimizer.first(weights))
    assert torch.equal(moved["matrix"], weights["matrix"])
    assert torch.equal(memory["square"]["matrix"], torch.zeros(3, 2))
    assert not torch.equal(moved["bias"], weights["bias"])
    assert list(moved) == list(weights)


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a rate below 0": (
        lambda: tff.torch.sgd(-0.1),
        "lr=-0.1 is below 0 [E706]\n  help: give lr a number of at least 0",
    ),
    "a decay that is no number": (
        lambda: tff.torch.adam(0.1, weight_decay=float("nan")),
        "weight_decay=nan is below 0 [E706]\n  help: give weight_decay a number of at least 0",
    ),
    "Nesterov's momentum without momentum": (
        lambda: tff.torch.sgd(0.1, nesterov=True),
        "Nesterov's momentum needs a momentum and no dampening [E706]\n"
        "  help: set momentum above 0 and leave dampening out",
    ),
    "Nesterov's momentum with dampening": (
        lambda: tff.torch.sgd(0.1, 0.9, 0.5, nesterov=True),
        "Nesterov's momentum needs a momentum and no dampening [E706]\n"
        "  help: set momentum above 0 and leave dampening out",
    ),
    "a beta of 1": (
        lambda: tff.torch.adamw(0.1, betas=(0.9, 1.0)),
        "betas=(0.9, 1.0) has a number that is not from 0 on and below 1 [E706]\n"
        "  help: give two such numbers, as (0.9, 0.999)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    make, text = REFUSED[case]
    assert str(error_without_place(LanguageValueError, make)) == text
