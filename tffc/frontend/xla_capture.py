"""XLA sections from what JAX has lowered, whichever framework the function was written for.

The root of a module is always a tuple, even for one tensor.  The bindings of the section say which
parameter or output of the module each tensor is.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

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
from tffc.runtime.frameworks.jax.hlo import hlo_of, outside_calls, portable_artifact
from tffc.runtime.user_code.source import is_users_file
from tffc.support.errors import LanguageTypeError, LanguageValueError, TffcError
from tffc.support.trampoline import Task, run

HLO_MODULE_ID = 5
"""The number of the field `id` of an HloModuleProto."""

Names: TypeAlias = tuple[str | None, ...]


@functools.cache
def register_struct(jax: Any) -> None:
    """Register the struct container with JAX as a pytree."""

    def flatten(struct: Struct) -> tuple[tuple[object, ...], Names]:
        return tuple(struct), tuple(name for name, _ in struct.items())

    def unflatten(names: Names, values: Iterable[object]) -> Struct:
        return Struct(zip(names, values, strict=True))

    jax.tree_util.register_pytree_node(Struct, flatten, unflatten)


def parameter_tensors(parameter: Type | None, framework: str) -> Iterator[TensorType]:
    """Yield the tensors of a parameter, in the order of its type; errors name the framework.

    Raises:
      LanguageTypeError: it is not made of structs and of tensors of known shape.
      LanguageValueError: it holds text.
    """
    for leaf in [] if parameter is None else leaves(parameter):
        if not isinstance(leaf, TensorType):
            raise LanguageTypeError(
                "E419",
                f"a {framework} computation cannot take an argument of type `{parameter}`",
                notes=(f"`{leaf}` is not made of tensors and structs",),
                help=instead_of(leaf),
            )
        if not leaf.is_fully_defined():
            raise LanguageTypeError(
                "E419",
                f"the shape of `{leaf}` is not known, as {framework} needs it to be",
                help="declare the type with every size, or use a TensorFlow computation",
            )
        if leaf.element_type is DType.STRING:
            raise LanguageValueError(
                "E419",
                f"{framework} has no {TEXTS[framework]} of strings",
                help="write it in TensorFlow, or take numbers in place of strings",
            )
        yield leaf


TEXTS: Mapping[str, str] = {"JAX": "arrays", "PyTorch": "tensors"}
"""What each framework calls its values."""


def arguments_of(
    parameter: Type | None, splatted: bool, values: Iterable[Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments to call the function with, given its tensors."""
    type = passed_type(parameter, splatted)
    tensors = iter(values)
    value = None if type is None else fill(type, lambda _: next(tensors))
    return call_arguments(type, value, splatted)


def xla_section(
    lowered: Any,
    function: Callable[..., object],
    parameter: Type | None,
    places: Mapping[int, int],
    framework: str,
) -> tuple[Compiled, Type]:
    """Return the section of a function that JAX has lowered, and the type of its result.

    `places` has the place in the module of each tensor of the parameter, by its number.
    """
    _check_calls(lowered, function)
    outputs: list[TensorType] = []
    try:
        type, result = run(_result(lowered.out_info, outputs, framework))
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


def _result(
    returned: Any, outputs: list[TensorType], framework: str
) -> Task[tuple[Type, SectionBinding]]:
    """Return the type of the result that JAX reports, and its binding."""
    opened = open_container(returned)
    if opened is not None:
        types: list[Type] = []
        bindings: list[SectionBinding] = []
        for member in opened.members:
            type, binding = yield _result(member, outputs, framework)
            types.append(type)
            bindings.append(binding)
        struct = StructWithPythonType.with_container(opened.names, tuple(types), opened.container)
        return struct, StructBinding(tuple(bindings))
    dtype = getattr(returned, "dtype", None)
    if not isinstance(dtype, np.dtype):
        kind = described(returned) if dtype is None else f"an array of {dtype}"
        raise LanguageTypeError(
            "E454",
            f"{kind} cannot be the result of a {framework} computation",
            help=f"return {TEXTS[framework]} of numbers, and lists, tuples and mappings of them",
        )
    tensor = TensorType(dtype, returned.shape)
    outputs.append(tensor)
    return tensor, TensorBinding(len(outputs) - 1)


def _without_id(module: bytes) -> bytes:
    """Remove the id from a serialized HloModuleProto, because it counts the modules of the
    process."""
    return without_fields(module, Place(0, len(module)), {HLO_MODULE_ID: None})
