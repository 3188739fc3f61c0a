"""Sequences that differ between iterations: a form has their elements once, as the program does."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.proof.edits import Draft
from tffc.assurance.proof.prove import Answer, Proof, prove
from tffc.backends import compile_form
from tffc.runtime.interpreter.interpreter import run
from tffc.support.errors import ExecutionError, GraphError

pytestmark = pytest.mark.slow

NUMBERS = tff.SequenceType(np.int64)


def section(function: Callable[..., Any]) -> Any:
    return tff.tf_computation(function, NUMBERS)


def counted(data: Any) -> Any:
    counter = tf.Variable(tf.constant(0, tf.int64))
    return data.map(lambda x: x + counter.assign_add(1))


UNSTEADY = {
    "shuffled": lambda data: data.shuffle(5, seed=3),
    "shuffled before": lambda data: data.shuffle(5, seed=3).map(lambda x: x + 1).take(3),
    "drawn": lambda data: data.map(lambda x: x + tf.random.uniform([], 0, 9, tf.int64, seed=5)),
    "drawn without a seed": lambda data: data.map(
        lambda x: x + tf.random.uniform([], 0, 9, tf.int64)
    ),
    "counted": counted,
}
STEADY = {
    "mapped": lambda data: data.map(lambda x: 2 * x).filter(lambda x: x > 2).take(3),
    "new": lambda data: tf.data.Dataset.range(5).map(lambda x: x * x),
    "drawn before": lambda data: data.map(
        lambda x: x + tf.random.stateless_uniform([], (1, 2), 0, 9, tf.int64)
    ),
}


def ordered(data: Any) -> Any:
    return data.reduce(tf.constant(0, tf.int64), lambda total, x: 7 * total + x)


def backwards(data: Any) -> Any:
    return data.reduce(tf.constant(0, tf.int64), lambda total, x: 5 * total - x)


ONCE = {
    "reduced": lambda m: section(ordered)(m),
    "mapped and reduced": lambda m: section(
        lambda d: ordered(d.map(lambda x: x + 1).batch(2).map(lambda x: tf.reduce_sum(x)))
    )(m),
    "by another section": lambda m: section(ordered)(section(lambda d: d.map(lambda x: x - 1))(m)),
    "summed": lambda m: tff.sequence_sum(m),
}
AGAIN = {
    "by one section called twice": lambda m: (section(ordered)(m), section(ordered)(m)),
    "by two sections": lambda m: (section(ordered)(m), section(backwards)(m)),
    "twice in a section": lambda m: section(lambda d: ordered(d) - backwards(d))(m),
    "repeated": lambda m: section(lambda d: ordered(d.repeat(2)))(m),
    "with itself": lambda m: section(
        lambda d: ordered(tf.data.Dataset.zip((d, d)).map(lambda x, y: x - y))
    )(m),
    "in a function": lambda m: section(
        lambda d: ordered(tf.data.Dataset.range(2).flat_map(lambda _: d))
    )(m),
    "after another section": lambda m: (
        section(ordered)(section(lambda d: d.map(lambda x: x - 1))(m)),
        tff.sequence_sum(m),
    ),
    "summed twice": lambda m: (tff.sequence_sum(m), section(ordered)(m)),
}


def work_of(make: Any, use: Any) -> Any:
    """Clients' work that hands a sequence on."""
    handed_on = section(make)

    @tff.federated_computation(NUMBERS)
    def work(data: Any) -> Any:
        return use(handed_on(data))

    return work


def round_of(make: Any, use: Any) -> Any:
    """A round whose clients hand a sequence on, and sum what they make of it."""
    work = work_of(make, use)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(NUMBERS))
    def round_(state: Any, data: Any) -> Any:
        worked = tff.federated_map(work, data)
        if isinstance(work.type_signature.result, tff.StructType):
            return state, (tff.federated_sum(worked[0]), tff.federated_sum(worked[1]))
        return state, tff.federated_sum(worked)

    return round_.node


def components_of(program: Any, form: str = "mapreduce") -> dict[str, Any]:
    return dict(compile_form(program, form).components())


def proof_of(make: Any, use: Any, form: str = "mapreduce") -> Proof:
    program = round_of(make, use)
    return prove(program, form, components_of(program, form))


def operations(components: dict[str, Any]) -> set[str]:
    """The operations of the clients' work."""
    return {node.op for node in Draft(components["work"], random.Random(0)).graph.node}


MOST_SLOW = [
    pytest.param(make, id=name, marks=[] if name in ("shuffled", "counted") else pytest.mark.slow)
    for name, make in UNSTEADY.items()
]


@pytest.mark.parametrize("use", AGAIN.values(), ids=AGAIN)
@pytest.mark.parametrize("make", MOST_SLOW)
def test_elements_that_are_computed_once(make: Any, use: Any) -> None:
    program = round_of(make, use)
    components = components_of(program)
    assert "CacheDatasetV2" in operations(components)
    assert prove(program, "mapreduce", components).answer is Answer.PROVED


