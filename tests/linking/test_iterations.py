"""Sequences whose elements a linked graph computes once."""

from __future__ import annotations

import collections
import random
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.proof.edits import Draft
from tests.assurance.proof.test_iterations import ordered, section
from tffc.assurance.proof.prove import Answer, prove
from tffc.backends import compile_form
from tffc.linking.builder import GraphBuilder
from tffc.runtime.interpreter.interpreter import run
from tffc.support.errors import GraphError

NUMBERS = tff.SequenceType(np.int64)
CLIENTS = [[1, 2, 3, 4, 5], [3, 1], []]
reduced = section(ordered)


def draw() -> Any:
    return tf.random.uniform([], 0, 10**6, tf.int64)


def round_of(work: Any, kind: Any = NUMBERS) -> Any:
    """A round that sums each part of what the clients make of their data."""

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(kind))
    def each_round(state: Any, data: Any) -> Any:
        worked = tff.federated_map(work, data)
        parts = range(len(work.type_signature.result))
        return state, tuple(tff.federated_sum(worked[part]) for part in parts)

    return each_round.node


def nodes_of(section: Any) -> list[str]:
    """The nodes of a graph, one a line."""
    graph = Draft(section, random.Random(0)).graph
    return [f"{node.name} = {node.op}({', '.join(node.input)})" for node in graph.node]


def test_the_nodes() -> None:
    @tff.federated_computation(NUMBERS)
    def work(data: Any) -> Any:
        mixed = section(lambda d: d.map(lambda x: x + draw()))(data)
        return tff.sequence_sum(mixed), tff.sequence_sum(mixed)

    components = compile_form(round_of(work), "mapreduce").components()
    nodes = [line for line in nodes_of(components["work"]) if "/" not in line.partition(" ")[0]]
    assert nodes == [
        "arg_None = Placeholder()",
        "Const = Const()",
        "ReduceDataset = ReduceDataset(Identity_2, Const)",
        "ReduceDataset_1 = ReduceDataset(Identity_2, Const)",
        "Identity = Identity(ReduceDataset)",
        "Identity_1 = Identity(ReduceDataset_1)",
        "DummyMemoryCache = DummyMemoryCache()",
        "Const_1 = Const()",
        "CacheDatasetV2 = CacheDatasetV2(c1/Identity, Const_1, DummyMemoryCache)",
        "DatasetCardinality = DatasetCardinality(CacheDatasetV2)",
        "Const_2 = Const()",
        "NotEqual = NotEqual(DatasetCardinality, Const_2)",
        "Const_3 = Const()",
        "Assert = Assert(NotEqual, Const_3)",
        "Const_4 = Const()",
        "ReduceDataset_2 = ReduceDataset(CacheDatasetV2, Const_4, ^Assert)",
        "Identity_2 = Identity(CacheDatasetV2, ^ReduceDataset_2)",
    ]


def mapped() -> Any:
    """By an operator, whose function draws."""
    noisy = tff.tf_computation(lambda x: x + draw(), np.int64)

    @tff.federated_computation(NUMBERS)
    def work(data: Any) -> Any:
        sequence = tff.sequence_map(noisy, data)
        return reduced(sequence), reduced(sequence)

    return round_of(work)


def nested() -> Any:
    """In structs, beside what is no sequence."""

    @tff.tf_computation(NUMBERS)
    def several(data: Any) -> Any:
        drawn = data.map(lambda x: x * draw())
        count = data.reduce(np.int64(0), lambda n, _: n + 1)
        return collections.OrderedDict(mixed=(data.shuffle(50), drawn), count=count)

    @tff.federated_computation(NUMBERS)
    def work(data: Any) -> Any:
        mixed = several(data).mixed
        first = reduced(mixed[0]), reduced(mixed[1])
        both = tff.tf_computation(lambda x, y: x + y, np.int64, np.int64)
        return both(*first), both(reduced(mixed[0]), reduced(mixed[1]))

    return round_of(work)


def of_each_element() -> Any:
    """In a function that is applied to each element of another sequence."""
    inner = tff.tf_computation(
        lambda x: tf.data.Dataset.range(5).map(lambda i: i * x + draw()), np.int64
    )
    difference = tff.tf_computation(lambda x, y: x - y, np.int64, np.int64)

    @tff.federated_computation(np.int64)
    def twice(x: Any) -> Any:
        sequence = inner(x)
        return difference(reduced(sequence), reduced(sequence))

    @tff.federated_computation(NUMBERS)
    def work(data: Any) -> Any:
        sequence = tff.sequence_map(twice, data)
        zero = tff.tf_computation(lambda d: ordered(d.take(0)), NUMBERS)
        return reduced(sequence), zero(sequence)

    return round_of(work)


def captured() -> Any:
    """By a function that is applied to each element of another sequence."""
    drawn = section(lambda d: d.map(lambda x: x + draw()))
    spread = section(
        lambda d: d.reduce(np.int64(0), tf.maximum) - d.reduce(np.int64(2**62), tf.minimum)
    )
    least = section(lambda d: d.reduce(np.int64(0), lambda x, _: x) - np.int64(2**62))

    @tff.federated_computation(NUMBERS)
    def work(data: Any) -> Any:
        sequence = drawn(data)

        @tff.federated_computation(np.int64)
        def again(x: Any) -> Any:
            return section(lambda d: tf.abs(ordered(d)) % 1000)(sequence)

        gap = spread(tff.sequence_map(again, data))
        return tff.tf_computation(lambda x: tf.maximum(x, 0), np.int64)(gap), (
            tff.tf_computation(lambda x: tf.maximum(x, 0), np.int64)(least(data))
        )

    return round_of(work)


