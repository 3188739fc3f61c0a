"""Work that a form may repeat: any except draws that are left in its components."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tffc.assurance.validation import validate
from tffc.assurance.validation.arguments import cases
from tffc.backends import compile_form
from tffc.language.nodes import Lambda, Node
from tffc.language.notation import parse
from tffc.language.traverse import rewrite
from tffc.passes.table import default_pipeline
from tffc.support.errors import FormError

STATE, DATA = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)
FORMS = ["mapreduce", "distribute-aggregate"]


def drawn() -> Any:
    return tf.random.uniform([], 0, 1_000_000, tf.int32)


@tff.tf_computation
def draw():
    return drawn()


@tff.tf_computation
def constant_and_draw():
    return 5, drawn()


@tff.tf_computation
def two_draws():
    return drawn(), drawn()


@tff.tf_computation
def one_draw_twice():
    first = drawn()
    return first, first + 1


@tff.tf_computation
def draws_of_one_generator():
    generator = tf.random.Generator.from_non_deterministic_state()
    return tuple(generator.uniform([], 0, 1_000_000, tf.int32) for _ in range(2))


@tff.tf_computation
def constant_and_draw_in_a_function():
    return tf.function(lambda: (5, drawn()))()


@tff.tf_computation
def draws_for_each_element():
    numbers = tf.data.Dataset.range(3)
    noisy = numbers.map(lambda number: tf.cast(number, tf.int32) + drawn())
    return noisy.reduce(0, lambda total, number: total + number), 5


@tff.tf_computation
def constant_and_draw_after_a_print():
    tf.print("drawing")
    return 5, drawn()


@tff.tf_computation(np.int32, np.int32)
def add(x, y):
    return x + y


def sends_one_and_keeps_the_other(pair: Any) -> Any:
    """A round that makes a pair at the server, broadcasts one element and returns the other."""

    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        made = tff.federated_eval(pair, tff.SERVER)
        masked = tff.federated_map(add, (data, tff.federated_broadcast(made[0])))
        return state, [tff.federated_sum(masked), made[1]]

    return program


def places_one_at_the_clients(pair: Any) -> Any:
    """A round that makes a pair without a placement and uses one element at the clients."""

    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        made = pair()
        masked = tff.federated_map(add, (data, tff.federated_value(made[0], tff.CLIENTS)))
        return state, [tff.federated_sum(masked), tff.federated_value(made[1], tff.SERVER)]

    return program


def draws_outside_an_aggregation(needing: str) -> Any:
    """A round that draws once, without a placement, for one of the functions of an aggregation."""

    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        noise = draw()

        def adding(part: str, total: Any) -> Any:
            return add(total, noise) if part == needing else total

        @tff.federated_computation(np.int32, np.int32)
        def accumulate(total, value):
            return adding("accumulate", add(total, value))

        @tff.federated_computation(np.int32, np.int32)
        def merge(one, other):
            return adding("merge", add(one, other))

        @tff.federated_computation(np.int32)
        def report(total):
            return adding("report", total)

        zero = adding("zero", tff.federated_computation(lambda: 0)())
        return state, tff.federated_aggregate(data, zero, accumulate, merge, report)

    return program


def refusal(program: Any, form: str) -> FormError:
    with pytest.raises(FormError) as caught:
        compile_form(program.node, form)
    assert caught.value.code == "E532"
    return caught.value


def assert_draws_as_often(program: Any, form: str) -> None:
    """Compile a program, run it and its form, and count the draws of both."""
    arguments = cases(program.type_signature.parameter, 3, seed=0)
    validate(program.node, arguments, default_pipeline(), form)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pair", [constant_and_draw, two_draws, draws_for_each_element])
def test_server_work_may_be_split_between_parts(pair: Any, form: str) -> None:
    assert_draws_as_often(sends_one_and_keeps_the_other(pair), form)


SHARED = [
    one_draw_twice,
    draws_of_one_generator,
    constant_and_draw_in_a_function,
    constant_and_draw_after_a_print,
]


@pytest.mark.parametrize("pair", SHARED)
def test_server_work_that_both_parts_need(pair: Any) -> None:
    program = sends_one_and_keeps_the_other(pair)
    assert refusal(program, "mapreduce").message.endswith(
        "= federated_eval_at_server(...)` does not always give the same, and both prepare and "
        "update need it"
    )
    assert_draws_as_often(program, "distribute-aggregate")


def test_constant_beside_a_draw_may_be_made_by_every_client() -> None:
    program = places_one_at_the_clients(constant_and_draw)
    assert_draws_as_often(program, "mapreduce")
    # Whose parts call sections whole.
    assert refusal(program, "distribute-aggregate").message.endswith("would run it again")


@pytest.mark.parametrize("pair", [two_draws, *SHARED])
def test_draw_that_every_client_would_make(pair: Any) -> None:
    error = refusal(places_one_at_the_clients(pair), "mapreduce")
    assert error.message.endswith("and every client would run it again")


@pytest.mark.parametrize(
    ("part", "repeated"),
    [
        ("zero", "every group of clients"),
        ("accumulate", "every client"),
        ("merge", "every two groups of clients"),
    ],
)
def test_draw_outside_an_aggregation(part: str, repeated: str) -> None:
    program = draws_outside_an_aggregation(part)
    error = refusal(program, "mapreduce")
    assert error.message == (
        "`fc_program_symbol_0 = a TensorFlow computation(...)` does not always give the same, and "
        f"{repeated} would run it again"
    )
    assert error.notes == (f"it is made outside of the aggregation whose {part} needs it",)
    assert error.help == (
        "compile to distribute-aggregate, draw it within the aggregation, or allow impure "
        "duplicates"
    )
    assert compile_form(program.node, "mapreduce", allow_impure_duplicates=True)
    assert_draws_as_often(program, "distribute-aggregate")


@pytest.mark.parametrize("form", FORMS)
def test_draw_for_what_an_aggregation_reports(form: str) -> None:
    assert_draws_as_often(draws_outside_an_aggregation("report"), form)


@tff.tf_computation(np.int32)
def noisy(x):
    return x + drawn()


@tff.tf_computation(np.int32)
def doubled(x):
    return x * 2


def shared_by_all(function: Any) -> Node:
    """A round that maps the broadcast value to one that all clients share.

    Only a message can express that, not a module.
    """
    clients, equal = "{int32}@CLIENTS", "int32@CLIENTS"
    total = f"({clients} -> int32@SERVER)"
    text = (
        f"(round: <int32@SERVER,{clients}> -> (let "
        f"b=federated_broadcast:(int32@SERVER -> {equal})(round[0]),"
        f"v=federated_map_all_equal:(<(int32 -> int32),{equal}> -> {equal})(<(x: int32 -> x),b>),"
        f"s=federated_sum:{total}(v),t=federated_sum:{total}(round[1]) in <s,t>))"
    )

    def put_in(node: Node) -> Node | None:
        return function.node if isinstance(node, Lambda) and node.parameter_name == "x" else None

    return rewrite(parse(text), put_in)


@pytest.mark.parametrize("form", FORMS)
def test_what_all_clients_share_is_not_drawn_for_each(form: str) -> None:
    compile_form(shared_by_all(doubled), form)
    with pytest.raises(FormError) as caught:
        compile_form(shared_by_all(noisy), form)
    assert caught.value.code == "E532"
    assert caught.value.notes == ("it gives one value, the same for all clients",)
