"""Loops, branches, random bits, and what only passes values on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tffc.runtime.lowering.modules.definition import Computation, OperationCall, Translation
from tffc.runtime.lowering.modules.stablehlo import ModuleOperation
from tffc.runtime.lowering.operations.definition import Array, jax, jnp, lax


def is_counted(operation: ModuleOperation, start: tuple[Array, ...]) -> bool:
    """Tell whether a loop takes as many steps for any values: it counts by ones from one constant
    to another."""
    condition, body = operation.regions
    compare = condition.source(condition.returned[0])
    if compare is None or compare.attributes.get("comparison_direction") != "LT":
        return False
    counter, end = compare.operands
    if counter not in condition.parameters or end not in condition.constants:
        return False
    place = condition.parameters.index(counter)
    step = body.source(body.returned[place])
    return (
        isinstance(start[place], np.ndarray)
        and condition.types[place].dtype.kind in "iu"
        and step is not None
        and step.name == "stablehlo.add"
        and step.operands[0] == body.parameters[place]
        and body.constants.get(step.operands[1]) == 1
    )


def _while(call: OperationCall, *start: Array) -> Array:
    again, body = call.functions
    outputs = lax.while_loop(
        lambda values: again(*values)[0],
        lambda values: tuple(map(jnp.asarray, body(*values))),
        tuple(map(jnp.asarray, start)),
    )
    return list(outputs)


def _branches(call: OperationCall) -> list[Callable[[], tuple[Array, ...]]]:
    def branch(function: Computation) -> Callable[[], tuple[Array, ...]]:
        return lambda: tuple(map(jnp.asarray, function()))

    return [branch(function) for function in call.functions]


def _case(call: OperationCall, index: Array) -> Array:
    last = len(call.functions) - 1
    # StableHLO takes the last branch for every other number, JAX the nearest.
    is_one = lax.bitwise_and(lax.ge(index, np.int32(0)), lax.le(index, np.int32(last)))
    return list(lax.switch(lax.select(is_one, index, np.int32(last)), _branches(call)))


def _if(call: OperationCall, condition: Array) -> Array:
    return list(lax.cond(condition, *_branches(call)))


def _barrier(call: OperationCall, *inputs: Array) -> Array:
    return list(lax.optimization_barrier(inputs))


PASSED_ON = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})
"""Calls that say on which devices arrays are, and compute nothing."""


def _custom_call(call: OperationCall, *inputs: Array) -> Array:
    target = call["call_target_name"]
    if target not in PASSED_ON:
        raise call.refusal(f"is of {target}")
    return list(inputs)


ALGORITHMS = {"DEFAULT": "RNG_DEFAULT", "PHILOX": "RNG_PHILOX", "THREE_FRY": "RNG_THREE_FRY"}


def _random_bits(call: OperationCall, state: Array) -> Array:
    algorithm = lax.RandomAlgorithm[ALGORITHMS[call["rng_algorithm"]]]
    bits = call.operation.types[1]

    def draw(state: Array) -> tuple[Array, ...]:
        return tuple(lax.rng_bit_generator(state, bits.shape, bits.dtype, algorithm))

    # JAX would draw the bits of all clients from the state of the first.
    drawing = jax.custom_batching.custom_vmap(draw)
    drawing.def_vmap(lambda size, batched, states: (lax.map(draw, states), (True, True)))
    return list(drawing(state))


def _fft(call: OperationCall, array: Array) -> Array:
    return lax.fft(array, call["fft_type"], call["fft_length"])


OPERATIONS: dict[str, Translation] = {
    "stablehlo.case": _case,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.fft": _fft,
    "stablehlo.if": _if,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.rng_bit_generator": _random_bits,
    "stablehlo.while": _while,
}
