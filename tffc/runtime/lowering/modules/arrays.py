"""Operations that move elements: shapes, slices, gathers, scatters, sorts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tffc.runtime.lowering.modules.definition import OperationCall, Translation, combining
from tffc.runtime.lowering.modules.orders import number_of_keys
from tffc.runtime.lowering.operations.definition import Array, jnp, lax


def _broadcast(call: OperationCall, array: Array) -> Array:
    if not call.shape:
        return array  # A constant stays one.
    return lax.broadcast_in_dim(array, call.shape, call["broadcast_dimensions"])


def _reshape(call: OperationCall, array: Array) -> Array:
    return lax.reshape(array, call.shape)


def _transpose(call: OperationCall, array: Array) -> Array:
    return lax.transpose(array, call["permutation"])


def _slice(call: OperationCall, array: Array) -> Array:
    return lax.slice(array, call["start_indices"], call["limit_indices"], call["strides"])


def _dynamic_slice(call: OperationCall, array: Array, *start: Array) -> Array:
    sizes = call["slice_sizes"]
    return lax.dynamic_slice(array, start, sizes, allow_negative_indices=False)


def _dynamic_update(call: OperationCall, array: Array, update: Array, *start: Array) -> Array:
    return lax.dynamic_update_slice(array, update, start, allow_negative_indices=False)


def _pad(call: OperationCall, array: Array, value: Array) -> Array:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return lax.pad(array, value, list(zip(*map(call.get, names), strict=True)))


def _concatenate(call: OperationCall, *arrays: Array) -> Array:
    return lax.concatenate(arrays, call["dimension"])


def _reverse(call: OperationCall, array: Array) -> Array:
    return lax.rev(array, call["dimensions"])


def _iota(call: OperationCall) -> Array:
    return lax.broadcasted_iota(call.dtype, call.shape, call["iota_dimension"])


def _vectors_last(indices: Array, dimension: int) -> Array:
    """Return indices whose vectors are along the last dimension, as `jax.lax` has them."""
    if dimension == indices.ndim:
        return jnp.expand_dims(indices, dimension)
    return jnp.moveaxis(indices, dimension, -1)


def _gather(call: OperationCall, array: Array, indices: Array) -> Array:
    numbers = dict(call["dimension_numbers"])
    indices = _vectors_last(indices, numbers.pop("index_vector_dim"))
    dimensions = lax.GatherDimensionNumbers(**numbers)
    sizes, mode = call["slice_sizes"], lax.GatherScatterMode.CLIP
    return lax.gather(array, indices, dimensions, sizes, mode=mode)


def _scatter_function(call: OperationCall) -> Any:
    """Return the function of `jax.lax` that combines elements as the region does."""
    (region,) = call.operation.regions
    if region.returned == region.parameters[1:]:
        return lax.scatter
    names = [inner.name for inner in region.operations]
    if names == ["stablehlo.subtract"] and region.operations[0].operands == region.parameters:
        return lax.scatter_sub
    function = getattr(lax, f"scatter_{combining(call)}", None)
    if function is None:
        raise call.refusal(f"combines elements by {', '.join(names)}")
    return function


def _scatter(call: OperationCall, array: Array, indices: Array, updates: Array) -> Array:
    if np.iinfo(indices.dtype).max < max(array.shape, default=0):
        # XLA compares indices with sizes in the type of the indices, JAX for several clients not.
        raise call.refusal(f"has indices of type {indices.dtype} into more elements than it has")
    numbers = call["scatter_dimension_numbers"]
    dimensions = lax.ScatterDimensionNumbers(
        update_window_dims=numbers["update_window_dims"],
        inserted_window_dims=numbers["inserted_window_dims"],
        scatter_dims_to_operand_dims=numbers["scattered_dims_to_operand_dims"],
        operand_batching_dims=numbers["input_batching_dims"],
        scatter_indices_batching_dims=numbers["scatter_indices_batching_dims"],
    )
    return _scatter_function(call)(
        array,
        _vectors_last(indices, numbers["index_vector_dim"]),
        updates,
        dimensions,
        unique_indices=call.get("unique_indices", False),
        mode=lax.GatherScatterMode.FILL_OR_DROP,
    )


def _sort(call: OperationCall, *arrays: Array) -> Array:
    dimension = call.get("dimension", -1) % arrays[0].ndim
    keys, is_stable = number_of_keys(call), call.get("is_stable", False)
    return list(lax.sort(arrays, dimension, is_stable=is_stable, num_keys=keys))


def _top_k(call: OperationCall, array: Array) -> Array:
    return list(lax.top_k(array, call["composite_attributes"]["k"]))


OPERATIONS: dict[str, Translation] = {
    "chlo.top_k": _top_k,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update,
    "stablehlo.gather": _gather,
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.scatter": _scatter,
    "stablehlo.slice": _slice,
    "stablehlo.sort": _sort,
    "stablehlo.transpose": _transpose,
}
