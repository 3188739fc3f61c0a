"""Optimizers of PyTorch as pure functions: those of `torch.optim`, with what they remember given
and returned.

The formulas are those of the pages of `torch.optim.SGD`, `Adam` and `AdamW`.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from tffc.frontend.torch.releases import load_torch
from tffc.language.types import TensorType
from tffc.runtime.user_code.source import entry_point, user_span
from tffc.support.errors import LanguageValueError

Tensors: TypeAlias = Mapping[str, Any]
"""Tensors by name."""

Memory: TypeAlias = "OrderedDict[str, Any]"
"""What an optimizer remembers: the number of `steps`, and tensors like the weights by kind."""

Rule: TypeAlias = Callable[[Any, Any, Any, dict[str, Any]], tuple[Any, dict[str, Any]]]
"""The step of one weight: of the number of this step, the weight, its slope and what is remembered
of it."""


@dataclasses.dataclass(frozen=True)
class PureOptimizer:
    """An optimizer that remembers tensors of the kinds `slots` for each weight."""

    name: str
    slots: tuple[str, ...]
    rule: Rule

    def type(self, weights: Mapping[str, Any]) -> OrderedDict[str, Any]:
        """Return the type of what it remembers, given the types of the weights."""
        slots = OrderedDict((slot, OrderedDict(weights)) for slot in self.slots)
        return OrderedDict(steps=TensorType(np.int64), **slots)

    @entry_point
    def first(self, weights: Tensors) -> Memory:
        """Return what it remembers before the first step, given the weights as tensors."""
        torch = load_torch()
        slots = OrderedDict(
            (slot, OrderedDict((name, torch.zeros_like(w)) for name, w in weights.items()))
            for slot in self.slots
        )
        return OrderedDict(steps=torch.zeros((), dtype=torch.int64), **slots)

    @entry_point
    def step(
        self, weights: Tensors, slopes: Tensors, memory: Mapping[str, Any]
    ) -> tuple[OrderedDict[str, Any], Memory]:
        """Return the weights after a step against their slopes, and what it remembers then.

        Weights without a slope stay as they are.
        """
        steps = memory["steps"] + 1
        moved = OrderedDict(weights)
        after = OrderedDict((slot, OrderedDict(memory[slot])) for slot in self.slots)
        for name, slope in slopes.items():
            remembered = {slot: memory[slot][name] for slot in self.slots}
            moved[name], remembered = self.rule(steps, weights[name], slope, remembered)
            for slot, value in remembered.items():
                after[slot][name] = value
        return moved, OrderedDict(steps=steps, **after)


@entry_point
def sgd(
    lr: float = 1e-3,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    *,
    nesterov: bool = False,
) -> PureOptimizer:
    """Return `torch.optim.SGD` with these settings.

    Raises:
      LanguageValueError: a setting is out of its range.
    """
    _check(lr=lr, momentum=momentum, weight_decay=weight_decay)
    if nesterov and (momentum <= 0 or dampening):
        raise LanguageValueError(
            "E706",
            "Nesterov's momentum needs a momentum and no dampening",
            help="set momentum above 0 and leave dampening out",
            span=user_span(),
        )

    def rule(steps: Any, w: Any, slope: Any, memory: dict[str, Any]) -> tuple[Any, Any]:
        torch = load_torch()
        if weight_decay:
            slope = slope + weight_decay * w
        if not momentum:
            return w - lr * slope, {}
        # The first step takes the whole slope, without dampening.
        share = torch.where(steps == 1, 1.0, 1.0 - dampening).to(slope.dtype) if dampening else 1.0
        buffer = momentum * memory["momentum"] + share * slope
        direction = slope + momentum * buffer if nesterov else buffer
        return w - lr * direction, {"momentum": buffer}

    return PureOptimizer("SGD", ("momentum",) if momentum else (), rule)


@entry_point
def adam(
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    *,
    amsgrad: bool = False,
) -> PureOptimizer:
    """Return `torch.optim.Adam` with these settings: weight decay is part of the slope.

    Raises:
      LanguageValueError: a setting is out of its range.
    """
    return _adam("Adam", lr, betas, eps, weight_decay, amsgrad, is_decoupled=False)


@entry_point
def adamw(
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
    *,
    amsgrad: bool = False,
) -> PureOptimizer:
    """Return `torch.optim.AdamW` with these settings: weight decay shrinks the weights first.

    Raises:
      LanguageValueError: a setting is out of its range.
    """
    return _adam("AdamW", lr, betas, eps, weight_decay, amsgrad, is_decoupled=True)


def _adam(
    name: str,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    weight_decay: float,
    amsgrad: bool,
    *,
    is_decoupled: bool,
) -> PureOptimizer:
    _check(lr=lr, eps=eps, weight_decay=weight_decay)
    _check_fractions(betas)
    first, second = betas

    def rule(steps: Any, w: Any, slope: Any, memory: dict[str, Any]) -> tuple[Any, Any]:
        torch = load_torch()
        if weight_decay and is_decoupled:
            w = w * (1 - lr * weight_decay)
        elif weight_decay:
            slope = slope + weight_decay * w
        mean = memory["mean"] + (1 - first) * (slope - memory["mean"])
        square = second * memory["square"] + (1 - second) * slope * slope
        after = {"mean": mean, "square": square}
        largest = square
        if amsgrad:
            largest = after["largest"] = torch.maximum(memory["largest"], square)
        # As in torch.optim, whose corrections are Python's floats.
        count = steps.to(torch.float64)
        size = (lr / (1 - first**count)).to(w.dtype)
        root = torch.sqrt(1 - second**count).to(w.dtype)
        return w - size * mean / (torch.sqrt(largest) / root + eps), after

    slots = ("mean", "square", *(("largest",) if amsgrad else ()))
    return PureOptimizer(name, slots, rule)


def _check(**settings: float) -> None:
    for name, value in settings.items():
        if not value >= 0:
            raise LanguageValueError(
                "E706",
                f"{name}={value!r} is below 0",
                help=f"give {name} a number of at least 0",
                span=user_span(),
            )


def _check_fractions(betas: tuple[float, float]) -> None:
    for value in betas:
        if not 0 <= value < 1:
            raise LanguageValueError(
                "E706",
                f"betas={betas!r} has a number that is not from 0 on and below 1",
                help="give two such numbers, as (0.9, 0.999)",
                span=user_span(),
            )
