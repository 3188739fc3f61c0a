"""Tracing a module of another revision in a process of its own, into files.

python -m tffc.cli.traced_parts TARGET any|round|"round FORM" FOLDER
"""

from __future__ import annotations

import contextlib
import pathlib
import sys

from tffc.api import programs
from tffc.cli.diagnostics import report
from tffc.cli.output import write_computation
from tffc.support.errors import TffcError


def main(target: str, fits: str, folder: str) -> int:
    """Write the computation of a module, and that of its first state; return the exit code."""
    kind, _, form = fits.partition(" ")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            if kind == "round":
                program = programs.round_of(target, form or None)
            else:
                program = programs.read_program(target)
    except TffcError as error:
        report(error, debug=False)
        return 1
    for name, part in (("computation", program.computation), ("initialize", program.initialize)):
        if part is not None:
            write_computation(str(pathlib.Path(folder, f"{name}.pb")), part)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
