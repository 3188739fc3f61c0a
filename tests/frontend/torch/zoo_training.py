"""Training of the models of the zoo in rounds, compiled, as functions, and by torch.optim."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

import tffc as tff
from tests.frontend.torch.zoo import Model

RATE = 0.1
CLIENTS, STEPS, ROUNDS = 3, 2, 5

Arrays = Mapping[str, Any]


class Trainer(NamedTuple):
    """A model, its weights, its training step as a function of PyTorch, and as a computation."""

    model: Model
    weights: tff.torch.ModuleWeights
    step: Callable[..., Any]
    compiled: tff.Computation


def trainer(make: Callable[[], Model]) -> Trainer:
    """Return a training step of a model, in PyTorch and compiled."""
    torch.manual_seed(1)
    model = make()
    weights = tff.torch.weights(model.module)
    optimizer = tff.torch.sgd(RATE)
    count = len(model.inputs)

    def step(trained: Arrays, averaged: Arrays, batch: Sequence[Any]) -> Any:
        def loss(trained: Arrays) -> Any:
            every = {**trained, **averaged}
            output, changed = tff.torch.call_and_update(model.module, every, *batch[:count])
            return model.loss(output, *batch[count:]), changed

        slopes, (value, changed) = torch.func.grad_and_value(loss, has_aux=True)(trained)
        moved, _ = optimizer.step(trained, slopes, optimizer.first(trained))
        return OrderedDict(trained=moved, averaged=changed, loss=value)

    types = [tff.torch.types(part) for part in (weights.trained, weights.averaged)]
    batch = [*model.inputs, *model.targets]
    compiled = tff.torch.computation(step, *types, [typed(each) for each in batch])
    return Trainer(model, weights, step, compiled)


def typed(tensor: torch.Tensor) -> tff.TensorType:
    return tff.TensorType(tensor.numpy().dtype.type, tensor.shape)


def tensors(arrays: Arrays) -> dict[str, torch.Tensor]:
    return {name: torch.as_tensor(array) for name, array in arrays.items()}


def batch_of(model: Model, client: int, step: int) -> list[torch.Tensor]:
    """Return the examples of a client in one of its steps: rows in another order, and other
    numbers."""
    generator = torch.Generator().manual_seed(97 * client + step)
    inputs = [
        each + torch.randn(each.shape, generator=generator) if each.is_floating_point() else each
        for each in model.inputs
    ]
    return [*inputs, *model.targets]


def compiled_step(trained: Trainer, state: tuple[Arrays, Arrays], batch: Any) -> Any:
    result = trained.compiled(*state, [each.numpy() for each in batch])
    return (result["trained"], result["averaged"]), result["loss"]


def function_step(trained: Trainer, state: tuple[Arrays, Arrays], batch: Any) -> Any:
    result = trained.step(tensors(state[0]), tensors(state[1]), batch)
    after = tuple(
        OrderedDict((name, tensor.detach().numpy()) for name, tensor in result[part].items())
        for part in ("trained", "averaged")
    )
    return after, result["loss"].item()


def optimizer_step(trained: Trainer, state: tuple[Arrays, Arrays], batch: Any) -> Any:
    """Take a step as a loop of PyTorch does."""
    module = copy.deepcopy(trained.model.module)
    module.load_state_dict(tensors({**state[0], **state[1]}), strict=False)
    optimizer = torch.optim.SGD(module.parameters(), RATE)
    count = len(trained.model.inputs)
    loss = trained.model.loss(module(*batch[:count]), *batch[count:])
    loss.backward()
    optimizer.step()
    after = {name: value.detach().numpy() for name, value in module.state_dict().items()}
    parts = (OrderedDict((name, after[name]) for name in part) for part in state)
    return tuple(parts), loss.item()


def rounds(trained: Trainer, step: Callable[..., Any]) -> Iterator[tuple[Arrays, Arrays]]:
    """Yield the state after each round of plain averaging over clients."""
    state: tuple[Arrays, Arrays] = (trained.weights.trained, trained.weights.averaged)
    for number in range(ROUNDS):
        ends = []
        for client in range(CLIENTS):
            own = state
            for each in range(STEPS):
                batch = batch_of(trained.model, client, 10 * number + each)
                own, _ = step(trained, own, batch)
            ends.append(own)
        state = tuple(  # pyright: ignore[reportAssignmentType]  # two parts each
            OrderedDict(
                (name, np.mean([end[part][name] for end in ends], axis=0, dtype=np.float32))
                for name in state[part]
            )
            for part in range(2)
        )
        yield state


def difference(one: Any, other: Any) -> float:
    """Return the largest difference of two states."""
    pairs = [
        np.abs(one[part][name] - other[part][name]).max(initial=0.0)
        for part in range(2)
        for name in one[part]
    ]
    return float(max(pairs, default=0.0))
