"""The names of TFF's `backends.native`: contexts that run computations on this machine.

They run in tffc's interpreter, one after another.  `default_num_clients` is the number of clients
if no argument of a computation determines it.  The other arguments are for TFF's own runtime, and
have no effect here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tffc.frontend.computation import Computation
from tffc.frontend.execution import (
    AsyncContext,
    AsyncExecutionContext,
    SyncExecutionContext,
    set_default_context,
)
from tffc.tff.mergeable import MergeableCompExecutionContext


def create_sync_local_cpp_execution_context(
    default_num_clients: int = 0,
    max_concurrent_computation_calls: int = -1,
    stream_structs: bool = False,
) -> SyncExecutionContext:
    """Return a context in which calls return the results of computations.

    Raises:
      LanguageValueError: `default_num_clients` is not a count.
    """
    return SyncExecutionContext(default_num_clients)


def set_sync_local_cpp_execution_context(
    default_num_clients: int = 0,
    max_concurrent_computation_calls: int = -1,
    stream_structs: bool = False,
) -> None:
    """Make a context of `create_sync_local_cpp_execution_context` the default."""
    set_default_context(create_sync_local_cpp_execution_context(default_num_clients))


def create_async_local_cpp_execution_context(
    default_num_clients: int = 0,
    max_concurrent_computation_calls: int = -1,
    stream_structs: bool = False,
) -> AsyncExecutionContext:
    """Return a context in which calls return awaitables, and each runs in a separate thread.

    Raises:
      LanguageValueError: `default_num_clients` is not a count.
    """
    return AsyncExecutionContext(default_num_clients)


def set_async_local_cpp_execution_context(
    default_num_clients: int = 0,
    max_concurrent_computation_calls: int = -1,
    stream_structs: bool = False,
) -> None:
    """Make a context of `create_async_local_cpp_execution_context` the default."""
    set_default_context(create_async_local_cpp_execution_context(default_num_clients))


def create_mergeable_comp_execution_context(
    async_contexts: Sequence[AsyncContext], num_subrounds: int | None = None
) -> MergeableCompExecutionContext:
    """Return a context that runs each `MergeableCompForm` in groups of clients.

    It runs all other computations in the first of `async_contexts`.
    """
    return MergeableCompExecutionContext(
        async_contexts, compiler_fn=lambda comp: comp, num_subrounds=num_subrounds
    )


def set_mergeable_comp_execution_context(
    async_contexts: Sequence[AsyncContext], num_subrounds: int | None = None
) -> None:
    """Make a context of `create_mergeable_comp_execution_context` the default."""
    set_default_context(create_mergeable_comp_execution_context(async_contexts, num_subrounds))


def transform_to_native_form(
    comp: Computation, transform_math_to_tf: bool = False, grappler_config: Any = None
) -> Computation:
    """Return the computation unchanged: the contexts of this module run all computations."""
    return comp


def desugar_and_transform_to_native(comp: Computation) -> Computation:
    """Return the computation unchanged: the contexts of this module run all computations."""
    return comp
