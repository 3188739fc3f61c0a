"""StableHLO modules in graphs, called from functions that JAX traces."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tffc.graphs.node import NodeView
from tffc.language.dtypes import BY_NUMBER
from tffc.runtime.lowering.errors import NotLoweredError
from tffc.runtime.lowering.modules.evaluation import call_translated
from tffc.runtime.lowering.operations.definition import Array, jax, jnp


def call_module(
    node: NodeView, inputs: Sequence[Array], *, selects: bool, is_shared: bool, is_portable: bool
) -> Sequence[Array]:
    """Return the results of an XlaCallModule.

    A module that cannot be translated is called as it is, unless what JAX traces `is_portable`: JAX
    calls such a module only in code for one platform.  `selects` and `is_shared` are as in
    `call_translated`.

    Raises:
      NotLoweredError: the module is of any shape, or calls functions of a graph, or can neither be
        translated nor called.
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
        if is_portable:
            raise
    return called(module, inputs, outputs)


def called(module: bytes, inputs: Sequence[Array], outputs: Sequence[Array]) -> list[Array]:
    """Return the results, arrays like `outputs`, of a module that is called as it is.

    Raises:
      NotLoweredError: it takes or gives other arrays.
    """
    arguments = [jnp.asarray(value) for value in inputs]

    def like(*arguments: Array) -> tuple[Array, ...]:
        return tuple(jnp.zeros(each.shape, each.dtype) for each in outputs)

    # A module that calls nothing outside of itself runs on all platforms; for several of them, JAX
    # would pass the number of one to it.
    export = jax.export.export(
        jax.jit(like, keep_unused=True),
        platforms=["cpu"],
        disabled_checks=[jax.export.DisabledSafetyCheck.platform()],
    )
    try:
        exported = export(*(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arguments))
        # JAX offers no other way to call a module that it has not traced.
        exported = dataclasses.replace(exported, mlir_module_serialized=module)
        return list(exported.call(*arguments))
    except (TypeError, ValueError) as error:
        text = str(error).partition("\n")[0]
        raise NotLoweredError(f"a module cannot be called: {text}") from None
