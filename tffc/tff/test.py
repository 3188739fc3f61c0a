"""The module `tff.test`: contexts for tests, and assertions about types."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeAlias

from tffc.frontend.computation import Computation
from tffc.frontend.execution import ExecutionContext, context_stack
from tffc.frontend.execution import create_runtime_error_context as create_runtime_error_context
from tffc.frontend.execution import set_no_default_context as set_no_default_context
from tffc.frontend.hints import described
from tffc.language.intrinsics import Communication, definition_of
from tffc.language.nodes import Call, Intrinsic, Node
from tffc.language.traverse import contains, walk
from tffc.language.type_base import (
    TypeNotAssignableError,
    TypesNotEquivalentError,
    TypesNotIdenticalError,
)
from tffc.language.types import TensorType, Type
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import LanguageTypeError

MakeContext: TypeAlias = Callable[[], ExecutionContext]
MakeEnvironment: TypeAlias = Callable[[], Iterable[contextlib.AbstractContextManager[Any]]]


def assert_type_assignable_from(target_type: Type, source_type: Type) -> None:
    """Assert that a value of `source_type` can be used as one of `target_type`."""
    _assert(target_type.check_assignable_from, source_type, TypeNotAssignableError)


def assert_types_equivalent(first_type: Type, second_type: Type) -> None:
    """Assert that the two types are assignable to each other."""
    _assert(first_type.check_equivalent_to, second_type, TypesNotEquivalentError)


def assert_types_identical(first_type: Type, second_type: Type) -> None:
    """Assert that the types are the same, Python containers included."""
    _assert(first_type.check_identical_to, second_type, TypesNotIdenticalError)


def assert_contains_secure_aggregation(comp: Any) -> None:
    """Assert that a computation contains a secure aggregation of tensors."""
    _assert_some(comp, Communication.SECURE_AGGREGATION, "secure")


def assert_contains_unsecure_aggregation(comp: Any) -> None:
    """Assert that a computation contains an aggregation of tensors that is not secure."""
    _assert_some(comp, Communication.AGGREGATION, "unsecure")


def assert_not_contains_secure_aggregation(comp: Any) -> None:
    """Assert that a computation contains no secure aggregation of tensors."""
    _assert_none(comp, Communication.SECURE_AGGREGATION, "secure")


def assert_not_contains_unsecure_aggregation(comp: Any) -> None:
    """Assert that every aggregation of tensors in a computation is secure."""
    _assert_none(comp, Communication.AGGREGATION, "unsecure")


def _assert_some(comp: Any, communication: Communication, kind: str) -> None:
    __tracebackhide__ = True
    if not _aggregations(comp, communication):
        raise AssertionError(f"Expected {kind} aggregation, but none were found in: {comp.node}")


def _assert_none(comp: Any, communication: Communication, kind: str) -> None:
    __tracebackhide__ = True
    aggregations = _aggregations(comp, communication)
    if aggregations:
        calls = "".join(f"\n\t{call}" for call in aggregations)
        raise AssertionError(f"Expected no {kind} aggregations, found {len(aggregations)}:{calls}")


def _aggregations(comp: Any, communication: Communication) -> list[Node]:
    """Return the calls of aggregations in a computation, except those that move no tensors.

    Raises:
      LanguageTypeError: it is not a computation.
    """
    if not isinstance(comp, Computation):
        raise LanguageTypeError(
            "E173",
            f"expected a computation, found {described(comp)}",
            help="decorate the function with tff.federated_computation and the types of its "
            "parameters",
        )
    calls = (node for node in walk(comp.node) if isinstance(node, Call))
    return [call for call in calls if _is_of(call, communication)]


def _is_of(call: Call, communication: Communication) -> bool:
    definition = definition_of(call.function.uri) if isinstance(call.function, Intrinsic) else None
    if definition is None or definition.communication is not communication:
        return False
    return contains(call.type, TensorType)


def _assert(check: Callable[[Type], None], other: Type, refusal: type[LanguageTypeError]) -> None:
    __tracebackhide__ = True
    try:
        check(other)
    except refusal as error:
        raise AssertionError(str(error)) from None


def with_context(
    context_fn: MakeContext, environment_fn: MakeEnvironment | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a test to run in the context that `context_fn` makes for it.

    `environment_fn` returns context managers that are entered around that.
    """

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            with _around(context_fn, environment_fn):
                return test(*args, **kwargs)

        @functools.wraps(test)
        async def await_run(*args: Any, **kwargs: Any) -> Any:
            with _around(context_fn, environment_fn):
                return await test(*args, **kwargs)

        return await_run if inspect.iscoroutinefunction(test) else run

    return decorate


@contextlib.contextmanager
def _around(context_fn: MakeContext, environment_fn: MakeEnvironment | None) -> Generator[None]:
    with contextlib.ExitStack() as stack:
        for manager in environment_fn() if environment_fn is not None else ():
            stack.enter_context(manager)
        with context_stack.install(context_fn()):
            yield


def with_contexts(*named_contexts: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorate a test to run for each `(name, context_fn)` or `(name, context_fn, environment_fn)`.

    Its class has to derive from `absl.testing.parameterized.TestCase`.
    """
    parameterized = importlib.import_module("absl.testing.parameterized")

    def decorate(test: Callable[..., Any]) -> Any:
        def in_one(self: Any, *environment: Any) -> Any:
            return with_context(*environment)(test)(self)

        async def await_in_one(self: Any, *environment: Any) -> Any:
            return await in_one(self, *environment)

        run = await_in_one if inspect.iscoroutinefunction(test) else in_one
        run.__name__ = test.__name__
        return parameterized.named_parameters(*named_contexts)(run)

    return decorate


def __getattr__(name: str) -> Any:
    """Return the `TestCase` or `main` that TFF had before 0.50."""
    if name == "TestCase":
        return _test_case()
    if name == "main":
        return load_tensorflow().test.main
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _test_case() -> type:
    from absl.testing import parameterized

    bases = (parameterized.TestCase, load_tensorflow().test.TestCase)
    names = (name for name in globals() if name.startswith("assert"))
    return type("TestCase", bases, {name: staticmethod(globals()[name]) for name in names})
