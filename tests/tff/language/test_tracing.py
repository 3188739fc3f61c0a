"""Spans of `federated_language.framework` reach the providers, nested as they are run."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tffc.tff.federated_language import tracing


class Listener(tracing.TracingProvider):
    """Lists what it learns."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def span(  # the package's signature
        self,
        scope: str,
        sub_scope: str,
        nonce: int,
        parent_span_yield: Any,
        fn_args: Any,
        fn_kwargs: Any,
        trace_opts: Any,
    ) -> Generator[str, Any, None]:
        self.lines.append(
            f"{parent_span_yield} > {scope}.{sub_scope} {fn_args} {fn_kwargs} {trace_opts}"
        )
        result = yield sub_scope
        end = vars(result).get("value", type(result).__name__)
        self.lines.append(f"{sub_scope}: {end}")

    def wrap_rpc(self, parent_span_yield: Any) -> contextlib.AbstractContextManager[None]:
        self.lines.append(f"call from {parent_span_yield}")
        return contextlib.nullcontext()


@pytest.fixture
def lines() -> Iterator[list[str]]:
    listener = Listener()
    tracing.set_tracing_providers([listener])
    yield listener.lines
    tracing.set_tracing_providers([tracing.LoggingTracingProvider()])


@tracing.trace(label="adds")
def add(x: int, y: int = 1) -> int:
    with tracing.span("part", "inner", deep=True):
        return x + y


class Model:
    @tracing.trace
    async def predict(self) -> int:
        await asyncio.sleep(0)
        return add(1, y=3)

    @staticmethod
    @tracing.trace
    def fail() -> None:
        raise ValueError("the model failed")


def test_functions_and_blocks(lines: list[str]) -> None:
    assert add(1, y=2) == 3
    assert lines == [
        f"None > {__name__}.add (1,) {{'y': 2}} {{'label': 'adds'}}",
        "add > part.inner None None {'deep': True}",
        "inner: TracedSpan",
        "add: 3",
    ]


def test_a_coroutine(lines: list[str]) -> None:
    assert asyncio.run(Model().predict()) == 4
    assert lines[0].startswith("None > Model.predict (")
    assert lines[1].startswith("predict > ")
    assert lines[-1] == "predict: 4"


def test_a_failure_ends_the_span(lines: list[str]) -> None:
    with pytest.raises(ValueError, match="the model failed"), tracing.span("outer", "outer"):
        Model.fail()
    with tracing.span("next", "next"):
        pass
    assert lines[2:] == [
        "fail: TracedFunctionThrew",
        "outer: TracedSpan",
        "None > next.next None None {}",
        "next: TracedSpan",
    ]


def test_tasks_and_threads_are_outside_unless_asked_for(lines: list[str]) -> None:
    async def child(name: str) -> None:
        with tracing.span("child", name):
            await asyncio.sleep(0)

    async def parent() -> None:
        with tracing.span("parent", "parent"):
            await asyncio.create_task(child("alone"))
            await asyncio.create_task(
                tracing.wrap_coroutine_in_current_trace_context(child("within"))
            )
            loop = asyncio.get_running_loop()
            factory: Any = tracing.propagate_trace_context_task_factory
            loop.set_task_factory(factory)
            await asyncio.create_task(child("made"))
            thread = threading.Thread(target=add, args=(1,))
            thread.start()
            thread.join()

    asyncio.run(parent())
    begun = [line.split(" ")[0] for line in lines if " > " in line]
    assert begun == ["None", "None", "parent", "parent", "None", "add"]


def test_calls_of_other_processes(lines: list[str]) -> None:
    with tracing.span("outer", "outer"), tracing.wrap_rpc_in_trace_context():
        pass
    assert lines[1] == "call from outer"
