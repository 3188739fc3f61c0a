"""Batches of every form give what its clients give one by one."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import tffc as tff
from tests.backends.test_equivalence import compiled, parameter_of
from tests.programs import broadcast_rounds, rounds, values
from tests.runtime.engines.batches import (
    BOTH,
    LOOPED,
    NONE,
    Outcome,
    assert_alike,
    check_same,
    process_of,
    round_of,
    source_of,
)
from tests.runtime.engines.sources import OneIsBad, Values
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.compiler import compile_bundle
from tffc.language import Node
from tffc.language.notation.parser import parse
from tffc.language.type_parts import local_type
from tffc.language.values.concrete import to_value
from tffc.runtime.batching.limits import Limits
from tffc.runtime.engines.process import Process
from tffc.support.errors import DataError, ExecutionError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiler")]

AGGREGATING = ("mapreduce", "distribute-aggregate", "mergeable")
FORMS = (*AGGREGATING, "broadcast")

INTS = tff.SequenceType(np.int64)
VECTOR = tff.TensorType(np.float32, [2])
STATE = [("scale", np.float32), ("bound", np.int32)]
COUNTS = [("total", np.int32), ("clients", np.int32)]


@tff.tf_computation(STATE, VECTOR)
def scaled(state: Any, x: Any) -> Any:
    whole = tf.cast(tf.abs(x[0]), tf.int32)
    value = x * state["scale"]
    return collections.OrderedDict(value=value, weight=x[1] + 2.0, count=whole, half=whole // 2)


@tff.tf_computation
def nothing() -> Any:
    return collections.OrderedDict(total=tf.constant(0), clients=tf.constant(0))


@tff.tf_computation(COUNTS, np.int32)
def counted(before: Any, count: Any) -> Any:
    total = before["total"] + count * count
    return collections.OrderedDict(total=total, clients=before["clients"] + 1)


@tff.tf_computation(COUNTS, COUNTS)
def joined(first: Any, second: Any) -> Any:
    return collections.OrderedDict((name, first[name] + second[name]) for name, _ in COUNTS)


@tff.tf_computation(COUNTS)
def reported(counts: Any) -> Any:
    return counts["total"] * 1000 + counts["clients"]


@tff.federated_computation(tff.types.at_server(STATE), tff.types.at_clients(VECTOR))
def every_aggregation(state: Any, data: Any) -> Any:
    made = tff.federated_map(scaled, (tff.federated_broadcast(state), data))
    return state, (
        tff.federated_sum(made),
        tff.federated_secure_sum(made.count, 50),
        tff.federated_mean(made.value),
        tff.federated_mean(made.value, weight=made.weight),
        tff.federated_secure_sum_bitwidth(made.half, 6),
        tff.federated_min(made.value),
        tff.federated_max(made.count),
        tff.federated_aggregate(made.count, nothing(), counted, joined, reported),
    )


@pytest.fixture(scope="module", params=AGGREGATING)
def aggregating(request: pytest.FixtureRequest) -> Process:
    return process_of(every_aggregation, request.param)


FIRST = (np.float32(0.5), np.int32(3))


@BOTH
def test_every_aggregation(aggregating: Process, limits: Limits) -> None:
    values = np.array([[3, 4], [-50, 2], [7, 1], [0, 0], [2, 9]], np.float32)
    check_same(aggregating, list(values), state=FIRST, limits=limits)


def test_bounds_of_secure_sums_are_those_of_each_client(aggregating: Process) -> None:
    values = np.array([[3, 4], [51, 2], [7, 1]], np.float32)
    with pytest.raises(ExecutionError) as caught:
        Outcome(aggregating, source_of(aggregating, list(values)), state=FIRST)
    assert caught.value.code == "E663"
    assert caught.value.notes[-1] == "it was at work on the data of client 00001"


def written(text: str) -> Process:
    """A round in the notation, as a DistributeAggregateForm."""
    return Process(compile_bundle(parse(text), "distribute-aggregate"))


BOUNDED = """
(p: <s=int32@SERVER,d={int32}@CLIENTS> -> <
  p.s,
  federated_secure_sum:(<{int32}@CLIENTS,int32@SERVER> -> int32@SERVER)(<p.d,p.s>)
>)
"""


def test_bounds_that_the_server_has() -> None:
    process = written(BOUNDED)
    assert check_same(process, [4, 3, 9], state=np.int32(9)).output == [16]
    with pytest.raises(ExecutionError) as caught:
        Outcome(process, source_of(process, [4, 3, 9]), state=np.int32(8))
    assert caught.value.code == "E663"
    assert caught.value.notes[-1] == "it was at work on the data of client 00002"


def statistics(data: Any) -> Any:
    total = data.reduce(np.int64(0), lambda s, x: s + x)
    positions = data.batch(2).reduce(np.int64(0), lambda s, x: 3 * s + tf.reduce_max(x))
    return collections.OrderedDict(total=total, positions=positions, both=tf.stack([total, total]))


RAGGED = ([5, 6, 7], [], [1], [2, 3, 4], [4] * 9, [9, 8])


@pytest.mark.parametrize("form", FORMS)
@BOTH
def test_sequences_of_different_lengths(form: str, limits: Limits) -> None:
    process = round_of(statistics, INTS, form)
    check_same(process, RAGGED, limits=limits)
    check_same(process, RAGGED[1:2], limits=limits)
    assert Outcome(process, source_of(process, []), limits=limits).delivered == {}


def test_a_client_has_what_it_computed() -> None:
    process = round_of(lambda data: data.reduce(np.int64(0), lambda s, x: s + x), INTS, "broadcast")
    found = check_same(process, RAGGED, workers=1, limits=LOOPED)
    assert list(found.delivered.values()) == [sum(each) for each in RAGGED]


@pytest.mark.parametrize("form", FORMS)
def test_a_client_that_fails_is_told_of_alone(form: str) -> None:
    process = round_of(lambda x: tf.gather(tf.constant([5, 6, 7]), x), np.int32, form)
    check_same(process, [0, 2, 1])
    for size in (1, 3):
        with pytest.raises(ExecutionError) as caught:
            Outcome(process, source_of(process, [0, 1, 7]), size, workers=1)
        assert caught.value.code == "E722"
        assert caught.value.notes[-1] == "it was at work on the data of client 00002"


@pytest.mark.parametrize("form", FORMS)
def test_clients_whose_data_is_bad_are_skipped(form: str) -> None:
    process = round_of(lambda x: x * 2, np.int32, form)
    source = OneIsBad([to_value(x, process.data_type) for x in (4, 5, 6)])
    found = Outcome(process, source, skip_bad_clients=True)
    assert found.together == 2
    assert found.skipped == ("00001",)
    assert found.output == ([] if form == "broadcast" else [20])
    assert found.delivered == ({"00000": 8, "00002": 12} if form == "broadcast" else {})
    with pytest.raises(DataError, match="cannot read it"):
        Outcome(process, source)


def test_outputs_of_nothing_are_delivered() -> None:
    process = round_of(lambda x: (), np.int32, "broadcast")
    assert check_same(process, [1, 2]).delivered == {"00000": (), "00001": ()}


@tff.tf_computation(np.int32)
def two_quotients(x: Any) -> Any:
    return 12 // x, 12 // (x - 1)


def test_what_nothing_uses_may_fail() -> None:
    """A section that runs by itself computes all of its results."""

    @tff.federated_computation(NONE, tff.types.at_clients(np.int32))
    def each_round(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(two_quotients, data)[0])

    process = process_of(each_round, "distribute-aggregate")
    assert check_same(process, [2, 3, 4]).output == [13]
    for size in (1, 3):
        with pytest.raises(ExecutionError) as caught:
            Outcome(process, source_of(process, [3, 2, 1]), size, workers=1)
        assert caught.value.code == "E722"
        assert caught.value.notes[-1] == "it was at work on the data of client 00002"


def writing(x: Any) -> Any:
    return x + tf.cast(tf.strings.length(tf.strings.as_string(x)), tf.float32)


WORK: dict[str, tuple[Callable[..., Any], Any]] = {
    "it has the operation AsString": (writing, np.float32),
    "clients hold str": (lambda x: tf.strings.length(x), np.str_),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reason", WORK)
def test_what_cannot_be_in_a_batch(reason: str, form: str) -> None:
    process = round_of(*WORK[reason], form)
    value = "a" if process.data_type == tff.TensorType(np.str_) else np.float32(1)
    found = Outcome(process, source_of(process, [value, value]))
    assert found.together == 0
    assert found.decisions[-1] == f"one client a call: {reason}"


OUTPUTS: dict[str, tuple[Callable[..., Any], Any]] = {
    "its work takes or gives str": (lambda x: tf.strings.as_string(x), np.int64),
    "its work takes or gives a sequence, int64*": (lambda x: tf.data.Dataset.range(x), np.int64),
}


@pytest.mark.parametrize("reason", OUTPUTS)
def test_outputs_that_cannot_be_in_a_batch(reason: str) -> None:
    process = round_of(*OUTPUTS[reason], "broadcast")
    found = Outcome(process, source_of(process, [3, 4]))
    assert found.together == 0
    assert found.decisions == [f"one client a call: {reason}"]


SUMMING = """
(p: <s=int32@SERVER,d={int32}@CLIENTS> -> (let
  c=generic_plus:(<int32,int32> -> int32)(<2,3>),
  z=generic_multiply:(<int32,int32> -> int32)(<2,0>)
 in <p.s,federated_aggregate:(<
   {int32}@CLIENTS,int32,(<int32,int32> -> int32),(<int32,int32> -> int32),(int32 -> int32)
  > -> int32@SERVER)(<
    p.d,
    ZERO,
    (t: <int32,int32> -> generic_plus:(<int32,int32> -> int32)(<t[0],ADDED>)),
    (t: <int32,int32> -> generic_plus:(<int32,int32> -> int32)(<t[0],t[1]>)),
    (t: int32 -> t)
  >)>))
