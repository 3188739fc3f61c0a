"""Differentially private rounds whose computations are PyTorch."""

from typing import Any

import numpy as np
import torch

import tffc as tff
from tests.assurance.privacy.programs.rounds import CLIP, EXPECTED, NOISE, PAIR, VECTOR, process

SCALE = 0.5


def noised(data: Any, contribution: Any, release: Any) -> Any:
    """Rounds that release a sum with noise drawn by PyTorch at the server."""
    contribute = tff.torch.computation(contribution, data)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(data))
    def next_sum(state: Any, values: Any) -> Any:
        total: Any = tff.federated_sum(tff.federated_map(contribute, values))
        seed = tff.federated_eval(tff.torch.seed(), tff.SERVER)
        finish = tff.torch.computation(release, total.type_signature.member, np.int64)
        return state, tff.federated_map(finish, (total, seed))

    return process((), next_sum)


def normal(total: Any, seed: Any) -> Any:
    with tff.torch.draws(seed):
        return total + NOISE * CLIP * torch.randn_like(total)


def mean_of_normal(pair: Any, seed: Any) -> Any:
    with tff.torch.draws(seed):
        noise = {name: NOISE * CLIP * torch.randn_like(x) for name, x in pair.items()}
    return {name: (x + noise[name]) / EXPECTED for name, x in pair.items()}


def laplace(total: Any, seed: Any) -> Any:
    with tff.torch.draws(seed):
        first, second = (-torch.log1p(-torch.rand_like(total)) for _ in range(2))
    return total + SCALE * (first - second)


def clipped_as_gradients(pair: Any) -> Any:
    """As `torch.nn.utils.clip_grad_norm_` clips."""
    norms = torch.stack([torch.linalg.vector_norm(x) for x in pair.values()])
    factor = torch.clamp(CLIP / (torch.linalg.vector_norm(norms) + 1e-6), max=1.0)
    return {name: x * factor for name, x in pair.items()}


def scaled_where_long(x: Any) -> Any:
    norm = torch.linalg.vector_norm(x)
    return torch.where(norm > CLIP, x * (CLIP / norm), x)


def clipped_by_sum(x: Any) -> Any:
    return x / torch.clamp(x.abs().sum(), min=1.0)


def clipped_to_a_box(x: Any) -> Any:
    return x.clamp(-1.0, 1.0)


torch_clip_grad_norm = noised(PAIR, clipped_as_gradients, mean_of_normal)
torch_where_formula = noised(VECTOR, scaled_where_long, normal)
torch_laplace = noised(VECTOR, clipped_by_sum, laplace)
torch_clip_by_value = noised(VECTOR, clipped_to_a_box, normal)
