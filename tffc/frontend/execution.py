"""Execution contexts, which run computations that are called outside of all traces.

The innermost installed context runs them, or the default one if none is installed.  Each thread and
each asyncio task has its own installed contexts; the default is shared.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any, NoReturn, Protocol, TypeAlias, cast

from tffc.frontend import context as contexts
from tffc.frontend.context import FederatedContext
from tffc.frontend.hints import described
from tffc.language.containers.struct import Struct
from tffc.language.nodes import Node
from tffc.language.types import FunctionType
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import ContextError, LanguageTypeError, LanguageValueError


class Invocable(Protocol):
    """The part of a computation that contexts use."""

    @property
    def node(self) -> Node: ...

    @property
    def type_signature(self) -> FunctionType: ...


Runner: TypeAlias = Callable[[Any, Any], Any]
"""Runs a computation with its one argument."""


class DeferredArgument(abc.ABC):
    """An argument that is made only when a computation that takes it runs."""

    @abc.abstractmethod
    def made(self, run: Runner) -> Any:
        """Return the value of the argument."""


class SyncContext(abc.ABC):
    """Runs computations and returns their results."""

    @abc.abstractmethod
    def invoke(self, comp: Any, arg: Any) -> Any:
        """Return the result of a computation for its one argument, which is None if it takes
        none."""


class AsyncContext(abc.ABC):
    """Runs computations and returns awaitables of their results."""

    @abc.abstractmethod
    async def invoke(self, comp: Any, arg: Any) -> Any:
        """Return the result of a computation for its one argument, which is None if it takes
        none."""


ExecutionContext: TypeAlias = SyncContext | AsyncContext


class _Interpreting:
    """Runs computations in the interpreter."""

    @entry_point
    def __init__(self, default_num_clients: int = 0) -> None:
        """Take the number of clients for computations whose arguments hold no values of clients.

        Raises:
          LanguageValueError: it is not a count.
        """
        count = cast("object", default_num_clients)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise LanguageValueError(
                "E706",
                f"default_num_clients is {count!r}, expected a count of clients, 0 or more",
            )
        self._clients = count


class SyncExecutionContext(_Interpreting, SyncContext):
    """Runs computations in the interpreter, one after another."""

    def invoke(self, comp: Invocable, arg: Any) -> Any:
        return _interpret(comp, arg, self._clients)


class AsyncExecutionContext(_Interpreting, AsyncContext):
    """Runs each computation in its own thread, so that the event loop is not blocked."""

    async def invoke(self, comp: Invocable, arg: Any) -> Any:
        return await asyncio.to_thread(_interpret, comp, arg, self._clients)


class RuntimeErrorContext(SyncContext):
    """Refuses to run anything."""

    def invoke(self, comp: Any, arg: Any) -> NoReturn:
        raise ContextError(
            "E715",
            "a computation was called, but no context is there to run it",
            help="set one: tff.backends.native.set_sync_local_cpp_execution_context()",
        )


def _interpret(comp: Invocable, arg: Any, clients: int) -> Any:
    from tffc.runtime.frameworks.tensorflow.datasets import make_dataset
    from tffc.runtime.interpreter import interpreter

    argument = _made(arg, lambda inner, value: _interpret(inner, value, clients))
    return interpreter.invoke(
        comp.node, comp.type_signature, argument, default_clients=clients, sequence=make_dataset
    )


def _made(arg: Any, run: Runner) -> Any:
    """Return an argument with deferred ones replaced by their values: itself, or elements of a
    struct."""
    if isinstance(arg, Struct):
        return Struct((name, _made(part, run)) for name, part in arg.items())
    return arg.made(run) if isinstance(arg, DeferredArgument) else arg


_installed: ContextVar[ExecutionContext | None] = ContextVar("tffc_context", default=None)


class ContextStack:
    """The installed contexts, and the default one below them."""

    def __init__(self, default_context: Any = None) -> None:
        self._default: ExecutionContext = default_context or SyncExecutionContext()

    @property
    def current(self) -> ExecutionContext:
        """The context that runs computations called now in this thread or task; in a federated
        computation, its trace."""
        trace = contexts.current()
        if isinstance(trace, FederatedContext):
            return trace  # type: ignore[return-value]  # it takes part in no run
        installed = _installed.get()
        return self._default if installed is None else installed

    @entry_point
    def install(self, ctx: Any) -> contextlib.AbstractContextManager[Any]:
        """Run computations called in a `with` block in `ctx`.

        Raises:
          LanguageTypeError: it is not a context.
        """
        if isinstance(ctx, FederatedContext):
            return contexts.within(ctx)
        return _installing(_checked_context(ctx))

    @entry_point
    def set_default_context(self, ctx: ExecutionContext) -> None:
        """Run computations in `ctx` when no other context is installed.

        Raises:
          LanguageTypeError: it is not a context.
        """
        self._default = _checked_context(ctx)


@contextlib.contextmanager
def _installing(ctx: ExecutionContext) -> Generator[ExecutionContext]:
    token = _installed.set(ctx)
    try:
        yield ctx
    finally:
        _installed.reset(token)


def _checked_context(ctx: Any) -> ExecutionContext:
    if not isinstance(ctx, (SyncContext, AsyncContext)):
        raise LanguageTypeError(
            "E714",
            f"expected a context that runs computations, but found {described(ctx)}",
            help="make one with tff.backends.native.create_sync_local_cpp_execution_context(), or "
            "of a class derived from tff.framework.SyncContext or AsyncContext",
        )
    return ctx


ContextStackImpl = ContextStack
"""TFF's name for the class of the process's one stack."""

context_stack = ContextStack()
"""The one stack of this process."""


def get_context_stack() -> ContextStack:
    """Return the one stack of this process."""
    return context_stack


def set_default_context(ctx: ExecutionContext) -> None:
    """Call `ContextStack.set_default_context` on the one stack of this process."""
    context_stack.set_default_context(ctx)


def create_runtime_error_context() -> RuntimeErrorContext:
    """Return a context that refuses to run anything."""
    return RuntimeErrorContext()


def set_no_default_context() -> None:
    """Refuse to run computations when no context is installed."""
    context_stack.set_default_context(RuntimeErrorContext())
