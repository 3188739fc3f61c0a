"""Makes up the readings of twelve sensors: a day and a half in places of different warmth.

python examples/temperature/make_data.py
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np

SENSORS = 12
SEED = 7


def readings(generator: np.random.Generator) -> np.ndarray:
    """Hourly degrees around a daily wave; a sensor may start late or stop early."""
    hours = np.arange(generator.integers(6, 37))
    warmth = generator.normal(24.0, 4.0)
    wave = 5.0 * np.sin(2.0 * np.pi * hours / 24.0)
    return np.round(warmth + wave + generator.normal(0.0, 0.5, len(hours)), 1).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = pathlib.Path(__file__).parent / "sensors"
    parser.add_argument("--out", type=pathlib.Path, default=here, help="where to write")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(SEED)
    for number in range(SENSORS):
        # A single array needs no name: NumPy calls it arr_0, which is position 0.
        np.savez_compressed(folder / f"sensor_{number:02}.npz", readings(generator))


if __name__ == "__main__":
    main()
