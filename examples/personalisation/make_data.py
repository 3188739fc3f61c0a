"""Makes up the temperatures at twelve places, each with an offset of its own, on two days.

python examples/personalisation/make_data.py
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np

PLACES = 12
SEED = 17


def day(generator: np.random.Generator, offset: float) -> tuple[np.ndarray, np.ndarray]:
    """Readings at some hours of a day."""
    hour = np.sort(generator.uniform(0.0, 24.0, generator.integers(8, 30)))
    angle = 2.0 * np.pi * hour / 24.0
    degrees = offset - 2.5 * np.sin(angle) - 4.0 * np.cos(angle)
    noisy = np.round(degrees + generator.normal(0.0, 0.4, len(hour)), 2)
    return hour.astype(np.float32), noisy.astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = pathlib.Path(__file__).parent
    parser.add_argument("--out", type=pathlib.Path, default=here, help="where to write")
    out = parser.parse_args().out
    generator = np.random.default_rng(SEED)
    offsets = generator.normal(14.0, 6.0, PLACES)
    for folder in ("earlier", "later"):
        (out / folder).mkdir(parents=True, exist_ok=True)
        for number, offset in enumerate(offsets):
            path = out / folder / f"place_{number:02}.npz"
            hour, degrees = day(generator, offset)
            np.savez_compressed(path, hour=hour, degrees=degrees)


if __name__ == "__main__":
    main()
