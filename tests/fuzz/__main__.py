"""A long run of the fuzzers.

    python -m tests.fuzz [--cases N] [--seed S] [--target NAME]

Ends with status 1, and the numbers of the case, at the first exception that is not a refusal.  A
case of a minute ends the run with the place where it hangs.  With TFFC_CORPUS set to a folder of
recorded computations, those are seeds too.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import traceback

from tests.fuzz.targets import TARGETS, run_case

TIMEOUT_SECONDS = 60


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--cases", type=int, default=100_000, help="cases a target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=TARGETS, action="append")
    options = parser.parse_args()
    for target in options.target or TARGETS:
        read = 0
        for case in range(options.cases):
            faulthandler.dump_traceback_later(TIMEOUT_SECONDS, exit=True)
            try:
                read += run_case(target, options.seed, case)
            except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
                traceback.print_exc()
                # What the script is for.
                print(f"{target}: case {case} of seed {options.seed} failed", file=sys.stderr)
                return 1
            finally:
                faulthandler.cancel_dump_traceback_later()
        refused = options.cases - read
        # What the script is for.
        print(f"{target}: {options.cases} cases, {refused} refused, {read} read", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
