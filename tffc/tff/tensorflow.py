"""The module `tff.tensorflow`."""

from __future__ import annotations

from typing import Any

from tffc.frontend.computation import tf_computation as computation
from tffc.frontend.tensorflow_trace import get_session_token
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.tff.building_blocks import replace_intrinsics_with_bodies

__all__ = [
    "computation",
    "get_session_token",
    "replace_intrinsics_with_bodies",
    "transform_args",
    "transform_result",
]


def transform_args(args: Any) -> Any:
    """Return arguments with eager tensors and variables replaced by NumPy arrays.

    Containers other than `Struct` are searched; datasets are kept.
    """
    tf = load_tensorflow()

    def as_array(part: Any) -> Any:
        return part.numpy() if isinstance(part, (tf.Tensor, tf.Variable)) else part

    return tf.nest.map_structure(as_array, args)


def transform_result(result: Any) -> Any:
    """Return results with eager tensors and variables replaced by NumPy arrays; see
    `transform_args`."""
    return transform_args(result)
