"""Mergeable computations, which run on groups of clients, and a context that runs them.

up_to_merge  (T -> U@SERVER)             runs once for each group of clients
merge        (<U,U> -> U)                merges the results of two groups
after_merge  (<T,U@SERVER> -> R)         runs on the merged result; (U@SERVER -> R) without T
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tffc.frontend.computation import Computation
from tffc.frontend.execution import AsyncContext, SyncContext
from tffc.language.containers.struct import Struct
from tffc.language.types import CLIENTS, SERVER, FederatedType, FunctionType, StructType, Type
from tffc.runtime.user_code.source import entry_point
from tffc.support.errors import LanguageTypeError, LanguageValueError
from tffc.support.guards import is_dict
from tffc.support.trampoline import Task, run

T = TypeVar("T")


class UpToMergeTypeError(LanguageTypeError):
    """The result of `up_to_merge` is not a single value at the server."""


class MergeTypeNotAssignableError(LanguageTypeError):
    """`merge` does not combine two results of `up_to_merge` into one."""


class MergeableCompForm:
    """A computation in three parts; see the module's docstring."""

    @entry_point
    def __init__(
        self, *, up_to_merge: Computation, merge: Computation, after_merge: Computation
    ) -> None:
        """Check that the three parts fit.

        Raises:
          UpToMergeTypeError: the result of `up_to_merge` is not a single value at the server.
          MergeTypeNotAssignableError: `merge` is not of type `(<U,U> -> U)`.
          TypeNotAssignableError: `after_merge` does not take what it is given.
        """
        before, partial = up_to_merge.type_signature.parameter, up_to_merge.type_signature.result
        if not isinstance(partial, FederatedType) or partial.placement is not SERVER:
            raise UpToMergeTypeError(
                "E724", f"up_to_merge must give one value at the server, but gives `{partial}`"
            )
        _check_merge(merge.type_signature, partial.member)
        taken = partial if before is None else StructType([before, partial])
        parameter = after_merge.type_signature.parameter
        if parameter is None:
            raise LanguageTypeError(
                "E724", f"after_merge must take `{taken}`, but takes no argument"
            )
        parameter.check_assignable_from(taken)
        self.up_to_merge, self.merge, self.after_merge = up_to_merge, merge, after_merge


def _check_merge(signature: FunctionType, partial: Type) -> None:
    pair = StructType([partial, partial])
    takes = signature.parameter is not None and signature.parameter.is_assignable_from(pair)
    if not takes or not partial.is_assignable_from(signature.result):
        raise MergeTypeNotAssignableError(
            "E724", f"merge must be of type `{FunctionType(pair, partial)}`, but is `{signature}`"
        )


def _unchanged(value: T) -> T:
    return value


class MergeableCompExecutionContext(SyncContext):
    """Runs mergeable computations, with the groups of clients distributed over several contexts.

    Clients' values in the result are in the order of the clients.
    """

    def __init__(
        self,
        async_contexts: Sequence[AsyncContext],
        compiler_fn: Callable[[Any], Any] | None = None,
        transform_args: Callable[[Any], Any] | None = None,
        transform_result: Callable[[Any], Any] | None = None,
        num_subrounds: int | None = None,
    ) -> None:
        """Take the contexts, and the compiler that makes a mergeable form of a computation.

        If `compiler_fn` returns a computation, it runs whole.  There are `num_subrounds` groups, by
        default one for each context, and never more than clients.
        """
        self._contexts = list(async_contexts)
        self._compile = compiler_fn
        self._transform_args = transform_args or _unchanged
        self._transform_result = transform_result or _unchanged
        self._groups = num_subrounds or len(self._contexts)

    def invoke(self, comp: Any, arg: Any) -> Any:
        """Return the result of a mergeable form, or of a computation compiled to one.

        Raises:
          LanguageValueError: it is a computation, and there is no compiler.
        """
        form = comp
        if not isinstance(comp, MergeableCompForm):
            if self._compile is None:
                raise LanguageValueError(
                    "E715",
                    "a computation was called in a context that runs instances of "
                    "MergeableCompForm, without a compiler that makes one",
                    help="give the context a compiler_fn",
                )
            form = self._compile(comp)
        value = None if arg is None else self._transform_args(arg)
        return self._transform_result(_awaited(self._run(form, value)))

    async def _run(self, form: Any, arg: Any) -> Any:
        if not isinstance(form, MergeableCompForm):
            return await self._contexts[0].invoke(form, arg)
        parameter = form.up_to_merge.type_signature.parameter
        parts = [arg] if parameter is None else _groups(arg, parameter, self._groups)
        contexts = [self._contexts[i % len(self._contexts)] for i in range(len(parts))]
        calls = [c.invoke(form.up_to_merge, p) for c, p in zip(contexts, parts, strict=True)]
        partials = await asyncio.gather(*calls)
        merged = partials[0]
        for partial in partials[1:]:
            pair = Struct([(None, merged), (None, partial)])
            merged = await contexts[0].invoke(form.merge, pair)
        last = merged if parameter is None else Struct([(None, arg), (None, merged)])
        return await contexts[0].invoke(form.after_merge, last)


def _awaited(call: Coroutine[Any, Any, Any]) -> Any:
    """Return the result of a coroutine, also inside a running event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, call).result()


def _groups(arg: Any, parameter: Type, wanted: int) -> list[Any]:
    """Return the argument once for each group of clients, with the values of that group."""
    counts: list[int] = []
    run(_divided(arg, parameter, lambda values: counts.append(len(values)) or values))
    clients = max(counts, default=1)
    number = max(1, min(wanted, clients))
    return [
        run(_divided(arg, parameter, functools.partial(_group, i, number))) for i in range(number)
    ]


def _group(index: int, number: int, values: Sequence[Any]) -> Sequence[Any]:
    start, end = (len(values) * i // number for i in (index, index + 1))
    return values[start:end]


def _divided(value: Any, type: Type, divide: Callable[[Any], Any]) -> Task[Any]:
    """Return a value with `divide` applied to each list of clients' values in it."""
    if isinstance(type, FederatedType) and type.placement is CLIENTS and not type.all_equal:
        return divide(value)
    if not isinstance(type, StructType):
        return value
    parts: Iterable[Any] = value.values() if is_dict(value) else value
    elements: list[tuple[str | None, Any]] = []
    for name, part, inner in zip(type.names, parts, type.types, strict=True):
        elements.append((name, (yield _divided(part, inner, divide))))
    return Struct(elements)
