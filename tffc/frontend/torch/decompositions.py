"""The rules by which operations of PyTorch are written with simpler ones."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

from tffc.frontend.torch import draws

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
    rules = dict(decomp.core_aten_decompositions())
    every = decomp.decomposition_table
    rules.update((op, rule) for op, rule in every.items() if str(op) in DECOMPOSED)
    return {operation: rule for operation, rule in rules.items() if not draws.is_draw(operation)}
