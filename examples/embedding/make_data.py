"""Makes up the sentences of some clients: four words each, and whether they praise.

python examples/embedding/make_data.py
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np

VOCABULARY = 5000
IN_USE = 120
SENTENCE = 4
CLIENTS = {"train": 60, "test": 15}
SEED = 13


def sentences(generator: np.random.Generator, feeling: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A client's sentences, of words from its own small part of those in use."""
    own = generator.choice(len(feeling), 24, replace=False)
    chosen = generator.choice(own, (generator.integers(10, 40), SENTENCE))
    praise = feeling[chosen].sum(axis=1) + generator.normal(0.0, 0.3, len(chosen)) > 0.0
    # The words in use are spread over the whole vocabulary; word 0 is none of them.
    words = 1 + chosen * (VOCABULARY // IN_USE)
    return words.astype(np.int32), praise.astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = pathlib.Path(__file__).parent
    parser.add_argument("--out", type=pathlib.Path, default=here, help="where to write")
    out = parser.parse_args().out
    generator = np.random.default_rng(SEED)
    feeling = generator.normal(0.0, 1.0, IN_USE)
    for folder, clients in CLIENTS.items():
        (out / folder).mkdir(parents=True, exist_ok=True)
        for number in range(clients):
            words, praise = sentences(generator, feeling)
            path = out / folder / f"client_{number:02}.npz"
            np.savez_compressed(path, words=words, praise=praise)


if __name__ == "__main__":
    main()
