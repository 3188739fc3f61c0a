"""What TensorFlow Federated makes of parts and computations; runs under its Python.

    PYTHON replay_worker.py CORPUS

Each line of stdin holds the arguments of one run of the script `replay_in_tff.py` that comes with
the recordings, as a JSON list.  It is answered by one line on stdout: the run's record as JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import pathlib
import sys
import tempfile


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    replay = importlib.import_module("replay_in_tff")
    answers = sys.stdout
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "record.json"
            sys.argv[1:] = [*json.loads(line), "--json", str(path)]
            with contextlib.redirect_stdout(sys.stderr):
                replay.main()
            (record,) = json.loads(path.read_text(encoding="utf-8"))
        print(json.dumps(record), file=answers, flush=True)


if __name__ == "__main__":
    main()
