"""Makes up the reviews of some clients: sentences on a few things, which praise them or not.

python examples/torch_text/make_data.py
"""

from __future__ import annotations

import argparse
import csv
import pathlib

import numpy as np

CLIENTS = {"train": 30, "test": 10}
SEED = 23
THINGS = [
    "soup",
    "bread",
    "tea",
    "cake",
    "service",
    "room",
    "view",
    "music",
    "staff",
    "garden",
    "price",
    "breakfast",
]
GOOD = ["good", "great", "lovely", "fresh", "warm", "friendly", "excellent", "pleasant"]
BAD = ["bad", "awful", "cold", "stale", "rude", "boring", "noisy", "dirty"]
FORMS = (
    "the {thing} was {word}",
    "{word} {thing}",
    "what a {word} {thing}",
    "i found the {thing} {word}",
)
NEGATED = ("the {thing} was not {word}", "not a {word} {thing}", "the {thing} is never {word}")


def review(generator: np.random.Generator, things: list[str]) -> tuple[str, int]:
    """A sentence on one of a client's things, and whether it praises."""
    is_good, is_negated = generator.random() < 0.5, generator.random() < 0.3
    form = str(generator.choice(NEGATED if is_negated else FORMS))
    word = str(generator.choice(GOOD if is_good else BAD))
    return form.format(thing=generator.choice(things), word=word), int(is_good != is_negated)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    here = pathlib.Path(__file__).parent
    parser.add_argument("--out", type=pathlib.Path, default=here, help="where to write")
    out = parser.parse_args().out
    generator = np.random.default_rng(SEED)
    sentences = " ".join([*THINGS, *GOOD, *BAD, *FORMS, *NEGATED])
    words = sorted({word for word in sentences.split() if word.isalpha()})
    (out / "words.txt").write_text("\n".join([*words, ""]), encoding="utf-8")
    for name, clients in CLIENTS.items():
        with open(out / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["client", "review", "praise"])
            for client in range(clients):
                things = [str(each) for each in generator.choice(THINGS, 4, replace=False)]
                for _ in range(generator.integers(10, 40)):
                    rows.writerow([client, *review(generator, things)])


if __name__ == "__main__":
    main()
