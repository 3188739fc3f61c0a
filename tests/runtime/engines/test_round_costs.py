"""The model of what a round costs on a cluster."""

from __future__ import annotations

from benchmarks.round_costs import Costs, extrapolate

COSTS = Costs(
    sent=10_000,
    shipped=90_000,
    name=10,
    update=8_000,
    accumulator=4_000,
    read=0.001,
    work=0.007,
    accumulate=0.001,
    merge=0.01,
    beam=0.001,
    start=5.0,
)


def test_a_round_is_extrapolated_from_one_client() -> None:
    assert dict(extrapolate(COSTS, 1_000_000, 100)) == {
        "read by each worker, broadcast": "10 KB",
        "read by each worker, the rest": "10.1 MB",
        "read by all workers": "1.01 GB",
        "updates, which stay on their worker": "8 GB",
        "accumulators sent, of 1,000 bundles": "4 MB",
        "CPU of all clients": "2.78 h",
        "CPU to start all workers": "8.33 min",
        "last merge on one core": "10 s",
        "last merges with --fanout=32": "632 ms",
        "a round, with fan-out": "1.76 min",
    }
