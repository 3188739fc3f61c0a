"""Optimizers of the server and of the clients, as formulas over any framework of arrays.

The adaptive ones are those of Reddi, Charles, Zaheer, Garrett, Rush, Konečný, Kumar and McMahan,
"Adaptive Federated Optimization", ICLR 2021, Algorithm 2.  There, Δ is the mean of the clients'
updates, and the server goes along it:

    m ← β₁ m + (1 - β₁) Δ
    v ← v + Δ²                                 Adagrad
    v ← v - (1 - β₂) Δ² sign(v - Δ²)           Yogi
    v ← β₂ v + (1 - β₂) Δ²                     Adam
    x ← x + η m / (√v + τ)

At first m is 0 and v is τ².  A client goes along its negative gradient in the same way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias

from tffc.algorithms.settings import check_number
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError

Arrays: TypeAlias = Mapping[str, Any]
"""Arrays or tensors by name."""


@dataclasses.dataclass(frozen=True, init=False)
class Optimizer:
    """Moves weights along directions, and remembers something for each weight."""

    learning_rate: float

    def _set(self, learning_rate: float, **fractions: float) -> None:
        """Set the learning rate, and numbers from 0 on and below 1.

        Raises:
          LanguageValueError: a number is out of its range.
        """
        object.__setattr__(self, "learning_rate", check_number("learning_rate", learning_rate))
        for name, value in fractions.items():
            object.__setattr__(self, name, check_number(name, value, high=1.0, least=True))

    @property
    def first_values(self) -> Mapping[str, float]:
        """What is remembered for each weight, and its first value."""
        return {}

    def step(
        self, framework: Any, weight: Any, direction: Any, memory: Arrays
    ) -> tuple[Any, Arrays]:
        """Return a weight after a step along a direction, and what is remembered then.

        `framework` has the functions `sqrt` and `sign`: TensorFlow, `jax.numpy` or NumPy.
        """
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, init=False)
class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if it is not 0.

    x ← x + η Δ; with momentum β, m ← β m + Δ and x ← x + η m, which is FedAvgM of Hsu, Qi and
    Brown 2019 at the server.
    """

    momentum: float

    @entry_point
    def __init__(self, learning_rate: float, momentum: float = 0.0) -> None:
        self._set(learning_rate, momentum=momentum)

    @property
    def first_values(self) -> Mapping[str, float]:
        return {"momentum": 0.0} if self.momentum else {}

    def step(
        self, framework: Any, weight: Any, direction: Any, memory: Arrays
    ) -> tuple[Any, Arrays]:
        if not self.momentum:
            return weight + self.learning_rate * direction, {}
        m = self.momentum * memory["momentum"] + direction
        return weight + self.learning_rate * m, {"momentum": m}


@dataclasses.dataclass(frozen=True, init=False)
class _Adaptive(Optimizer):
    """An optimizer of Algorithm 2 of "Adaptive Federated Optimization" (Reddi et al. 2021).

    `beta_1` is β₁, `beta_2` is β₂ and `tau` is τ, the degree of adaptivity: the smaller, the more.
    """

    beta_1: float
    beta_2: float
    tau: float

    @entry_point
    def __init__(
        self,
        learning_rate: float,
        *,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        tau: float = 1e-3,
    ) -> None:
        self._set(learning_rate, beta_1=beta_1, beta_2=beta_2)
        object.__setattr__(self, "tau", check_number("tau", tau))

    @property
    def first_values(self) -> Mapping[str, float]:
        return {"m": 0.0, "v": self.tau**2}

    def step(
        self, framework: Any, weight: Any, direction: Any, memory: Arrays
    ) -> tuple[Any, Arrays]:
        m = self.beta_1 * memory["m"] + (1 - self.beta_1) * direction
        v = self._second(framework, memory["v"], direction * direction)
        moved = weight + self.learning_rate * m / (framework.sqrt(v) + self.tau)
        return moved, {"m": m, "v": v}

    def _second(self, framework: Any, v: Any, square: Any) -> Any:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, init=False)
class Adam(_Adaptive):
    """FedAdam: v ← β₂ v + (1 - β₂) Δ², without a correction of the bias of m and v.

    Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2.
    """

    def _second(self, framework: Any, v: Any, square: Any) -> Any:
        return self.beta_2 * v + (1 - self.beta_2) * square


@dataclasses.dataclass(frozen=True, init=False)
class Yogi(_Adaptive):
    """FedYogi: v ← v - (1 - β₂) Δ² sign(v - Δ²).

    Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2.
    """

    def _second(self, framework: Any, v: Any, square: Any) -> Any:
        return v - (1 - self.beta_2) * square * framework.sign(v - square)


@dataclasses.dataclass(frozen=True, init=False)
class Adagrad(_Adaptive):
    """FedAdagrad: v ← v + Δ², by default with β₁ = 0; β₂ has no part in it.

    Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2.
    """

    @entry_point
    def __init__(self, learning_rate: float, *, beta_1: float = 0.0, tau: float = 1e-3) -> None:
        super().__init__(learning_rate, beta_1=beta_1, tau=tau)

    def _second(self, framework: Any, v: Any, square: Any) -> Any:
        return v + square


def optimizer_of(name: str, setting: Any) -> Optimizer:
    """Return an optimizer, which a number stands for: the learning rate of SGD.

    Raises:
      LanguageTypeError: it is of another kind.
      LanguageValueError: the number is not a learning rate.
    """
    if isinstance(setting, Optimizer):
        return setting
    if isinstance(setting, int | float):
        return SGD(check_number(f"the learning rate {name}", setting))
    raise LanguageTypeError(
        "E714",
        f"{name} is {type(setting).__name__!r} and no optimizer of tffc.algorithms",
        help="give a learning rate for SGD, or tffc.algorithms.SGD, Adam, Yogi or Adagrad",
    )
