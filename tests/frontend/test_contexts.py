"""What runs computations: the default context, those that are installed, and a user's own."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import inspect
import threading
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from absl.testing import parameterized

import tffc as tff
from tests.refusals import error_without_place
from tffc.frontend.execution import context_stack

native: Any = tff.backends.native
stack = context_stack
fc = tff.federated_computation

count = fc(lambda: tff.federated_sum(tff.federated_value(1, tff.CLIENTS)))
total = fc(tff.federated_sum, tff.types.at_clients(np.int32))
total_of_one = fc(tff.federated_sum, tff.types.at_clients(np.int32, all_equal=True))
both = fc(
    lambda x, s: (tff.federated_sum(x), tff.federated_sum(tff.federated_broadcast(s))),
    tff.types.at_clients(np.int32),
    tff.types.at_server(np.int32),
)


@pytest.fixture(autouse=True)
def default() -> Iterator[None]:
    before = stack.current
    yield
    stack.set_default_context(before)


def test_there_are_no_clients_unless_told() -> None:
    assert count() == 0


@pytest.mark.parametrize("package", ["native", "test"])
def test_how_many_clients_there_are_by_default(package: str) -> None:
    module = getattr(tff.backends, package)
    kind = "local" if package == "native" else "test"
    getattr(module, f"set_sync_{kind}_cpp_execution_context")(default_num_clients=3)
    assert count() == 3
    assert total_of_one(5) == 15
    assert fc(lambda: tff.federated_eval(fc(lambda: 1), tff.CLIENTS))() == [1, 1, 1]


def test_arguments_tell_first() -> None:
    native.set_sync_local_cpp_execution_context(default_num_clients=3)
    assert total([1, 2]) == 3
    assert total([]) == 0
    assert both([1, 2], 5) == (3, 10)
    assert both([], 5) == (0, 0)


def test_the_name_of_long_ago() -> None:
    tff.backends.reference.set_reference_context()
    assert total([1, 2]) == 3


def test_the_innermost_context_runs_computations() -> None:
    assert tff.framework.get_context_stack() is stack
    five = native.create_sync_local_cpp_execution_context(default_num_clients=5)
    with stack.install(five):
        assert stack.current is five
        assert count() == 5
        with stack.install(native.create_sync_local_cpp_execution_context(default_num_clients=7)):
            assert count() == 7
        assert count() == 5
    assert count() == 0
    tff.framework.set_default_context(five)
    assert count() == 5


def test_a_thread_has_the_default() -> None:
    native.set_sync_local_cpp_execution_context(default_num_clients=2)
    found: list[int] = []
    with stack.install(native.create_sync_local_cpp_execution_context(default_num_clients=9)):
        thread = threading.Thread(target=lambda: found.append(count()))
        thread.start()
        thread.join()
    assert found == [2]


def test_calls_in_an_async_context_are_awaited() -> None:
    native.set_async_local_cpp_execution_context(default_num_clients=4)
    assert isinstance(stack.current, tff.framework.AsyncContext)
    first = count()
    assert inspect.iscoroutine(first)

    async def several() -> list[Any]:
        return await asyncio.gather(first, total([1, 2, 3]), count())

    assert asyncio.run(several()) == [4, 6, 4]


def test_a_process_in_an_async_context() -> None:
    process = tff.templates.IterativeProcess(
        fc(lambda: tff.federated_value(0, tff.SERVER)),
        fc(
            lambda s, x: (tff.federated_sum(x), s),
            tff.types.at_server(np.int32),
            tff.types.at_clients(np.int32),
        ),
    )

    async def two_rounds() -> Any:
        state = await process.initialize()
        state, _ = await process.next(state, [1, 2])
        return await process.next(state, [3])

    with stack.install(native.create_async_local_cpp_execution_context()):
        assert asyncio.run(two_rounds()) == (3, 3)


class Telling(tff.framework.SyncContext):
    def invoke(self, comp: Any, arg: Any) -> Any:
        return str(comp.type_signature), arg


def test_a_context_of_ones_own() -> None:
    with stack.install(Telling()):
        assert count() == ("( -> int32@SERVER)", None)
        assert total([1, 2]) == ("({int32}@CLIENTS -> int32@SERVER)", [1, 2])
        given = tff.structure.Struct([("x", [1]), ("s", 5)])
        assert both([1], s=5)[1] == given
        poly = fc(lambda x: x)
        assert poly(2)[0] == "(<int32> -> int32)"
        # What is traced meanwhile is not run.
        assert str(fc(lambda: count()).type_signature) == "( -> int32@SERVER)"


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no context": (
        lambda: tff.framework.set_default_context(3),  # type: ignore[arg-type]  # wrong on purpose
        TypeError,
        "expected a context that runs computations, but found an object of class 'int' [E714]\n"
        "  help: make one with tff.backends.native.create_sync_local_cpp_execution_context(), or "
        "of a class derived from tff.framework.SyncContext or AsyncContext",
    ),
    "no context to install": (
        lambda: stack.install(None),  # type: ignore[arg-type]  # wrong on purpose
        TypeError,
        "expected a context that runs computations, but found None [E714]\n"
        "  help: make one with tff.backends.native.create_sync_local_cpp_execution_context(), or "
        "of a class derived from tff.framework.SyncContext or AsyncContext",
    ),
    "fewer than no clients": (
        lambda: native.create_sync_local_cpp_execution_context(default_num_clients=-1),
        ValueError,
        "default_num_clients is -1, expected a count of clients, 0 or more [E706]",
    ),
    "a name": (
        lambda: native.set_async_local_cpp_execution_context(default_num_clients="3"),
        ValueError,
        "default_num_clients is '3', expected a count of clients, 0 or more [E706]",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    make, kind, text = REFUSED[case]
    assert str(error_without_place(kind, make)) == text


def test_no_context_at_all() -> None:
    tff.test.set_no_default_context()
    assert str(error_without_place(RuntimeError, count)) == (
        "a computation was called, but no context is there to run it [E715]\n"
        "  help: set one: tff.backends.native.set_sync_local_cpp_execution_context()"
    )
    with stack.install(native.create_sync_local_cpp_execution_context(default_num_clients=1)):
        assert count() == 1
        with stack.install(tff.test.create_runtime_error_context()):
            error_without_place(RuntimeError, count)


def clients(number: int) -> Callable[[], Any]:
    return lambda: native.create_sync_local_cpp_execution_context(default_num_clients=number)


def awaited(number: int) -> Callable[[], Any]:
    return lambda: native.create_async_local_cpp_execution_context(default_num_clients=number)


def test_tests_run_in_contexts() -> None:
    log: list[Any] = []

    @contextlib.contextmanager
    def environment() -> Iterator[None]:
        log.append("in")
        yield
        log.append("out")

    class Sync(parameterized.TestCase):
        @tff.test.with_context(clients(3))
        def test_one(self) -> None:
            log.append(("one", count()))

        @tff.test.with_contexts(("x", clients(4)), ("y", clients(5), lambda: [environment()]))
        def test_two(self) -> None:
            log.append(("two", count()))

    class Async(  # pyright: ignore[reportIncompatibleMethodOverride]  # as in unittest and absl
        parameterized.TestCase, unittest.IsolatedAsyncioTestCase
    ):
        @tff.test.with_context(awaited(6))
        async def test_one(self) -> None:
            log.append(("one", await count()))

        @tff.test.with_contexts(("x", awaited(7)))
        async def test_two(self) -> None:
            log.append(("two", await count()))

    suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, (Sync, Async)))
    result = unittest.TestResult()
    suite.run(result)
    assert (result.testsRun, result.errors, result.failures) == (5, [], [])
    assert log == [
        ("one", 3),
        ("two", 4),
        "in",
        ("two", 5),
        "out",
        ("one", 6),
        ("two", 7),
    ]


def test_assertions_about_types() -> None:
    known, unknown = tff.TensorType(np.int32, [3]), tff.TensorType(np.int32, [None])
    plain = tff.to_type([("a", np.int32)])
    contained = tff.to_type(collections.OrderedDict(a=np.int32))
    tff.test.assert_type_assignable_from(unknown, known)
    tff.test.assert_types_equivalent(plain, contained)
    tff.test.assert_types_identical(known, known)
    with pytest.raises(AssertionError, match="not assignable"):
        tff.test.assert_type_assignable_from(known, unknown)
    with pytest.raises(AssertionError, match="not equivalent"):
        tff.test.assert_types_equivalent(known, unknown)
    with pytest.raises(AssertionError, match="not identical"):
        tff.test.assert_types_identical(plain, contained)


@pytest.mark.tensorflow
def test_the_test_case_of_long_ago() -> None:
    class Old(tff.test.TestCase):
        def test_one(self) -> None:
            self.assertAllEqual([1, 2], np.array([1, 2]))
            self.assert_types_identical(tff.to_type(np.int32), tff.to_type(np.int32))

        def test_two(self) -> None:
            self.assert_types_identical(tff.to_type(np.int32), tff.to_type(np.int64))

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Old).run(result)
    assert [str(test).split()[0] for test, _ in result.failures] == ["test_two"]
    assert result.errors == []
    assert callable(tff.test.main)
    with pytest.raises(AttributeError, match="no attribute 'Case'"):
        _ = tff.test.Case
