"""Edit components, and run those that are still called proved: their results may not change.

    TFFC_CORPUS=DIR python -m tests.proof.attack COUNT [SEED [FIRST]]

makes the edits with numbers from FIRST to COUNT in each form of the recorded computations that have
recorded rounds.  It prints how many edits of each kind were refuted, not decided or proved.  The
exit code is 1 if one of those proved fails or has another result.
"""

from __future__ import annotations

import collections
import gc
import random
import sys
import traceback
from typing import Any

import numpy as np

from tests.corpus.cases import Case, cases
from tests.corpus.table import result_of_round
from tests.proof.edits import EDITS, Edit, edited
from tests.proof.program_edits import PROGRAM_EDITS, ProgramEdit
from tffc.backends import compile_form
from tffc.backends.forms.form import Form
from tffc.backends.forms.kinds import FORMS, assemble
from tffc.errors import TffcError
from tffc.proof.prove import Answer, prove

EVERY = 1000
"""After how many edits it is said how far it is."""


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
    """The results of the form for the recorded arguments, or its failure."""
    try:
        return [result_of_round(form, one) for one in case.rounds().rounds]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is not a result
        return [type(error).__name__]


def repeatable(case: Case, form: Form, runs: int) -> list[Any] | None:
    """The results of the form if they are the same in that many runs, else None."""
    first, *again = (results(case, form) for _ in range(runs))
    return first if all(same(first, other) for other in again) else None


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal bit by bit; NaN equals NaN."""
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
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Attack:
    """Edits of the forms of recorded computations, and their outcomes."""

    def __init__(self) -> None:
        self.targets = targets()
        self.known: dict[tuple[str, str], list[Any] | None] = {}
        self.tally: collections.Counter[tuple[str, str]] = collections.Counter()
        self.wrong = 0

    def make(self, seed: int, number: int) -> None:
        """Make one edit, try to prove the result, and run it if it is proved."""
        choose = random.Random(f"{seed}:{number}")
        while True:
            case, name, form = choose.choice(self.targets)
            edit = choose.choice(kinds_of_edits(name))
            changed = edited(form.components(), edit, choose)
            if changed is not None:
                break
        where = f"{number} of {seed}: {case} {name} {changed[0]} {edit.__name__}"
        answer = None
        try:
            broken = assemble(name, form.type_signature, changed[1])
            answer = prove(case.program(), name, changed[1]).answer
        except TffcError:
            broken = form
        except Exception:  # noqa: BLE001 - which the prover may not have for any edit
            self.count_wrong("FAILED", where, traceback.format_exc())
            return
        self.tally[edit.__name__, answer.value if answer else "refused"] += 1
        if answer is Answer.PROVED:
            self.run(case, name, form, broken, where)

    def run(self, case: Case, name: str, form: Form, broken: Form, where: str) -> None:
        """Compare the results of a form before and after an edit."""
        if (str(case), name) not in self.known:
            self.known[str(case), name] = repeatable(case, form, 3)
        before = self.known[str(case), name]
        if before is None:
            return
        after = results(case, broken)
        if not same(before, after) and repeatable(case, form, 12) is not None:
            self.count_wrong("PROVED AND OTHER", where, str(before)[:300], str(after)[:300])

    def count_wrong(self, what: str, where: str, *details: str) -> None:
        """Print a fault of the prover."""
        self.wrong += 1
        say(f"{what}: {where}")
        for each in details:
            say(f"    {each}")


def kinds_of_edits(form: str) -> tuple[Edit | ProgramEdit, ...]:
    """The edits for the components of a form, which may be programs."""
    return (*EDITS, *PROGRAM_EDITS) if form == "distribute-aggregate" else EDITS


def main(count: int, seed: int = 0, first: int = 0) -> int:
    """Make edits, and print their outcomes."""
    attack = Attack()
    for number in range(first, count):
        attack.make(seed, number)
        if (number + 1) % EVERY == 0:
            gc.collect()
            say(f"{number + 1} edits, {attack.wrong} wrong")
    for (edit, answer), number in sorted(attack.tally.items()):
        say(f"{edit:20} {answer:12} {number}")
    say(f"{sum(attack.tally.values())} edits, {attack.wrong} wrong")
    return 1 if attack.wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
