"""Traces in progress.  The innermost one decides the meaning of a call.

A federated trace binds every operation to a symbol.  Traces nest, and an inner one may use values
of the outer ones; symbols never clash, because a trace's name differs from those of its ancestors.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeAlias, TypeVar

from tffc.language.nodes import Binding, Block, Lambda, Node, Reference
from tffc.language.types import Type
from tffc.runtime.user_code.source import building_span
from tffc.support.errors import ContextError, Span

P = ParamSpec("P")
T = TypeVar("T")


class FederatedContext(abc.ABC):
    """The trace of one federated computation: its name, its parent and its bindings so far.

    `captured` is the innermost enclosing trace whose values this one uses.  Subclasses define what
    Python's syntax means for values: calling and adding them.
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
        """Return itself: a copied value belongs to the same trace as the original."""
        return self

    @property
    def parameter_name(self) -> str:
        return f"{self.name}_arg"

    def is_within(self, scope: FederatedContext) -> bool:
        """Return whether values of the trace `scope` may be used here."""
        here: FederatedContext | None = self
        while here is not None and here.depth > scope.depth:
            here = here.parent
        return here is scope

    def capture(self, scope: FederatedContext | None) -> None:
        """Record that a value of the trace `scope` is used here."""
        if scope is not self:
            self.captured = innermost(self.captured, scope)

    def bind(self, value: Node) -> Reference:
        """Bind `value` to the next symbol, with the source line of the user's code that caused
        it."""
        name = f"fc_{self.name}_symbol_{len(self.bindings)}"
        self.bindings.append(Binding(name, value, building_span()))
        return Reference(name, value.type)

    @abc.abstractmethod
    def call(self, function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """Bind the call of a function value."""

    @abc.abstractmethod
    def add(self, left: object, right: object) -> Any:
        """Bind the sum of two values of one type, elementwise."""

    def close(self, parameter_type: Type | None, result: Node, span: Span | None) -> Lambda:
        """Return the traced function with this result; `span` is where it is defined."""
        body = Block(tuple(self.bindings), result) if self.bindings else result
        name = None if parameter_type is None else self.parameter_name
        return Lambda(name, parameter_type, body, span)


class CompiledContext:
    """The trace of a section of another framework, "tensorflow" or "jax"."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


Context: TypeAlias = FederatedContext | CompiledContext

_current: ContextVar[Context | None] = ContextVar("tffc_trace", default=None)


def current() -> Context | None:
    """Return the innermost running trace, or None outside of all traces."""
    return _current.get()


def run_within(
    context: Context, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call `function` with `context` as the innermost trace, passing on any other arguments."""
    with within(context):
        return function(*args, **kwargs)


@contextlib.contextmanager
def within(context: Context) -> Generator[Context]:
    """Make `context` the innermost trace in a `with` block."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


def innermost(
    first: FederatedContext | None, second: FederatedContext | None
) -> FederatedContext | None:
    """Return the inner one of two nested traces; None counts as the outermost."""
    if first is None or second is None:
        return first or second
    return first if first.depth >= second.depth else second


def federated_context(operator: str) -> FederatedContext:
    """Return the innermost trace, which must be a federated one because `operator` is used in it.

    Raises:
      ContextError: the innermost trace is not a federated one, or none is running.
    """
    context = current()
    if isinstance(context, FederatedContext):
        return context
    if context is None:
        place = "it is used outside of one"
    else:
        place = f"it is used inside a {context.kind}.computation"
    raise ContextError(
        "E430",
        f"{operator} can be used in a federated computation only, but {place}",
        help="call it from a function decorated with @tff.federated_computation",
    )
