"""The rules by which operations of PyTorch are written with simpler ones."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

from tffc.frontend.torch import draws
from tffc.frontend.torch.releases import load_torch

DECOMPOSED = frozenset(
    {
        "aten._native_batch_norm_legit.default",
        "aten._native_batch_norm_legit.no_stats",
        "aten._native_batch_norm_legit_functional.default",
        "aten._native_batch_norm_legit_no_training.default",
        "aten.elu.default",
        "aten.max_pool3d_with_indices.default",
        "aten.native_group_norm.default",
        "aten.rrelu_with_noise_backward.default",
        "aten.slice_scatter.default",
        "aten.upsample_bicubic2d.default",
        "aten.upsample_bilinear2d.default",
        "aten.upsample_trilinear3d.default",
    }
)
"""Operations that PyTorch counts among its core ones, or leaves alone by default, and that are
nevertheless decomposed by its rules for them: torchax has no translation, or a faulty one."""

PULLED: Mapping[str, tuple[str, bool]] = {
    "replication_pad1d_backward": ("replication_pad1d", False),
    "replication_pad2d_backward": ("replication_pad2d", False),
    "replication_pad3d_backward": ("replication_pad3d", False),
    "upsample_bicubic2d_backward": ("upsample_bicubic2d", True),
    "upsample_bilinear2d_backward": ("upsample_bilinear2d", True),
    "upsample_linear1d_backward": ("upsample_linear1d", True),
    "upsample_nearest1d_backward": ("upsample_nearest1d", True),
    "upsample_nearest2d_backward": ("upsample_nearest2d", True),
    "upsample_nearest3d_backward": ("upsample_nearest3d", True),
    "upsample_trilinear3d_backward": ("upsample_trilinear3d", True),
    "_upsample_nearest_exact1d_backward": ("_upsample_nearest_exact1d", True),
    "_upsample_nearest_exact2d_backward": ("_upsample_nearest_exact2d", True),
    "_upsample_nearest_exact3d_backward": ("_upsample_nearest_exact3d", True),
}
"""Slopes for which PyTorch has no rule: each with the operation whose rule gives it, and whether it
takes sizes, that of the result and that of the input, in place of the input."""


@functools.cache
def operations() -> frozenset[str]:
    """Return the names of the operations that are translated."""
    text = (pkgutil.get_data(__name__, "operations.txt") or b"").decode()
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


@functools.cache
def decompositions() -> Mapping[Any, Any]:
    """Return the rules of operations that are decomposed.

    Draws stay as they are, so that PyTorch itself makes as many.
    """
    decomp = importlib.import_module("torch._decomp")
    aten = load_torch().ops.aten
    rules = dict(decomp.core_aten_decompositions())
    every = decomp.decomposition_table
    rules.update((op, rule) for op, rule in every.items() if str(op) in DECOMPOSED)
    for name, (forward, has_sizes) in PULLED.items():
        rule = every[getattr(aten, forward).default]
        rules[getattr(aten, name).default] = _pulled(rule, has_sizes)
    return {operation: rule for operation, rule in rules.items() if not draws.is_draw(operation)}


def _pulled(rule: Callable[..., Any], has_sizes: bool) -> Callable[..., Any]:
    """Return the rule of the slope of an operation by its first argument, given the rule of the
    operation."""
    torch = load_torch()

    def of_input(slope: Any, input: Any, *settings: Any) -> Any:
        _, pull = torch.func.vjp(lambda x: rule(x, *settings), input)
        return pull(slope)[0]

    def of_sizes(slope: Any, size: Any, input_size: Any, *settings: Any) -> Any:
        return of_input(slope, slope.new_zeros(input_size), size, *settings)

    return of_sizes if has_sizes else of_input
