"""The module `tff.torch`: modules of PyTorch in programs.  TFF has none; its names follow
`tff.jax`."""

import functools
from typing import Any

from tffc.frontend.computation import Computation, tf_computation
from tffc.frontend.computation import torch_computation as computation
from tffc.frontend.torch.draws import draws
from tffc.frontend.torch.modules import ModuleWeights, call, call_and_update, types, weights
from tffc.frontend.torch.optimizers import PureOptimizer, adam, adamw, sgd
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow

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


@functools.cache
def seed() -> Computation:
    """Return a computation without parameter that draws a seed, `( -> int64)`: another one at each
    call.

    Call it where each client computes, and give what it returns to `draws`.
    """

    def drawn() -> Any:
        tf = load_tensorflow()
        return tf.random.uniform((), tf.int64.min, tf.int64.max, tf.int64)

    return tf_computation(drawn)
