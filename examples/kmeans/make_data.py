"""Makes up the points of fifteen clients: four clouds, of which each client sees some.

python examples/kmeans/make_data.py
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np

CENTRES = np.array([[-4, -3], [4, -2], [3, 4], [-3, 3.5]], np.float32)
CLIENTS = {"train": 15, "test": 5}
SEED = 11


def points(generator: np.random.Generator) -> np.ndarray:
    """A client's points, around one to three of the centres."""
    kinds = generator.choice(len(CENTRES), generator.integers(1, 4), replace=False)
    chosen = CENTRES[generator.choice(kinds, generator.integers(20, 80))]
    return np.round(chosen + generator.normal(0.0, 0.8, chosen.shape), 3).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = pathlib.Path(__file__).parent
    parser.add_argument("--out", type=pathlib.Path, default=here, help="where to write")
    out = parser.parse_args().out
    generator = np.random.default_rng(SEED)
    for folder, clients in CLIENTS.items():
        (out / folder).mkdir(parents=True, exist_ok=True)
        for number in range(clients):
            np.savez_compressed(out / folder / f"client_{number:02}.npz", points(generator))


if __name__ == "__main__":
    main()
