"""Spans of time in a program, reported to providers: functions and blocks that programs name.

Each thread, and each task of asyncio, is in spans of its own; a task starts outside of all, unless
`propagate_trace_context_task_factory` makes it.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import functools
import inspect
import logging
import random
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Generator, Sequence
from types import TracebackType
from typing import Any, TypeAlias

logger = logging.getLogger("absl")
"""Where the spans are reported unless a program says otherwise, as those of `federated_language`
are."""


class TracedSpan:
    """The end of a span."""


class TracedFunctionReturned(TracedSpan):
    """The end of a function's span: it returned a value."""

    def __init__(self, value: object) -> None:
        self.value = value


class TracedFunctionThrew(TracedSpan):
    """The end of a function's span: it raised an error."""

    def __init__(
        self,
        error_type: type[BaseException] | None,
        error_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.error_type, self.error_value, self.traceback = error_type, error_value, traceback


TraceResult: TypeAlias = TracedSpan | TracedFunctionReturned | TracedFunctionThrew
"""How a span ended."""


class TracingProvider(abc.ABC):
    """Learns of spans."""

    @abc.abstractmethod
    def span(
        self,
        scope: str,
        sub_scope: str,
        nonce: int,
        parent_span_yield: Any,
        fn_args: tuple[object, ...] | None,
        fn_kwargs: dict[str, object] | None,
        trace_opts: dict[str, object],
    ) -> Generator[Any, TraceResult, None]:
        """Yield once, when the span has begun, what spans in it get as `parent_span_yield`; the
        yield gives its `TraceResult`.

        `nonce` is a number by which reports of one span can be matched.
        """

    def wrap_rpc(self, parent_span_yield: Any) -> contextlib.AbstractContextManager[None]:
        """Return a context manager around a call to another process."""
        return contextlib.nullcontext()

    def receive_rpc(self) -> Any:
        """Return what a process that was called has in place of `parent_span_yield`."""
        return None


class LoggingTracingProvider(TracingProvider):
    """Writes the begin and the end of each span to the log."""

    def span(
        self,
        scope: str,
        sub_scope: str,
        nonce: int,
        parent_span_yield: None,
        fn_args: tuple[object, ...] | None,
        fn_kwargs: dict[str, object] | None,
        trace_opts: dict[str, object],
    ) -> Generator[None, TraceResult, None]:
        began = time.monotonic()
        logger.debug("(%s) Entering %s.%s", nonce, scope, sub_scope)
        yield None
        seconds = time.monotonic() - began
        logger.debug("(%s) Exiting %s.%s. Elapsed time %f", nonce, scope, sub_scope, seconds)


class _Tracing:
    """The providers, and the spans in which each thread and task is: what providers yielded."""

    def __init__(self) -> None:
        self.providers: tuple[TracingProvider, ...] = (LoggingTracingProvider(),)
        self._of_thread = threading.local()
        self._of_task: weakref.WeakKeyDictionary[asyncio.Task[Any], tuple[Any, ...]] = (
            weakref.WeakKeyDictionary()
        )

    @property
    def around(self) -> tuple[Any, ...]:
        """What the providers yielded for the innermost span of this thread or task."""
        task = _task()
        none = (None,) * len(self.providers)
        spans = getattr(self._of_thread, "spans", none)
        spans = spans if task is None else self._of_task.get(task, none)
        return spans if len(spans) == len(none) else none

    @around.setter
    def around(self, spans: tuple[Any, ...]) -> None:
        task = _task()
        if task is None:
            self._of_thread.spans = spans
        else:
            self._of_task[task] = spans


_tracing = _Tracing()


def _task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        return None


def set_tracing_providers(tracing_providers: Sequence[TracingProvider]) -> None:
    """Report spans to these providers from now on, in place of those before."""
    _tracing.providers = tuple(tracing_providers)
    _tracing.around = (None,) * len(_tracing.providers)


class _Ending:
    """How the span of a `with` block ends, if it is that of a function."""

    def __init__(self) -> None:
        self.result: TraceResult = TracedSpan()


@contextlib.contextmanager
def _span(
    scope: str,
    sub_scope: str,
    opts: dict[str, object],
    args: tuple[object, ...] | None = None,
    kwargs: dict[str, object] | None = None,
) -> Generator[_Ending]:
    outer, nonce, ending = _tracing.around, random.getrandbits(31), _Ending()
    spans = [
        provider.span(scope, sub_scope, nonce, parent, args, kwargs, opts)
        for provider, parent in zip(_tracing.providers, outer, strict=True)
    ]
    _tracing.around = tuple(map(next, spans))
    try:
        yield ending
    except BaseException:
        if args is not None:
            ending.result = TracedFunctionThrew(*sys.exc_info())
        raise
    finally:
        _tracing.around = outer
        for span in spans:
            with contextlib.suppress(StopIteration):
                span.send(ending.result)


def span(
    scope: str, sub_scope: str, **trace_opts: object
) -> contextlib.AbstractContextManager[object]:
    """Return a context manager of a span; providers read the options that they know."""
    return _span(scope, sub_scope, trace_opts)


def trace(fn: Callable[..., Any] | None = None, **trace_kwargs: object) -> Any:
    """Decorate a function or coroutine function: each call is a span.

    Its scope is the function's class, or module; providers read the options that they know.
    """
    if fn is None:
        return functools.partial(trace, **trace_kwargs)
    names = fn.__qualname__.split(".")
    scope, sub_scope = (names[-2] if len(names) > 1 else fn.__module__), names[-1]

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _span(scope, sub_scope, trace_kwargs, args, kwargs) as ending:
            value = fn(*args, **kwargs)
            ending.result = TracedFunctionReturned(value)
            return value

    @functools.wraps(fn)
    async def await_call(*args: Any, **kwargs: Any) -> Any:
        with _span(scope, sub_scope, trace_kwargs, args, kwargs) as ending:
            value = await fn(*args, **kwargs)
            ending.result = TracedFunctionReturned(value)
            return value

    return await_call if inspect.iscoroutinefunction(fn) else call


async def _run_within(spans: tuple[Any, ...], coro: Coroutine[Any, Any, Any]) -> Any:
    _tracing.around = spans
    return await coro


def wrap_coroutine_in_current_trace_context(
    coro: Coroutine[Any, Any, Any],
) -> Coroutine[Any, Any, Any]:
    """Return a coroutine that runs another one in the spans of the caller."""
    return _run_within(_tracing.around, coro)


def propagate_trace_context_task_factory(
    loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any]
) -> asyncio.Task[Any]:
    """Return a task that runs a coroutine in the spans of the caller.

    It is for `loop.set_task_factory`.
    """
    return asyncio.Task(wrap_coroutine_in_current_trace_context(coro), loop=loop)


@contextlib.contextmanager
def wrap_rpc_in_trace_context() -> Generator[None]:
    """Let the providers prepare a call to another process in a `with` block."""
    with contextlib.ExitStack() as stack:
        for provider, parent in zip(_tracing.providers, _tracing.around, strict=True):
            stack.enter_context(provider.wrap_rpc(parent))
        yield
