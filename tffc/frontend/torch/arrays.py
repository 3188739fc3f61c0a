"""Arrays of PyTorch's tensors, and back."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tffc.frontend.torch.releases import load_torch


def array_of(tensor: Any) -> Any:
    """Return the values of a tensor as an array, which may share its memory."""
    torch = load_torch()
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.dtype is torch.bfloat16:
        return plain.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


def tensor_of(array: Any) -> Any:
    """Return a tensor with the values of an array, in memory of its own."""
    torch = load_torch()
    own = np.array(array)
    if own.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(own.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(own)
