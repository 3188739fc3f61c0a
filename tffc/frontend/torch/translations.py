"""Translations of PyTorch operations to JAX that torchax lacks, or has otherwise than PyTorch.

Each is a function of what PyTorch says of the result, tensors without values, and of the arguments
of the operation, with JAX arrays in place of tensors.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tffc.runtime.frameworks.jax.hlo import load_jax


def _dtype(result: Any) -> Any:
    """Return the type of JAX for that of a result."""
    return importlib.import_module("torchax.ops.mappings").t2j_dtype(result.dtype)


def _convolution_backward(
    result: Any,
    slope: Any,
    input: Any,
    weight: Any,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> Any:
    """Return the slopes of a convolution by its input, weight and bias, those that are wanted."""
    jax = load_jax()
    jaten = importlib.import_module("torchax.ops.jaten")
    settings = (stride, padding, dilation, transposed, output_padding, groups)

    def convolve(input: Any, weight: Any) -> Any:
        return jaten._aten_convolution(input, weight, None, *settings)

    _, pull = jax.vjp(convolve, input, weight)
    by_input, by_weight = pull(slope)
    by_bias = slope.sum(axis=(0, *range(2, slope.ndim))) if wanted[2] else None
    return by_input if wanted[0] else None, by_weight if wanted[1] else None, by_bias


OWN: Mapping[str, Callable[..., Any]] = {
    "aten.convolution_backward.default": _convolution_backward,
}
"""The translations, by the names of operations."""
