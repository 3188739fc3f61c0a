"""What a call means while a function is being traced: the innermost trace decides.

A federated trace binds every operation to a symbol.  Traces nest, and an inner one may use the
values of those around it; their names never clash because a trace is named apart from all its
ancestors.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeAlias, TypeVar

from tffc.errors import ContextError, Span
from tffc.frontend.source import user_span
from tffc.ir.nodes import Binding, Block, Lambda, Node, Reference
from tffc.ir.types import Type

P = ParamSpec("P")
T = TypeVar("T")


class FederatedContext(abc.ABC):
    """The trace of one federated computation: its name, its parent and what it bound so far.

    `captured` is the innermost enclosing trace whose values this one uses.  What Python's own
    syntax means for values, calling and adding them, is for subclasses to say.
    """

    def __init__(self, name: str, parent: FederatedContext | None) -> None:
        self.parent = parent
        self.depth = 0 if parent is None else parent.depth + 1
        self.name = self._name_apart(name)
        self.bindings: list[Binding] = []
        self.captured: FederatedContext | None = None

    def _name_apart(self, name: str) -> str:
        taken: set[str] = set()
        ancestor = self.parent
        while ancestor is not None:
            taken.add(ancestor.name)
            ancestor = ancestor.parent
        apart, count = name, 0
        while apart in taken:
            count += 1
            apart = f"{name}_{count}"
        return apart

    def __deepcopy__(self, copied: dict[int, object]) -> FederatedContext:
        """Return itself: a copy of a value belongs to the trace of the value."""
        return self

    @property
    def parameter_name(self) -> str:
        return f"{self.name}_arg"

    def is_within(self, scope: FederatedContext | None) -> bool:
        """Return whether values of the trace `scope` may be used here; None stands for closed
        values."""
        here: FederatedContext | None = self
        while scope is not None and here is not None and here.depth > scope.depth:
            here = here.parent
        return scope is None or here is scope

    def capture(self, scope: FederatedContext | None) -> None:
        """Note that something of the trace `scope` is used here."""
        if scope is not self:
            self.captured = innermost(self.captured, scope)

    def bind(self, value: Node) -> Reference:
        """Bind `value` to the next symbol, with the user's line that asked for it."""
        name = f"fc_{self.name}_symbol_{len(self.bindings)}"
        self.bindings.append(Binding(name, value, user_span()))
        return Reference(name, value.type)

    @abc.abstractmethod
    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Bind the call of a function value."""

    @abc.abstractmethod
    def add(self, left: Any, right: Any) -> Any:
        """Bind the sum of two values of one type, element by element."""

    def close(self, parameter_type: Type | None, result: Node, span: Span | None) -> Lambda:
        """Return the traced function, once its result is known; `span` is where it is defined."""
        body = Block(tuple(self.bindings), result) if self.bindings else result
        name = None if parameter_type is None else self.parameter_name
        return Lambda(name, parameter_type, body, span)


class CompiledContext:
    """The trace of one section of another framework, "tensorflow" or "jax"."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


Context: TypeAlias = FederatedContext | CompiledContext

_current: ContextVar[Context | None] = ContextVar("tffc_trace", default=None)


def current() -> Context | None:
    """Return the innermost trace that is running, or None outside of all traces."""
    return _current.get()


def run_within(
    context: Context, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call `function` with `context` as the innermost trace; its parameters may have any name."""
    token = _current.set(context)
    try:
        return function(*args, **kwargs)
    finally:
        _current.reset(token)


def innermost(
    first: FederatedContext | None, second: FederatedContext | None
) -> FederatedContext | None:
    """Return the deeper of two traces of which one encloses the other; None encloses all."""
    if first is None or second is None:
        return first or second
    return first if first.depth >= second.depth else second


def federated_context(operator: str) -> FederatedContext:
    """Return the federated trace that `operator` is used in.

    Raises:
      ContextError: the innermost trace is not a federated one, or none is running.
    """
    context = current()
    if isinstance(context, FederatedContext):
        return context
    if context is None:
        found = "it is used outside of one"
    else:
        found = f"it is used inside a {context.kind}.computation"
    raise ContextError(
        "E430",
        f"{operator} can be used in a federated computation only, but {found}",
        help="call it from a function decorated with @tff.federated_computation",
    )