@pytest.mark.long
@pytest.mark.parametrize("use", [*AGAIN.values(), *ONCE.values()], ids=[*AGAIN, *ONCE])
@pytest.mark.parametrize("make", UNSTEADY.values(), ids=UNSTEADY)
def test_other_forms(make: Any, use: Any) -> None:
    assert proof_of(make, use, "distribute-aggregate").answer is Answer.PROVED
    work = work_of(make, use)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(NUMBERS))
    def round_(state: Any, data: Any) -> Any:
        return tff.federated_map(work, data)

    components = components_of(round_.node, "broadcast")
    assert prove(round_.node, "broadcast", components).answer is Answer.PROVED


@pytest.mark.parametrize("use", ONCE.values(), ids=ONCE)
@pytest.mark.parametrize("make", [*UNSTEADY.values(), *STEADY.values()], ids=[*UNSTEADY, *STEADY])
def test_one_iteration(make: Any, use: Any) -> None:
    program = round_of(make, use)
    components = components_of(program)
    assert "CacheDatasetV2" not in operations(components)
    assert prove(program, "mapreduce", components).answer is Answer.PROVED


@pytest.mark.slow
@pytest.mark.parametrize("use", AGAIN.values(), ids=AGAIN)
@pytest.mark.parametrize("make", STEADY.values(), ids=STEADY)
def test_iterations_that_give_the_same_elements(make: Any, use: Any) -> None:
    program = round_of(make, use)
    components = components_of(program)
    assert "CacheDatasetV2" not in operations(components)
    assert prove(program, "mapreduce", components).answer is Answer.PROVED


TWICE = AGAIN["by one section called twice"]


def of(graph: Any, op: str) -> Any:
    """The node of an operation that stands outside of the sections."""
    (node,) = (each for each in graph.node if each.op == op and "/" not in each.name)
    return node


def pass_of(graph: Any) -> Any:
    return of(graph, "ReduceDataset")


def readers(graph: Any) -> list[Any]:
    return [node for node in graph.node if node.op == "ReduceDataset" and "/" in node.name]


def source_of(graph: Any) -> str:
    return of(graph, "CacheDatasetV2").input[0]


def elements_of(graph: Any) -> Any:
    (node,) = (each for each in graph.node if any(i.startswith("^Reduce") for i in each.input))
    return node


def no_cache(graph: Any) -> None:
    cached = source_of(graph)
    for node in readers(graph):
        node.input[0] = cached
    for node in list(graph.node):
        if node.op in PARTS or ("/" not in node.name and node.op == "Const"):
            graph.node.remove(node)
    graph.node.remove(pass_of(graph))
    graph.node.remove(next(n for n in graph.node if n.input and n.input[0] == "CacheDatasetV2"))
    functions = {node.attr["f"].func.name for node in graph.node if "f" in node.attr}
    for function in list(graph.library.function):
        if function.signature.name not in functions:
            graph.library.function.remove(function)


PARTS = ("CacheDatasetV2", "DummyMemoryCache", "Assert", "NotEqual", "DatasetCardinality")


def one_reader_before(graph: Any) -> None:
    readers(graph)[0].input[0] = source_of(graph)


def reader_of_the_cache(graph: Any) -> None:
    readers(graph)[0].input[0] = "CacheDatasetV2"


def waits_for_no_pass(graph: Any) -> None:
    del elements_of(graph).input[1]


def waits_for_the_cache(graph: Any) -> None:
    elements_of(graph).input[1] = "^CacheDatasetV2"


def passes_over_the_dataset(graph: Any) -> None:
    pass_of(graph).input[0] = source_of(graph)


def passes_over_a_part(graph: Any) -> None:
    one = graph.node.add(name="one", op="Const")
    one.attr["dtype"].type = 9
    one.attr["value"].tensor.dtype = 9
    one.attr["value"].tensor.tensor_shape.SetInParent()
    one.attr["value"].tensor.int64_val.append(1)
    part = graph.node.add(name="part", op="TakeDataset", input=["CacheDatasetV2", "one"])
    cache = of(graph, "CacheDatasetV2")
    for name in ("output_types", "output_shapes"):
        part.attr[name].CopyFrom(cache.attr[name])
    pass_of(graph).input[0] = "part"


def caches_a_part(graph: Any) -> None:
    passes_over_a_part(graph)
    pass_of(graph).input[0] = "CacheDatasetV2"
    next(n for n in graph.node if n.name == "part").input[0] = source_of(graph)
    of(graph, "CacheDatasetV2").input[0] = "part"


