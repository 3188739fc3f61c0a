"""An actor of Ray, which computes shards and merges in a process that keeps its graphs.

See `tffc.runtime.engines.shards` for the results of calls.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.steps import RoundSteps
from tffc.deploy.demands import check_admitted
from tffc.deploy.ray.api import Ref, imported_ray
from tffc.language.values.resources import STORE
from tffc.runtime.data.source import ClientSource
from tffc.runtime.engines.contributions import Contributor
from tffc.runtime.engines.encoding import decode
from tffc.runtime.engines.groups import group_result, group_steps, joining
from tffc.runtime.engines.shards import (
    Batches,
    ClientWork,
    ShardResult,
    WindowPlanner,
    merge_pairwise,
    merged,
    run_shards,
)
from tffc.runtime.engines.shipment import load_bundle, source_from_bytes
from tffc.runtime.engines.showing import showing
from tffc.runtime.engines.speed import MERGE, SERVER, Stopwatch
from tffc.runtime.frameworks.tensorflow.load import use_threads
from tffc.support.errors import TffcError

KEPT = 4
"""The number of bundles, of rounds and of sources that stay loaded."""


P = ParamSpec("P")
T = TypeVar("T")


class RoundRefs(NamedTuple):
    """References to the parts of a round in Ray's object store: the bundle, the values that the
    server keeps and sends, and the source of clients' data.

    If `context` is bytes, these are the server's values themselves.
    """

    bundle: Ref
    context: bytes | Ref
    source: Ref


def _errors_as_results(work: Callable[P, bytes]) -> Callable[P, bytes]:
    """Let work return its error as a `ShardResult`: Ray would do the work again elsewhere."""

    @functools.wraps(work)
    def worked(*arguments: P.args, **options: P.kwargs) -> bytes:
        try:
            return work(*arguments, **options)
        except TffcError as error:
            return ShardResult(None, error=error).to_bytes()

    return worked


class Worker:
    """Computes shards and merges of any rounds.

    `folder` is the one that the driver's paths are relative to, and `threads` the number of threads
    in which TensorFlow computes an operation.
    """

    def __init__(self, folder: str, threads: int) -> None:
        use_threads(threads)
        if os.path.isdir(folder):
            os.chdir(folder)
        self._loaded: dict[str, object] = {}
        self._refs: RoundRefs | None = None

    def ping(self) -> None:
        """Return at once, to show that this worker is alive."""

    @_errors_as_results
    def run_shards(
        self,
        refs: RoundRefs,
        shards: Sequence[Sequence[bytes]],
        skip_bad: bool,
        batches: Batches | None,
    ) -> bytes:
        """Return the result of neighbouring shards, as bytes."""
        # Hold the references, because Ray has work whenever it gets or drops one.
        self._refs = refs
        _, steps = self._load(refs.bundle, _bundle)
        carried, sent = self._context(refs)
        source = self._load(refs.source, _source)
        names = [tuple(map(os.fsdecode, clients)) for clients in shards]
        stopwatch, plans = Stopwatch(), self._plans(refs, steps, batches)
        work = ClientWork(steps, source, carried, sent, skip_bad, plans.planner, stopwatch)
        windows = (plans.pieces(source, clients, stopwatch) for clients in names)
        result = run_shards(work, windows)
        return result._replace(times=stopwatch.times(), decisions=plans.news()).to_bytes()

    def _plans(self, refs: RoundRefs, steps: RoundSteps, batches: Batches | None) -> WindowPlanner:
        key = f"{refs.bundle.hex()} {batches}"
        if key not in self._loaded:
            self._keep(key, WindowPlanner(steps, batches))
        return cast("WindowPlanner", self._loaded[key])

    @_errors_as_results
    def merge(self, refs: RoundRefs, parts: Sequence[bytes]) -> bytes:
        """Return the merge of several accumulators; see `merged_bytes`."""
        _, steps = self._load(refs.bundle, _bundle)
        carried, _ = self._context(refs)
        return merged_bytes(steps, carried, parts)

    @_errors_as_results
    def conclude(self, refs: RoundRefs, totals: bytes) -> bytes:
        """Return the result of a group of clients, made of its accumulators, as a `ShardResult`."""
        _, steps = self._load(refs.bundle, _bundle)
        carried, _ = self._context(refs)
        stopwatch = Stopwatch()

        def concluded() -> ShardResult:
            with stopwatch.measure(SERVER), showing():
                return ShardResult(group_result(group_steps(steps), carried, decode(totals)))

        return _result_bytes(concluded, stopwatch)

    @_errors_as_results
    def join(self, refs: RoundRefs, parts: Sequence[bytes]) -> bytes:
        """Return the merged results of neighbouring groups, as a `ShardResult`."""
        _, steps = self._load(refs.bundle, _bundle)
        stopwatch = Stopwatch()

        def joined() -> ShardResult:
            with stopwatch.measure(MERGE), showing():
                return ShardResult(merge_pairwise(map(decode, parts), joining(steps)))

        return _result_bytes(joined, stopwatch)

    @_errors_as_results
    def contribute(self, refs: RoundRefs, client: bytes, skip_bad: bool) -> bytes:
        """Return what a client contributes to a buffered round, as a `ShardResult`."""
        self._refs = refs
        _, steps = self._load(refs.bundle, _bundle)
        source = self._load(refs.source, _source)
        carried, sent = self._context(refs)
        stopwatch = Stopwatch()
        name = os.fsdecode(client)

        def contribution() -> ShardResult:
            contributor = Contributor(
                group_steps(steps), source, carried, sent, skip_bad, stopwatch
            )
            partial = contributor.contribution(name)
            return ShardResult(partial, skipped=() if partial is not None else (name,))

        return _result_bytes(contribution, stopwatch)

    def _context(self, refs: RoundRefs) -> tuple[object, object]:
        """Return the values that the server keeps and sends."""
        if isinstance(refs.context, bytes):
            return decode(refs.context)
        return self._load(refs.context, decode)

    def _load(self, ref: Ref, load: Callable[[Any], T]) -> T:
        """Return what `load` makes of an object in the store; recent results are kept."""
        key = ref.hex()
        if key in self._loaded:
            # A reference is always loaded by the same function.
            result = cast("T", self._loaded.pop(key))
        else:
            result = load(imported_ray().get(ref))
        self._keep(key, result)
        return result

    def _keep(self, key: str, value: object) -> None:
        """Keep a value as the most recently used one, and drop the oldest if there are too many."""
        while len(self._loaded) >= 3 * KEPT:
            del self._loaded[next(iter(self._loaded))]
        self._loaded[key] = value


def _bundle(shipped: tuple[bytes, Mapping[str, Ref]]) -> tuple[Bundle, RoundSteps]:
    """Return a bundle, with its steps; its resources stay in the object store."""
    content, resources = shipped
    for digest, ref in resources.items():
        STORE.add_source(digest, "Ray's object store", functools.partial(_stored, ref))
    bundle, steps = load_bundle(content)
    check_admitted(bundle, "the bundle that the driver sent", are_masked=False)
    return bundle, steps


def _stored(ref: Ref) -> Any:
    return imported_ray().get(ref)


def _source(data: bytes) -> ClientSource:
    return source_from_bytes(data)


@_errors_as_results
def merged_bytes(steps: RoundSteps, carried: object, parts: Sequence[bytes]) -> bytes:
    """Return the `ShardResult`, as bytes, that merges encoded accumulators."""
    stopwatch = Stopwatch()

    def total() -> ShardResult:
        with stopwatch.measure(MERGE):
            return ShardResult(merged(steps, carried, map(decode, parts)))

    return _result_bytes(total, stopwatch)


def _result_bytes(compute: Callable[[], ShardResult], stopwatch: Stopwatch) -> bytes:
    """Return the result of a computation as bytes, with its times."""
    return compute()._replace(times=stopwatch.times()).to_bytes()
