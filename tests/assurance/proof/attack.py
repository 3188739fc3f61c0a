"""Edit components, and run those that are still called proved: their results may not change.

    TFFC_CORPUS=DIR python -m tests.assurance.proof.attack COUNT [SEED [FIRST]]

makes the edits with numbers from FIRST to COUNT in forms of the recorded computations that have
recorded rounds.  Of six edits, four change any field of any message, one changes an attribute of an
operation, each operation and attribute in turn, and one is of the kinds in `edits`.  It prints how
many edits of each kind were refuted, not decided or proved.  The exit code is 1 if one of those
proved fails or has another result.
"""

from __future__ import annotations

import collections
import gc
import random
import sys
import traceback
from typing import Any

import numpy as np

from tests.assurance.proof.edits import EDITS, Edit, edited
from tests.assurance.proof.field_edits import (
    Opened,
    Site,
    edited_at,
    found_at,
    replaced,
    sections_of,
    sites,
)
from tests.assurance.proof.program_edits import PROGRAM_EDITS, ProgramEdit
from tests.corpus.cases import Case, cases
from tests.corpus.table import result_of_round
from tffc.assurance.proof.prove import Answer, prove
from tffc.backends import compile_form
from tffc.backends.forms.form import Form
from tffc.backends.forms.kinds import FORMS, assemble
from tffc.support.errors import TffcError

EVERY = 1000
"""After how many edits it is said how far it is."""

MOST_RUNS = 40
"""How many proved edits of one kind are run."""

Change = tuple[str, str, dict[str, Any]]
"""An edit: its kind, the component, and all components after it."""


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
        self.runs: collections.Counter[str] = collections.Counter()
        self.sites = self.places()
        self.attributes = sorted(self.sites)
        self.wrong = 0

    def places(self) -> dict[tuple[str, str], tuple[int, str, int, Site]]:
        """One place of each attribute of each operation, in the form with the fewest sections."""
        places: dict[tuple[str, str], tuple[int, str, int, Site]] = {}
        for number, (_, _, form) in enumerate(self.targets):
            for index, (component, section) in enumerate(sections_of(form.components())):
                opened = Opened(section)
                for site in sites(opened):
                    if site.owner == "AttrValue" and len(site.path) >= 2:
                        *path, (field, name) = site.path
                        if field == "attr":
                            node = found_at(opened, Site(tuple(path), "", ""))
                            key = getattr(node, "op", type(node).__name__), name
                            places.setdefault(key, (number, component, index, site))
        return places

    def change(self, number: int, choose: random.Random) -> tuple[Any, Change]:
        """A form and an edit of it."""
        while True:
            target = choose.choice(self.targets)
            components = target[2].components()
            changed: Change | None = None
            if number % 6 == 0:
                edit = choose.choice(kinds_of_edits(target[1]))
                edit_made = edited(components, edit, choose)
                changed = None if edit_made is None else (edit.__name__, *edit_made)
            elif number % 6 == 1:
                target, changed = self.change_attribute(number // 6, choose)
            else:
                changed = field_change(components, choose)
            if changed is not None:
                return target, changed

    def change_attribute(self, number: int, choose: random.Random) -> tuple[Any, Change | None]:
        """An edit of an attribute of an operation."""
        op, name = self.attributes[number % len(self.attributes)]
        which, component, index, site = self.sites[op, name]
        target = self.targets[which]
        components = target[2].components()
        section = sections_of(components)[index][1]
        opened = Opened(section)
        below = [s for s in sites(opened) if s.path[: len(site.path)] == site.path]
        changed = edited_at(opened, choose.choice(below), choose)
        if changed is None:
            return target, None
        return target, ("attribute", component, replaced(components, component, section, changed))

    def make(self, seed: int, number: int) -> None:
        """Make one edit, try to prove the result, and run it if it is proved."""
        choose = random.Random(f"{seed}:{number}")
        (case, name, form), (title, component, parts) = self.change(number, choose)
        where = f"{number} of {seed}: {case} {name} {component} {title}"
        answer = None
        try:
            broken = assemble(name, form.type_signature, parts)
            answer = prove(case.program(), name, parts).answer
        except TffcError:
            broken = form
        except Exception:  # noqa: BLE001 - which the prover may not have for any edit
            self.count_wrong("FAILED", where, traceback.format_exc())
            return
        self.tally[title, answer.value if answer else "refused"] += 1
        if answer is Answer.PROVED and self.runs[title] < MOST_RUNS:
            self.runs[title] += 1
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


def field_change(components: Any, choose: random.Random) -> Change | None:
    """An edit of a field of a message in a section, each kind of field as likely as any other."""
    sections = sections_of(components)
    if not sections:
        return None
    component, section = choose.choice(sections)
    opened = Opened(section)
    by_title: dict[str, list[Site]] = {}
    for site in sites(opened):
        by_title.setdefault(site.title, []).append(site)
    title = choose.choice(sorted(by_title))
    changed = edited_at(opened, choose.choice(by_title[title]), choose)
    if changed is None or changed.payload == section.payload:
        return None
    return title, component, replaced(components, component, section, changed)


def kinds_of_edits(form: str) -> tuple[Edit | ProgramEdit, ...]:
    """The edits for the components of a form, which may be programs."""
    return (*EDITS, *PROGRAM_EDITS) if form in ("distribute-aggregate", "mergeable") else EDITS


def main(count: int, seed: int = 0, first: int = 0) -> int:
    """Make edits, and print their outcomes."""
    attack = Attack()
    for number in range(first, count):
        attack.make(seed, number)
        if (number + 1) % EVERY == 0:
            gc.collect()
            say(f"{number + 1} edits, {attack.wrong} wrong")
    for (edit, answer), number in sorted(attack.tally.items()):
        say(f"{edit:40} {answer:12} {number}")
    say(f"{sum(attack.tally.values())} edits, {attack.wrong} wrong")
    return 1 if attack.wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
