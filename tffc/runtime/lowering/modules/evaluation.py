"""Functions of modules, computed in JAX operation by operation."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.modules import arrays, control, elementwise, sums
from tffc.runtime.lowering.modules.definition import Computation, OperationCall, Translation
from tffc.runtime.lowering.modules.stablehlo import ArrayType, ModuleOperation, Region, functions_of
from tffc.runtime.lowering.operations.definition import Array

OPERATIONS: dict[str, Translation] = {
    **arrays.OPERATIONS,
    **control.OPERATIONS,
    **elementwise.OPERATIONS,
    **sums.OPERATIONS,
}
"""The operations that are translated, besides calls of functions."""

MOST_NESTED = 40
"""The most calls and regions that may be nested; following each uses Python's own stack."""


class Nesting(NamedTuple):
    """How deep in calls and regions an operation is, and whether it is computed also for clients
    that are not in it."""

    depth: int
    is_shared: bool

    def inside(self, *, is_shared: bool = False) -> Nesting:
        """Return the nesting of what an operation calls.

        Raises:
          NotLoweredError: it is too deep.
        """
        if self.depth == MOST_NESTED:
            raise NotLoweredError(f"a module has more than {MOST_NESTED} nested calls or regions")
        return Nesting(self.depth + 1, self.is_shared or is_shared)


def call_translated(
    artifact: bytes,
    arguments: Sequence[Array],
    outputs: Sequence[Array],
    *,
    selects: bool,
    is_shared: bool,
) -> list[Array]:
    """Return the results, arrays like `outputs`, of the module in a portable artifact, computed by
    `jax.lax`.

    With `selects`, clients are vectorised: JAX computes all branches, and steps of a loop as long
    as one client goes on; with `is_shared`, the call itself is in one of these.  A loop there might
    not end for clients that are not in it.

    Raises:
      NotLoweredError: the module has no translation, is of other arrays, or might not end.
    """
    try:
        evaluation = _Evaluation(_functions(artifact), selects=selects)
        results = evaluation.call("main", arguments, Nesting(0, is_shared))
    except (AssertionError, KeyError, RuntimeError, TypeError, ValueError) as error:
        text = str(error).partition("\n")[0]
        raise NotLoweredError(f"a module cannot be translated: {text}") from None
    if list(map(_type, results)) != list(map(_type, outputs)):
        raise NotLoweredError("a module gives other arrays than its graph says")
    return results


@functools.lru_cache(maxsize=256)
def _functions(artifact: bytes) -> Mapping[str, Region]:
    return functions_of(artifact)


class _Evaluation:
    """Computes functions of a module."""

    def __init__(self, functions: Mapping[str, Region], *, selects: bool) -> None:
        self._functions = functions
        self._selects = selects

    def call(self, name: str, arguments: Sequence[Array], nesting: Nesting) -> list[Array]:
        """Return the results of a function for arrays of its types."""
        function = self._functions[name]
        if tuple(map(_type, arguments)) != function.types:
            raise NotLoweredError(f"a module calls {name} with other arrays than it takes")
        return self._run(function, arguments, function.constants, nesting.inside())

    def _run(
        self,
        region: Region,
        arguments: Sequence[Array],
        around: Mapping[int, Array],
        nesting: Nesting,
    ) -> list[Array]:
        """Return what a region returns; it may use the values around it."""
        values = {**around, **dict(zip(region.parameters, arguments, strict=True))}
        for operation in region.operations:
            outputs = self._outputs(operation, values, nesting)
            if tuple(map(_type, outputs)) != operation.types:
                raise NotLoweredError(f"{operation.name} gives arrays of other types in JAX")
            values.update(zip(operation.results, outputs, strict=True))
        return [values[number] for number in region.returned]

    def _outputs(
        self, operation: ModuleOperation, values: dict[int, Array], nesting: Nesting
    ) -> Sequence[Array]:
        inputs = tuple(values[number] for number in operation.operands)
        name, attributes = operation.name, operation.attributes
        if name == "stablehlo.composite" and attributes["name"] in OPERATIONS:
            name = attributes["name"]
        if name == "func.call":
            return self.call(attributes["callee"], inputs, nesting)
        if name == "stablehlo.composite":
            return self.call(attributes["decomposition"], inputs, nesting)
        if name not in OPERATIONS:
            raise NotLoweredError(f"{name} has no translation")
        inner = self._nesting_of_regions(operation, inputs, nesting)
        functions = [self._function(region, values, inner) for region in operation.regions]
        outputs = OPERATIONS[name](OperationCall(operation, functions), *inputs)
        return outputs if isinstance(outputs, (list, tuple)) else [outputs]

    def _nesting_of_regions(
        self, operation: ModuleOperation, inputs: tuple[Array, ...], nesting: Nesting
    ) -> Nesting:
        branches = operation.name in ("stablehlo.case", "stablehlo.if")
        loops = operation.name == "stablehlo.while" and not control.is_counted(operation, inputs)
        if loops and nesting.is_shared:
            raise NotLoweredError("a module has a loop that might not end for clients not in it")
        return nesting.inside(is_shared=self._selects and (branches or loops))

    def _function(
        self, region: Region, values: Mapping[int, Array], nesting: Nesting
    ) -> Computation:
        return lambda *arguments: self._run(region, arguments, values, nesting)


def _type(array: Array) -> ArrayType:
    return ArrayType(tuple(array.shape), array.dtype)
