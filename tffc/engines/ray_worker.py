"""What an actor of Ray's does, in a process that keeps its graphs: the work of a shard, or a merge.

A call gives the accumulators of the clients that it was given and keeps none, so it may be
repeated.  What tffc refuses is a result too, for repeating it would not help.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tffc.backends.forms.steps import RoundSteps, TupleAggregation
from tffc.engines.beam_results import error_to_bytes
from tffc.engines.encoding import decode, encode
from tffc.engines.runtime import EngineRuntime
from tffc.engines.shipment import bundle_from_bytes, load_sections, source_from_bytes
from tffc.errors import DataError, ExecutionError, TffcError

KEPT = 4
"""So many bundles, rounds and sources stay loaded: those of a run and of its evaluation."""


class RoundRefs(NamedTuple):
    """Where in Ray's object store the parts of a round are: the bundle, what the server keeps and
    sends, and the source of clients' data."""

    bundle: Any
    context: Any
    source: Any


class ShardResult(NamedTuple):
    """What came of a shard: the accumulators, or None if there are none; what clients have in the
    end; who was left out; and the error that ended it, if one did."""

    totals: Any
    outputs: Sequence[tuple[bytes, Any]]
    skipped: Sequence[bytes]
    error: bytes | None

    def to_bytes(self) -> bytes:
        """Return the result as bytes."""
        return encode((self.totals, list(self.outputs), list(self.skipped), self.error))

    @classmethod
    def from_bytes(cls, data: bytes) -> ShardResult:
        """Return the result of which `to_bytes` gave the bytes."""
        return cls(*decode(data))


class Worker:
    """Works on shards of any rounds, in a folder that the driver's paths are relative to."""

    def __init__(self, folder: str) -> None:
        if os.path.isdir(folder):
            os.chdir(folder)
        self._loaded: dict[str, Any] = {}

    def ping(self) -> None:
        """Return, which shows that this worker lives."""

    def run_shard(self, refs: RoundRefs, clients: Sequence[bytes], skip_bad: bool) -> bytes:
        """Return the result of some clients' work."""
        steps: RoundSteps = self._load(refs.bundle, _load_bundle)
        kept, sent = self._load(refs.context, decode)
        source = self._load(refs.source, source_from_bytes)
        totals: Any = None
        outputs: list[tuple[bytes, Any]] = []
        skipped: list[bytes] = []
        for client in clients:
            name = os.fsdecode(client)
            try:
                try:
                    data = source.read(name)
                except DataError:
                    if not skip_bad:
                        raise
                    skipped.append(client)
                    continue
                if steps.client_output_type is not None:
                    outputs.append((client, steps.work(data, sent)))
                    continue
                if totals is None:
                    totals = TupleAggregation(steps.aggregations).zero(kept)
                totals = steps.work_and_accumulate(totals, data, sent, kept, name)
            except TffcError as error:
                if isinstance(error, ExecutionError) and f"client {name}" not in error.message:
                    error.notes += (f"it was at work on the data of client {name}",)
                return ShardResult(None, outputs, skipped, error_to_bytes(error)).to_bytes()
        return ShardResult(totals, outputs, skipped, None).to_bytes()

    def merge(self, refs: RoundRefs, parts: Sequence[bytes]) -> bytes:
        """Return the result in which the accumulators of several are merged."""
        steps: RoundSteps = self._load(refs.bundle, _load_bundle)
        kept, _ = self._load(refs.context, decode)
        return merged(steps, kept, parts)

    def _load(self, ref: Any, load: Callable[[bytes], Any]) -> Any:
        """Return what is loaded from an object in the store, which is fetched once."""
        key = ref.hex()
        if key not in self._loaded:
            while len(self._loaded) >= 3 * KEPT:
                del self._loaded[next(iter(self._loaded))]
            self._loaded[key] = load(importlib.import_module("ray").get(ref))
        else:
            self._loaded[key] = self._loaded.pop(key)  # the one that was used last is the last
        return self._loaded[key]


def _load_bundle(data: bytes) -> RoundSteps:
    bundle = bundle_from_bytes(data)
    load_sections(bundle)
    return bundle.read_form().steps(EngineRuntime())


def merged(steps: RoundSteps, kept: Any, parts: Sequence[bytes]) -> bytes:
    """Return, as bytes, the accumulators of neighbours merged pairwise, those of nothing apart."""
    totals = [decode(part) for part in parts]
    aggregation = TupleAggregation(steps.aggregations)

    def merge(first: Any, second: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        return aggregation.merge(first, second, kept)

    try:
        return ShardResult(merge_pairwise(totals, merge), (), (), None).to_bytes()
    except TffcError as error:
        return ShardResult(None, (), (), error_to_bytes(error)).to_bytes()


def merge_pairwise(parts: Sequence[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merge neighbours, and the results again, until one is left; as the local engine's tree."""
    while len(parts) > 1:
        pairs = [merge(*parts[at : at + 2]) for at in range(0, len(parts) - 1, 2)]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    return parts[0]
