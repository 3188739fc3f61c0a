"""The table of recorded computations: one row a case, for every form what both sides make of it.

    TFFC_CORPUS=DIR python -m tests.corpus.table

A form's column says `same` where tffc compiles it to parts of TFF's types and, where the case has
recorded rounds, gives TFF's results; `ours` where only tffc compiles it; `none` where neither does.
Anything else is a difference, and makes the exit code 1.
"""

from __future__ import annotations

import sys
from typing import Any

from tests.corpus.cases import MISSING, Case, cases
from tests.corpus.test_forms import arguments
from tests.forms import run_broadcast, run_mapreduce
from tffc.backends import MapReduceForm, compile_form, computation_of
from tffc.backends.forms import local_type
from tffc.errors import TffcError
from tffc.execution.interpreter import run
from tffc.execution.values import to_python

FORMS = ("mapreduce", "broadcast", "distribute-aggregate")


def verdict(case: Case, form: str) -> str:
    """What both sides make of a case."""
    recorded = case.forms.get(form.replace("-", "_"), {})
    try:
        made = compile_form(case.program(), form)
    except TffcError as error:
        return f"REFUSED {error.code}" if recorded.get("ok") else "none"
    if case.has("io.json") and not agrees(case, made):
        return "WRONG RESULT"
    if not recorded.get("ok"):
        return "ours"
    theirs = {name: part["type"] for name, part in recorded["components"].items()}
    ours = {name: str(part.type) for name, part in made.components().items()}
    return "same" if form == "distribute-aggregate" or ours == theirs else "OTHER TYPES"


def agrees(case: Case, made: Any) -> bool:
    """Whether a form gives the recorded results."""
    recorded = case.rounds()
    result = local_type(made.type_signature.result)
    for index, one in enumerate(recorded.rounds):
        if isinstance(made, MapReduceForm):
            found = to_python(run_mapreduce(made, *arguments(made, one)), result)
        elif hasattr(made, "client_processing"):
            outputs = run_broadcast(made, *arguments(made, one))
            found = [to_python(output, result) for output in outputs]
        else:
            found = run(computation_of(made), one.arg)
        if recorded.compare_result(index, found):
            return False
    return True


def main() -> int:
    """Prints the table; 1 if a row holds a difference or there are no rows."""
    if not cases():
        print(MISSING, file=sys.stderr)  # noqa: T201 - a script's own output
        return 1
    failed = 0
    for case in cases():
        row = [verdict(case, form) for form in FORMS]
        failed += any(cell not in ("same", "ours", "none") for cell in row)
        print(f"{case!s:52}", *(f"{cell:14}" for cell in row), flush=True)  # noqa: T201
    print(f"{len(cases())} cases, {failed} with differences")  # noqa: T201
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
