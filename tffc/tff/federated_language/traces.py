"""Traces of federated computations as contexts, and values in them, for programs that trace by
themselves.

A trace is tffc's own, which this module gives the names of `federated_language`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, cast

from tffc.frontend import context as contexts
from tffc.frontend.computation import Computation, returned_value
from tffc.frontend.context import FederatedContext
from tffc.frontend.execution import SyncContext
from tffc.frontend.hints import described
from tffc.frontend.operators import FederatedTrace
from tffc.frontend.value import Value, scope_of
from tffc.frontend.zipping import zipped, zipped_type
from tffc.language.calls import pack
from tffc.language.nodes import Block, Call, Lambda, Node, Reference
from tffc.language.type_parts import without_containers
from tffc.language.types import FederatedType, FunctionType, Placement, StructType, Type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError


class SymbolBindingContext(SyncContext):
    """A context that binds what is computed in it to symbols."""

    @abc.abstractmethod
    def bind_computation_to_reference(self, comp: Any) -> Any:
        """Bind a building block to a symbol, and return a reference to it."""

    @property
    @abc.abstractmethod
    def symbol_bindings(self) -> list[tuple[str, Any]]:
        """The symbols and what they are bound to, in order."""


class _Trace(type):
    """The metaclass of `FederatedComputationContext`, whose instances are traces."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, FederatedTrace)

    @entry_point
    def __call__(
        cls,
        context_stack: object,
        suggested_name: str | None = None,
        parent: FederatedContext | None = None,
    ) -> FederatedTrace:
        if parent is not None and not isinstance(cast("object", parent), FederatedContext):
            raise LanguageTypeError(
                "E714",
                f"the parent of a trace is a trace, not {described(parent)}",
                help="give what get_context_stack().current is inside a federated computation",
            )
        return FederatedTrace(suggested_name or "FEDERATED", parent)


class FederatedComputationContext(metaclass=_Trace):
    """The trace of a federated computation: its name, its parent, and the symbols bound in it."""


def _invoke(context: FederatedTrace, comp: Computation, arg: object) -> Any:
    return contexts.run_within(context, comp.invoke, arg)


def _symbol_bindings(context: FederatedTrace) -> list[tuple[str, Node]]:
    return [(binding.name, binding.value) for binding in context.bindings]


FederatedTrace.bind_computation_to_reference = FederatedTrace.bind  # type: ignore[attr-defined]  # a name of the mirror
FederatedTrace.symbol_bindings = property(_symbol_bindings)  # type: ignore[attr-defined]  # likewise
FederatedTrace.invoke = _invoke  # type: ignore[attr-defined]  # likewise
SymbolBindingContext.register(FederatedTrace)


@entry_point
def zero_or_one_arg_fn_to_building_block(
    fn: Callable[..., object],
    parameter_name: str | None,
    parameter_type: Type | None,
    context_stack: object,
    suggested_name: str | None = None,
) -> tuple[Lambda, FunctionType]:
    """Return the building block and the type of a function of at most one parameter, traced."""
    outer = contexts.current()
    parent = outer if isinstance(outer, FederatedContext) else None
    context = FederatedTrace(suggested_name or "FEDERATED", parent)
    arguments: list[Value] = []
    name = None if parameter_name is None else f"{context.name}_{parameter_name}"
    plain = None if parameter_type is None else without_containers(parameter_type)
    if name is not None and plain is not None and parameter_type is not None:
        arguments.append(Value(Reference(name, plain), parameter_type, context))
    returned = contexts.run_within(context, fn, *arguments)
    result = returned_value(fn, returned, context)
    bindings = tuple(context.bindings)
    body = Block(bindings, result.comp) if bindings else result.comp
    return Lambda(name, plain, body), FunctionType(parameter_type, result.type_signature)


@entry_point
def ensure_federated_value(
    value: Value, placement: Placement | None = None, label: str | None = None
) -> Value:
    """Return a value that is federated, a struct of federated values zipped.

    Raises:
      LanguageTypeError: it is neither, or at another placement.
    """
    role = label or "value"
    type = value.type_signature
    if not isinstance(type, FederatedType):
        federated = zipped_type(type)
        if federated is None:
            raise LanguageTypeError(
                "E470", f"the {role} must be federated or a struct of such, but is of type `{type}`"
            )
        value, type = zipped(value, federated), federated
    if placement is not None and type.placement is not placement:
        raise LanguageTypeError(
            "E471",
            f"the {role} should be placed at {placement}, but is of type `{type}`",
            help="give a value with that placement",
        )
    return value


@entry_point
def get_curried(fn: Value) -> Value:
    """Return a function of a struct as one of its first element that returns one of the second, and
    so on.

    Raises:
      LanguageTypeError: it is no function of a struct.
    """
    type = fn.type_signature
    if not isinstance(type, FunctionType) or not isinstance(type.parameter, StructType):
        raise LanguageTypeError("E413", f"expected a function of a struct, found one of `{type}`")
    types = type.parameter.types
    arguments = [Reference(f"arg{index}", inner) for index, inner in enumerate(types)]
    curried: Node = Call(fn.comp, pack(arguments))
    for argument in reversed(arguments):
        curried = Lambda(argument.name, argument.type, curried)
    return Value(curried, curried.type, scope_of(fn))
