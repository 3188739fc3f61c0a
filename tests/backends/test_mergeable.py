"""MergeableForm: its parts, rounds in groups of clients, what cannot be repeated, and refusals."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import pathlib
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.backends.test_purity import (
    add,
    constant_and_draw,
    draw,
    draws_outside_an_aggregation,
    sends_one_and_keeps_the_other,
)
from tests.forms import groupings, run_mergeable
from tests.processes import run_python
from tests.refusals import refusal
from tffc.backends import compile_form
from tffc.backends.forms.mergeable import MergeableForm
from tffc.backends.forms.steps import TupleAggregation
from tffc.language import Node, StructType
from tffc.language.notation import parse
from tffc.language.values.concrete import to_python, to_value
from tffc.language.wire import to_bytes
from tffc.runtime.engines.runtime import EngineRuntime
from tffc.runtime.interpreter.interpreter import run
from tffc.support.errors import ExecutionError, FormError
from tffc.tff.modular_sum import federated_secure_modular_sum

STATE, DATA = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)
INTS, PAIR = "{int32}@CLIENTS", "<int32,int32[2]>"


def mergeable(program: Any, *, allow_impure_duplicates: bool = False) -> MergeableForm:
    node = getattr(program, "node", program)
    form = compile_form(node, "mergeable", allow_impure_duplicates=allow_impure_duplicates)
    assert isinstance(form, MergeableForm)
    return form


def in_groups(form: MergeableForm, state: Any, clients: list[Any], sizes: tuple[int, ...]) -> Any:
    """The new state and the output of a round, with the clients in groups of these sizes."""
    kind = form.type_signature.parameter
    assert isinstance(kind, StructType)
    placed, data = to_value((state, clients), kind)
    result = run_mergeable(form, placed, data, len(clients), sizes)
    return to_python(result, form.type_signature.result)


def assert_same_in_all_groupings(program: Node, state: Any, clients: list[Any]) -> None:
    form, expected = mergeable(program), run(program, (state, clients))
    for sizes in groupings(len(clients)):
        found = in_groups(form, state, clients, sizes)
        np.testing.assert_equal(found, expected, err_msg=f"groups of {sizes}")


def reduced(operator: str, kind: str = "int32", state: str = "int32", extra: str = "") -> Node:
    """A round that gives what an operator makes of the clients' values; `extra` is one more
    operand."""
    taken = f"{{{kind}}}@CLIENTS"
    bound, operand = extra.split(" ", 1) if extra else ("", "")
    argument = f"<{taken},{bound}>" if extra else taken
    given = f"<p[1],{operand}>" if extra else "p[1]"
    return parse(
        f"(p: <{state}@SERVER,{taken}> -> (let "
        f"a={operator}:({argument} -> {kind}@SERVER)({given}) in <p[0],a>))"
    )


def test_parts_of_a_sum() -> None:
    form = mergeable(reduced("federated_sum"))
    assert {name: str(part) for name, part in form.components().items()} == {
        "up_to_merge": "(p -> (let a=federated_sum(p[1]),partial_1=federated_zip_at_server(<a>) "
        "in partial_1))",
        "merge": "(merge_arg -> (let merged_1=(value_1 -> (let plus_1=generic_plus(<value_1[0],"
        "value_1[1]>) in plus_1))(<merge_arg[0][0],merge_arg[1][0]>) in <merged_1>))",
        "after_merge": "(after_merge_arg -> (let a=federated_apply(<(all_1 -> all_1[0]),"
        "after_merge_arg[1]>) in <after_merge_arg[0][0],a>))",
    }
    assert form.summary() == (
        "up_to_merge: (<int32@SERVER,{int32}@CLIENTS> -> <int32>@SERVER)\n"
        "merge      : (<<int32>,<int32>> -> <int32>)\n"
        "after_merge: (<top_level_arg=<int32@SERVER,{int32}@CLIENTS>,"
        "merge_result=<int32>@SERVER> -> <int32@SERVER,int32@SERVER>)"
    )


@pytest.mark.parametrize(
    ("program", "clients"),
    [
        (reduced("federated_sum"), [1, 2, 3, 4, 5]),
        (reduced("federated_sum", "<int32,<int32[2]>>"), [(1, (np.array([2, 3], np.int32),))] * 3),
        (reduced("federated_min"), [7, 2, 9]),
        (reduced("federated_max"), [7, 2, 9]),
        (reduced("federated_max"), []),
        (reduced("federated_mean", "float32"), [1.0, 2.0, 6.0]),
        (reduced("federated_mean", "<float32[2],float32>"), [(np.ones(2, np.float32), 2.0)] * 4),
        (reduced("federated_secure_sum", extra="int32 9"), [1, 9, 4]),
        (reduced("federated_secure_sum_bitwidth", extra="int32 4"), [1, 9, 4]),
        (reduced("federated_secure_modular_sum", extra="int32 7"), [6, 5, 12, 700]),
        (reduced("federated_secure_modular_sum", extra="int32 7"), []),
        (
            reduced(
                "federated_secure_modular_sum", "<int32,int32[2]>", extra="<int32,int32> <5,9>"
            ),
            [(4, np.array([8, 7], np.int32))] * 3,
        ),
    ],
)
def test_results_in_all_groupings(program: Node, clients: list[Any]) -> None:
    assert_same_in_all_groupings(program, 11, clients)


def test_weighted_mean_and_own_aggregation_in_all_groupings() -> None:
    @tff.tf_computation((np.float32, np.int32), np.float32)
    def accumulate(total, value):
        return total[0] * 2 + value, total[1] + 1

    @tff.tf_computation((np.float32, np.int32), (np.float32, np.int32))
    def merge(one, other):
        shift = tf.cast(2 ** other[1], tf.float32)
        return one[0] * shift + other[0], one[1] + other[1]

    @tff.tf_computation((np.float32, np.int32))
    def report(total):
        return total[0]

    floats = tff.types.at_clients(np.float32)

    @tff.federated_computation(tff.types.at_server(np.float32), floats)
    def program(state, data):
        sent = tff.federated_broadcast(state)
        weight = tff.federated_map(tff.tf_computation(lambda a, b: a * b + 1.0), (data, sent))
        zero = (np.float32(0), np.int32(0))
        own = tff.federated_aggregate(data, zero, accumulate, merge, report)
        return state, [tff.federated_mean(data, weight), own]

    form = mergeable(program)
    assert str(form.merge.type.result) == "<<float32,int32>,float32,float32>"
    assert_same_in_all_groupings(program.node, 2.0, [1.0, 3.0, 0.0, 2.0])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("is_known", [True, False])
def test_modular_sums_do_not_leave_the_range_of_their_type(dtype: Any, is_known: bool) -> None:
    most = int(np.iinfo(dtype).max)
    computed = tff.tf_computation(lambda: tf.constant(most, dtype))

    @tff.federated_computation(STATE, tff.types.at_clients(dtype))
    def program(state, data):
        modulus = dtype(most) if is_known else computed()
        return state, federated_secure_modular_sum(data, modulus)

    assert_same_in_all_groupings(program.node, 0, [dtype(most - 1)] * 3)
    # A modulus that is computed goes with the sum.
    member = str(mergeable(program).merge.type.result)
    name = np.dtype(dtype).name
    assert member == (f"<{name}>" if is_known else f"<<{name},{name}>>")


def test_a_modulus_of_the_server_goes_with_the_sum() -> None:
    program = reduced("federated_secure_modular_sum", extra="int32@SERVER p[0]")
    form = mergeable(program)
    steps = form.steps(EngineRuntime())
    partials: list[Any] = []
    for group in ([6, 5], [], [9]):
        carried, sent = steps.prepare(np.int32(7))
        aggregation = TupleAggregation(steps.aggregations)
        total = aggregation.zero(carried)
        for client in group:
            update = steps.work(np.int32(client), sent)
            total = aggregation.accumulate(total, update, carried, "a")
        partials.append(steps.group.finish(carried, aggregation.report(total, carried))[1])
    assert [partial[0] for partial in partials] == [(4, 7), (0, 7), (2, 7)]
    merged = functools.reduce(steps.join, partials)
    assert steps.conclude(np.int32(7), merged) == (7, 6)


def test_sums_wrap_around_and_come_back() -> None:
    # The sum of the first group leaves the range of int32, that of all clients does not.
    program = reduced("federated_sum")
    most = int(np.iinfo(np.int32).max)
    clients = [np.int32(most), np.int32(most), np.int32(-most)]
    form = mergeable(program)
    for sizes in groupings(3):
        assert in_groups(form, 0, clients, sizes)[1] == most


def test_sums_of_a_group_may_become_infinite() -> None:
    # In the order of the clients no sum leaves the range of float32, but that of the last two does.
    form = mergeable(reduced("federated_sum", "float32"))
    clients = [np.float32(number) for number in (-3e38, 3e38, 3e38)]
    assert in_groups(form, 0, clients, (3,))[1] == clients[1]
    assert np.isinf(in_groups(form, 0, clients, (1, 2))[1])


def test_a_group_of_nobody_has_no_sum_of_unknown_shape() -> None:
    form = mergeable(reduced("federated_sum", "int32[?]"))
    clients = [np.array([1, 2], np.int32)] * 3
    np.testing.assert_equal(in_groups(form, 0, clients, (2, 1))[1], [3, 6])
    with pytest.raises(ExecutionError, match="shape"):
        in_groups(form, 0, clients, (3, 0))


def test_rounds_that_aggregate_nothing() -> None:
    program = parse(f"(p: <int32@SERVER,{INTS}> -> <p[0],<>>)")
    assert str(mergeable(program).merge.type) == "(<<>,<>> -> <>)"
    assert_same_in_all_groupings(program, 3, [1, 2])


# What cannot be repeated.


def test_a_draw_that_is_broadcast_would_differ_in_each_group() -> None:
    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        drawn = tff.federated_eval(draw, tff.SERVER)
        masked = tff.federated_map(add, (data, tff.federated_broadcast(drawn)))
        return state, tff.federated_sum(masked)

    with pytest.raises(FormError) as caught:
        mergeable(program)
    error = caught.value
    assert (error.code, error.span and error.span.line) == ("E532", program_line(program, 0))
    assert error.message.endswith("and every group of clients would run it again")
    assert error.notes == (
        "it is made outside of each client's work, and up_to_merge runs for every group",
    )
    assert mergeable(program, allow_impure_duplicates=True)
    assert compile_form(program.node, "mapreduce")


def program_line(program: Any, number: int) -> int:
    """The line of the statement of this number in the function of a computation."""
    lambda_span = program.node.span
    assert lambda_span is not None
    return lambda_span.line + 1 + number


def test_what_is_drawn_after_merging_or_by_each_client_runs_once() -> None:
    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        own = tff.federated_eval(draw, tff.CLIENTS)
        total = tff.federated_sum(tff.federated_map(add, (data, own)))
        return state, tff.federated_map(add, (total, tff.federated_eval(draw, tff.SERVER)))

    assert mergeable(program)
    assert mergeable(draws_outside_an_aggregation("report"))


@pytest.mark.parametrize(
    ("part", "repeated"),
    [
        ("zero", "every group of clients"),
        ("accumulate", "every group of clients"),
        ("merge", "every group of clients"),
    ],
)
def test_draws_outside_an_aggregation(part: str, repeated: str) -> None:
    program = draws_outside_an_aggregation(part)
    with pytest.raises(FormError, match=f"{repeated} would run it again"):
        mergeable(program)
    assert mergeable(program, allow_impure_duplicates=True)


def test_sections_are_called_whole() -> None:
    with pytest.raises(FormError, match="every group of clients"):
        mergeable(sends_one_and_keeps_the_other(constant_and_draw))


# Decompiling.


def test_decompiled_and_compiled_again_the_parts_have_the_same_types() -> None:
    modulus = "int32@SERVER p[0]"
    for program in (
        reduced("federated_mean", "float32"),
        reduced("federated_secure_modular_sum", extra=modulus),
        reduced("federated_max"),
    ):
        form = mergeable(program)
        again = mergeable(form.decompile())
        assert {n: p.type for n, p in again.components().items()} == {
            n: p.type for n, p in form.components().items()
        }


# Refusals.


@functools.cache
def counted() -> MergeableForm:
    return mergeable(reduced("federated_sum"))


def with_part(**parts: str) -> MergeableForm:
    """The form of a sum with a part replaced by one in the notation."""
    changes: dict[str, Any] = {name: parse(text) for name, text in parts.items()}
    return dataclasses.replace(counted(), **changes)


TAKEN = f"x: <top_level_arg=<int32@SERVER,{INTS}>,merge_result=<int32>@SERVER>"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"merge": "(x: <<int32>,<int32>> -> 1)"},
            "merge has to be of type `(<<int32>,<int32>> -> <int32>)`, found "
            "`(<<int32>,<int32>> -> int32)` [E501]\n  help: let it take two results of up_to_merge "
            "and give one, without their placement",
        ),
        (
            {
                "merge": "(x: <<int32>,<int32>> -> (let y=federated_value_at_server:"
                "(int32 -> int32@SERVER)(1) in x[0]))"
            },
            "merge joins values without a placement, found a value of type `int32@SERVER` "
            "[E501]\n  help: place nothing in it: it takes and gives what "
            "up_to_merge gives the server, without its placement",
        ),
        (
            {
                "after_merge": f"({TAKEN} -> (let y=federated_sum:({INTS} -> int32@SERVER)"
                "(x[0][1]) in <x[0][0],y>))"
            },
            "after_merge holds no aggregation, found `federated_sum` of type `({int32}@CLIENTS -> "
            "int32@SERVER)` [E501]\n  help: aggregate in up_to_merge, and merge the results of "
            "groups in merge",
        ),
        (
            {
                "after_merge": f"({TAKEN} -> (let y=own:({INTS} -> int32@SERVER)(x[0][1]) in "
                "<x[0][0],y>))"
            },
            "after_merge holds no aggregation, found `own` of type `({int32}@CLIENTS -> "
            "int32@SERVER)` [E501]\n  help: aggregate in up_to_merge, and merge the results of "
            "groups in merge",
        ),
        (
            {
                "up_to_merge": f"(x: <int32@SERVER,{INTS}> -> <federated_sum:({INTS} -> "
                "int32@SERVER)(x[1])>)"
            },
            "up_to_merge has to give one value at the server, found `<int32@SERVER>` [E501]\n"
            "  help: join several values with federated_zip",
        ),
        (
            {"merge": "federated_sum:({int32}@CLIENTS -> int32@SERVER)"},
            "merge has to be a lambda, found an Intrinsic [E501]",
        ),
    ],
)
def test_parts_that_do_not_fit(parts: dict[str, str], message: str) -> None:
    assert refusal(FormError, lambda: with_part(**parts)) == message


def test_clients_that_keep_states_have_another_form() -> None:
    kept = "(p: <int32@SERVER,{<int32,int32>}@CLIENTS> -> <p[0],p[1],p[0]>)"
    assert "take the form client-state" in refusal(FormError, lambda: mergeable(parse(kept)))


# Without TensorFlow.

WITHOUT_TENSORFLOW = """
import sys
sys.modules["tensorflow"] = None
from tffc.backends import compile_form
from tffc.language.wire import from_bytes
from tffc.runtime.interpreter.interpreter import run

