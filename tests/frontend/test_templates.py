"""Iterative processes: what makes one, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import error_without_place
from tffc.support.errors import LanguageTypeError

fc = tff.federated_computation
Server, Clients = tff.types.at_server, tff.types.at_clients
Process = tff.templates.IterativeProcess

zero = fc(lambda: tff.federated_value(0, tff.SERVER))
step = fc(lambda s, d: (s, tff.federated_sum(d)), Server(np.int32), Clients(np.int32))
only = fc(lambda s: s, Server(np.int32))
two = fc(lambda: (1, 2))
swap = fc(lambda s: (s[1], s[0]), [np.int32, np.int32])


@pytest.mark.parametrize(
    ("initialize", "round_"),
    [
        (zero, step),
        (zero, only),
        (two, swap),
        (two, fc(lambda s, x: (s, x), [np.int32, np.int32], np.int32)),
    ],
)
def test_processes(initialize: Any, round_: Any) -> None:
    process = Process(initialize, round_)
    assert process.initialize is initialize
    assert process.next is round_
    assert process.state_type.is_equivalent_to(initialize.type_signature.result)
    parameter = round_.type_signature.parameter
    first = parameter[0] if isinstance(parameter, tff.StructType) else parameter
    assert process.state_type in (parameter, first)


@pytest.mark.tensorflow
def test_the_type_of_the_state_is_what_a_round_takes() -> None:
    none_yet = tff.tensorflow.computation(lambda: np.zeros([0], np.float32))
    any_number = tff.tensorflow.computation(lambda s: s, tff.TensorType(np.float32, [None]))
    assert str(Process(none_yet, any_number).state_type) == "float32[?]"


def test_the_state_is_the_first_argument_where_that_is_said() -> None:
    pair = fc(lambda: ((1, 2), 3))
    first = fc(lambda s: s[0], [[np.int32, np.int32], np.int32])
    with pytest.raises(TypeError, match="E495"):
        Process(pair, first, next_is_multi_arg=True)
    with pytest.raises(TypeError, match="E495"):
        Process(zero, step, next_is_multi_arg=False)
    assert Process(zero, step, next_is_multi_arg=True).next is step
    with pytest.raises(LanguageTypeError) as caught:
        Process(zero, only, next_is_multi_arg=True)
    assert (caught.value.code, caught.value.message, caught.value.help) == (
        "E197",
        "next_fn must take the state as the first of several arguments, but takes one of type "
        "`int32@SERVER`",
        "leave next_is_multi_arg out",
    )


def test_which_have_a_state() -> None:
    nothing = fc(lambda: tff.federated_value([(), ()], tff.SERVER))
    same = fc(lambda s: s, Server([[], []]))
    assert tff.templates.is_stateful(Process(zero, only))
    assert not tff.templates.is_stateful(Process(nothing, same))


def test_repr() -> None:
    assert repr(Process(zero, step)) == "<iterative process with state of type int32@SERVER>"


DECORATE = (
    "\n  help: decorate it with @tff.tensorflow.computation(...) or @tff.federated_computation(...)"
)

REFUSED: dict[str, tuple[Any, Any, str]] = {
    "no computation": (
        max,
        step,
        "initialize_fn must be a computation with types for its parameters, but is the Python "
        "function 'max' [E417]" + DECORATE,
    ),
    "polymorphic": (
        zero,
        fc(lambda s: s),
        "next_fn must be a computation with types for its parameters, but is an object of class "
        "'PolymorphicComputation' [E417]" + DECORATE,
    ),
    "initialize takes an argument": (
        only,
        step,
        "initialize_fn must take no argument, but is of type `(int32@SERVER -> int32@SERVER)` "
        "[E474]\n  help: bind its arguments: tff.federated_computation(lambda: f(...))",
    ),
    "next takes no argument": (
        zero,
        zero,
        "next_fn must take the state, but is of type `( -> int32@SERVER)`, without argument [E474]",
    ),
    "another state is made": (
        two,
        step,
        "the state that initialize_fn makes is of type `<int32,int32>`, but next_fn takes one of "
        "type `int32@SERVER` [E495]\n"
        "  help: give both the same type: change what initialize_fn returns, or the type in "
        "next_fn's decorator",
    ),
    "a misspelt field is made": (
        fc(lambda: tff.federated_value({"rate": 0, "cuont": 0}, tff.SERVER)),
        fc(lambda s, d: (s, d), Server({"rate": np.int32, "count": np.int32}), Clients(np.int32)),
        "the state that initialize_fn makes is of type `<rate=int32,cuont=int32>@SERVER`, but "
        "next_fn takes one of type `<rate=int32,count=int32>@SERVER` [E495]\n"
        "  note: it has an element named 'cuont' where 'count' is expected\n"
        "  help: give both the same type: change what initialize_fn returns, or the type in "
        "next_fn's decorator",
    ),
    "another state is given": (
        zero,
        fc(lambda s: (tff.federated_broadcast(s), s), Server(np.int32)),
        "the state that next_fn gives is of type `int32@CLIENTS`, but the one it takes is of type "
        "`int32@SERVER` [E495]\n"
        "  help: give the next state first, with the element types and shapes of the state taken",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    initialize, round_, text = REFUSED[case]
    assert str(error_without_place(TypeError, lambda: Process(initialize, round_))) == text