"""


@pytest.mark.parametrize(("zero", "added", "together"), [("z", "t[1]", 3), ("0", "c", 0)])
def test_what_only_the_server_has(zero: str, added: str, together: int) -> None:
    process = written(SUMMING.replace("ZERO", zero).replace("ADDED", added))
    source = source_of(process, [1, 2, 4])
    alone, found = (Outcome(process, source, size, state=np.int32(0)) for size in (1, 3))
    assert found.output == alone.output == [7 if together else 15]
    assert found.together == together
    if not together:
        reason = "its federated_aggregate uses what only the server has"
        assert found.decisions == [f"one client a call: {reason}"]


BAD = object()
"""Stands for data that cannot be read."""


class SomeBad(Values):
    def read(self, client: str) -> Any:
        value = super().read(client)
        if value is BAD:
            raise DataError("E626", f"cannot read the data of {client}")
        return value


SIZES = st.integers(2, 4)


@st.composite
def cohorts(draw: Any, programs: st.SearchStrategy[Node]) -> tuple[Node, Any, list[Any]]:
    """A round, a state for it and the data of clients, some of which cannot be read."""
    program = draw(programs)
    state, data = (local_type(each) for each in parameter_of(program))
    held = values(data, extreme=True).map(lambda value: to_value(value, data))
    clients = st.lists(st.one_of(*[held] * 9, st.just(BAD)), min_size=draw(SIZES) - 2, max_size=7)
    return program, to_value(draw(values(state)), state), draw(clients)


LIMITS = st.sampled_from([LOOPED, Limits()])
SKIPS = st.sampled_from([True, True, False])


AGGREGATING_ROUNDS = st.one_of(rounds(secure=True), *[rounds(secure=True, numbers=True)] * 3)
OTHER_ROUNDS = st.one_of(broadcast_rounds(), *[broadcast_rounds(numbers=True)] * 3)


@given(cohorts(AGGREGATING_ROUNDS), st.sampled_from(AGGREGATING), SIZES, LIMITS, SKIPS)
def test_generated_rounds(
    case: tuple[Node, Any, list[Any]], form: str, size: int, limits: Limits, skips: bool
) -> None:
    check_generated(*case, form, size, limits, skips)


@given(cohorts(OTHER_ROUNDS), SIZES, LIMITS, SKIPS)
def test_generated_rounds_that_do_not_aggregate(
    case: tuple[Node, Any, list[Any]], size: int, limits: Limits, skips: bool
) -> None:
    check_generated(*case, "broadcast", size, limits, skips)


def check_generated(
    program: Node, state: Any, clients: list[Any], form: str, size: int, limits: Limits, skips: bool
) -> None:
    """Check that batches change nothing: the same results, for all sums in these rounds are exact,
    the same clients skipped, and an error that one of the clients has by itself."""
    components = compiled(program, form).components()
    process = Process(Bundle(form, program, components, None, {}))
    source = SomeBad(clients)

    def outcome(size: int, clients: tuple[str, ...], limits: Limits) -> Outcome | str:
        options = {"clients": clients, "state": state, "skip_bad_clients": skips}
        try:
            return Outcome(process, source, size, limits=limits, **options)
        except (DataError, ExecutionError) as error:
            return str(error)

    alone = outcome(1, source.clients, Limits())
    found = outcome(size, source.clients, limits)
    if isinstance(found, Outcome) and isinstance(alone, Outcome):
        assert found.skipped == alone.skipped
        assert_alike(process, found, alone, rtol=0)
    else:
        assert isinstance(alone, str)
        assert found in [outcome(1, (client,), Limits()) for client in source.clients]
