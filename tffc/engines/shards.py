"""What a worker does for some clients of a round, wherever it is: their work, folded, and merges.

A shard gives the accumulators of its clients and keeps none, so its work may be repeated.  What
tffc refuses is a result too, for repeating it would not help.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tffc.backends.forms.steps import RoundSteps, TupleAggregation
from tffc.data.source import ClientSource
from tffc.engines.encoding import decode, encode, error_from_bytes, error_to_bytes
from tffc.errors import DataError, ExecutionError, TffcError


class ShardResult(NamedTuple):
    """What came of a shard: the accumulators, or None if there are none; what clients have in the
    end; who was left out; the error that ended it, if one did; and the seconds that it took.

    From bytes, the accumulators are bytes still, as `encode` gives them.
    """

    totals: Any
    outputs: Sequence[tuple[str, Any]] = ()
    skipped: Sequence[str] = ()
    error: TffcError | None = None
    seconds: float = 0.0

    def to_bytes(self) -> bytes:
        """Return the result as bytes."""
        outputs = [(os.fsencode(client), output) for client, output in self.outputs]
        error = None if self.error is None else error_to_bytes(self.error)
        skipped = list(map(os.fsencode, self.skipped))
        return encode((encode(self.totals), outputs, skipped, error, np.float64(self.seconds)))

    @classmethod
    def from_bytes(cls, data: bytes) -> ShardResult:
        """Return the result of which `to_bytes` gave the bytes."""
        totals, outputs, skipped, error, seconds = decode(data)
        return cls(
            totals,
            [(os.fsdecode(client), output) for client, output in outputs],
            list(map(os.fsdecode, skipped)),
            None if error is None else error_from_bytes(error),
            float(seconds),
        )


def run_shard(
    steps: RoundSteps,
    source: ClientSource,
    clients: Sequence[str],
    kept: Any,
    sent: Any,
    *,
    skip_bad: bool,
) -> ShardResult:
    """Return the result of some clients' work, one after another.

    With `skip_bad`, clients whose data cannot be read are left out; otherwise one ends the shard.
    """
    totals: Any = None
    outputs: list[tuple[str, Any]] = []
    skipped: list[str] = []
    for name in clients:
        try:
            try:
                data = source.read(name)
            except DataError:
                if not skip_bad:
                    raise
                skipped.append(name)
                continue
            if steps.client_output_type is not None:
                outputs.append((name, steps.work(data, sent)))
                continue
            if totals is None:
                totals = TupleAggregation(steps.aggregations).zero(kept)
            totals = steps.work_and_accumulate(totals, data, sent, kept, name)
        except TffcError as error:
            if isinstance(error, ExecutionError) and f"client {name}" not in error.message:
                error.notes += (f"it was at work on the data of client {name}",)
            return ShardResult(None, outputs, skipped, error)
    return ShardResult(totals, outputs, skipped)


def run_shards(
    steps: RoundSteps,
    source: ClientSource,
    shards: Sequence[Sequence[str]],
    kept: Any,
    sent: Any,
    *,
    skip_bad: bool,
) -> ShardResult:
    """Return the result of neighbouring shards, which is that of the first that fails if one does.

    They are merged pairwise, so that it does not matter how many are given at a time if that is a
    power of two.
    """
    begun = time.perf_counter()
    outputs: list[tuple[str, Any]] = []
    skipped: list[str] = []

    def totals() -> Iterator[Any]:
        for clients in shards:
            result = run_shard(steps, source, clients, kept, sent, skip_bad=skip_bad)
            outputs.extend(result.outputs)
            skipped.extend(result.skipped)
            if result.error is not None:
                raise result.error
            yield result.totals

    try:
        total = merged(steps, kept, totals())
    except TffcError as error:
        return ShardResult(None, outputs, skipped, error)
    return ShardResult(total, outputs, skipped, None, time.perf_counter() - begun)


def merged(steps: RoundSteps, kept: Any, parts: Iterable[Any]) -> Any:
    """Return the accumulators of neighbours merged pairwise, and the results again; None is that of
    no client."""
    aggregation = TupleAggregation(steps.aggregations)

    def merge(first: Any, second: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        return aggregation.merge(first, second, kept)

    return merge_pairwise(parts, merge)


def merge_pairwise(parts: Iterable[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merge neighbours, and the results again, until one is left; as the local engine's tree.

    Each is asked for once, and only as many are held as the tree is high.
    """
    merges: list[tuple[int, Any]] = []  # by how many they are merges of: powers of two, falling
    for part in parts:
        count, value = 1, part
        while merges and merges[-1][0] == count:
            value = merge(merges.pop()[1], value)
            count *= 2
        merges.append((count, value))
    _, total = merges.pop()
    while merges:
        total = merge(merges.pop()[1], total)
    return total
