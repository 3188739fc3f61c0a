"""StableHLO modules in graphs, called from functions that JAX traces."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from tffc.graphs.node import NodeView
from tffc.language.dtypes import BY_NUMBER
from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.modules.evaluation import call_translated
from tffc.runtime.lowering.operations.definition import Array, jax, jnp


def call_module(
    node: NodeView, inputs: Sequence[Array], *, selects: bool, is_shared: bool
) -> Sequence[Array]:
    """Return the results of an XlaCallModule.

    A module that cannot be translated is called as it is: where JAX vectorises the call, one
    client's module runs after the other.  `selects` and `is_shared` are as in `call_translated`.

    Raises:
      NotLoweredError: the module is of any shape, or calls functions of a graph, or it is shared
        and might not end.
    """
    attributes = node.attr
    if attributes["dim_args_spec"].list.s or attributes["function_list"].list.func:
        raise NotLoweredError(f"{node.op} of any shape, or with functions of its graph")
    types = zip(attributes["Tout"].list.type, attributes["Sout"].list.shape, strict=True)
    outputs = tuple(
        jax.ShapeDtypeStruct([each.size for each in shape.dim], BY_NUMBER[number].dtype)
        for number, shape in types
    )
    module = attributes["module"].s
    try:
        return call_translated(module, inputs, outputs, selects=selects, is_shared=is_shared)
    except NotLoweredError:
        if is_shared:
            raise
    return called(module, inputs, outputs)


def called(module: bytes, inputs: Sequence[Array], outputs: Sequence[Array]) -> list[Array]:
    """Return the results, arrays like `outputs`, of a module that is called as it is.

    Raises:
      NotLoweredError: it takes or gives other arrays.
    """
    arguments = [jnp.asarray(value) for value in inputs]
    taken = tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arguments)
    try:
        return list(_function(module, taken, tuple(outputs))(*arguments))
    except (TypeError, ValueError) as error:
        text = str(error).partition("\n")[0]
        raise NotLoweredError(f"a module cannot be called: {text}") from None


@functools.lru_cache(maxsize=256)
def _function(module: bytes, taken: tuple[Array, ...], outputs: tuple[Array, ...]) -> Array:
    """Return the function of a module, which takes and returns arrays of these types."""

    def like(*arguments: Array) -> tuple[Array, ...]:
        return tuple(jnp.zeros(each.shape, each.dtype) for each in outputs)

    # A module that calls nothing outside of itself runs on all platforms; for several of them, JAX
    # would pass the number of one to it.
    export = jax.export.export(
        jax.jit(like, keep_unused=True),
        platforms=["cpu"],
        disabled_checks=[jax.export.DisabledSafetyCheck.platform()],
    )
    with jax.enable_x64(True):
        exported = export(*taken)
    # JAX offers no other way to call a module that it has not traced.
    exported = dataclasses.replace(exported, mlir_module_serialized=module)
    call = jax.custom_batching.custom_vmap(lambda *arguments: tuple(exported.call(*arguments)))

    @call.def_vmap
    def rule(axis_size: int, batched: Sequence[bool], *arguments: Array) -> Array:
        def one(own: Sequence[Array]) -> tuple[Array, ...]:
            rest = iter(own)
            return call(*(next(rest) if is_own else value for is_own, value in both))

        both = list(zip(batched, arguments, strict=True))
        results = jax.lax.map(one, [value for is_own, value in both if is_own])
        return results, tuple(True for _ in results)

    return call
