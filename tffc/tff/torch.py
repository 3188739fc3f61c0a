"""The module `tff.torch`: modules of PyTorch in programs.  TFF has none; its names follow
`tff.jax`."""

from tffc.frontend.computation import torch_computation as computation
from tffc.frontend.torch.draws import draws, seed
from tffc.frontend.torch.modules import ModuleWeights, call, call_and_update, types, weights
from tffc.frontend.torch.optimizers import PureOptimizer, adam, adamw, sgd

__all__ = [
    "ModuleWeights",
    "PureOptimizer",
    "adam",
    "adamw",
    "call",
    "call_and_update",
    "computation",
    "draws",
    "seed",
    "sgd",
    "types",
    "weights",
]
