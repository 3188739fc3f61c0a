"""The operations that may be computed for many clients at once, and checks of their inputs.

TensorFlow's operations fail on some values, such as an index out of range; compiled by XLA, they
return arbitrary results instead.  So each such operation comes with a check, and if a check fails
in a batch, its clients are computed again one by one, so that the right client fails.

Programs with other operations, such as those that draw or print, are computed client by client.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tffc.graphs.node import NodeView
from tffc.runtime.frameworks.tensorflow.load import Tensor, TensorFlow

Check: TypeAlias = Callable[[TensorFlow, NodeView, Sequence[Tensor]], Tensor | None]
"""A function of TensorFlow, a node and its inputs.  It returns a boolean tensor: whether TensorFlow
accepts these values and computes what XLA does.  None if that is always so."""

PLAIN = frozenset(pathlib.Path(__file__).with_suffix(".txt").read_text().split())
"""Operations without side effects, state or randomness: those in `operations.txt`."""

ALL_FIXED = frozenset({"Range", "Fill", "Slice", "StridedSlice", "StridedSliceGrad", "LinSpace"})
"""Operations whose inputs decide the shape of the result, so that XLA must know them."""

DRAWN = frozenset(
    [
        "StatelessRandomGetAlg",
        "StatelessRandomGetKeyCounter",
        "StatelessRandomNormalV2",
        "StatelessRandomUniformFullIntV2",
        "StatelessRandomUniformIntV2",
        "StatelessRandomUniformV2",
        "StatelessTruncatedNormalV2",
    ]
)
"""Random operations, for which XLA gives other numbers than TensorFlow.  TensorFlow computes them
when the graph is built, which needs a constant seed."""


def _divisor(tf: TensorFlow, node: NodeView, inputs: Sequence[Tensor]) -> Tensor:
    return None if inputs[1].dtype.is_floating else tf.reduce_all(tf.not_equal(inputs[1], 0))


def _indices(tf: TensorFlow, node: NodeView, inputs: Sequence[Tensor]) -> Tensor:
    axis = tf.get_static_value(inputs[2]) if len(inputs) > 2 else 0
    if axis is None:
        return tf.constant(False)
    size = tf.cast(tf.shape(inputs[0])[int(axis)], inputs[1].dtype)
    return tf.reduce_all((inputs[1] >= 0) & (inputs[1] < size))


def _places(params: int, indices: int) -> Check:
    """Return the check that rows of indices are in range of a tensor.

    `params` and `indices` are the positions of the two among the inputs.  With -1 for `params`, the
    third input is the shape of the tensor.
    """

    def check(tf: TensorFlow, node: NodeView, inputs: Sequence[Tensor]) -> Tensor:
        rows = inputs[indices]
        shape = inputs[2] if params < 0 else tf.shape(inputs[params])
        sizes = tf.cast(shape, rows.dtype)[: rows.shape[-1]]
        return tf.reduce_all((rows >= 0) & (rows < sizes))

    return check


def _exponent(tf: TensorFlow, node: NodeView, inputs: Sequence[Tensor]) -> Tensor:
    return tf.reduce_all(inputs[1] >= 0) if inputs[1].dtype.is_integer else None


def _labels(tf: TensorFlow, node: NodeView, inputs: Sequence[Tensor]) -> Tensor:
    classes = tf.cast(tf.shape(inputs[0])[1], inputs[1].dtype)
    return tf.reduce_all((inputs[1] >= 0) & (inputs[1] < classes))


def _segments(tf: TensorFlow, node: NodeView, inputs: Sequence[Tensor]) -> Tensor:
    return tf.reduce_all(inputs[1] < tf.cast(inputs[2], inputs[1].dtype))


def _not_nan(tf: TensorFlow, node: NodeView, inputs: Sequence[Tensor]) -> Tensor:
    """Check that no input has a NaN; under XLA some operations lose NaNs or spread them further."""
    checks = [
        tf.reduce_any(tf.math.is_nan(tensor)) for tensor in inputs if tensor.dtype.is_floating
    ]
    return tf.logical_not(tf.reduce_any(tf.stack(checks))) if checks else None


def _below_infinity(tf: TensorFlow, node: NodeView, inputs: Sequence[Tensor]) -> Tensor:
    """Check that no logit makes its row NaN; TensorFlow leaves the other classes alone."""
    return tf.reduce_all(inputs[0] < float("inf"))


def _summed(tf: TensorFlow, node: NodeView, inputs: Sequence[Tensor]) -> Tensor:
    """Check that the type of integers holds their sum; TensorFlow adds them up in 64 bits."""
    x, axes = inputs
    if not x.dtype.is_integer:
        return None
    total = tf.reduce_sum(tf.cast(x, tf.int64), axes)
    return tf.reduce_all(tf.cast(tf.cast(total, x.dtype), tf.int64) == total)


def _in_range(tf: TensorFlow, node: NodeView, inputs: Sequence[Tensor]) -> Tensor:
    """Check that an integer type can hold the values; otherwise the result is undefined."""
    wanted = tf.as_dtype(node.attr["DstT"].type)
    if not inputs[0].dtype.is_floating or not wanted.is_integer:
        return None
    least, end = float(wanted.min), float(wanted.max) + 1
    return tf.reduce_all((inputs[0] >= least) & (inputs[0] < end))


CHECKS: dict[str, Check] = {
    **dict.fromkeys(["ArgMax", "ArgMin", "ClipByValue", "Max", "Maximum"], _not_nan),
    **dict.fromkeys(["MaxPool", "Min", "Minimum"], _not_nan),
    **dict.fromkeys(["EluGrad", "Relu6Grad", "ReluGrad", "SeluGrad"], _not_nan),
    **dict.fromkeys(["ReciprocalGrad", "RsqrtGrad", "SqrtGrad"], _not_nan),
    "Cast": _in_range,
    **dict.fromkeys(["Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"], _divisor),
    **dict.fromkeys(["Gather", "GatherV2"], _indices),
    "GatherNd": _places(0, 1),
    "Mean": _summed,
    "Pow": _exponent,
    "ScatterNd": _places(-1, 0),
    **dict.fromkeys(["TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate"], _places(0, 1)),
    "Softmax": _below_infinity,
    "SparseSoftmaxCrossEntropyWithLogits": _labels,
    "UnsortedSegmentSum": _segments,
}
"""The checks of the operations for which TensorFlow fails, or differs from XLA, on some values."""
