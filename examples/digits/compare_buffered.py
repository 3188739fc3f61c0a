"""Compares whole and buffered rounds of buffered.py: client updates and simulated seconds until the
accuracy on held-out images is reached, for five seeds.

    cd examples/digits && python compare_buffered.py
"""

import pathlib
import statistics

import buffered

import tffc

HERE = pathlib.Path(__file__).parent
DELAYS = "lognormal:10,0.5+stragglers:0.1,8"
ACCURACY = 0.9
UPDATES = 400
WAYS = {
    "whole rounds of 10": {"clients_per_round": 10},
    "whole rounds of 5": {"clients_per_round": 5},
    "buffer of 5, 10 in flight": {"buffer": 5, "in_flight": 10},
    "buffer of 10, 15 in flight": {"buffer": 10, "in_flight": 15},
}


def reached(training, evaluation, seed, options):
    """The updates and the seconds until the mean accuracy of three rounds is enough."""
    seconds, recent = 0.0, []
    clients = options.get("buffer") or options["clients_per_round"]
    rounds = tffc.run(
        training,
        HERE / "train",
        UPDATES // clients,
        evaluate=evaluation,
        evaluate_data=HERE / "test",
        delays=DELAYS,
        seed=seed,
        **options,
    )
    for finished in rounds:
        seconds += finished.simulated
        recent = [*recent[-2:], float(finished.evaluation["accuracy"])]
        if len(recent) == 3 and statistics.mean(recent) >= ACCURACY:
            return finished.number * clients, seconds
    return UPDATES, seconds


def main():
    training = tffc.compile(buffered.training, "mergeable")
    evaluation = tffc.compile(buffered.evaluation, "mapreduce")
    for name, options in WAYS.items():
        results = [reached(training, evaluation, seed, options) for seed in range(5)]
        updates, seconds = zip(*results, strict=True)
        print(f"{name}: {statistics.median(updates)} updates, {statistics.median(seconds):.0f} s")
        print("  by seed: " + ", ".join(f"{u} in {s:.0f} s" for u, s in results))


if __name__ == "__main__":
    main()
