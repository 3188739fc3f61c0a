"""One side of a comparison as a process: reads requests and answers them, a JSON line each.

    python -m benchmarks.worker tffc|peer

A request names a method of the side and its arguments; the answer has its `result` or an `error`.
It imports nothing of tffc in the peer's process, nor of the peer in that of tffc.
"""

from __future__ import annotations

import importlib
import json
import os
import sys


def main() -> None:
    """Answer requests until there are no more."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # so that what libraries print does not come between the answers
    side = importlib.import_module(f"benchmarks.{sys.argv[1]}_side").Side()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": getattr(side, request["method"])(*request["arguments"])}
        except Exception as error:  # noqa: BLE001  (a side that fails is a result)
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
