"""Programs that a trace cannot turn into the same computation.

Each is a function of a vector of four numbers, or one that makes a computation.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

import tffc as tff

Tensor = torch.Tensor

VECTOR = tff.TensorType(np.float32, [4])

outside = torch.zeros(4)
parameter = nn.Parameter(torch.ones(4))
linear = nn.Linear(4, 4)
normalized = nn.BatchNorm1d(4)
left: dict[str, Tensor] = {}


def item(x: Tensor) -> Tensor:
    return x * x.sum().item()


def float_of(x: Tensor) -> Tensor:
    return x * float(x.sum())


def int_of(x: Tensor) -> Tensor:
    return x * int(x[0])


def if_of(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x
    return -x


def while_of(x: Tensor) -> Tensor:
    while x.sum() < 10:
        x = 2 * x
    return x


def assertion(x: Tensor) -> Tensor:
    assert (x > 0).all()
    return x


def comparison(x: Tensor) -> Tensor:
    return x if torch.equal(x, 2 * x) else 3 * x


def close(x: Tensor) -> Tensor:
    return x if torch.allclose(x, 2 * x) else 3 * x


def for_range(x: Tensor) -> Tensor:
    for _ in range(x[0].long()):
        x = x + 1
    return x


def slice_of(x: Tensor) -> Tensor:
    return x[: x[0].long()]


def index_mask(x: Tensor) -> Tensor:
    return x[x > 0].sum()


def repeated(x: Tensor) -> Tensor:
    return x.repeat_interleave(x.long()).sum()


def outside_write(x: Tensor) -> Tensor:
    outside.add_(x)
    return outside + 0


def outside_index(x: Tensor) -> Tensor:
    outside[0] = x[0]
    return x


def outside_view(x: Tensor) -> Tensor:
    outside.view(2, 2).t().mul_(2)
    return x


def outside_out(x: Tensor) -> Tensor:
    return torch.add(x, 1, out=outside)


def outside_data(x: Tensor) -> Tensor:
    outside.data.copy_(x)
    return x


def outside_buffer(x: Tensor) -> Tensor:
    return normalized(x[None])[0]


def captured_parameter(x: Tensor) -> Tensor:
    return x * parameter


def captured_module(x: Tensor) -> Tensor:
    return linear(x)


def trained_inside(x: Tensor) -> Tensor:
    optimizer = torch.optim.SGD(linear.parameters(), 0.1)
    linear(x).sum().backward()
    optimizer.step()
    return x


def printed_numpy(x: Tensor) -> Tensor:
    return torch.as_tensor(np.sin(x.numpy()))


def numpy_function(x: Tensor) -> Any:
    return np.sin(x)  # pyright: ignore[reportCallIssue, reportArgumentType]


def saved(x: Tensor) -> Tensor:
    torch.save(x, io.BytesIO())
    return x


def cached(x: Tensor) -> Tensor:
    if "mask" not in left:
        left["mask"] = torch.ones(4)
    return x * left["mask"]


class Counting(nn.Module):
    """A module that counts its calls in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.calls


class Caching(nn.Module):
    """A module that stores what it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(4)

    def forward(self, x: Tensor) -> Tensor:
        self.last = x
        return x


class Listing(nn.Module):
    """A module that stores what it computes in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.history.append(x)
        return x * len(self.history)


counting, caching, listing = Counting(), Caching(), Listing()


def hooked() -> nn.Module:
    layer = nn.Identity()

    def scaled(module: nn.Module, args: Any, output: Any) -> Any:
        return output * float(output.sum())

    layer.register_forward_hook(scaled)
    return layer


def called(module: nn.Module) -> Callable[[Tensor], Any]:
    def function(x: Tensor) -> Any:
        weights = {name: torch.zeros(4, 4) for name, _ in module.named_parameters()}
        return tff.torch.call(module, weights, x)

    return function


