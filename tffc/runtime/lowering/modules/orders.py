"""The orders in which modules sort.

StableHLO has the order as a region that compares two elements of each array.  JAX sorts by the
first arrays, in an order of its own: only regions that are the same as JAX's are recognised.
"""

from __future__ import annotations

import functools

import numpy as np

from tffc.runtime.frameworks.jax.hlo import portable_artifact
from tffc.runtime.lowering.modules.definition import OperationCall
from tffc.runtime.lowering.modules.stablehlo import ArrayType, Region, functions_of
from tffc.runtime.lowering.operations.definition import jax, lax


def number_of_keys(call: OperationCall) -> int:
    """Return by how many of the first arrays a `stablehlo.sort` sorts, as `jax.lax.sort` does.

    Raises:
      NotLoweredError: it sorts in an order that JAX's function does not have.
    """
    (region,) = call.operation.regions
    written = _written(region)
    for keys in range(1, len(call.operation.types) + 1):
        if written and written == _order(region.types[::2], keys):
            return keys
    raise call.refusal("is in an order that JAX does not have")


@functools.lru_cache(maxsize=256)
def _order(types: tuple[ArrayType, ...], keys: int) -> str:
    """Return what JAX writes for the order by so many keys."""
    arrays = [jax.ShapeDtypeStruct((2,), kind.dtype) for kind in types]
    with jax.enable_x64(True):
        lowered = jax.jit(lambda *values: lax.sort(values, num_keys=keys)).lower(*arrays)
    functions = functions_of(portable_artifact(lowered.as_text())).values()
    (sort,) = (
        each for main in functions for each in main.operations if each.name == "stablehlo.sort"
    )
    return _written(sort.regions[0])


def _written(region: Region) -> str:
    """Return a text that is the same for regions of the same operations; empty for one that uses
    values from around it."""
    names = {value: f"{array.dtype}{array.tolist()}" for value, array in _scalars(region).items()}
    names |= {value: f"%{place}" for place, value in enumerate(region.parameters)}
    lines: list[str] = []
    count = len(region.parameters)
    for operation in region.operations:
        if operation.regions or not names.keys() >= set(operation.operands):
            return ""
        operands = [names[value] for value in operation.operands]
        attributes = sorted(operation.attributes.items())
        lines.append(f"{operation.name} {operands} {attributes} {operation.types}")
        names |= {value: f"%{count + place}" for place, value in enumerate(operation.results)}
        count += len(operation.results)
    returned = [names.get(value) for value in region.returned]
    return "\n".join([*lines, str(returned)])


def _scalars(region: Region) -> dict[int, np.ndarray]:
    return {value: array for value, array in region.constants.items() if array.ndim == 0}