def caches_in_a_file(graph: Any) -> None:
    name = of(graph, "CacheDatasetV2").input[1]
    node = next(each for each in graph.node if each.name == name)
    node.attr["value"].tensor.string_val[0] = b"cache"


def passes_without_check(graph: Any) -> None:
    del pass_of(graph).input[2]


def checks_another_end(graph: Any) -> None:
    of(graph, "DatasetCardinality").input[0] = source_of(graph)


def says_something_else(graph: Any) -> None:
    name = of(graph, "Assert").input[1]
    node = next(each for each in graph.node if each.name == name)
    node.attr["value"].tensor.string_val[0] = b"what"


def is_of_another_version(graph: Any) -> None:
    of(graph, "CacheDatasetV2").op = "CacheDataset"
    del of(graph, "CacheDataset").input[2]


def has_other_shapes(graph: Any) -> None:
    cache = of(graph, "CacheDatasetV2")
    cache.attr["output_shapes"].list.shape[0].dim.add(size=1)


def applies_another_function(graph: Any) -> None:
    pass_of(graph).attr["f"].func.name = readers(graph)[0].attr["f"].func.name


def uses_the_number(graph: Any) -> None:
    reader = readers(graph)[0].name
    next(node for node in graph.node if reader in node.input).input[0] = "ReduceDataset"


def a_pass_for_each_reader(graph: Any) -> None:
    names = nodes_of_pass(graph)
    for node in [each for each in graph.node if each.name in names]:
        copy = graph.node.add()
        copy.CopyFrom(node)
        copy.name += "_again"
        copy.input[:] = [
            f"{edge}_again" if edge.strip("^") in names else edge for edge in node.input
        ]
    readers(graph)[0].input[0] += "_again"


def nodes_of_pass(graph: Any) -> set[str]:
    """The nodes that compute the elements once, without the dataset."""
    nodes = {node.name: node for node in graph.node}
    names, pending = set[str](), [elements_of(graph).name]
    while pending:
        name = pending.pop()
        if name not in names and name != source_of(graph):
            names.add(name)
            pending.extend(edge.strip("^") for edge in nodes[name].input)
    return names


EDITS = [
    a_pass_for_each_reader,
    *(no_cache, one_reader_before, reader_of_the_cache, waits_for_no_pass, waits_for_the_cache),
    *(passes_over_the_dataset, passes_over_a_part, caches_a_part, caches_in_a_file),
    *(passes_without_check, checks_another_end, says_something_else, is_of_another_version),
    *(has_other_shapes, applies_another_function, uses_the_number),
]


@pytest.fixture(scope="module")
def twice() -> tuple[Any, dict[str, Any]]:
    program = round_of(UNSTEADY["shuffled"], TWICE)
    return program, components_of(program)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_a_graph_that_may_compute_them_again(edit: Any, twice: Any) -> None:
    program, components = twice
    draft = Draft(components["work"], random.Random(0))
    edit(draft.graph)
    edited = draft.finish()
    assert edited != components["work"]
    proof = prove(program, "mapreduce", {**components, "work": edited})
    assert proof.answer is not Answer.PROVED


OUTPUTS = {
    **dict.fromkeys(("DummyMemoryCache", "CacheDatasetV2"), "handle"),
    **dict.fromkeys(("Const", "Identity"), "output"),
    "DatasetCardinality": "cardinality",
    "NotEqual": "z",
    "ReduceDataset": "components",
}
"""What functions call the outputs of the operations of a pass."""


def test_a_pass_in_a_function_that_runs_again() -> None:
    """A function of a sequence's elements that fills a cache of its own in each call."""
    drawn, spread = section(UNSTEADY["drawn without a seed"]), section(ordered)

    @tff.federated_computation(NUMBERS)
    def work(data: Any) -> Any:
        sequence = drawn(data)

        @tff.federated_computation(np.int64)
        def again(x: Any) -> Any:
            return section(ordered)(sequence)

        return spread(tff.sequence_map(again, data))

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(NUMBERS))
    def round_(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(work, data))

    components = components_of(round_.node)
    assert prove(round_.node, "mapreduce", components).answer is Answer.PROVED
    draft = Draft(components["work"], random.Random(0))
    move_pass_into_function(draft.graph)
    edited = {**components, "work": draft.finish()}
    assert prove(round_.node, "mapreduce", edited).answer is Answer.UNDECIDED


def move_pass_into_function(graph: Any) -> None:
    names = nodes_of_pass(graph)
    elements, dataset = elements_of(graph).name, source_of(graph)
    (user,) = [node for node in graph.node if elements in node.input]
    place = list(user.input).index(elements)
    user.input[place] = dataset
    name = user.attr["f"].func.name
    function = next(f for f in graph.library.function if f.signature.name == name)
    # A map gives each call an element first, and what it captures after that.
    argument = function.signature.input_arg[place].name
    ops = {node.name: node.op for node in graph.node}

    def inside(edge: str) -> str:
        if edge == dataset:
            return argument
        return edge if edge.startswith("^") else f"{edge}:{OUTPUTS[ops[edge]]}:0"

    for node in function.node_def:
        node.input[:] = [inside(elements) if edge == argument else edge for edge in node.input]
    for node in [each for each in graph.node if each.name in names]:
        moved = function.node_def.add()
        moved.CopyFrom(node)
        moved.input[:] = [inside(edge) for edge in node.input]
        graph.node.remove(node)


