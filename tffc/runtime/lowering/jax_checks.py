"""Checks of the inputs of operations in JAX.

TensorFlow's operations fail on some values, such as an index out of range; compiled by XLA, they
return arbitrary results instead, and some of them lose a NaN.  So each such operation comes with a
check: whether TensorFlow accepts these values and computes what XLA does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tffc.graphs.node import NodeView
from tffc.language.dtypes import BY_NUMBER
from tffc.runtime.lowering.operations.definition import (
    Array,
    floating,
    is_known,
    library,
    numbers,
)
from tffc.runtime.lowering.operations.indexing import slice_parts

Check: TypeAlias = Callable[[NodeView, Sequence[Array]], Array]
"""A function of a node and its inputs; it returns None if its inputs are always accepted."""


def _integer(dtype: np.dtype) -> bool:
    return dtype.kind in "iu"


def _divisor(node: NodeView, inputs: Sequence[Array]) -> Array:
    return None if not _integer(inputs[1].dtype) else (inputs[1] != 0).all()


def _indices(node: NodeView, inputs: Sequence[Array]) -> Array:
    axis = inputs[2] if len(inputs) > 2 else np.int32(0)
    if not is_known(axis):
        return np.False_
    size = inputs[0].shape[int(axis)]
    return ((inputs[1] >= 0) & (inputs[1] < size)).all()


def _places(params: int, indices: int) -> Check:
    """Return the check that rows of indices are in range of a tensor.

    `params` and `indices` are the positions of the two among the inputs.  With -1 for `params`, the
    third input is the shape of the tensor.
    """

    def check(node: NodeView, inputs: Sequence[Array]) -> Array:
        rows = inputs[indices]
        shape = inputs[2] if params < 0 else np.array(inputs[params].shape, np.int64)
        sizes = shape[: rows.shape[-1]] if rows.ndim else shape[:1]
        return ((rows >= 0) & (rows < sizes)).all()

    return check


def _exponent(node: NodeView, inputs: Sequence[Array]) -> Array:
    return (inputs[1] >= 0).all() if _integer(inputs[1].dtype) else None


def _labels(node: NodeView, inputs: Sequence[Array]) -> Array:
    return ((inputs[1] >= 0) & (inputs[1] < inputs[0].shape[1])).all()


def _segments(node: NodeView, inputs: Sequence[Array]) -> Array:
    return (inputs[1] < inputs[2]).all()


def _not_nan(node: NodeView, inputs: Sequence[Array]) -> Array:
    numbers = [each for each in inputs if floating(each.dtype)]
    holds = [~library(each).isnan(each).any() for each in numbers]
    return library(*holds).stack(holds).all() if holds else None


def _below_infinity(node: NodeView, inputs: Sequence[Array]) -> Array:
    """Check that no logit makes its row NaN; TensorFlow leaves the other classes alone."""
    return (inputs[0] < np.inf).all()


def _in_range(node: NodeView, inputs: Sequence[Array]) -> Array:
    """Check that an integer type can hold the values; otherwise the result is undefined."""
    wanted = BY_NUMBER[node.attr["DstT"].type].dtype
    if not floating(inputs[0].dtype) or not _integer(wanted):
        return None
    limits = np.iinfo(wanted)
    least, end = float(limits.min), float(limits.max) + 1
    return ((inputs[0] >= least) & (inputs[0] < end)).all()


def _slice(node: NodeView, inputs: Sequence[Array]) -> Array:
    x, begin, size = inputs
    ends = np.array(x.shape)
    sizes = np.where(np.asarray(size) == -1, ends - begin, size) if is_known(begin) else size
    return ((begin >= 0) & (sizes >= 0) & (begin + sizes <= ends)).all()


def _strided(shape: Sequence[int], node: NodeView, begin: Array) -> Array:
    """Check that single places are in range; the bounds of others may be anything."""
    parts = slice_parts(node, begin.shape[0], len(shape))
    holds = [
        (begin[part.place] >= -shape[part.axis]) & (begin[part.place] < shape[part.axis])
        for part in parts
        if part.place >= 0 and part.axis >= 0 and part.sliced < 0
    ]
    return library(begin).stack(holds).all() if holds else None


def _strided_slice(node: NodeView, inputs: Sequence[Array]) -> Array:
    return _strided(inputs[0].shape, node, inputs[1])


def _strided_slice_grad(node: NodeView, inputs: Sequence[Array]) -> Array:
    return _strided(numbers(node, inputs[0], "a shape that is"), node, inputs[1])


def _permutation(node: NodeView, inputs: Sequence[Array]) -> Array:
    (x,) = inputs
    return (library(x).sort(x) == np.arange(x.shape[0])).all()


def _diagonals(node: NodeView, inputs: Sequence[Array]) -> Array:
    x, lower, upper = inputs
    rows, columns = x.shape[-2:]
    return (lower <= rows) & (upper <= columns)


def _bounds(node: NodeView, inputs: Sequence[Array]) -> Array:
    *_, least, end = inputs
    return least < end


CHECKS: dict[str, Check] = {
    **dict.fromkeys(["ArgMax", "ArgMin", "ClipByValue", "Max", "Maximum"], _not_nan),
    **dict.fromkeys(["MaxPool", "Min", "Minimum", "TopKV2"], _not_nan),
    **dict.fromkeys(["EluGrad", "Relu6Grad", "ReluGrad", "SeluGrad"], _not_nan),
    **dict.fromkeys(["ReciprocalGrad", "RsqrtGrad", "SqrtGrad"], _not_nan),
    "Cast": _in_range,
    **dict.fromkeys(["Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod"], _divisor),
    **dict.fromkeys(["Gather", "GatherV2"], _indices),
    "GatherNd": _places(0, 1),
    "InvertPermutation": _permutation,
    "MatrixBandPart": _diagonals,
    "Pow": _exponent,
    "ScatterNd": _places(-1, 0),
    "Slice": _slice,
    "Softmax": _below_infinity,
    **dict.fromkeys(["StatelessRandomUniformInt", "StatelessRandomUniformIntV2"], _bounds),
    "StridedSlice": _strided_slice,
    "StridedSliceGrad": _strided_slice_grad,
    **dict.fromkeys(["TensorScatterAdd", "TensorScatterSub", "TensorScatterUpdate"], _places(0, 1)),
    "SparseSoftmaxCrossEntropyWithLogits": _labels,
    "UnsortedSegmentSum": _segments,
}
"""The checks of the operations for which TensorFlow fails, or differs from XLA, on some values."""
