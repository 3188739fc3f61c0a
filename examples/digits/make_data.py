"""Splits the handwritten digits that scikit-learn ships over the clients of a federation.

The 1,797 images become 60 training clients and 9 held-out ones.  The training clients differ in
how many images they hold and in which digits they have seen, as people do: each draws its
preference for the ten digits from a Dirichlet distribution and its size from a log-normal one.
The held-out clients share 297 images evenly.

    pip install scikit-learn
    python examples/digits/make_data.py

The same images and the same NumPy give the same arrays, whatever the machine.
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np

TRAINING_CLIENTS = 60
TEST_CLIENTS = 9
TEST_IMAGES = 297
CONCENTRATION = 0.4
SIZE_SPREAD = 0.6
SEED = 20240229


def split(
    labels: np.ndarray, generator: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The image numbers of each training client and of each held-out client."""
    order = generator.permutation(len(labels))
    preference = generator.dirichlet([CONCENTRATION] * 10, size=TRAINING_CLIENTS)
    size = generator.lognormal(0.0, SIZE_SPREAD, TRAINING_CLIENTS)
    affinity = preference * size[:, None]
    share = affinity / affinity.sum(axis=0)
    training: list[list[int]] = [[] for _ in range(TRAINING_CLIENTS)]
    for image in order[TEST_IMAGES:]:
        training[generator.choice(TRAINING_CLIENTS, p=share[:, labels[image]])].append(image)
    test = np.array_split(order[:TEST_IMAGES], TEST_CLIENTS)
    return [np.array(images, dtype=int) for images in training], test


def write(folder: pathlib.Path, clients: list[np.ndarray], pixels: np.ndarray, label: np.ndarray):
    """Writes one file a client.  NumPy dates the members of a .npz file 1980, so bytes repeat."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, images in enumerate(clients):
        path = folder / f"client_{number:02}.npz"
        np.savez_compressed(path, pixels=pixels[images], label=label[images])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = pathlib.Path(__file__).parent
    parser.add_argument("--out", type=pathlib.Path, default=here, help="where to write")
    arguments = parser.parse_args()

    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    pixels = np.asarray(images).astype(np.uint8)
    label = np.asarray(digits).astype(np.int32)
    training, test = split(label, np.random.default_rng(SEED))
    write(arguments.out / "train", training, pixels, label)
    write(arguments.out / "test", test, pixels, label)


if __name__ == "__main__":
    main()
