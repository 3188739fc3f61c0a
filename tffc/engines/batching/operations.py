"""The operations that are computed for many clients at once, and what has to hold for it.

TensorFlow's operations refuse some values, such as an index that there is not; compiled by XLA the
same operations give something instead.  So beside each such operation a check is computed, and a
batch in which one does not hold is done again, client by client, which fails where it should.

Operations that are not here, such as those that draw or print, have their clients done one by one.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Check: TypeAlias = Callable[[Any, Any, Sequence[Any]], Any]
"""Returns a boolean tensor, given TensorFlow, a node and its inputs: whether TensorFlow takes these
values."""

PLAIN = frozenset(pathlib.Path(__file__).with_suffix(".txt").read_text().split())
"""Operations without effects, state and draws: those in `operations.txt`."""

ALL_FIXED = frozenset({"Range", "Fill", "Slice", "StridedSlice", "StridedSliceGrad", "LinSpace"})
"""Operations that are told by their inputs which shape they give, or which part they take."""

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
"""Operations that XLA computes otherwise than TensorFlow; they are computed when the graph is made,
where the seed is known."""

CONVOLUTIONS = frozenset(name for name in PLAIN if "onv2" in name or "Pool" in name)


def _divisor(tf: Any, node: Any, inputs: Sequence[Any]) -> Any:
    return None if inputs[1].dtype.is_floating else tf.reduce_all(tf.not_equal(inputs[1], 0))


def _indices(tf: Any, node: Any, inputs: Sequence[Any]) -> Any:
    axis = tf.get_static_value(inputs[2]) if len(inputs) > 2 else 0
    if axis is None:
        return tf.constant(False)
    size = tf.cast(tf.shape(inputs[0])[int(axis)], inputs[1].dtype)
    return tf.reduce_all((inputs[1] >= 0) & (inputs[1] < size))


def _places(params: int, indices: int) -> Check:
    """Return the check that rows of indices are of places in a tensor; both are named by their
    position among the inputs, and a tensor of places by -1 is one that is told by its shape."""

    def check(tf: Any, node: Any, inputs: Sequence[Any]) -> Any:
        rows = inputs[indices]
        shape = inputs[2] if params < 0 else tf.shape(inputs[params])
        sizes = tf.cast(shape, rows.dtype)[: rows.shape[-1]]
        return tf.reduce_all((rows >= 0) & (rows < sizes))

    return check


def _exponent(tf: Any, node: Any, inputs: Sequence[Any]) -> Any:
    return tf.reduce_all(inputs[1] >= 0) if inputs[1].dtype.is_integer else None


def _labels(tf: Any, node: Any, inputs: Sequence[Any]) -> Any:
    classes = tf.cast(tf.shape(inputs[0])[1], inputs[1].dtype)
    return tf.reduce_all((inputs[1] >= 0) & (inputs[1] < classes))


def _segments(tf: Any, node: Any, inputs: Sequence[Any]) -> Any:
    return tf.reduce_all(inputs[1] < tf.cast(inputs[2], inputs[1].dtype))


def _not_nan(tf: Any, node: Any, inputs: Sequence[Any]) -> Any:
    """Check that nothing is not a number; XLA has some operations lose it, or spread it further."""
    found = [tf.reduce_any(tf.math.is_nan(each)) for each in inputs if each.dtype.is_floating]
    return tf.logical_not(tf.reduce_any(tf.stack(found))) if found else None


def _in_range(tf: Any, node: Any, inputs: Sequence[Any]) -> Any:
    """Check that there is a whole number of the type; otherwise it is made into any."""
    wanted = tf.as_dtype(node.attr["DstT"].type)
    if not inputs[0].dtype.is_floating or not wanted.is_integer:
        return None
    least, most = float(wanted.min), float(wanted.max)
    return tf.reduce_all((inputs[0] >= least) & (inputs[0] < most))


CHECKS: dict[str, Check] = {
    **dict.fromkeys(["ArgMax", "ArgMin", "ClipByValue", "Max", "Maximum"], _not_nan),
    **dict.fromkeys(["MaxPool", "Min", "Minimum", "Softmax"], _not_nan),
    **dict.fromkeys(["EluGrad", "Relu6Grad", "ReluGrad", "SeluGrad"], _not_nan),
    **dict.fromkeys(["ReciprocalGrad", "RsqrtGrad", "SqrtGrad"], _not_nan),
    "Cast": _in_range,
    **dict.fromkeys(["Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"], _divisor),
    **dict.fromkeys(["Gather", "GatherV2"], _indices),
    "GatherNd": _places(0, 1),
    "Pow": _exponent,
    "ScatterNd": _places(-1, 0),
    **dict.fromkeys(["TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate"], _places(0, 1)),
    "SparseSoftmaxCrossEntropyWithLogits": _labels,
    "UnsortedSegmentSum": _segments,
}
"""What TensorFlow checks, or gives otherwise than XLA; None where it cannot fail."""
