"""Writes in place, views, gradients, types and the rest that a trace removes, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import checkpoint

import tffc as tff

Tensor = torch.Tensor

X = torch.sin(torch.arange(12.0) * 2).reshape(3, 4)


def transposed_write(x: Tensor) -> Tensor:
    y = x.clone()
    y.t()[0].add_(1)
    return y


def chunk_write(x: Tensor) -> Tensor:
    y = x * 1
    y.chunk(2, 1)[1].mul_(3)
    return y


def expanded_write(x: Tensor) -> Tensor:
    y = torch.zeros(4)
    y.view(2, 2).add_(x[0].view(2, 2))
    return y.expand(3, 4) + x


def argument_write(x: Tensor) -> Tensor:
    y = x.view(4, 3)
    y[1:, ::2] = 7.0
    return x + 0


def item_write(x: Tensor) -> Tensor:
    y = torch.zeros(3, 4)
    for row in range(3):
        y[row] = x[row] * row
    return y


def index_write(x: Tensor) -> Tensor:
    y = x.clone()
    y[torch.tensor([0, 0, 2])] += 1
    y.index_put_((torch.tensor([1, 1]),), torch.ones(2, 4), accumulate=True)
    return y


def mask_write(x: Tensor) -> Tensor:
    y = x.clone()
    y[y > 0] = 0.5
    return y.masked_fill_(y < -0.5, -1)


def scatter_write(x: Tensor) -> Tensor:
    return torch.zeros(3, 4).scatter_add_(1, torch.tensor([[0, 0, 1, 2]] * 3), x)


def strided(x: Tensor) -> Tensor:
    y = x.clone()
    y.as_strided((2, 2), (1, 4)).zero_()
    return y


def out_argument(x: Tensor) -> Tensor:
    y = torch.empty(3, 4)
    torch.add(x, 2, out=y)
    return y


def swapped(x: Tensor) -> Tensor:
    y = x.clone()
    y[0], y[1] = y[1].clone(), y[0].clone()
    return y.copy_(y.flip(0))


def backward(x: Tensor) -> Any:
    w = torch.ones(4, requires_grad=True)
    (x @ w).sin().sum().backward()
    return w.grad


def autograd_grad(x: Tensor) -> Any:
    y = x.detach().clone().requires_grad_()
    return torch.autograd.grad(y.sin().pow(2).sum(), y)[0]


def second_order(x: Tensor) -> Any:
    return torch.func.hessian(lambda y: (y.sin() * y).sum())(x[0])


def jacobians(x: Tensor) -> Any:
    return torch.func.jacfwd(torch.sin)(x[0]), torch.func.jacrev(torch.cos)(x[1])


def no_grad(x: Tensor) -> Any:
    def loss(y: Tensor) -> Tensor:
        with torch.no_grad():
            scale = y.square().sum()
        return (y * scale).sum() + y.detach().sum()

    return torch.func.grad(loss)(x)


class Clamped(torch.autograd.Function):
    """A function whose slope is its own: one everywhere, times three."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.clamp(-0.5, 0.5)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        return 3 * slopes[0]


def own_slope(x: Tensor) -> Any:
    return torch.func.grad(lambda y: Clamped.apply(y).sum())(x)  # pyright: ignore[reportOptionalMemberAccess]


def own_slope_backward(x: Tensor) -> Any:
    y = x.detach().clone().requires_grad_()
    Clamped.apply(y).sin().sum().backward()  # pyright: ignore[reportOptionalMemberAccess]
    return y.grad


def slope_hook(x: Tensor) -> Any:
    y = x.detach().clone().requires_grad_()
    y.register_hook(lambda slope: 2 * slope)
    y.sin().sum().backward()
    return y.grad


def checkpointed(x: Tensor) -> Any:
    y = x.detach().clone().requires_grad_()
    checkpoint.checkpoint(lambda z: z.sin().exp(), y, use_reentrant=False).sum().backward()
    return y.grad


def autocast(x: Tensor) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return (x @ x.t()).float()


def autocast_linear(x: Tensor) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return F.softmax(F.linear(x, torch.ones(2, 4)), 1).float()


