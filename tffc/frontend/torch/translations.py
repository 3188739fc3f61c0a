"""Translations of PyTorch operations to JAX that torchax lacks, or has otherwise than PyTorch.

Each is a function of what PyTorch says of the result, tensors without values, and of the arguments
of the operation, with JAX arrays in place of tensors.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tffc.frontend.torch.releases import load_torch, load_translations
from tffc.runtime.frameworks.jax.hlo import load_jax

Translation: TypeAlias = Callable[..., Any]


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
    convolution = _forward("convolution")
    settings = (stride, padding, dilation, transposed, output_padding, groups)

    def convolve(input: Any, weight: Any) -> Any:
        return convolution(input, weight, None, *settings)

    _, pull = load_jax().vjp(convolve, input, weight)
    by_input, by_weight = pull(slope)
    by_bias = slope.sum(axis=(0, *range(2, slope.ndim))) if wanted[2] else None
    return by_input if wanted[0] else None, by_weight if wanted[1] else None, by_bias


def _max_pool_backward(dimensions: int) -> Translation:
    """Return the translation of the slope of a maximum over windows by its input.

    The slope of each window goes to where its maximum was, an index into the dimensions of space.
    """

    def backward(result: Any, slope: Any, input: Any, *arguments: Any) -> Any:
        numpy = load_jax().numpy
        space = input.ndim - dimensions
        rows = math.prod(input.shape[:space])
        flat = numpy.zeros((rows, math.prod(input.shape[space:])), slope.dtype)
        places = numpy.arange(rows)[:, None], arguments[-1].reshape(rows, -1)
        return flat.at[places].add(slope.reshape(rows, -1)).reshape(input.shape)

    return backward


def _adaptive_max(result: Any, x: Any, sizes: Sequence[int]) -> Any:
    """Return maxima over as many windows of an image as `sizes` says, and where they are.

    Window i of n over a side of length l goes from i l / n, rounded down, to (i + 1) l / n, rounded
    up.
    """
    numpy = load_jax().numpy
    width = x.shape[-1]
    (rows, has_rows), (columns, has_columns) = (
        _adaptive_windows(length, count) for length, count in zip(x.shape[-2:], sizes, strict=True)
    )
    windows = x[..., rows[:, None, :, None], columns[None, :, None, :]]
    inside = has_rows[:, None, :, None] & has_columns[None, :, None, :]
    windows = numpy.where(inside, windows, -numpy.inf).reshape(*windows.shape[:-2], -1)
    places = (rows[:, None, :, None] * width + columns[None, :, None, :]).reshape(*sizes, -1)
    which = windows.argmax(-1)
    indices = numpy.take_along_axis(
        numpy.broadcast_to(places, windows.shape), which[..., None], axis=-1
    )
    return windows.max(-1), indices[..., 0]


def _adaptive_windows(length: int, count: int) -> tuple[Any, Any]:
    """Return the places of each of `count` windows over a length, and which are inside of it."""
    starts = np.arange(count) * length // count
    ends = -(-(np.arange(1, count + 1) * length) // count)
    places = starts[:, None] + np.arange(max(ends - starts))
    return np.minimum(places, length - 1), places < ends[:, None]


def _adaptive_mean_backward(dimensions: int) -> Translation:
    """Return the translation of the slope of means over as many windows as the slope has places."""
    name = f"_adaptive_avg_pool{dimensions}d"

    def backward(result: Any, slope: Any, input: Any) -> Any:
        return _pulled(name)(result, slope, input, list(slope.shape[-dimensions:]))

    return backward


def _strided(
    result: Any, x: Any, sizes: Sequence[int], strides: Sequence[int], offset: int | None = None
) -> Any:
    return x.reshape(-1)[_strided_places(sizes, strides, offset)]


def _strided_scatter(
    result: Any,
    x: Any,
    values: Any,
    sizes: Sequence[int],
    strides: Sequence[int],
    offset: int | None = None,
) -> Any:
    places = _strided_places(sizes, strides, offset)
    return x.reshape(-1).at[places].set(values).reshape(x.shape)


def _strided_places(sizes: Sequence[int], strides: Sequence[int], offset: int | None) -> Any:
    """Return the places in a contiguous tensor of the elements of a view with strides."""
    places = np.full((), offset or 0)
    for size, stride in zip(sizes, strides, strict=True):
        places = places[..., None] + stride * np.arange(size)
    return places


def _diagonal_scatter(
    result: Any, x: Any, values: Any, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Any:
    return _forward("diagonal_scatter")(x, values, offset, dim1 % x.ndim, dim2 % x.ndim)


def _forward(name: str) -> Callable[..., Any]:
    """Return torchax's translation of an operation to JAX."""
    operation = getattr(load_torch().ops.aten, name)
    translations = load_translations()
    rule = translations.get(operation) or translations[operation.default]
    assert rule.is_jax_function
    return rule.func