def with_names() -> Any:
    """Elements with names, texts and sizes that are not known."""
    return round_of(twice_named(), NAMED)


NAMED = tff.SequenceType(
    collections.OrderedDict(
        z=tff.TensorType(np.str_), a=tff.TensorType(np.int64, [None]), m=(np.float32, np.int32)
    )
)
ELEMENTS = [
    collections.OrderedDict(z=str(i), a=np.arange(i), m=(np.float32(i), np.int32(i * i)))
    for i in range(8)
]


def twice_named() -> Any:
    def each(total: Any, element: Any) -> Any:
        size = tf.size(element["a"], tf.int64) + tf.cast(element["m"][1], tf.int64)
        return 31 * total + size + tf.strings.to_number(element["z"], tf.int64)

    mixed = tff.tf_computation(lambda d: d.shuffle(10), NAMED)
    read = tff.tf_computation(lambda d: d.reduce(np.int64(0), each), NAMED)

    @tff.federated_computation(NAMED)
    def work(data: Any) -> Any:
        sequence = mixed(data)
        return read(sequence), read(sequence)

    return work


ROUNDS = {
    "by an operator": (mapped, CLIENTS),
    "in structs": (nested, CLIENTS),
    "for each element": (of_each_element, CLIENTS),
    "captured": (captured, CLIENTS),
    "with names": (with_names, [ELEMENTS, ELEMENTS[:3], []]),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
@pytest.mark.parametrize("make", ROUNDS.values(), ids=ROUNDS)
def test_both_parts_are_of_the_same_elements(make: Any, form: str) -> None:
    program, clients = make[0](), make[1]
    compiled = compile_form(program, form)
    assert prove(program, form, dict(compiled.components())).answer is Answer.PROVED
    for _ in range(5):
        first, second = run(compiled.decompile(), ((), clients))[1]
        assert first == second


def test_a_sequence_that_is_returned_twice() -> None:
    @tff.tf_computation(np.int64)
    def drawn(count: Any) -> Any:
        return tf.data.Dataset.range(count).map(lambda x: x + draw())

    @tff.federated_computation(tff.types.at_server(np.int64), tff.types.at_clients(np.int64))
    def each_round(state: Any, data: Any) -> Any:
        sequence = tff.federated_map(drawn, state)
        return state, (sequence, sequence, tff.federated_sum(data))

    compiled = compile_form(each_round.node, "mapreduce")
    assert prove(each_round.node, "mapreduce", compiled.components()).answer is Answer.PROVED
    first, second, _ = run(compiled.decompile(), (8, [1]))[1]
    assert first == second
    assert len(first) == 8
    other, _, _ = run(compiled.decompile(), (8, [1]))[1]
    assert first != other


def test_options_of_a_dataset_hold_for_its_computation_alone() -> None:
    options = tf.data.Options()
    options.deterministic = False
    free = section(lambda d: d.with_options(options))

    @tff.federated_computation(NUMBERS)
    def work(data: Any) -> Any:
        return section(ordered)(free(data)), section(ordered)(data)

    with pytest.raises(GraphError, match="in any order") as refused:
        compile_form(round_of(work), "mapreduce")
    assert refused.value.code == "E397"
    alone = section(lambda d: (ordered(d.with_options(options)), ordered(d)))
    compile_form(round_of(alone), "mapreduce")


def both(data: Any) -> Any:
    return data, ordered(data)


def after(varying: Any) -> Any:
    return lambda data: both(varying(data))


def cached_draws(data: Any) -> Any:
    return both(data.map(lambda x: x + draw()).cache())


def test_caches_that_iterations_may_share() -> None:
    def round_with(work: Any) -> Any:
        @tff.federated_computation(NUMBERS)
        def whole(data: Any) -> Any:
            sequence, inside = work(data)
            return section(ordered)(sequence), inside

        return round_of(whole)

    with pytest.raises(GraphError, match="a cache that may have another reader") as refused:
        compile_form(round_with(section(cached_draws)), "mapreduce")
    assert refused.value.code == "E398"
    for varying in (
        lambda d: d.shuffle(9).cache(),
        lambda d: d.shuffle(9).cache().map(lambda x: x + 1),
        lambda d: d.map(lambda x: x + draw()).cache().repeat(2),
    ):
        work = section(after(varying))
        with pytest.raises(GraphError, match="a cache that may have another reader"):
            compile_form(round_with(work), "mapreduce")
    compiled = compile_form(round_with(section(tf.function(cached_draws))), "mapreduce")
    outside, inside = run(compiled.decompile(), ((), [[1, 2, 3]]))[1]
    assert outside == inside
    compile_form(round_with(section(lambda d: (d.cache(), ordered(d.cache())))), "mapreduce")


def test_states_of_one_name_are_one() -> None:
    """Two nodes that find one variable, each behind a sequence of its own."""

    def counted(d: Any) -> Any:
        handles = [
            tf.raw_ops.VarHandleOp(dtype=tf.int64, shape=[], shared_name="count") for _ in range(2)
        ]
        start = tf.raw_ops.AssignVariableOp(resource=handles[0], value=np.int64(0))

        def add(handle: Any) -> Any:
            def next_one(x: Any) -> Any:
                tf.raw_ops.AssignAddVariableOp(resource=handle, value=np.int64(1))
                return x + tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64)

            return next_one

        with tf.control_dependencies([start]):
            first = d.map(lambda x: x)
        return first.map(add(handles[0])), first.map(add(handles[1]))

    both = tff.tf_computation(counted, NUMBERS)
    template = GraphBuilder().template(both.node)
    assert template.varying.in_order == (0, 1)
