"""The table of recorded computations: one row a case, for every form what both sides make of it.

    TFFC_CORPUS=DIR python -m tests.corpus.table [CASE...]

A form's column says

    same    both compile it, to parts of the same types, and the parts give the recorded results
    ours    only tffc compiles it, and the parts give the recorded results
    none    neither does; the code is tffc's reason

Anything else is a difference, and makes the exit code 1.  Results that TensorFlow Federated itself
does not reproduce are compared in type and rank only.
"""

from __future__ import annotations

import collections
import re
import sys
from collections.abc import Sequence
from typing import Any

from tests.corpus.cases import MISSING, Case, cases
from tests.forms import (
    groupings,
    run_broadcast,
    run_distribute_aggregate,
    run_mapreduce,
    run_mergeable,
)
from tffc.backends import compile_form
from tffc.backends.forms.broadcast import BroadcastForm
from tffc.backends.forms.distribute_aggregate import DistributeAggregateForm
from tffc.backends.forms.form import Form
from tffc.backends.forms.kinds import FORMS
from tffc.backends.forms.map_reduce import MapReduceForm
from tffc.backends.forms.mergeable import MergeableForm
from tffc.language import FunctionType, Lambda, StructType, TensorType, Type
from tffc.language.notation import parse
from tffc.language.notation.lexer import quoted
from tffc.language.type_parts import local_type
from tffc.language.values.concrete import Federated, to_python, to_value
from tffc.language.wire import from_bytes, to_bytes
from tffc.support.errors import TffcError

NAME = re.compile(r"([^<>(){},=\s]+)=")
GOOD = ("same", "ours", "none")


def verdict(case: Case, form: str) -> str:
    """What both sides make of a case: a word of the table, and why."""
    recorded = case.forms.get(form.replace("-", "_"), {})
    try:
        made = compile_form(case.program(), form)
    except TffcError as error:
        return f"REFUSED {error.code}" if recorded.get("ok") else f"none {error.code}"
    for part in made.components().values():
        assert from_bytes(to_bytes(part)) == part
    if not recorded.get("ok"):
        return "ours" if agrees(case, made) else "OTHER RESULTS"
    theirs = {name: type_of(part["type"]) for name, part in recorded["components"].items()}
    other = other_types(made, theirs)
    if other:
        return f"OTHER TYPES {other}"
    return "same" if agrees(case, made) else "OTHER RESULTS"


def type_of(text: str) -> Type:
    """The type that TensorFlow Federated prints like this."""
    named = NAME.sub(lambda match: f"{quoted(match[1])}=", text)
    function = parse(f"(x:{named} -> x)")
    assert isinstance(function, Lambda)
    assert function.parameter_type is not None
    return function.parameter_type


def other_types(made: Form, theirs: dict[str, Type]) -> str:
    """What differs from the types of the other side's parts; empty if nothing does."""
    ours = {name: part.type for name, part in made.components().items()}
    if isinstance(made, DistributeAggregateForm):
        return other_passed_types(ours, theirs)
    return ", ".join(name for name, type_ in theirs.items() if str(ours[name]) != str(type_))


def other_passed_types(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """As `other_types`, for what passes between the parts of a DistributeAggregateForm.

    What is sent, collected and summed is the same, but for the empty struct that TensorFlow
    Federated broadcasts to keep aggregation parameters early.  The temporary state is not larger.
    """
    prepare, sent, work, collect, finish = ours
    differs = {
        "state": str(ours[prepare].parameter) != str(theirs[prepare].parameter),
        "data": str(ours[work].parameter[0]) != str(theirs[work].parameter[0]),
        "broadcast": str(ours[sent]) != str(without_empty(theirs[sent])),
        "aggregates": str(ours[collect].result) != str(theirs[collect].result),
        "result": str(ours[finish].result) != str(theirs[finish].result),
        "temporary state": bool(
            tensors(ours[prepare].result[1]) - tensors(theirs[prepare].result[1])
        ),
    }
    return ", ".join(name for name, is_other in differs.items() if is_other)


def without_empty(sent: FunctionType) -> FunctionType:
    """A broadcast's type without empty structs among what is sent."""

    def nonempty(type_: Type | None) -> StructType:
        assert isinstance(type_, StructType)
        return StructType([element for element in type_ if tensors(element)])

    return FunctionType(nonempty(sent.parameter), nonempty(sent.result))


def tensors(type_: Type) -> collections.Counter[Type]:
    """How many tensors of each type a value holds; those in a sequence's element count once."""
    if isinstance(type_, TensorType):
        return collections.Counter([type_])
    inner = (tensors(child) for child in type_.children())
    return sum(inner, start=collections.Counter[Type]())


def agrees(case: Case, made: Form) -> bool:
    """Whether a form's parts give the recorded results, if there are any, in every grouping of the
    clients where the form has groups."""
    if not case.has("io.json"):
        return True
    recorded = case.rounds()
    return not any(
        recorded.compare_result(index, result_of_round(made, one, sizes))
        for index, one in enumerate(recorded.rounds)
        for sizes in (groupings(one.n_clients) if isinstance(made, MergeableForm) else [()])
    )


def result_of_round(made: Form, recorded: Any, sizes: Sequence[int] = ()) -> Any:
    """What a form's parts give for the arguments of a recorded round, with the clients in groups of
    these sizes."""
    assert made.type_signature.parameter is not None
    state, data = to_value(recorded.arg, made.type_signature.parameter)
    clients = at_each(data, recorded.n_clients)
    result = made.type_signature.result
    match made:
        case MapReduceForm():
            return to_python(run_mapreduce(made, unplaced(state), clients), local_type(result))
        case BroadcastForm():
            outputs = run_broadcast(made, unplaced(state), clients)
            return [to_python(value, local_type(result)) for value in outputs]
        case DistributeAggregateForm():
            found = run_distribute_aggregate(made, state, data, recorded.n_clients)
            return to_python(found, result)
        case MergeableForm():
            found = run_mergeable(made, state, data, recorded.n_clients, sizes)
            return to_python(found, result)


def unplaced(value: Any) -> Any:
    """A server value, or a struct of them, as the value of its members."""
    if isinstance(value, Federated):
        return value.members[0]
    return tuple(unplaced(inner) for inner in value)


def at_each(value: Any, clients: int) -> list[Any]:
    """What each client holds of a value, or of a struct of values, placed at the clients."""
    if isinstance(value, Federated):
        return list(value.at_each(clients))
    parts = [at_each(inner, clients) for inner in value]
    return [tuple(part[client] for part in parts) for client in range(clients)]


def main(names: list[str]) -> int:
    """Prints the table; 1 if a row holds a difference or there are no rows."""
    if not cases():
        print(MISSING, file=sys.stderr)
        return 1
    chosen = [case for case in cases() if not names or str(case) in names]
    failed = 0
    for case in chosen:
        row = [verdict(case, form) for form in FORMS]
        failed += any(cell.split()[0] not in GOOD for cell in row)
        # What the script is for.
        print(f"{case!s:52}", *(f"{cell:14}" for cell in row), flush=True)
    print(f"{len(chosen)} cases, {failed} with differences")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