def _pulled(name: str) -> Translation:
    """Return the translation of the slope of an operation by its first argument."""

    def backward(result: Any, slope: Any, input: Any, *settings: Any, **named: Any) -> Any:
        forward = _forward(name)
        _, pull = load_jax().vjp(lambda x: forward(x, *settings, **named), input)
        return pull(slope)[0]

    return backward


def _full_like(result: Any, _: Any, value: Any, **__: Any) -> Any:
    numpy = load_jax().numpy
    return numpy.full(tuple(result.shape), value, _dtype(result))


def _undefined(result: Any, *_: Any, **__: Any) -> Any:
    """Return zeros, which PyTorch promises of some of these and leaves open of others."""
    return load_jax().numpy.zeros(tuple(result.shape), _dtype(result))


def _dtype(result: Any) -> Any:
    """Return the type of JAX for that of a result."""
    return importlib.import_module("torchax.ops.mappings").t2j_dtype(result.dtype)


def _ldexp(result: Any, x: Any, exponent: Any) -> Any:
    numpy = load_jax().numpy
    return numpy.asarray(x, _dtype(result)) * numpy.exp2(numpy.asarray(exponent, _dtype(result)))


def _as_complex(result: Any, x: Any) -> Any:
    return load_jax().lax.complex(x[..., 0], x[..., 1])


def _power(result: Any, base: Any, exponent: Any) -> Any:
    """Return a power; one of whole numbers with an exponent below 0 is rounded to 0."""
    numpy = load_jax().numpy
    dtype = _dtype(result)
    base, exponent = numpy.asarray(base, dtype), numpy.asarray(exponent, dtype)
    if not numpy.issubdtype(dtype, numpy.integer):
        return numpy.power(base, exponent)
    power = numpy.power(base, numpy.abs(exponent))
    return numpy.where((exponent < 0) & (numpy.abs(base) != 1), 0, power)


def _converted(result: Any, x: Any, *_: Any, **__: Any) -> Any:
    numpy = load_jax().numpy
    if numpy.iscomplexobj(x) and not result.dtype.is_complex:
        x = numpy.real(x)
    return numpy.asarray(x, _dtype(result))


def _unchecked(result: Any, *_: Any) -> None:
    """Do without a check of values, which a compiled program does not make."""


def _sign(result: Any, x: Any) -> Any:
    """Return the sign, which of no number is 0."""
    numpy = load_jax().numpy
    if x.dtype == bool:
        return x
    return numpy.asarray(x > 0, x.dtype) - numpy.asarray(x < 0, x.dtype)


def _put(result: Any, x: Any, places: Any, values: Any, accumulate: bool = False) -> Any:
    flat = x.reshape(-1).at[places.reshape(-1)]
    values = values.reshape(-1)
    return (flat.add(values) if accumulate else flat.set(values)).reshape(x.shape)


def _shrunk(result: Any, slope: Any, x: Any, bound: Any) -> Any:
    """Return the slope of a function that is 0 within a distance of 0, and has the slope 1
    beyond."""
    return load_jax().numpy.where((x >= -bound) & (x <= bound), 0, slope)


def _in_type_of_result(name: str) -> Translation:
    """Return torchax's translation, of an argument in the type of the result: it knows no other."""

    def compute(result: Any, x: Any, *others: Any, **named: Any) -> Any:
        return _forward(name)(load_jax().numpy.asarray(x, _dtype(result)), *others, **named)

    return compute


SUM, MEAN = 0, 1
"""The modes of bags of embeddings."""


def _embedding_bag(
    result: Any,
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_by_frequency: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    factors: Any = None,
    include_last: bool = False,
    padding: int = -1,
) -> Any:
    """Return sums or means of rows of a table, the bag of each row, the sizes of the bags, and
    nothing for maxima."""
    if mode not in (SUM, MEAN) or include_last or padding >= 0 or scale_by_frequency:
        raise NotImplementedError("it translates sums and means of whole bags alone")
    numpy = load_jax().numpy
    places = numpy.arange(indices.shape[0])
    bags = numpy.searchsorted(offsets, places, side="right") - 1
    rows = weight[indices] if factors is None else weight[indices] * factors[:, None]
    count = offsets.shape[0]
    sums = numpy.zeros((count, weight.shape[1]), weight.dtype).at[bags].add(rows)
    sizes = numpy.zeros(count, offsets.dtype).at[bags].add(1)
    if mode == MEAN:
        sums = sums / numpy.maximum(sizes, 1)[:, None].astype(weight.dtype)
    shapes = [tuple(each.shape) for each in result]
    others = [numpy.zeros(shape, offsets.dtype) for shape in shapes[1:]]
    for place, value in enumerate((bags, sizes)):
        if value.shape == shapes[1 + place]:
            others[place] = value
    return [sums, *others]


