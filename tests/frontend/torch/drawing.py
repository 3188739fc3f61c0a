"""The ways in which functions and modules of PyTorch draw random numbers."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import checkpoint

Tensor = torch.Tensor
Drawing = Callable[[Tensor], Tensor]

WIDTH = 8
"""Drawing functions take a tensor of shape [4, WIDTH]."""

generator = torch.Generator().manual_seed(1)


def module(layer: nn.Module, *shape: int) -> Drawing:
    """Return the function of a module, on the tensor in another shape."""
    fixed = [p.detach() for p in layer.parameters()]

    def drawing(x: Tensor) -> Tensor:
        names = [name for name, _ in layer.named_parameters()]
        weights = dict(zip(names, fixed, strict=True))
        output = torch.func.functional_call(layer, weights, (x.reshape(shape or x.shape),))
        return output[0] if isinstance(output, tuple) else output

    return drawing


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, dropout=0.5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x)[0]


def stochastic_depth(x: Tensor) -> Tensor:
    present = torch.rand(x.shape[0], 1) < 0.5
    return x + torch.where(present, x.sin() / 0.5, torch.zeros(()))


def masked(x: Tensor) -> Tensor:
    return x * torch.bernoulli(torch.full_like(x, 0.5))


def rotated(x: Tensor) -> Tensor:
    places = (torch.arange(WIDTH) + torch.randint(0, WIDTH, (4, 1))) % WIDTH
    return x.gather(1, places)


def categorical(x: Tensor) -> Tensor:
    return torch.distributions.Categorical(logits=x).sample().float() + x.sum(1)


def two_places(x: Tensor) -> Tensor:
    x = F.dropout(x, 0.5)
    return F.dropout(x.sin() + torch.rand_like(x), 0.3) + torch.randn(4, 1)


def in_gradient(x: Tensor) -> Tensor:
    return torch.func.grad(lambda y: (F.dropout(y, 0.5) * y).sum())(x)


def mapped(randomness: str) -> Drawing:
    def drawing(x: Tensor) -> Tensor:
        return torch.func.vmap(lambda row: F.dropout(row, 0.5), randomness=randomness)(x)

    return drawing


def checkpointed(x: Tensor) -> Tensor:
    return checkpoint.checkpoint(lambda y: F.dropout(y, 0.5), x, use_reentrant=False)


def checkpointed_gradient(x: Tensor) -> Tensor:
    def loss(y: Tensor) -> Tensor:
        part = checkpoint.checkpoint(lambda z: F.dropout(z, 0.5) * z.sin(), y, use_reentrant=False)
        return part.sum()

    return torch.func.grad(loss)(x)


def bert() -> Drawing:
    """Return the function of a tiny BERT of Hugging Face in training, with its dropout."""
    import transformers

    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=8,
        hidden_dropout_prob=0.3,
        attention_probs_dropout_prob=0.3,
    )
    torch.manual_seed(0)
    model = transformers.BertModel(config).train()
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def drawing(x: Tensor) -> Tensor:
        tokens = (x.abs() * 3).long() % 20
        return torch.func.functional_call(model, weights, (tokens,)).last_hidden_state

    return drawing


KEYED: dict[str, Drawing] = {
    "Dropout": module(nn.Dropout(0.5)),
    "Dropout in place": module(nn.Sequential(nn.Tanh(), nn.Dropout(0.5, inplace=True))),
    "Dropout1d": module(nn.Dropout1d(0.5), 2, 8, 2),
    "Dropout2d": module(nn.Dropout2d(0.5), 2, 8, 2, 1),
    "Dropout3d": module(nn.Dropout3d(0.5), 2, 8, 2, 1, 1),
    "AlphaDropout": module(nn.AlphaDropout(0.5)),
    "FeatureAlphaDropout": module(nn.FeatureAlphaDropout(0.5), 2, 8, 2, 1, 1),
    "dropout in places": two_places,
    "dropout under a gradient": in_gradient,
    "MultiheadAttention": module(Attention(), 4, 2, 4),
    "scaled_dot_product_attention": lambda x: F.scaled_dot_product_attention(
        *[x.reshape(2, 4, 4)] * 3, dropout_p=0.5
    ),
    "LSTM between layers": module(nn.LSTM(4, 4, num_layers=2, dropout=0.5), 4, 2, 4),
    "GRU between layers": module(nn.GRU(4, 4, num_layers=3, dropout=0.5), 4, 2, 4),
    "TransformerEncoderLayer": module(nn.TransformerEncoderLayer(4, 2, 8, dropout=0.4), 4, 2, 4),
    "stochastic depth": stochastic_depth,
    "randn": lambda x: x + 0.1 * torch.randn(x.shape),
    "randn_like": lambda x: x + torch.randn_like(x),
    "bernoulli": masked,
    "randint": rotated,
    "rrelu": lambda x: F.rrelu(x, training=True),
    "RReLU": module(nn.RReLU()),
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, hard=True) * x,
    "normal": lambda x: torch.normal(x, 0.1),
    "randperm": lambda x: x[:, torch.randperm(WIDTH)],
    "multinomial": lambda x: x.flatten()[torch.multinomial(x.exp(), 3)],
    "random_": lambda x: x + torch.empty_like(x).random_(0, 100),
    "uniform_": lambda x: x + torch.empty_like(x).uniform_(-1, 1),
    "normal_": lambda x: x + torch.zeros_like(x).normal_(2, 3),
    "exponential_": lambda x: x + torch.zeros_like(x).exponential_(2),
    "geometric_": lambda x: x + torch.zeros_like(x).geometric_(0.3),
    "log_normal_": lambda x: x + torch.zeros_like(x).log_normal_(),
    "cauchy_": lambda x: x + torch.zeros_like(x).cauchy_(),
    "bernoulli_": lambda x: x + torch.zeros_like(x).bernoulli_(0.5),
    "poisson": lambda x: torch.poisson(x.exp()),
    "binomial": lambda x: torch.binomial(torch.full_like(x, 9.0), x.sigmoid()),
    "a normal distribution": lambda x: torch.distributions.Normal(x, 0.5).rsample(),
    "a categorical distribution": categorical,
    "a gamma distribution": lambda x: torch.distributions.Gamma(x.exp(), 1.0).sample(),
    "a beta distribution": lambda x: torch.distributions.Beta(x.exp(), 2.0).rsample(),
    "a Laplace distribution": lambda x: torch.distributions.Laplace(x, 1.0).rsample(),
    "vmap with different draws": mapped("different"),
    "vmap with the same draws": mapped("same"),
    "checkpoint": checkpointed,
    "checkpoint under a gradient": checkpointed_gradient,
    "fractional_max_pool2d": lambda x: F.fractional_max_pool2d(
        x.reshape(2, 1, 4, 4), 2, output_size=3
    ),
    "svd_lowrank": lambda x: torch.svd_lowrank(x, 2)[1],
}
"""What draws from PyTorch's generator."""

WITHOUT_KEYS: dict[str, Drawing] = {
    "a generator": lambda x: x + torch.rand(4, WIDTH, generator=generator),
    "a generator, in place": lambda x: torch.zeros_like(x).normal_(generator=generator),
    "a generator of its own": lambda x: x[
        :, torch.randperm(WIDTH, generator=torch.Generator().manual_seed(3))
    ],
    "Python's random": lambda x: x * random.random(),
    "NumPy's random": lambda x: x * np.random.rand(),
    "NumPy's shuffle": lambda x: x[:, np.random.permutation(WIDTH).tolist()],
    "a seed set": lambda x: x + torch.rand(4, WIDTH) * (torch.manual_seed(3) is not None),
    "NumPy's generator": lambda x: x * float(np.random.default_rng().random()),
}
"""What draws from generators that a program does not have."""