def complex_numbers(x: Tensor) -> Any:
    z = torch.complex(x, x.flip(0))
    return (z.conj() * z).real, torch.fft.fft(z, dim=1).abs(), z.angle()


def complex_slope(x: Tensor) -> Any:
    return torch.func.grad(lambda y: torch.view_as_real(torch.fft.rfft(y)).pow(2).sum())(x)


def small_numbers(x: Tensor) -> Any:
    whole = (x * 100).to(torch.int8)
    return whole + whole, whole // 3, whole.sum(), whole.to(torch.uint8), whole >> 1


def half(x: Tensor) -> Any:
    return (x.half() * 3).exp(), x.bfloat16().sum().float()


def default_type(x: Tensor) -> Any:
    return torch.arange(3) / 2, torch.tensor(1.5) + x, torch.ones(2, dtype=torch.int32) * 2.5


def inference(x: Tensor) -> Any:
    with torch.inference_mode():
        return x.sin() * 2


def chunked(x: Tensor) -> Any:
    return list(x.split([1, 2])), {"pair": (x.unbind(1)[0], x.shape[0], 2.5, True)}


def hooked() -> Callable[[Tensor], Any]:
    layer = nn.Tanh()

    def doubled(module: nn.Module, args: Any, output: Any) -> Any:
        return output * 2

    layer.register_forward_hook(doubled)
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    return lambda x: tff.torch.call(layer, {}, x)


FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    function.__name__: function
    for function in (
        transposed_write, chunk_write, expanded_write, argument_write, item_write, index_write,
        mask_write, scatter_write, strided, out_argument, swapped, backward, autograd_grad,
        second_order, jacobians, no_grad, own_slope, own_slope_backward, slope_hook, checkpointed,
        autocast, autocast_linear, complex_numbers, complex_slope, small_numbers, half,
        default_type, inference, chunked,
    )
} | {"hooked": hooked()}  # fmt: skip


TOLERANCES = {"half": 2e-3, "autocast": 1e-2, "autocast_linear": 1e-2}
"""What narrow types may differ by: XLA leaves out rounding to them within a computation."""


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    if isinstance(value, Tensor):
        value = value.detach()
        return [(value.float() if value.dtype is torch.bfloat16 else value).numpy()]
    return [np.asarray(value)]


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_same(name: str) -> None:
    function = FUNCTIONS[name]
    computed = leaves(tff.torch.computation(function, tff.torch.types({"x": X})["x"])(X.numpy()))
    expected = leaves(function(X.clone()))
    assert len(computed) == len(expected)
    for one, other in zip(computed, expected, strict=True):
        assert one.shape == other.shape
        tolerance = TOLERANCES.get(name, 1e-6)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
        if isinstance(other, np.ndarray) and other.ndim:
            assert one.dtype == other.dtype


def test_an_argument_is_not_written() -> None:
    values = X.numpy().copy()
    tff.torch.computation(argument_write, tff.torch.types({"x": X})["x"])(values)
    np.testing.assert_array_equal(values, X.numpy())


def test_another_default_type() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        computation = tff.torch.computation(lambda x: x * torch.ones(()), np.float32)
        tensors = tff.torch.computation(lambda x: torch.ones(2) + x, np.int64)
        assert str(computation.type_signature) == "(float32 -> float64)"
        assert str(tensors.type_signature) == "(int64 -> float64[2])"
    finally:
        torch.set_default_dtype(torch.float32)


def test_deterministic_algorithms() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        for name in ("index_write", "scatter_write", "backward"):
            test_same(name)
    finally:
        torch.use_deterministic_algorithms(False)


def test_modes_are_left_as_they_were() -> None:
    def state() -> Any:
        distribution = torch.distributions.Distribution
        return (
            torch.compiler.is_compiling(),
            distribution._validate_args,
            torch.backends.mha.get_fastpath_enabled(),
            torch.backends.mkldnn.enabled,
            torch.get_rng_state().tolist(),
        )

    before = state()
    tff.torch.computation(lambda x: x + 1, np.float32)
    with pytest.raises(ZeroDivisionError):
        tff.torch.computation(lambda x: 1 // 0, np.float32)
    assert state() == before
