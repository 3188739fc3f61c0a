"""The names of TFF's `backends.native`: contexts that run computations on this machine.

They run in tffc's interpreter, one after another.  `default_num_clients` is the number of clients
if no argument of a computation determines it.  The other arguments are for TFF's own runtime, and
have no effect here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tffc.backends.forms.mergeable_parts import ARGUMENT, MERGED
from tffc.backends.mergeable_programs import compile_mergeable
from tffc.frontend.computation import Computation
from tffc.frontend.execution import (
    AsyncContext,
    AsyncExecutionContext,
    SyncExecutionContext,
    set_default_context,
)
from tffc.language.type_parts import leaves
from tffc.language.types import CLIENTS, FederatedType, FunctionType, StructType
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError
from tffc.tff.mergeable import MergeableCompExecutionContext, MergeableCompForm

KNOWN = 64
"""The number of compiled computations that a context holds."""


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

    It compiles computations that take values of clients to one, and runs all others in the first of
    `async_contexts`.
    """
    return MergeableCompExecutionContext(
        async_contexts, compiler_fn=_Compiler(), num_subrounds=num_subrounds
    )


def set_mergeable_comp_execution_context(
    async_contexts: Sequence[AsyncContext], num_subrounds: int | None = None
) -> None:
    """Make a context of `create_mergeable_comp_execution_context` the default."""
    set_default_context(create_mergeable_comp_execution_context(async_contexts, num_subrounds))


@entry_point
def compile_to_mergeable_comp_form(comp: Any) -> MergeableCompForm:
    """Return the three computations that run a computation on groups of clients.

    It may be of any type, if it aggregates nothing that depends on an aggregation.

    Raises:
      FormError: it aggregates what depends on an aggregation, or draws or does once what each group
        would do again.
      LanguageTypeError: it is no computation.
    """
    if not isinstance(comp, Computation):
        raise LanguageTypeError(
            "E417",
            f"expected a computation, found {comp!r}",
            help="decorate the function with tff.federated_computation and the types of its "
            "parameters",
        )
    parts = compile_mergeable(comp.to_building_block())
    takes, gives = comp.type_signature.parameter, comp.type_signature.result
    partial = parts.up_to_merge.type.result
    last = partial if takes is None else StructType([(ARGUMENT, takes), (MERGED, partial)])
    types = FunctionType(takes, partial), parts.merge.type, FunctionType(last, gives)
    up_to_merge, merge, after_merge = (
        Computation(node, type, allow_effects=comp.allow_effects)
        for node, type in zip(parts, types, strict=True)
    )
    return MergeableCompForm(up_to_merge=up_to_merge, merge=merge, after_merge=after_merge)


class _Compiler:
    """Compiles the computations that take values of clients, each once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Computation, MergeableCompForm]] = {}

    def __call__(self, comp: Computation) -> Computation | MergeableCompForm:
        """Return the form of a computation, or the computation if no groups can be made."""
        parameter = comp.type_signature.parameter
        parts = () if parameter is None else leaves(parameter)
        if not any(isinstance(p, FederatedType) and p.placement is CLIENTS for p in parts):
            return comp
        if id(comp) not in self._known:
            if len(self._known) == KNOWN:
                del self._known[next(iter(self._known))]
            # The computation is held, so that no other one gets its number.
            self._known[id(comp)] = comp, compile_to_mergeable_comp_form(comp)
        return self._known[id(comp)][1]


def transform_to_native_form(
    comp: Computation, transform_math_to_tf: bool = False, grappler_config: Any = None
) -> Computation:
    """Return the computation unchanged: the contexts of this module run all computations."""
    return comp


def desugar_and_transform_to_native(comp: Computation) -> Computation:
    """Return the computation unchanged: the contexts of this module run all computations."""
    return comp
