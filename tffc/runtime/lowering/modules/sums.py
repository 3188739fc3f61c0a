"""Operations that combine elements: contractions, convolutions, reductions and windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tffc.runtime.lowering.modules.definition import OperationCall, Translation, combining
from tffc.runtime.lowering.operations.definition import Array, floating, jax, jnp, lax


def _precision(call: OperationCall) -> Any:
    """Return the precision of the two inputs; where the module has none, the caller's is taken."""
    names = call.get("precision_config", ())
    return tuple(lax.Precision[name] for name in names) if {*names} - {"DEFAULT"} else None


def _dot(call: OperationCall, one: Array, other: Array) -> Array:
    if call.get("algorithm") is not None:
        raise call.refusal("is computed by an algorithm that not every device has")
    numbers = call["dot_dimension_numbers"]
    contracted = numbers["lhs_contracting_dimensions"], numbers["rhs_contracting_dimensions"]
    batched = numbers["lhs_batching_dimensions"], numbers["rhs_batching_dimensions"]
    precision = _precision(call)
    return lax.dot_general(one, other, (contracted, batched), precision, call.dtype)


def _convolution(call: OperationCall, image: Array, kernel: Array) -> Array:
    numbers = call["dimension_numbers"]

    def places(first: str, second: str, others: str) -> tuple[int, ...]:
        return (numbers[first], numbers[second], *numbers[others])

    dimensions = lax.ConvDimensionNumbers(
        places("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
        places(
            "kernel_output_feature_dimension",
            "kernel_input_feature_dimension",
            "kernel_spatial_dimensions",
        ),
        places("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
    )
    spatial = numbers["kernel_spatial_dimensions"]
    ones = (1,) * len(spatial)
    reversal = call.get("window_reversal", (False,) * len(spatial))
    backwards = [place for place, is_so in zip(spatial, reversal, strict=True) if is_so]
    return lax.conv_general_dilated(
        image,
        lax.rev(kernel, backwards) if backwards else kernel,
        call.get("window_strides", ones),
        call.pairs("padding", len(spatial)),
        call.get("lhs_dilation", ones),
        call.get("rhs_dilation", ones),
        dimensions,
        call["feature_group_count"],
        call["batch_group_count"],
        _precision(call),
        call.dtype,
    )


def _combine(call: OperationCall) -> Any:
    """Return the function that combines two elements: one of `jax.lax`, for which JAX has faster
    reductions, or one of as many arrays as are reduced together."""
    name, (function,) = combining(call), call.functions
    if name is not None:
        return getattr(lax, name)
    if len(call.operation.types) == 1:
        return lambda one, other: function(one, other)[0]
    return lambda one, other: tuple(function(*one, *other))


def _reduced(call: OperationCall, inputs: tuple[Array, ...]) -> tuple[Any, Any]:
    """Return what is reduced, and the first values: an array or a tuple each."""
    count = len(call.operation.types)
    # For others, JAX has no rule to vectorise most reductions.
    if not all(isinstance(value, np.ndarray) for value in inputs[count:]):
        raise call.refusal("begins with values that are no constants")
    return inputs if count == 1 else (inputs[:count], inputs[count:])


def _reduce(call: OperationCall, *inputs: Array) -> Array:
    arrays, first = _reduced(call, inputs)
    return lax.reduce(arrays, first, _combine(call), call["dimensions"])


def _reduce_window(call: OperationCall, *inputs: Array) -> Array:
    arrays, first = _reduced(call, inputs)
    sizes = call["window_dimensions"]
    ones = (1,) * len(sizes)
    return lax.reduce_window(
        arrays,
        first,
        _combine(call),
        sizes,
        call.get("window_strides", ones),
        call.pairs("padding", len(sizes)),
        call.get("base_dilations", ones),
        call.get("window_dilations", ones),
    )


SELECTED = {"GE": ("max", -np.inf), "LE": ("min", np.inf)}
"""What a comparison selects of a window, and the value of an empty one."""


def _select_and_scatter(call: OperationCall, array: Array, source: Array, first: Array) -> Array:
    """Scatter as the gradient of a window's maximum or minimum, which JAX computes by this
    operation."""
    select = call.operation.regions[0]
    inner = select.operations[0]
    direction = inner.attributes.get("comparison_direction", "")
    is_gradient = (
        len(select.operations) == 1
        and inner.operands == select.parameters
        and direction in SELECTED
        and combining(call, 1) == "add"
        and isinstance(first, np.ndarray)
        and first == 0
        and floating(array.dtype)
    )
    if not is_gradient:
        raise call.refusal("is no gradient of a maximum or a minimum")
    name, limit = SELECTED[direction]
    sizes = call["window_dimensions"]

    def window(values: Array) -> Array:
        return lax.reduce_window(
            values,
            np.array(limit, array.dtype),
            getattr(lax, name),
            sizes,
            call.get("window_strides", (1,) * len(sizes)),
            call.pairs("padding", len(sizes)),
        )

    (gradient,) = jax.vjp(window, jnp.asarray(array))[1](source)
    return gradient


OPERATIONS: dict[str, Translation] = {
    "stablehlo.convolution": _convolution,
    "stablehlo.dot_general": _dot,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
}
