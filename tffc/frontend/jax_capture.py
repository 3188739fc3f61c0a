"""Tracing of JAX computations: running a Python function on abstract arrays gives an XLA module.

JAX flattens arguments and results in an order of its own: keyword arguments and plain dictionaries
by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tffc.frontend import context as contexts
from tffc.frontend.context import CompiledContext
from tffc.frontend.hints import described
from tffc.frontend.xla_capture import (
    arguments_of,
    parameter_tensors,
    register_struct,
    xla_section,
)
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import TensorType, Type
from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.support.errors import LanguageTypeError, LanguageValueError

WIDE = (DType.INT64, DType.UINT64, DType.FLOAT64, DType.COMPLEX128)
"""Element types that JAX supports in its 64-bit mode only."""


def capture(
    function: Callable[..., object],
    parameter: Type | None,
    splatted: bool = False,
) -> tuple[Compiled, Type]:
    """Trace `function` on abstract arrays; return the compiled section and the result's type.

    The type names the Python containers that the function returned.  A parameter that is
    `splatted` is given as its elements.  Exceptions of the function pass through unchanged.

    Raises:
      MissingExtraError: JAX is not installed.
      LanguageTypeError: the parameter or the result is not made of structs and of tensors of known
        shape, or JAX does not know a container.
      LanguageValueError: JAX has no arrays of an element type, or not in its current mode; or the
        function calls Python, or another function that is not part of XLA, when it runs.
    """
    jax = load_jax()
    register_struct(jax)
    tensors = _tensors(jax, parameter)
    arrays = [jax.ShapeDtypeStruct(tensor.shape, tensor.element_type.dtype) for tensor in tensors]
    order = jax.tree_util.tree_leaves(arguments_of(parameter, splatted, range(len(arrays))))
    _check_containers(order)
    places = {tensor: place for place, tensor in enumerate(order)}
    args, kwargs = arguments_of(parameter, splatted, arrays)
    jitted = jax.jit(function, keep_unused=True)
    traced = contexts.run_within(CompiledContext("jax"), jitted.trace, *args, **kwargs)
    # A fixed platform gives the same bytes on any machine, whatever its devices.
    lowered = traced.lower(lowering_platforms=("cpu",))
    return xla_section(lowered, function, parameter, places, "JAX")


def _tensors(jax: Any, parameter: Type | None) -> list[TensorType]:
    """Return the tensors of the parameter, in the order of its type."""
    tensors = list(parameter_tensors(parameter, "JAX"))
    for tensor in tensors:
        if tensor.element_type in WIDE and not jax.config.jax_enable_x64:
            raise LanguageValueError(
                "E459",
                f"JAX has no `{tensor}` unless it is told so",
                help='call jax.config.update("jax_enable_x64", True) first',
            )
    return tensors


def _check_containers(order: Sequence[Any]) -> None:
    """Refuse a parameter with a class that JAX does not know as a pytree: it would be a single
    leaf."""
    for leaf in order:
        if not isinstance(leaf, int):
            raise LanguageTypeError(
                "E418",
                f"JAX does not know {described(leaf)} as a struct of arrays",
                help="declare a list, tuple, dictionary or namedtuple in its place, or register "
                "the class with jax.tree_util.register_pytree_node",
            )
