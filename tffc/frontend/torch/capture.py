"""Tracing of PyTorch computations: a recorded graph of operations becomes an XLA module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tffc.frontend.definitions import definition_span
from tffc.frontend.torch.eager import EagerFunction, remember
from tffc.frontend.torch.lowering import check_graph, lowered_function
from tffc.frontend.torch.releases import load_torch, load_translations
from tffc.frontend.torch.tracing import record
from tffc.frontend.xla_capture import arguments_of, parameter_tensors, register_struct, xla_section
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import TensorType, Type
from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.support.errors import LanguageValueError, TffcError

ABSENT = (DType.UINT16, DType.UINT32, DType.UINT64)
"""Element types for which PyTorch has hardly any operations."""


def capture(
    function: Callable[..., object], parameter: Type | None, splatted: bool = False
) -> tuple[Compiled, Type]:
    """Trace `function` on tensors without values; return the XLA section and the result's type.

    The type names the Python containers that the function returned.  A parameter that is
    `splatted` is given as its elements.  Exceptions of the function pass through unchanged.

    Raises:
      MissingExtraError: PyTorch, torchax or JAX is not installed.
      ExecutionError: a release of them has not been tried.
      LanguageTypeError: the parameter or the result is not made of structs and of tensors of known
        shape.
      LanguageValueError: PyTorch has no tensors of an element type, or the function does what a
        compiled program cannot.
    """
    jax = load_jax()
    load_translations()
    register_struct(jax)
    tensors = list(parameter_tensors(parameter, "PyTorch"))
    declared = [(known_shape(tensor), torch_dtype(tensor)) for tensor in tensors]

    def arguments(values: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        return arguments_of(parameter, splatted, values)

    recorded = record(function, declared, arguments)
    check_graph(recorded, definition_span(function))
    compute = lowered_function(recorded)

    def structured(*arrays: Any) -> Any:
        return jax.tree_util.tree_unflatten(recorded.structure, compute(*arrays))

    shapes = [jax.ShapeDtypeStruct(tensor.shape, tensor.element_type.dtype) for tensor in tensors]
    # PyTorch's whole numbers have 64 bits.
    with jax.enable_x64(True):
        try:
            traced = jax.jit(structured, keep_unused=True).trace(*shapes)
        except TffcError as error:
            error.span = error.span or definition_span(function)
            raise
        # A fixed platform gives the same bytes on any machine, whatever its devices.
        lowered = traced.lower(lowering_platforms=("cpu",))
        places = {number: number for number in range(len(tensors))}
        section, result = xla_section(lowered, function, parameter, places, "PyTorch")
    remember(section, EagerFunction(function, parameter, splatted, definition_span(function)))
    return section, result


def known_shape(tensor: TensorType) -> tuple[int, ...]:
    """Return the sizes of a tensor, all of which are known."""
    return tuple(size for size in tensor.shape or () if size is not None)


def torch_dtype(tensor: TensorType) -> Any:
    """Return the type that PyTorch has for the elements of a tensor.

    Raises:
      LanguageValueError: it has none.
    """
    if tensor.element_type in ABSENT:
        raise LanguageValueError(
            "E419",
            f"PyTorch computes nothing with `{tensor}`",
            help="declare a type with a sign, such as np.int64",
        )
    torch = load_torch()
    name = tensor.element_type.dtype.name
    return getattr(torch, name)
