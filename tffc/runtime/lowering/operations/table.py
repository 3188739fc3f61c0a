"""All operations by name.  An operation that is not here is not lowered."""

from __future__ import annotations

from tffc.runtime.lowering.operations import (
    activations,
    arrays,
    draws,
    elementwise,
    indexing,
    linear,
    neural,
    reductions,
    signals,
    windows,
)
from tffc.runtime.lowering.operations.definition import Operation

OPERATIONS: dict[str, Operation] = {
    **elementwise.OPERATIONS,
    **activations.OPERATIONS,
    **reductions.OPERATIONS,
    **signals.OPERATIONS,
    **arrays.OPERATIONS,
    **indexing.OPERATIONS,
    **linear.OPERATIONS,
    **neural.OPERATIONS,
    **windows.OPERATIONS,
    **draws.OPERATIONS,
}
"""The functions that compute operations, by their names in TensorFlow."""
