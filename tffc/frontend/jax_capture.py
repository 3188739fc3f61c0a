"""Tracing of JAX computations: running a Python function on abstract arrays gives an XLA module.

JAX flattens arguments and results in an order of its own: keyword arguments and plain dictionaries
by name.  The bindings of the section say which parameter or output of the module each tensor is.
The root of the module is always a tuple, even for one tensor.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tffc.frontend import context as contexts
from tffc.frontend.context import CompiledContext
from tffc.frontend.conversion import open_container
from tffc.frontend.definitions import definition_span, result_span
from tffc.frontend.hints import described, instead_of
from tffc.frontend.signature import call_arguments, passed_type
from tffc.frontend.type_conversions import fill
from tffc.graphs.operations import effects, hlo
from tffc.graphs.proto.encoding import Place, without_fields
from tffc.language.containers.struct import Struct
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.type_parts import leaves, without_containers
from tffc.language.types import FunctionType, StructWithPythonType, TensorType, Type
from tffc.language.wire import SectionBinding, StructBinding, TensorBinding, XlaSection, write_xla
from tffc.linking.operand import rebuild
from tffc.runtime.frameworks.jax.hlo import hlo_of, load_jax, outside_calls, portable_artifact
from tffc.runtime.user_code.source import is_users_file
from tffc.support.errors import LanguageTypeError, LanguageValueError, TffcError
from tffc.support.trampoline import Task, run

WIDE = (DType.INT64, DType.UINT64, DType.FLOAT64, DType.COMPLEX128)
"""Element types that JAX supports in its 64-bit mode only."""

HLO_MODULE_ID = 5
"""The number of the field `id` of an HloModuleProto."""


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
    _register_struct(jax)
    tensors = _tensors(jax, parameter)
    arrays = [jax.ShapeDtypeStruct(tensor.shape, tensor.element_type.dtype) for tensor in tensors]
    order = jax.tree_util.tree_leaves(_call_arguments(parameter, splatted, range(len(arrays))))
    _check_containers(order)
    places = {tensor: place for place, tensor in enumerate(order)}
    args, kwargs = _call_arguments(parameter, splatted, arrays)
    jitted = jax.jit(function, keep_unused=True)
    traced = contexts.run_within(CompiledContext("jax"), jitted.trace, *args, **kwargs)
    # A fixed platform gives the same bytes on any machine, whatever its devices.
    lowered = traced.lower(lowering_platforms=("cpu",))
    _check_calls(lowered, function)
    outputs: list[TensorType] = []
    try:
        type, result = run(_result(lowered.out_info, outputs))
    except TffcError as error:
        error.span = error.span or result_span(function)
        raise
    binding = None
    if parameter is not None:
        numbers = itertools.count()
        binding = rebuild(parameter, lambda _: TensorBinding(places[next(numbers)]), StructBinding)
    # The text form has no source locations, so the bytes do not depend on where the function
    # stands.
    text = lowered.as_text()
    content = XlaSection(_without_id(hlo_of(text)), binding, result, portable_artifact(text))
    payload = write_xla(content)
    return Compiled("xla", payload, without_containers(FunctionType(parameter, type))), type


Names: TypeAlias = tuple[str | None, ...]


@functools.cache
def _register_struct(jax: Any) -> None:
    """Register the struct container with JAX as a pytree."""

    def flatten(struct: Struct) -> tuple[tuple[object, ...], Names]:
        return tuple(struct), tuple(name for name, _ in struct.items())

    def unflatten(names: Names, values: Iterable[object]) -> Struct:
        return Struct(zip(names, values, strict=True))

    jax.tree_util.register_pytree_node(Struct, flatten, unflatten)


def _tensors(jax: Any, parameter: Type | None) -> list[TensorType]:
    """Return the tensors of the parameter, in the order of its type."""
    tensors: list[TensorType] = []
    for leaf in [] if parameter is None else leaves(parameter):
        if not isinstance(leaf, TensorType):
            raise LanguageTypeError(
                "E419",
                f"a JAX computation cannot take an argument of type `{parameter}`",
                notes=(f"`{leaf}` is not made of tensors and structs",),
                help=instead_of(leaf),
            )
        if not leaf.is_fully_defined():
            raise LanguageTypeError(
                "E419",
                f"the shape of `{leaf}` is not known, as JAX needs it to be",
                help="declare the type with every size, or use a TensorFlow computation",
            )
        if leaf.element_type is DType.STRING:
            raise LanguageValueError(
                "E419",
                "JAX has no arrays of strings",
                help="write it in TensorFlow, or take numbers in place of strings",
            )
        if leaf.element_type in WIDE and not jax.config.jax_enable_x64:
            raise LanguageValueError(
                "E459",
                f"JAX has no `{leaf}` unless it is told so",
                help='call jax.config.update("jax_enable_x64", True) first',
            )
        tensors.append(leaf)
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


def _call_arguments(
    parameter: Type | None, splatted: bool, values: Iterable[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments to call the function with, given its tensors."""
    type = passed_type(parameter, splatted)
    tensors = iter(values)
    value = None if type is None else fill(type, lambda _: next(tensors))
    return call_arguments(type, value, splatted)


def _check_calls(lowered: Any, function: Callable[..., object]) -> None:
    """Refuse calls of functions outside of XLA that do more than compute: a message of the program
    would hold the address or the number of something in this process."""
    for call in outside_calls(lowered):
        if hlo.OF_JAX.fullmatch(call.target):
            continue
        what = f"the function {call.target!r} outside of XLA"
        if effects.calls_python(call.target):
            what = "a Python function"
        own = (place for place in call.places if is_users_file(place.file))
        raise LanguageValueError(
            "E906",
            f"a JAX computation calls {what} when it runs",
            notes=(f"XLA knows it as {call.target!r}, which exists in this process alone",),
            help="do without jax.debug, jax.pure_callback, io_callback and jax.ffi here: return "
            "what is to be shown, and compute the rest with jax.numpy",
            span=next(own, None) or definition_span(function),
        )


def _result(returned: Any, outputs: list[TensorType]) -> Task[tuple[Type, SectionBinding]]:
    """Return the type of the result that JAX reports, and its binding."""
    opened = open_container(returned)
    if opened is not None:
        types: list[Type] = []
        bindings: list[SectionBinding] = []
        for member in opened.members:
            type, binding = yield _result(member, outputs)
            types.append(type)
            bindings.append(binding)
        struct = StructWithPythonType.with_container(opened.names, tuple(types), opened.container)
        return struct, StructBinding(tuple(bindings))
    dtype = getattr(returned, "dtype", None)
    if not isinstance(dtype, np.dtype):
        kind = described(returned) if dtype is None else f"an array of {dtype}"
        raise LanguageTypeError(
            "E454",
            f"{kind} cannot be the result of a JAX computation",
            help="return arrays of numbers, and lists, tuples and mappings of them",
        )
    tensor = TensorType(dtype, returned.shape)
    outputs.append(tensor)
    return tensor, TensorBinding(len(outputs) - 1)


def _without_id(module: bytes) -> bytes:
    """Remove the id from a serialized HloModuleProto, because it counts the modules of the
    process."""
    return without_fields(module, Place(0, len(module)), {HLO_MODULE_ID: None})
