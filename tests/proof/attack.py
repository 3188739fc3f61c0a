"""Edits components, and runs what the prover calls proved all the same: nothing may change.

    TFFC_CORPUS=DIR python -m tests.proof.attack COUNT [SEED]

makes so many edits of the forms of recorded computations that have recorded rounds.  Prints how
many of each kind were refuted, not decided or proved; with one that is proved and gives something
else, or fails, the exit code is 1.
"""

from __future__ import annotations

import collections
import random
import sys
from typing import Any

import numpy as np

from tests.corpus.cases import Case, cases
from tests.corpus.table import result_of_round
from tests.proof.edits import EDITS, edited
from tffc.backends import compile_form
from tffc.backends.forms.form import Form
from tffc.backends.forms.kinds import assemble
from tffc.errors import TffcError
from tffc.proof.prove import Answer, prove

FORMS = ("mapreduce", "broadcast")


def targets() -> list[tuple[Case, str, Form]]:
    """The forms of recorded computations that can be run and repeated."""
    found: list[tuple[Case, str, Form]] = []
    for case in cases():
        if not case.has("io.json") or case.rounds().unstable:
            continue
        for form in FORMS:
            try:
                found.append((case, form, compile_form(case.program(), form)))
            except TffcError:
                continue
    return found


def results(case: Case, form: Form) -> list[Any]:
    """What the form gives for the recorded arguments, or that it fails."""
    try:
        return [result_of_round(form, one) for one in case.rounds().rounds]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is not a result
        return [type(error).__name__]


def repeatable(case: Case, form: Form) -> list[Any] | None:
    """What the form gives, the same in three runs; None where it differs by itself."""
    first, *again = (results(case, form) for _ in range(3))
    return first if all(same(first, other) for other in again) else None


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, bit by bit but for what is not a number."""
    if isinstance(one, dict):
        return isinstance(other, dict) and same(list(one.items()), list(other.items()))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(np.array_equal(np.asarray(one), np.asarray(other))) or _both_nan(one, other)


def _both_nan(one: Any, other: Any) -> bool:
    try:
        return bool(np.array_equal(one, other, equal_nan=True))
    except TypeError:
        return False


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def main(count: int, seed: int) -> int:
    """Make edits, and print what became of them."""
    choose = random.Random(seed)
    found = targets()
    known: dict[tuple[str, str], Any] = {}
    tally: collections.Counter[tuple[str, str]] = collections.Counter()
    wrong = 0
    while sum(tally.values()) < count:
        case, name, form = choose.choice(found)
        edit = choose.choice(EDITS)
        changed = edited(form.components(), edit, choose)
        if changed is None:
            continue
        where, components = changed
        proof = prove(case.program(), name, components)
        tally[edit.__name__, proof.answer.value] += 1
        if proof.answer is not Answer.PROVED:
            continue
        if (str(case), name) not in known:
            known[str(case), name] = repeatable(case, form)
        if known[str(case), name] is None:
            continue
        after = results(case, assemble(name, form.type_signature, components))
        if not same(known[str(case), name], after):
            wrong += 1
            say(f"PROVED AND OTHER: {case} {name} {where} {edit.__name__}")
            say(f"    {str(known[str(case), name])[:300]}")
            say(f"    {str(after)[:300]}")
    for (edit_name, answer), number in sorted(tally.items()):
        say(f"{edit_name:20} {answer:12} {number}")
    say(f"{sum(tally.values())} edits, {wrong} proved and other")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
