"""Makes up how long people's visits lasted, in seconds: two CSV files with a column for the person.

python examples/quantiles/make_data.py
"""

from __future__ import annotations

import argparse
import csv
import pathlib

import numpy as np

PEOPLE = {"visits": 40, "held_out": 20}
SEED = 5


def durations(generator: np.random.Generator) -> np.ndarray:
    """Few long visits, many short ones; some people stay longer than others."""
    habit = generator.normal(3.6, 0.5)
    drawn = generator.lognormal(habit, 0.7, generator.integers(5, 25))
    return np.round(np.minimum(drawn, 599.0), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = pathlib.Path(__file__).parent
    parser.add_argument("--out", type=pathlib.Path, default=here, help="where to write")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(SEED)
    for name, people in PEOPLE.items():
        with (out / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["person", "seconds"])
            for number in range(people):
                rows.writerows([f"person_{number:02}", d] for d in durations(generator))


if __name__ == "__main__":
    main()
