"""Trains shared weights and every client's own offset, in turns, with tffc as a library.

python examples/personalisation/train.py [ROUNDS]
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import tffc
from tffc.runtime.engines.process import Process

HERE = pathlib.Path(__file__).parent


def read(name: str) -> dict[str, dict[str, np.ndarray]]:
    """The readings of every client, by its name."""
    clients = {}
    for path in sorted((HERE / name).glob("*.npz")):
        with np.load(path) as arrays:
            clients[path.stem] = dict(arrays)
    return clients


def compile_to(folder: pathlib.Path, name: str, form: str) -> Process:
    """The rounds of a computation of the module beside this file."""
    target = f"{HERE / 'personalisation.py'}:{name}"
    out = str(folder / name)
    subprocess.run(
        [sys.executable, "-m", "tffc", "compile", target, "--form", form, "--out", out], check=True
    )
    return tffc.load(out).process


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    earlier, later = read("earlier"), read("later")
    offsets = dict.fromkeys(earlier, np.float32(0.0))

    def clients(readings: dict[str, dict[str, np.ndarray]]) -> list[dict]:
        return [{"readings": readings[name], "offset": offsets[name]} for name in readings]

    def keep(number: str, own: dict) -> None:
        """Keeps a client's offset.  A list's clients are named by their positions."""
        offsets[list(earlier)[int(number)]] = own["offset"]

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        training = compile_to(path, "training", "mapreduce")
        adapting = compile_to(path, "adapting", "broadcast")
        evaluation = compile_to(path, "evaluation", "mapreduce")
        state = training.first_state()
        for _ in range(rounds):
            (trained,) = tffc.run(training, clients(earlier), 1, state=state)
            state = trained
            list(tffc.run(adapting, clients(earlier), 1, state=state, deliver=keep))
            (measured,) = tffc.run(evaluation, clients(later), 1, state=state)
            print(
                f"round {trained.number}: error {trained.output['error']:.3f}, "
                f"on later readings {measured.output['error']:.3f}"
            )


if __name__ == "__main__":
    main()