def quietly(make: Callable[[nn.Module], Any]) -> Any:
    """Return what is made of a module in ways that PyTorch warns of, or whose imports do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return make(nn.Tanh())


@torch.library.custom_op("tffc_tests::doubled", mutates_args=())
def doubled(x: Tensor) -> Tensor:
    return 2 * x


@doubled.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def sparse(x: Tensor) -> Tensor:
    return x.to_sparse().to_dense()


def sparse_constant(x: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (4,)).to_dense() + x


def nested(x: Tensor) -> Tensor:
    return torch.nested.nested_tensor([x, x]).to_padded_tensor(0.0)


def meta_factory(x: Tensor) -> Tensor:
    return x + torch.zeros(4, device="meta")


def meta_result(x: Tensor) -> Tensor:
    return x.to("meta")


def cuda_factory(x: Tensor) -> Tensor:
    return x + torch.zeros(4, device="cuda")


def quantized(x: Tensor) -> Tensor:
    return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8).dequantize()


FUNCTIONS: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "item": (item, "E582"),
    "float()": (float_of, "E582"),
    "int()": (int_of, "E582"),
    "if": (if_of, "E582"),
    "while": (while_of, "E582"),
    "assert": (assertion, "E582"),
    "torch.equal": (comparison, "E582"),
    "torch.allclose": (close, "E582"),
    "range of a tensor": (for_range, "E582"),
    "a slice of a tensor": (slice_of, "E582"),
    "tolist": (lambda x: x * x.tolist()[0], "E582"),
    "nonzero": (lambda x: x.nonzero(), "E582"),
    "argwhere": (lambda x: torch.argwhere(x), "E582"),
    "where of one": (lambda x: torch.where(x > 0)[0], "E582"),
    "masked_select": (lambda x: x.masked_select(x > 0), "E582"),
    "index by a mask": (index_mask, "E582"),
    "unique": (lambda x: x.unique(), "E582"),
    "unique_consecutive": (lambda x: x.unique_consecutive(), "E582"),
    "repeat_interleave": (repeated, "E582"),
    "bincount": (lambda x: torch.bincount(x.long()), "E582"),
    "one_hot": (lambda x: nn.functional.one_hot(x.long()), "E582"),
    "format": (lambda x: x * len(f"{x.sum():.2f}"), "E582"),
    "numpy": (printed_numpy, "E582"),
    "a function of NumPy": (numpy_function, "E582"),
    "a hook that reads": (called(hooked()), "E582"),
    "a write outside": (outside_write, "E583"),
    "an item outside": (outside_index, "E583"),
    "a view outside": (outside_view, "E583"),
    "out=": (outside_out, "E583"),
    "data of a tensor outside": (outside_data, "E583"),
    "a buffer outside": (outside_buffer, "E583"),
    "a counter in a module": (called(counting), "E583"),
    "a cache in a module": (called(caching), "E583"),
    "a list in a module": (called(listing), "E588"),
    "a counter in a module as it is": (lambda x: counting(x), "E588"),
    "a cache outside": (cached, "E588"),
    "a parameter outside": (captured_parameter, "E584"),
    "a module outside": (captured_module, "E584"),
    "an optimizer inside": (trained_inside, "E581"),
    "a ScriptModule": (called(quietly(torch.jit.script)), "E585"),
    "a compiled module": (called(quietly(torch.compile)), "E585"),
    "a lazy module": (called(nn.LazyLinear(4)), "E585"),
    "a module on meta": (called(nn.Linear(4, 4, device="meta")), "E585"),
    "data parallel": (called(nn.DataParallel(nn.Tanh())), "E585"),
    "a factory on meta": (meta_factory, "E585"),
    "a result on meta": (meta_result, "E585"),
    "a factory on cuda": (cuda_factory, "E585"),
    "a custom operation": (lambda x: doubled(x), "E581"),
    "an operation of quantization": (quantized, "E581"),
    "a sparse tensor": (sparse, "E581"),
    "a sparse constant": (sparse_constant, "E581"),
    "a nested tensor": (nested, "E581"),
    "no weight of a name": (lambda x: tff.torch.call(linear, {"wieght": x}, x), "E587"),
    "no module": (lambda x: tff.torch.call(torch.tanh, {}, x), "E714"),
    "a text as result": (lambda x: (x, "text"), "E454"),
    "a module as result": (lambda x: linear, "E454"),
    "a device as result": (lambda x: x.device, "E454"),
    "nothing as result": (lambda x: None, "E454"),
    "nothing in a result": (lambda x: (x, None), "E454"),
}
"""Functions, and the codes that they are refused with."""


MAKERS: dict[str, tuple[Callable[[], Any], str]] = {
    "unsigned numbers": (lambda: tff.torch.computation(lambda x: x, np.uint32), "E419"),
    "an unknown length": (
        lambda: tff.torch.computation(lambda x: x, tff.TensorType(np.float32, [None])),
        "E419",
    ),
    "texts": (lambda: tff.torch.computation(lambda x: x, np.str_), "E419"),
    "a sequence": (
        lambda: tff.torch.computation(lambda x: x, tff.SequenceType(np.float32)),
        "E419",
    ),
    "a placed value": (
        lambda: tff.torch.computation(lambda x: x, tff.types.at_server(np.float32)),
        "E419",
    ),
    "a function": (
        lambda: tff.torch.computation(lambda x: x, tff.FunctionType(np.float32, np.float32)),
        "E419",
    ),
    "weights of no module": (lambda: tff.torch.weights(3), "E714"),
    "weights of a compiled module": (lambda: tff.torch.weights(quietly(torch.compile)), "E585"),
    "weights of a script": (lambda: tff.torch.weights(quietly(torch.jit.script)), "E585"),
    "weights of a lazy module": (lambda: tff.torch.weights(nn.LazyLinear(3)), "E585"),
    "weights on meta": (lambda: tff.torch.weights(nn.Linear(2, 2, device="meta")), "E585"),
    "weights of data parallel": (
        lambda: tff.torch.weights(nn.DataParallel(nn.Tanh())),
        "E585",
    ),
    "no such rule": (lambda: tff.torch.weights(normalized, {"*": "avreaged"}), "E587"),  # pyright: ignore[reportArgumentType]
    "no such buffer": (lambda: tff.torch.weights(normalized, {"running_men": "local"}), "E587"),
}
"""What makes something else, and the codes that it is refused with."""
