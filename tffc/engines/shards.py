"""What a worker does for some clients of a round, wherever it is: their work, folded, and merges.

A shard gives the accumulators of its clients and keeps none, so its work may be repeated.  What
tffc refuses is a result too, for repeating it would not help.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tffc.backends.forms.steps import RoundSteps, TupleAggregation
from tffc.data.source import ClientSource
from tffc.engines.encoding import decode, encode, error_from_bytes, error_to_bytes
from tffc.errors import DataError, ExecutionError, TffcError


class ShardResult(NamedTuple):
    """What came of a shard: the accumulators, or None if there are none; what clients have in the
    end; who was left out; and the error that ended it, if one did."""

    totals: Any
    outputs: Sequence[tuple[str, Any]] = ()
    skipped: Sequence[str] = ()
    error: TffcError | None = None

    def to_bytes(self) -> bytes:
        """Return the result as bytes."""
        outputs = [(os.fsencode(client), output) for client, output in self.outputs]
        error = None if self.error is None else error_to_bytes(self.error)
        return encode((self.totals, outputs, list(map(os.fsencode, self.skipped)), error))

    @classmethod
    def from_bytes(cls, data: bytes) -> ShardResult:
        """Return the result of which `to_bytes` gave the bytes."""
        totals, outputs, skipped, error = decode(data)
        return cls(
            totals,
            [(os.fsdecode(client), output) for client, output in outputs],
            list(map(os.fsdecode, skipped)),
            None if error is None else error_from_bytes(error),
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


def merged(steps: RoundSteps, kept: Any, parts: Sequence[Any]) -> Any:
    """Return the accumulators of neighbours merged pairwise, and the results again; None is that of
    no client."""
    aggregation = TupleAggregation(steps.aggregations)

    def merge(first: Any, second: Any) -> Any:
        if first is None or second is None:
            return second if first is None else first
        return aggregation.merge(first, second, kept)

    return merge_pairwise(parts, merge)


def merge_pairwise(parts: Sequence[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Merge neighbours, and the results again, until one is left; as the local engine's tree."""
    while len(parts) > 1:
        pairs = [merge(*parts[at : at + 2]) for at in range(0, len(parts) - 1, 2)]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    return parts[0]
