"""Makes up the words that fifty clients typed, as one CSV file for each of two groups.

python examples/heavy_hitters/make_data.py
"""

from __future__ import annotations

import argparse
import csv
import pathlib

import numpy as np

COMMON = ["tea", "rain", "train", "trail", "late", "river", "light"]
RARE = ["secret", "quartz", "zephyr", "lantern", "mosaic", "walnut", "fjord", "igloo", "tulip"]
CLIENTS = {"typed": 50, "held_out": 25}
SEED = 3


def words(generator: np.random.Generator) -> list[str]:
    """What a client typed: common words, some of them often, and a rare one."""
    common = generator.choice(COMMON, generator.integers(2, 6))
    rare = generator.choice(RARE, generator.integers(0, 2))
    return [str(word) for word in (*common, *rare)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = pathlib.Path(__file__).parent
    parser.add_argument("--out", type=pathlib.Path, default=here, help="where to write")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(SEED)
    for name, clients in CLIENTS.items():
        with (out / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["client", "word"])
            for number in range(clients):
                rows.writerows([f"client_{number:02}", word] for word in words(generator))


if __name__ == "__main__":
    main()