def _embedding_bag_backward(
    result: Any,
    slope: Any,
    indices: Any,
    offsets: Any,
    offset_bags: Any,
    sizes: Any,
    largest: Any,
    rows: int,
    scale_by_frequency: bool,
    mode: int,
    sparse: bool,
    factors: Any,
    padding: int = -1,
) -> Any:
    """Return the slope of sums or means of rows by the table of rows."""
    if mode not in (SUM, MEAN) or padding >= 0 or scale_by_frequency or sparse:
        raise NotImplementedError("it translates sums and means of whole bags alone")
    numpy = load_jax().numpy
    bags = numpy.searchsorted(offsets, numpy.arange(indices.shape[0]), side="right") - 1
    if mode == MEAN:
        counts = numpy.zeros(offsets.shape[0], slope.dtype).at[bags].add(1)
        slope = slope / numpy.maximum(counts, 1)[:, None]
    by_row = slope[bags] if factors is None else slope[bags] * factors[:, None]
    return numpy.zeros((rows, slope.shape[1]), slope.dtype).at[indices].add(by_row)


def _as_real(result: Any, x: Any) -> Any:
    numpy = load_jax().numpy
    return numpy.stack([numpy.real(x), numpy.imag(x)], axis=-1)


OWN: Mapping[str, Translation] = {
    "aten._adaptive_avg_pool2d_backward.default": _adaptive_mean_backward(2),
    "aten._adaptive_avg_pool3d_backward.default": _adaptive_mean_backward(3),
    "aten._to_copy.default": _converted,
    "aten.adaptive_max_pool2d.default": _adaptive_max,
    "aten.adaptive_max_pool2d_backward.default": _max_pool_backward(2),
    "aten.adaptive_max_pool3d_backward.default": _max_pool_backward(3),
    "aten.__lshift__.Scalar": lambda result, x, places: x << places,
    "aten.__rshift__.Scalar": lambda result, x, places: x >> places,
    "aten._assert_async.default": _unchecked,
    "aten._assert_async.msg": _unchecked,
    "aten._conj_copy.default": lambda result, x: load_jax().numpy.conj(x),
    "aten._embedding_bag.default": _embedding_bag,
    "aten._embedding_bag_backward.default": _embedding_bag_backward,
    "aten._embedding_bag_forward_only.default": _embedding_bag,
    "aten._neg_view_copy.default": lambda result, x: -x,
    "aten._efficientzerotensor.default": _undefined,
    "aten.angle.default": lambda result, x: load_jax().numpy.angle(x),
    "aten.as_strided.default": _strided,
    "aten.as_strided_copy.default": _strided,
    "aten.as_strided_scatter.default": _strided_scatter,
    "aten.avg_pool2d_backward.default": _pulled("avg_pool2d"),
    "aten.avg_pool3d_backward.default": _pulled("avg_pool3d"),
    "aten.convolution_backward.default": _convolution_backward,
    "aten.detach_copy.default": lambda result, x: x,
    "aten.diagonal_scatter.default": _diagonal_scatter,
    "aten.empty.memory_format": _undefined,
    "aten.empty_like.default": _undefined,
    "aten.empty_permuted.default": _undefined,
    "aten.empty_strided.default": _undefined,
    "aten.erf.default": _in_type_of_result("erf"),
    "aten.erfc.default": _in_type_of_result("erfc"),
    "aten.erfinv.default": _in_type_of_result("erfinv"),
    "aten.full_like.default": _full_like,
    "aten.hardshrink_backward.default": _shrunk,
    "aten.ldexp.Tensor": _ldexp,
    "aten.max_pool2d_with_indices_backward.default": _max_pool_backward(2),
    "aten.max_pool3d_with_indices_backward.default": _max_pool_backward(3),
    "aten.new_empty.default": _undefined,
    "aten.new_empty_strided.default": _undefined,
    "aten.pow.Tensor_Tensor": _power,
    "aten.put.default": _put,
    "aten.rsqrt.default": _in_type_of_result("rsqrt"),
    "aten.sigmoid.default": _in_type_of_result("sigmoid"),
    "aten.sign.default": _sign,
    "aten.softshrink_backward.default": _shrunk,
    "aten.view_as_complex_copy.default": _as_complex,
    "aten.view_as_real_copy.default": _as_real,
    "prims.add.default": lambda result, x, y: x + y,
    "prims.mul.default": lambda result, x, y: x * y,
}
"""The translations, by the names of operations."""

OF_MEMORY = frozenset(
    {
        "aten.as_strided.default",
        "aten.as_strided_copy.default",
        "aten.as_strided_scatter.default",
    }
)
"""The operations on the memory of a tensor, which must be contiguous: arrays have no strides."""
