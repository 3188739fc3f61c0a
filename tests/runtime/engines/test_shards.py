"""Shards give the accumulators of their clients, whatever number of them is run at a time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.engines.programs import bounded, process_of
from tests.runtime.engines.sources import Values
from tffc.backends.forms.steps import TupleAggregation
from tffc.runtime.batching.pieces import OneByOne
from tffc.runtime.engines.shards import ClientWork, run_shards


@pytest.mark.parametrize("shards", [0, 1, 2, 5])
def test_so_many_shards_are_merged(shards: int) -> None:
    source = Values([np.int32(value) for value in range(5)])
    steps = process_of(bounded, "mapreduce").steps
    work = ClientWork(steps, source, (), (), False)
    result = run_shards(work, ([OneByOne((client,))] for client in source.clients[:shards]))
    assert result.error is None
    assert (result.totals is None) == (shards == 0)
    totals = work.zero if result.totals is None else result.totals
    _, output = steps.finish((), TupleAggregation(steps.aggregations).report(totals, ()))
    assert output == sum(range(shards))