def test_a_graph_without_cache(twice: Any) -> None:
    """What tffc compiled before."""
    program, components = twice
    draft = Draft(components["work"], random.Random(0))
    no_cache(draft.graph)
    proof = prove(program, "mapreduce", {**components, "work": draft.finish()})
    assert (proof.answer, proof.construct) == (
        Answer.UNDECIDED,
        "a sequence that may differ when it is iterated over again",
    )


def one_counter(data: Any) -> Any:
    counter = tf.Variable(tf.constant(0, tf.int64))
    first = data.map(lambda x: x + counter.assign_add(1))
    return first, data.map(lambda y: 1000 * y + counter.assign_add(1))


def counter_and_number(data: Any) -> Any:
    counter = tf.Variable(tf.constant(0, tf.int64))
    return data.map(lambda x: x + counter.assign_add(1)), counter.read_value()


def counter_and_sum(data: Any) -> Any:
    sequence = counted(data)
    return sequence, ordered(sequence)


def one_generator(data: Any) -> Any:
    generator = tf.random.Generator.from_seed(4)
    first = data.map(lambda x: x + generator.uniform([], 0, 1000, tf.int64))
    return first, data.map(lambda y: y - generator.uniform([], 0, 1000, tf.int64))


SHARING = {
    "two sequences": (one_counter, lambda m: (section(ordered)(m[0]), section(ordered)(m[1]))),
    "only the second": (one_counter, lambda m: section(ordered)(m[1])),
    "a number": (counter_and_number, lambda m: (section(ordered)(m[0]), m[1])),
    "a sum": (counter_and_sum, lambda m: (section(ordered)(m[0]), m[1])),
    "a generator": (one_generator, lambda m: (section(backwards)(m[1]), section(ordered)(m[0]))),
}


@pytest.mark.parametrize("parts", SHARING.values(), ids=SHARING)
def test_sequences_that_share_a_state(parts: Any) -> None:
    proof = proof_of(*parts)
    assert (proof.answer, proof.construct) == (
        Answer.UNDECIDED,
        "sequences that share a state, with others or with results",
    )


CLIENTS = [list(range(100)), [3, 1, 4, 1, 5, 9, 2, 6], [], [5]]
SEEDED = [
    *((UNSTEADY["counted"], use) for use in AGAIN.values()),
    *((UNSTEADY[name], TWICE) for name in UNSTEADY if name != "drawn without a seed"),
    *SHARING.values(),
]


@pytest.mark.long
@pytest.mark.parametrize("parts", SEEDED)
@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate"])
def test_a_form_computes_what_the_program_does(parts: Any, form: str) -> None:
    program = round_of(*parts)
    compiled = compile_form(program, form).decompile()
    expected = run(program, ((), CLIENTS))
    for _ in range(5):
        assert run(compiled, ((), CLIENTS)) == expected


@pytest.mark.parametrize("name", ["drawn without a seed", "shuffled"])
def test_both_iterations_have_the_same_elements(name: str) -> None:
    program = round_of(UNSTEADY[name], TWICE)
    compiled = compile_form(program, "mapreduce").decompile()
    rounds = [run(compiled, ((), CLIENTS))[1] for _ in range(4)]
    assert all(first == second for first, second in rounds)
    if name != "shuffled":
        assert len({int(first) for first, _ in rounds}) == len(rounds), "nothing is left of a round"


def test_a_sequence_without_end() -> None:
    with pytest.raises(GraphError) as caught:
        components_of(round_of(lambda data: data.shuffle(5).repeat(), TWICE))
    assert caught.value.code == "E396"
    first = section(lambda data: ordered(data.take(4)))
    assert proof_of(lambda data: data.shuffle(5).repeat(), first).answer is Answer.PROVED


def test_a_sequence_that_turns_out_to_have_no_end() -> None:
    first = section(lambda data: ordered(data.take(4)))
    program = round_of(
        lambda data: (
            tf.data.Dataset.zip((data.shuffle(5), data))
            .map(lambda x, _: x)
            .concatenate(tf.data.Dataset.range(1).repeat())
        ),
        lambda m: (first(m), first(m)),
    )
    with pytest.raises(ExecutionError) as caught:
        run(compile_form(program, "mapreduce").decompile(), ((), [[1]]))
    assert "a sequence without end" in caught.value.message