form = compile_form(from_bytes(open(sys.argv[1], "rb").read()), "mergeable")
whole = (1.0, [2.0, 3.0, 5.0])
partials = [run(form.up_to_merge, (1.0, group)) for group in ([2.0, 3.0], [5.0])]
merged = run(form.merge, tuple(partials))
print(run(form.after_merge, (whole, merged)))
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs tffc[jax]")
def test_programs_of_jax_compile_and_run_without_tensorflow(tmp_path: pathlib.Path) -> None:
    floats = tff.types.at_clients(np.float32)

    @tff.jax.computation(np.float32, np.float32)
    def added(x, y):
        return x + y

    @tff.federated_computation(tff.types.at_server(np.float32), floats)
    def program(state, data):
        moved = tff.federated_map(added, (data, tff.federated_broadcast(state)))
        own = tff.federated_aggregate(
            data, np.float32(0), added, added, tff.jax.computation(lambda x: x, np.float32)
        )
        total = tff.federated_sum(moved)
        return tff.federated_map(added, (state, total)), [tff.federated_mean(data), own]

    path = tmp_path / "round.pb"
    path.write_bytes(to_bytes(program.node))
    ran = run_python("-c", WITHOUT_TENSORFLOW, str(path), cwd=tmp_path)
    found = eval(ran.stdout or "None", {"np": np})
    assert found == (14.0, (10 / 3, 10.0)), ran.stderr
