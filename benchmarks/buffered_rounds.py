"""Whole and buffered rounds of examples/digits/buffered.py: the clients' updates and the simulated
seconds until the accuracy on held-out images is reached, for five seeds.

    python -m benchmarks.buffered_rounds
"""

from __future__ import annotations

import pathlib
import statistics
import sys
from typing import Any

import tffc

DIGITS = pathlib.Path(__file__).parents[1] / "examples" / "digits"
DELAYS = "lognormal:10,0.5+stragglers:0.1,8"
ACCURACY = 0.9
UPDATES = 400
WAYS = {
    "whole rounds of 10": {"clients_per_round": 10},
    "whole rounds of 5": {"clients_per_round": 5},
    "buffer of 5, 7 in flight": {"buffer": 5, "in_flight": 7},
    "buffer of 5, 10 in flight": {"buffer": 5, "in_flight": 10},
    "buffer of 10, 12 in flight": {"buffer": 10, "in_flight": 12},
    "buffer of 10, 15 in flight": {"buffer": 10, "in_flight": 15},
}


def reached(training: Any, evaluation: Any, seed: int, options: Any) -> tuple[int, float]:
    """The updates and the seconds until the mean accuracy of three rounds is enough."""
    seconds = 0.0
    recent: list[float] = []
    clients = options.get("buffer") or options["clients_per_round"]
    rounds = tffc.run(
        training,
        DIGITS / "train",
        UPDATES // clients,
        evaluate=evaluation,
        evaluate_data=DIGITS / "test",
        delays=DELAYS,
        seed=seed,
        **options,
    )
    for finished in rounds:
        seconds += finished.simulated or 0.0
        recent = [*recent[-2:], float(finished.evaluation["accuracy"])]
        if len(recent) == 3 and statistics.mean(recent) >= ACCURACY:
            return finished.number * clients, seconds
    return UPDATES, seconds


def main() -> None:
    training = tffc.compile(f"{DIGITS}/buffered.py:training", "mergeable")
    evaluation = tffc.compile(f"{DIGITS}/buffered.py:evaluation", "mapreduce")
    for name, options in WAYS.items():
        results = [reached(training, evaluation, seed, options) for seed in range(5)]
        updates, seconds = zip(*results, strict=True)
        half = f"{statistics.median(updates)} updates, {statistics.median(seconds):.0f} s"
        one_by_one = ", ".join(f"{u} in {s:.0f} s" for u, s in results)
        sys.stdout.write(f"{name}: {half}\n  by seed: {one_by_one}\n")


if __name__ == "__main__":
    main()
