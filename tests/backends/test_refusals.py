"""Programs that no form, or not the requested one, can express: the exact messages and places."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tffc.backends import compile_form
from tffc.language import (
    CLIENTS,
    SERVER,
    Call,
    Data,
    DType,
    FederatedType,
    FunctionType,
    Intrinsic,
    Lambda,
    Node,
    Reference,
    Selection,
    StructNode,
    StructType,
    TensorType,
    at_clients,
    at_server,
)
from tffc.passes import parse_passes
from tffc.passes.table import PASSES, all_passes
from tffc.runtime.interpreter.interpreter import run
from tffc.support.errors import FormError, Span, VerificationError

INT = TensorType(DType.INT32)
STATE, DATA = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)


@tff.tf_computation
def draw():
    return tf.random.uniform([], 0, 100, tf.int32)


@tff.tf_computation(np.int32, np.int32)
def add(x, y):
    return x + y


@tff.federated_computation(STATE, DATA)
def broadcasts_an_aggregate(state, data):
    total = tff.federated_sum(data)
    sent = tff.federated_broadcast(total)
    return state, tff.federated_sum(tff.federated_map(add, (data, sent)))


@tff.federated_computation(STATE, DATA)
def aggregates(state, data):
    return state, tff.federated_sum(data)


@tff.federated_computation(STATE, DATA)
def answers_each_client(state, data):
    return tff.federated_map(add, (data, tff.federated_broadcast(state)))


@tff.federated_computation(STATE, DATA)
def sums_at_clients(state, data):
    tff.federated_sum(data)
    return tff.federated_map(add, (data, tff.federated_value(1, tff.CLIENTS)))


@tff.federated_computation(STATE, DATA)
def sends_and_keeps_a_draw(state, data):
    secret = tff.federated_eval(draw, tff.SERVER)
    masked = tff.federated_map(add, (data, tff.federated_broadcast(secret)))
    return state, [tff.federated_sum(masked), secret]


@tff.federated_computation(STATE, DATA)
def draws_without_a_place(state, data):
    everywhere = tff.federated_value(draw(), tff.CLIENTS)
    return state, tff.federated_sum(tff.federated_map(add, (data, everywhere)))


@tff.federated_computation(STATE, DATA)
def draws_at_each_client(state, data):
    own = tff.federated_eval(draw, tff.CLIENTS)
    return state, tff.federated_sum(tff.federated_map(add, (data, own)))


def line_of(function_name: str, text: str) -> int:
    """The line of this file that holds `text`, inside the function of that name."""
    lines = pathlib.Path(__file__).read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"def {function_name}("))
    return next(i for i, line in enumerate(lines[start:], start + 1) if text in line)


def refusal(program: Node, form: str) -> FormError:
    with pytest.raises(FormError) as caught:
        compile_form(program, form)
    return caught.value


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_broadcast_of_an_aggregate(form: str) -> None:
    error = refusal(broadcasts_an_aggregate.node, form)
    summed = line_of("broadcasts_an_aggregate", "total = ")
    assert error.code == "E511"
    assert error.message == (
        "a broadcast depends on an aggregation: `fc_broadcasts_an_aggregate_symbol_1 = "
        "federated_broadcast(...)` cannot run in the same round"
    )
    assert error.notes == (
        "it needs `fc_broadcasts_an_aggregate_symbol_0 = federated_sum(...)` "
        f"at {__file__}:{summed}:\n  total = tff.federated_sum(data)",
    )
    assert error.help == (
        "a round broadcasts first and aggregates last; keep the aggregate in the server state "
        "and use it in the next round"
    )
    assert error.span is not None
    assert error.span.line == line_of("broadcasts_an_aggregate", "sent = ")


@tff.federated_computation(STATE, DATA)
def broadcasts_what_is_made_of_an_aggregate(state, data):
    total = tff.federated_sum(data)
    more = tff.federated_map(add, (total, state))
    return state, tff.federated_sum(tff.federated_broadcast(more))


def test_each_line_of_a_chain_is_shown_once() -> None:
    name = "broadcasts_what_is_made_of_an_aggregate"
    total, more = line_of(name, "total ="), line_of(name, "more =")
    assert refusal(broadcasts_what_is_made_of_an_aggregate.node, "mapreduce").notes == (
        f"it needs `fc_{name}_symbol_1 = federated_apply(...)` at {__file__}:{more}:\n"
        "  more = tff.federated_map(add, (total, state))",
        f"it needs `v_1 = federated_zip_at_server(...)` at {__file__}:{more}",
        f"it needs `fc_{name}_symbol_0 = federated_sum(...)` at {__file__}:{total}:\n"
        "  total = tff.federated_sum(data)",
    )


def test_broadcast_form_of_an_aggregation() -> None:
    error = refusal(aggregates.node, "broadcast")
    assert error.code == "E510"
    assert error.message == (
        "the result is one value placed at the clients; found "
        "`(<state=int32@SERVER,data={int32}@CLIENTS> -> <int32@SERVER,int32@SERVER>)`"
    )


def test_aggregate_parameter_that_needs_an_aggregate() -> None:
    argument = Reference("p", StructType([at_server(INT), at_clients(INT)]))
    total = Call(
        Intrinsic("federated_sum", FunctionType(at_clients(INT), at_server(INT))),
        Selection(argument, 1),
    )
    error = refusal(round_of(argument, secure_sum(Selection(argument, 1), total)), "mapreduce")
    assert error.code == "E511"
    assert error.message == (
        "an aggregation depends on an aggregation: `v_2 = federated_secure_sum(...)` cannot run "
        "in the same round"
    )
    assert error.notes == ("it needs `v_1 = federated_sum(...)`",)


def test_bound_that_needs_the_state() -> None:
    argument = Reference("p", StructType([at_server(INT), at_clients(INT)]))
    program = round_of(argument, secure_sum(Selection(argument, 1), Selection(argument, 0)))
    error = refusal(program, "mapreduce")
    assert str(error) == (
        "a bound of `v_1 = federated_secure_sum(...)` depends on the server state [E531]\n"
        "  note: this form has no channel from the server to its secure sums\n"
        "  help: compile to distribute-aggregate, or make the bound a constant"
    )
    assert compile_form(program, "distribute-aggregate")


def secure_sum(value: Node, bound: Node) -> Node:
    type_ = FunctionType(StructType([at_clients(INT), bound.type]), at_server(INT))
    return Call(Intrinsic("federated_secure_sum", type_), StructNode((value, bound)))


def round_of(argument: Reference, output: Node) -> Node:
    return Lambda(argument.name, argument.type, StructNode((Selection(argument, 0), output)))


def test_impure_work_that_two_parts_need() -> None:
    error = refusal(sends_and_keeps_a_draw.node, "mapreduce")
    assert error.code == "E532"
    assert error.message == (
        "`fc_sends_and_keeps_a_draw_symbol_0 = federated_eval_at_server(...)` does not always "
        "give the same, and both prepare and update need it"
    )
    assert error.notes == ("the form has no channel that carries one result to all that need it",)
    assert error.help == "compile to distribute-aggregate, or allow impure duplicates"
    assert error.span is not None
    assert error.span.line == line_of("sends_and_keeps_a_draw", "secret = ")
    assert compile_form(sends_and_keeps_a_draw.node, "mapreduce", allow_impure_duplicates=True)
    assert compile_form(sends_and_keeps_a_draw.node, "distribute-aggregate")


@pytest.mark.parametrize(
    ("form", "part"), [("mapreduce", "work"), ("distribute-aggregate", "client_work")]
)
def test_impure_value_that_every_client_would_make(form: str, part: str) -> None:
    error = refusal(draws_without_a_place.node, form)
    assert error.code == "E532"
    assert error.message == (
        "`fc_draws_without_a_place_symbol_0 = a TensorFlow computation(...)` does not always give "
        "the same, and every client would run it again"
    )
    assert error.notes == ("it has no placement, and what is at the clients needs it",)
    assert error.help == (
        "make the value at the server with tff.federated_eval and broadcast it, let each client "
        "make its own with tff.federated_eval(f, tff.CLIENTS), or allow impure duplicates"
    )


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_each_client_may_draw_for_itself(form: str) -> None:
    assert compile_form(draws_at_each_client.node, form)


def test_dead_aggregation_is_forgiven() -> None:
    assert compile_form(sums_at_clients.node, "broadcast")


TWO_ARGUMENTS = (
    "join several server values in a struct; the clients' data may be several arguments, and "
    "alone, if there is no state"
)
TWO_RESULTS = "return both; an empty struct stands for no output"
AT_SERVER = "aggregate what is at the clients, and place what is nowhere with tff.federated_value"
FIRST_AND_SECOND = "the server state comes first, the clients' data second"

SIGNATURES = [
    ("a round is a function", INT, None),
    (
        "a round takes two arguments, the server state and the clients' data",
        FunctionType(at_server(INT), [at_server(INT), at_server(INT)]),
        TWO_ARGUMENTS,
    ),
    (
        "the first argument of a round is placed at the server",
        FunctionType([at_clients(INT), at_server(INT)], [at_server(INT), at_server(INT)]),
        FIRST_AND_SECOND,
    ),
    (
        "the second argument of a round is placed at the clients",
        FunctionType([at_server(INT), at_server(INT)], [at_server(INT), at_server(INT)]),
        FIRST_AND_SECOND,
    ),
    (
        "a round returns two values, the new server state and the server output",
        FunctionType([at_server(INT), at_clients(INT)], at_server(INT)),
        TWO_RESULTS,
    ),
    (
        "the new state of a round is placed at the server",
        FunctionType([at_server(INT), at_clients(INT)], [at_clients(INT), at_server(INT)]),
        None,
    ),
    (
        "the output of a round is placed at the server",
        FunctionType([at_server(INT), at_clients(INT)], [at_server(INT), at_clients(INT)]),
        AT_SERVER,
    ),
]


@pytest.mark.parametrize(("rule", "found", "help"), SIGNATURES)
def test_signature(rule: str, found, help: str | None) -> None:
    error = refusal(Reference("r", found), "mapreduce")
    assert str(error) == (
        f"{rule}; found `{found}` [E510]\n"
        "  note: expected `(<S@SERVER,{D}@CLIENTS> -> <S@SERVER,X@SERVER>)`"
        + (f"\n  help: {help}" if help else "")
    )


@tff.federated_computation(STATE, DATA)
def gives_three_values(state, data):
    total = tff.federated_sum(data)
    return state, total, total


def test_more_than_two_values() -> None:
    error = refusal(gives_three_values.node, "mapreduce")
    assert error.code == "E510"
    assert error.help == "return two: the state, and a struct of all the rest as the output"


@tff.federated_computation(STATE, DATA)
def gives_clients_values(state, data):
    doubled = tff.federated_map(add, (data, data))
    return state, doubled


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_the_line_that_makes_a_misplaced_result(form: str) -> None:
    error = refusal(gives_clients_values.node, form)
    assert error.span is not None
    assert error.span.line == line_of("gives_clients_values", "doubled =")


def test_broadcast_form_of_two_results() -> None:
    error = refusal(gives_clients_values.node, "broadcast")
    defined = line_of("gives_clients_values", "def ")
    assert str(error) == (
        "the result is one value placed at the clients; found "
        "`(<state=int32@SERVER,data={int32}@CLIENTS> -> <int32@SERVER,{int32}@CLIENTS>)` [E510]\n"
        f"  at {__file__}:{defined}\n"
        "  note: expected `(<S@SERVER,{D}@CLIENTS> -> {Y}@CLIENTS)`\n"
        "  help: join several values with tff.federated_zip; a round that aggregates has another "
        "form"
    )


@tff.federated_computation(STATE, DATA)
def keeps_the_data(state, data):
    return data, tff.federated_sum(data)


@tff.federated_computation(DATA, STATE)
def takes_the_data_first(data, state):
    return state, tff.federated_sum(data)


@tff.federated_computation(tff.types.at_server([np.int32, np.int32]), DATA)
def keeps_half_of_the_state(state, data):
    return state[0], tff.federated_sum(data)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("keeps_the_data", "E510"),
        ("takes_the_data_first", "E510"),
        ("keeps_half_of_the_state", "E495"),
    ],
)
def test_the_definition_where_no_binding_is_at_fault(name: str, code: str) -> None:
    error = refusal(globals()[name].node, "mapreduce")
    line = line_of(name, "def ")
    assert error.code == code
    assert error.span == Span(__file__, line, 0, line, len(f"def {name}"))


def test_passes_keep_where_a_program_is_defined() -> None:
    steps = parse_passes(",".join(["unique-names{stem=v}", *all_passes()]), all_passes())
    programs: list[Node] = []
    steps.run(changes_the_state.node, [lambda finished: programs.append(finished.after)])
    places = [program.span for program in programs if isinstance(program, Lambda)]
    line = line_of("changes_the_state", "def ")
    assert [place and place.line for place in places] == [line] * (len(all_passes()) + 1)


@tff.tf_computation(np.int32)
def to_float(x):
    return tf.cast(x, tf.float32)


@tff.federated_computation(STATE, DATA)
def changes_the_state(state, data):
    mean = tff.federated_mean(tff.federated_map(to_float, data))
    return mean, state


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_state_of_another_type(form: str) -> None:
    error = refusal(changes_the_state.node, form)
    assert error.code == "E495"
    assert error.message == (
        "the new state of a round is of type `float32`, the state before it of type `int32`"
    )
    assert error.help == (
        "the new state goes into the next round: give it the type and the names that the state has"
    )
    assert error.span is not None
    assert error.span.line == line_of("changes_the_state", "mean =")


@tff.federated_computation(STATE, DATA)
def puts_out_what_is_nowhere(state, data):
    return tff.federated_sum(data), (state, add(1, 2))


def test_an_output_without_a_placement() -> None:
    """Only DistributeAggregateForm accepts it, as in TensorFlow Federated."""
    assert refusal(puts_out_what_is_nowhere.node, "mapreduce").code == "E510"
    form = compile_form(puts_out_what_is_nowhere.node, "distribute-aggregate")
    expected = (6, (5, 3))
    assert run(puts_out_what_is_nowhere.node, (5, [1, 2, 3])) == expected
    assert run(form.decompile(), (5, [1, 2, 3])) == expected


def test_an_output_at_the_clients_has_no_form() -> None:
    error = refusal(gives_clients_values.node, "distribute-aggregate")
    assert error.message == (
        "the output of a round is not placed at the clients; found "
        "`(<state=int32@SERVER,data={int32}@CLIENTS> -> <int32@SERVER,{int32}@CLIENTS>)`"
    )
    assert error.help == "aggregate what is at the clients"


def test_data_block() -> None:
    argument = Reference("p", StructType([at_server(INT), at_clients(INT)]))
    value = Call(
        Intrinsic("federated_value_at_server", FunctionType(INT, at_server(INT))),
        Data("", b"", INT),
    )
    error = refusal(round_of(argument, value), "mapreduce")
    assert str(error) == (
        "a Data of type `int32` cannot be put into a graph [E520]"
        "\n  help: take the value as an argument of the program, or compute it in "
        "TensorFlow"
    )
    assert compile_form(round_of(argument, value), "distribute-aggregate")


def test_round_that_is_no_lambda() -> None:
    type_ = FunctionType(
        StructType([FederatedType(INT, SERVER), FederatedType(INT, CLIENTS)]),
        StructType([at_server(INT), at_server(INT)]),
    )
    error = refusal(Intrinsic("my_own_round", type_), "mapreduce")
    assert str(error) == "a round has to be written out as a lambda, found an Intrinsic [E514]"


def test_unknown_form() -> None:
    error = refusal(aggregates.node, "mapreduces")
    assert str(error) == "there is no form 'mapreduces' [E500]\n  help: did you mean 'mapreduce'?"


@tff.tf_computation(np.int32, np.int32)
def ignored_key(value, key):
    return value


@tff.tf_computation
def one_key():
    return tf.constant([0], tf.int32)


@tff.tf_computation(tff.SequenceType(np.int32))
def total(slices):
    return slices.reduce(0, lambda one, other: one + other)


@tff.federated_computation(STATE, DATA)
def selects(state, data):
    keys = tff.federated_eval(one_key, tff.CLIENTS)
    most = tff.federated_value(1, tff.SERVER)
    slices = tff.federated_select(keys, most, state, ignored_key)
    return state, tff.federated_sum(tff.federated_map(total, slices))


def test_a_pipeline_that_leaves_selections() -> None:
    pipeline = parse_passes("call-dominant", PASSES)
    with pytest.raises(VerificationError) as caught:
        compile_form(selects.to_building_block(), "distribute-aggregate", pipeline)
    assert caught.value.message == (
        "the operator federated_select selects slices of a server value"
    )
    assert caught.value.help == "the pass lower-select writes it in terms of other operators"
