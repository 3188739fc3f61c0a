"""The names of TFF's module of this name: contexts that run computations on this machine.

They run in tffc's interpreter, one after another.  `default_num_clients` is how many clients there
are where no argument of a computation holds values of theirs.  TFF's other arguments say how its
own runtime shares out work, and change nothing here.
"""

from __future__ import annotations

from tffc.frontend.execution import (
    AsyncExecutionContext,
    SyncExecutionContext,
    set_default_context,
)


def create_sync_local_cpp_execution_context(
    default_num_clients: int = 0,
    max_concurrent_computation_calls: int = -1,
    stream_structs: bool = False,
) -> SyncExecutionContext:
    """Return a context that runs computations and gives what they give.

    Raises:
      LanguageValueError: `default_num_clients` is not a count.
    """
    return SyncExecutionContext(default_num_clients)


def set_sync_local_cpp_execution_context(
    default_num_clients: int = 0,
    max_concurrent_computation_calls: int = -1,
    stream_structs: bool = False,
) -> None:
    """Make the default of what `create_sync_local_cpp_execution_context` returns."""
    set_default_context(create_sync_local_cpp_execution_context(default_num_clients))


def create_async_local_cpp_execution_context(
    default_num_clients: int = 0,
    max_concurrent_computation_calls: int = -1,
    stream_structs: bool = False,
) -> AsyncExecutionContext:
    """Return a context in which calls give awaitables, each run in a thread of its own.

    Raises:
      LanguageValueError: `default_num_clients` is not a count.
    """
    return AsyncExecutionContext(default_num_clients)


def set_async_local_cpp_execution_context(
    default_num_clients: int = 0,
    max_concurrent_computation_calls: int = -1,
    stream_structs: bool = False,
) -> None:
    """Make the default of what `create_async_local_cpp_execution_context` returns."""
    set_default_context(create_async_local_cpp_execution_context(default_num_clients))
