"""Measured, aggregation and estimation processes: what makes one, what is refused, and with which
of TFF's errors."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import error_without_place
from tffc.frontend.templates import errors
from tffc.frontend.templates.rounds import round_of

fc = tff.federated_computation
Server, Clients = tff.types.at_server, tff.types.at_clients
Measured = tff.templates.MeasuredProcess
Aggregation = tff.templates.AggregationProcess
Estimation = tff.templates.EstimationProcess
Output = tff.templates.MeasuredProcessOutput

zero = fc(lambda: tff.federated_value(0, tff.SERVER))
bare_zero = fc(lambda: 0)
nothing = fc(lambda: tff.federated_value((), tff.SERVER))


def placed(make: Callable[..., Any], *types: Any) -> Any:
    """A round from the state and other arguments of these types."""
    return fc(make, Server(np.int32), *types)


add = placed(lambda s, v: Output(s, tff.federated_sum(v), s), Clients(np.int32))
twice = placed(
    lambda s, v: Output(
        s,
        tff.federated_map(fc(lambda x: (x, x), np.int32), v)[0],
        tff.federated_value((), tff.SERVER),
    ),
    Clients(np.int32),
)
weighted = placed(
    lambda s, v, w: Output(s, tff.federated_sum(v), s), Clients(np.int32), Clients(np.float32)
)
bare = fc(lambda s, v: Output(s, v, s), np.int32, np.int32)
same = fc(lambda s: s, np.int32)
placed_same = fc(lambda s: s, Server(np.int32))


def test_a_measured_process_runs() -> None:
    process = Measured(zero, add)
    assert isinstance(process, tff.templates.IterativeProcess)
    output = process.next(process.initialize(), [1, 2])
    assert output == Output(0, 3, 0)
    assert type(output) is Output
    assert Measured(bare_zero, bare).state_type == tff.to_type(np.int32)


def test_an_aggregation_process_says_whether_it_is_weighted() -> None:
    assert not Aggregation(zero, add).is_weighted
    assert Aggregation(zero, weighted).is_weighted
    assert isinstance(Aggregation(zero, add), Measured)


def test_a_state_of_two_elements_is_not_state_and_values() -> None:
    pair = fc(lambda: tff.federated_value((1, 2), tff.SERVER))
    values = fc(
        lambda s, v: Output(s, tff.federated_sum(v), s),
        Server((np.int32, np.int32)),
        Clients(np.int32),
    )
    assert Aggregation(pair, values).state_type == tff.to_type(Server((np.int32, np.int32)))


def test_estimates_are_mapped() -> None:
    process = Estimation(bare_zero, bare, same)
    pairs = process.map(fc(lambda x: (x, x), np.int32)).map(
        fc(lambda x: x[0], (np.int32, np.int32))
    )
    assert str(pairs.report.type_signature) == "(int32 -> int32)"
    assert pairs.report(3) == 3
    placed = Estimation(zero, add, placed_same).map(placed_same)
    assert str(placed.report.type_signature) == "(int32@SERVER -> int32@SERVER)"


@pytest.mark.tensorflow
def test_the_map_of_a_section_is_one() -> None:
    half = tff.tensorflow.computation(lambda x: x / 2, np.float32)
    one = tff.tensorflow.computation(lambda: np.float32(1))
    step = tff.tensorflow.computation(lambda x: x + 1, np.float32)
    mapped = Estimation(one, step, half).map(half)
    assert mapped.report(8.0) == 2.0

    @tff.tensorflow.computation(np.float32)
    def called_in_a_section(x: Any) -> Any:
        return mapped.report(x)

    assert called_in_a_section(8.0) == 2.0


def test_a_chain() -> None:
    chain = tff.templates.chain_measured_processes(
        collections.OrderedDict(first=Measured(zero, twice), second=Measured(zero, add))
    )
    assert str(chain.next.type_signature) == (
        "(<state=<first=int32,second=int32>@SERVER,values={int32}@CLIENTS> -> <state=<first=int32,"
        "second=int32>@SERVER,result=int32@SERVER,measurements=<first=<>,second=int32>@SERVER>)"
    )
    output = chain.next(chain.initialize(), [1, 2])
    assert output.result == 3
    assert output.state == collections.OrderedDict(first=0, second=0)
    assert output.measurements == collections.OrderedDict(first=(), second=0)


def test_processes_beside_one_another() -> None:
    both = tff.templates.concatenate_measured_processes(
        collections.OrderedDict(a=Measured(zero, add), b=Measured(zero, add))
    )
    assert str(both.next.type_signature) == (
        "(<state=<a=int32,b=int32>@SERVER,values=<a={int32}@CLIENTS,b={int32}@CLIENTS>> -> "
        "<state=<a=int32,b=int32>@SERVER,result=<a=int32@SERVER,b=int32@SERVER>,"
        "measurements=<a=int32,b=int32>@SERVER>)"
    )
    output = both.next(both.initialize(), collections.OrderedDict(a=[1, 2], b=[3, 4]))
    assert output.result == collections.OrderedDict(a=3, b=7)


def test_rounds_of_a_state_and_an_output() -> None:
    simple = round_of(Measured(zero, add))
    assert str(simple.type_signature) == (
        "(<state=int32@SERVER,data={int32}@CLIENTS> -> "
        "<int32@SERVER,<result=int32,measurements=int32>@SERVER>)"
    )
    state, output = simple(4, [1, 2])
    assert state == 4
    assert output == collections.OrderedDict(result=3, measurements=4)
    with_weights = round_of(Aggregation(zero, weighted))
    assert str(with_weights.type_signature.parameter) == (
        "<state=int32@SERVER,data={<v=int32,w=float32>}@CLIENTS>"
    )
    _, output = with_weights(4, [(1, 0.5), (2, 0.5)])
    assert output["result"] == 3


@pytest.mark.parametrize(
    "process",
    [
        tff.templates.IterativeProcess(zero, add),
        Measured(bare_zero, bare),
        Measured(zero, placed(lambda s: Output(s, s, s))),
        Measured(zero, placed(lambda s, v: Output(s, v, s), Clients(np.int32))),
        Measured(zero, placed(lambda s, v: Output(s, v, s), Server(np.int32))),
        Measured(zero, placed(lambda s, v: Output(s, (s, s), s), Clients(np.int32))),
    ],
    ids=["iterative", "not placed", "no values", "at the clients", "at the server", "parts"],
)
def test_other_rounds_stay_as_they_are(process: Any) -> None:
    assert round_of(process) is process.next


def test_an_error_of_another_library() -> None:
    error = errors.TemplateNotFederatedError("it is placed nowhere")
    assert isinstance(error, TypeError)
    assert str(error) == "it is placed nowhere [E186]"


PLACE = (
    "\n  help: place a constant with tff.federated_value; put parts together with tff.federated_zip"
)
SIDES = (
    "\n  help: an aggregation takes values at the clients and gives all that it gives at the server"
)
NAMES = "\n  help: give collections.OrderedDict(name=process, ...)"
chain = tff.templates.chain_measured_processes

REFUSED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "initialize takes an argument": (
        lambda: Measured(same, add),
        "TemplateInitFnParamNotEmptyError",
        "initialize_fn must take no argument, but is of type `(int32 -> int32)` [E474]\n"
        "  help: bind its arguments: tff.federated_computation(lambda: f(...))",
    ),
    "another state": (
        lambda: Measured(bare_zero, add),
        "TemplateStateNotAssignableError",
        "the state that initialize_fn makes is of type `int32`, but next_fn takes one of type "
        "`int32@SERVER` [E495]\n"
        "  help: give both the same type: change what initialize_fn returns, or the type in "
        "next_fn's decorator",
    ),
    "no measured output": (
        lambda: Measured(
            zero, placed(lambda s, v: (s, tff.federated_sum(v), s), Clients(np.int32))
        ),
        "TemplateNotMeasuredProcessOutputError",
        "next_fn must return a MeasuredProcessOutput, but gives "
        "`<int32@SERVER,int32@SERVER,int32@SERVER>` [E187]\n"
        "  help: return tff.templates.MeasuredProcessOutput(state, result, measurements)",
    ),
    "state alone": (
        lambda: Aggregation(zero, placed(lambda s: Output(s, s, s))),
        "TemplateNextFnNumArgsError",
        "the next_fn of an aggregation must take a state and values, but takes `int32@SERVER` "
        "[E190]\n"
        "  help: give its decorator the types of the state and of the clients' values",
    ),
    "state not placed": (
        lambda: Aggregation(bare_zero, bare),
        "AggregationNotFederatedError",
        "the state that initialize_fn makes must be placed as a whole, but is of type `int32` "
        "[E189]" + PLACE,
    ),
    "values in two parts": (
        lambda: Aggregation(
            zero,
            placed(lambda s, v: Output(s, s, s), (Clients(np.int32), Clients(np.int32))),
        ),
        "AggregationNotFederatedError",
        "argument 2 of next_fn must be placed as a whole, but is of type "
        "`<{int32}@CLIENTS,{int32}@CLIENTS>` [E189]" + PLACE,
    ),
    "result in two parts": (
        lambda: Aggregation(
            zero,
            placed(lambda s, v: Output(s, (s, s), s), Clients(np.int32)),
        ),
        "AggregationNotFederatedError",
        "the result that next_fn gives must be placed as a whole, but is of type "
        "`<int32@SERVER,int32@SERVER>` [E189]" + PLACE,
    ),
    "values at the server": (
        lambda: Aggregation(zero, placed(lambda s, v: Output(s, v, s), Server(np.int32))),
        "AggregationPlacementError",
        "argument 2 of next_fn, the values, must be at CLIENTS, but is of type `int32@SERVER` "
        "[E189]" + SIDES,
    ),
    "result at the clients": (
        lambda: Aggregation(zero, placed(lambda s, v: Output(s, v, s), Clients(np.int32))),
        "AggregationPlacementError",
        "the result that next_fn gives must be at SERVER, but is of type `{int32}@CLIENTS` "
        "[E189]" + SIDES,
    ),
    "measurements at the clients": (
        lambda: Aggregation(zero, placed(lambda s, v: Output(s, s, v), Clients(np.int32))),
        "AggregationPlacementError",
        "what next_fn gives as measurements must be at SERVER, but is of type `{int32}@CLIENTS` "
        "[E189]" + SIDES,
    ),
    "a report of something else": (
        lambda: Estimation(zero, add, same),
        "TemplateStateNotAssignableError",
        "report_fn must take the state, of type `int32@SERVER`, but is of type `(int32 -> int32)` "
        "[E190]\n  help: give its decorator the type of the state",
    ),
    "a report of nothing": (
        lambda: Estimation(zero, add, zero),
        "TemplateStateNotAssignableError",
        "report_fn must take the state, of type `int32@SERVER`, but is of type "
        "`( -> int32@SERVER)` [E190]\n  help: give its decorator the type of the state",
    ),
    "a map of something else": (
        lambda: Estimation(zero, add, placed_same).map(same),
        "EstimateNotAssignableError",
        "map_fn must take the estimate, of type `int32@SERVER`, but is of type `(int32 -> int32)` "
        "[E190]\n  help: give its decorator the type of the estimate",
    ),
    "a list": (
        lambda: chain([Measured(zero, add)]),  # type: ignore[arg-type]  # wrong on purpose
        "LanguageTypeError",
        "expected a mapping from names to measured processes, but found an object of class 'list' "
        "[E188]" + NAMES,
    ),
    "a process": (
        lambda: chain(Measured(zero, add)),  # type: ignore[arg-type]  # wrong on purpose
        "LanguageTypeError",
        "expected a mapping from names to measured processes, but found an object of class "
        "'MeasuredProcess' [E188]" + NAMES,
    ),
    "a computation": (
        lambda: chain({"a": zero}),
        "LanguageTypeError",
        "expected a mapping from names to measured processes, but found an object of class "
        "'Computation' [E188]" + NAMES,
    ),
    "no process": (
        lambda: chain({}),
        "LanguageTypeError",
        "expected a mapping from names to measured processes, but found an empty one [E188]"
        + NAMES,
    ),
    "states not at one side": (
        lambda: chain({"a": Measured(zero, add), "b": Measured(bare_zero, bare)}),
        "LanguageTypeError",
        "the states of the processes must all be placed, and all at the same side [E189]\n"
        "  note: a: int32@SERVER\n"
        "  note: b: int32\n"
        "  help: zip a state of several parts: tff.federated_zip((a, b))",
    ),
    "three arguments": (
        lambda: chain({"a": Measured(zero, weighted)}),
        "LanguageTypeError",
        "the next of each process must take a state and values, but one takes "
        "`<s=int32@SERVER,v={int32}@CLIENTS,w={float32}@CLIENTS>` [E190]\n"
        "  help: make what else it takes part of the values",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    make, kind, text = REFUSED[case]
    error = error_without_place(TypeError, make)
    assert type(error).__name__ == kind
    assert str(error) == text
