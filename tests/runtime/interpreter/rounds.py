"""Run the recorded rounds in the reference interpreter and compare the results.

    python -m tests.runtime.interpreter.rounds [CASE...]

prints a line for each case, and a count.  `TFFC_CORPUS` names the folder of recordings.
"""

from __future__ import annotations

import collections
import sys
import time
from typing import Any

from tests.corpus.cases import Case, cases, recordings
from tffc.language.types import FunctionType
from tffc.runtime.interpreter import interpreter
from tffc.support.errors import TffcError


def run_case(case: Case) -> list[str]:
    """The differences from the recorded results, over all rounds of the case."""
    recorded = case.rounds()
    program = case.program()
    type = program.type
    assert isinstance(type, FunctionType)
    differences = initial_state(case, recorded)
    for number, round in enumerate(recorded.rounds):
        argument = None if type.parameter is None else by_position(round.arg, recorded.param_type)
        result = interpreter.run(program, argument)
        found = recorded.compare_result(number, as_recorded(result, recorded.result_type))
        differences += [f"round {number}: {line}" for line in found]
    return differences


def initial_state(case: Case, recorded: Any) -> list[str]:
    """The differences between the computed first state and the recorded one."""
    if not case.has("init.pb") or not case.meta["init_reproducible"]:
        return []
    _, type = recorded.param_type["elements"][0]
    first = recorded.rounds[0].arg
    wanted = next(iter(first.values())) if isinstance(first, dict) else first[0]
    found = as_recorded(interpreter.run(case.program("init")), type)
    return [f"initial state: {line}" for line in recordings().compare(type, found, wanted)]


def by_position(value: Any, type: Any) -> Any:
    """A recorded value with structs as tuples, so that names make no difference."""
    match type["k"]:
        case "struct":
            kinds = [kind for _, kind in type["elements"]]
            parts = value.values() if isinstance(value, dict) else value
            return tuple(by_position(v, t) for v, t in zip(parts, kinds, strict=True))
        case "seq":
            return [by_position(element, type["element"]) for element in value]
        case "fed" if type["placement"] == "clients" and not type["all_equal"]:
            return [by_position(member, type["member"]) for member in value]
        case "fed":
            return by_position(value, type["member"])
        case _:
            return value


def as_recorded(value: Any, type: Any) -> Any:
    """A result with structs as in the recordings."""
    match type["k"]:
        case "struct":
            names = [name for name, _ in type["elements"]]
            kinds = [kind for _, kind in type["elements"]]
            parts = list(value.values() if isinstance(value, dict) else value)
            parts = [as_recorded(v, t) for v, t in zip(parts, kinds, strict=True)]
            if names and None not in names:
                return collections.OrderedDict(zip(names, parts, strict=True))
            return tuple(parts)
        case "seq":
            return [as_recorded(element, type["element"]) for element in value]
        case "fed" if type["placement"] == "clients" and not type["all_equal"]:
            return [as_recorded(member, type["member"]) for member in value]
        case "fed":
            return as_recorded(value, type["member"])
        case _:
            return value


def main(names: list[str]) -> int:
    """Print the table; return 1 if a case differs or fails."""
    counts: collections.Counter[str] = collections.Counter()
    for case in cases():
        if names and str(case) not in names:
            continue
        outcome, detail, begin = "not recorded", "", time.perf_counter()
        if case.has("io.json"):
            try:
                differences = run_case(case)
            except TffcError as error:
                outcome, detail = "fails", str(error)
            else:
                outcome = "differs" if differences else "agrees"
                detail = "; ".join(differences)
        counts[outcome] += 1
        seconds = time.perf_counter() - begin
        sys.stdout.write(f"{case!s:45} {outcome:12} {seconds:6.2f} s  {detail}".rstrip() + "\n")
    sys.stdout.write(", ".join(f"{n} {o}" for o, n in sorted(counts.items())) + "\n")
    return 1 if counts["differs"] or counts["fails"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
