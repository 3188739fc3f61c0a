"""Running XLA sections with JAX."""

from __future__ import annotations

from typing import Any, NoReturn

from tffc.graphs.operations import hlo
from tffc.language.nodes import Compiled
from tffc.language.shapes import shape_is_assignable
from tffc.language.type_parts import leaves
from tffc.language.types import FunctionType, StructType, TensorType, Type
from tffc.language.values.concrete import flatten, unflatten
from tffc.language.wire import (
    SectionBinding,
    StructBinding,
    TensorBinding,
    XlaSection,
    bound_otherwise,
    read_xla,
)
from tffc.runtime.frameworks.jax.hlo import LoadedModule
from tffc.support.errors import ExecutionError, TffcError, WireError
from tffc.support.printable import printable


class XlaRunner:
    """An XLA section that is compiled and ready to run: its StableHLO, if it has that, as in the
    forms."""

    def __init__(self, section: Compiled) -> None:
        assert isinstance(section.type, FunctionType)
        self._type = section.type
        content = read_xla(section.payload)
        self._parameter = _places(content.parameter, section.type.parameter)
        self._result = _places(content.result, section.type.result)
        try:
            _check_calls(content)
            self._module = LoadedModule(content.hlo_module, content.stablehlo)
        except (RuntimeError, ValueError) as error:
            self._fail(
                "E720",
                "XLA cannot load the module of a section",
                error,
                help="trace the program again with the JAX that is installed here",
            )

    def __call__(self, argument: Any) -> Any:
        parts = [] if self._type.parameter is None else flatten(argument, self._type.parameter)
        try:
            places = self._parameter
            by_place = dict(zip(places, parts, strict=True))
            tensors = self._module([by_place[place] for place in range(len(places))])
        except (RuntimeError, ValueError) as error:
            self._fail(
                "E722",
                "XLA could not carry out a computation",
                error,
                help="run the function in JAX alone, on the values it was given, to see where",
            )
        results = [
            _checked(tensors, place, type)
            for place, type in zip(self._result, leaves(self._type.result), strict=True)
        ]
        return unflatten(iter(results), self._type.result)

    def _fail(self, code: str, message: str, error: Exception, *, help: str) -> NoReturn:
        if isinstance(error, TffcError):
            # It is about the release of JAX, not about the module.
            raise error
        reason = str(error).partition("\n")[0]
        notes = (f"it is of type `{self._type}`",)
        raise ExecutionError(code, f"{message}: {reason}", notes=notes, help=help) from None


def _places(binding: SectionBinding | None, type: Type | None) -> list[int]:
    """Return where in a module the tensors of a parameter or result are, in the order of the type.

    The compiler reads bindings too, in `tffc.linking.xla`.  Here they are read anew, so that
    verification sees a fault in either.

    Raises:
      ExecutionError: the binding is of another structure than the type, or leaves one out.
    """
    places: list[int] = []
    stack: list[tuple[SectionBinding | None, Type | None]] = [(binding, type)]
    while stack:
        match stack.pop():
            case None, None:
                pass
            case TensorBinding(int() as place), TensorType():
                places.append(place)
            case StructBinding(elements), StructType() as struct if len(elements) == len(struct):
                stack.extend(zip(reversed(elements), reversed(struct.types), strict=True))
            case _:
                raise bound_otherwise(type)
    if sorted(places) != list(range(len(places))):
        raise bound_otherwise(type)
    return places


def _check_calls(content: XlaSection) -> None:
    """Refuse a module that calls functions outside of it: this process may crash if it runs."""
    try:
        calls = hlo.foreign_calls(content.hlo_module, content.stablehlo)
    except WireError as error:
        raise ValueError(error.message) from None
    if calls:
        raise ValueError(f"it calls {', '.join(map(printable, calls))}, outside of XLA")


def _checked(tensors: list[Any], place: int, type: Type) -> Any:
    assert isinstance(type, TensorType)
    array = tensors[place] if 0 <= place < len(tensors) else None
    if (
        array is None
        or array.dtype != type.element_type.dtype
        or not shape_is_assignable(type.shape, array.shape)
    ):
        description = (
            "nothing"
            if array is None
            else f"a tensor of {array.dtype} of shape {list(array.shape)}"
        )
        raise ExecutionError(
            "E721", f"an XLA section gave {description} where its type promises `{type}`"
        )
    return array[()]
