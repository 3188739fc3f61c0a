"""Sections make the same draws in a program and in its forms, however they draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tffc.assurance.validation import validate
from tffc.assurance.validation.arguments import ArgumentCase
from tffc.assurance.validation.draws import Draws
from tffc.assurance.validation.stand_ins import runnable, sample
from tffc.assurance.validation.watched import Watched
from tffc.language import Call, Compiled, FunctionType, Intrinsic, Node, StructNode
from tffc.language.traverse import rewrite
from tffc.passes import Pipeline
from tffc.passes.pipeline import Pass, PassStep
from tffc.passes.table import default_pipeline
from tffc.runtime.interpreter.interpreter import invoke
from tffc.support.errors import ValidationError

FLOAT = np.float32
STATE, DATA = tff.types.at_server(FLOAT), tff.types.at_clients(FLOAT)
FORMS = ["mapreduce", "distribute-aggregate"]
NUMBERS = [FLOAT(number) for number in (0.1, 0.2, 0.3, 1e8, -1e8)]
CASES = [ArgumentCase((FLOAT(0.1), NUMBERS[:count]), may_reorder=True) for count in (3, 5)]


def section(function: Callable[..., Any], *types: Any) -> Any:
    return tff.tf_computation(*types)(function)


add = section(lambda x, y: x + y, FLOAT, FLOAT)
same = section(lambda x: tf.identity(x), FLOAT)
noisy = section(lambda x: x + tf.random.normal([]), FLOAT)


def total(numbers: tf.data.Dataset) -> Any:
    return numbers.reduce(tf.constant(0.0), lambda sum, x: 0.5 * sum + tf.cast(x, tf.float32))


def in_a_dataset(x: Any) -> Any:
    return total(tf.data.Dataset.range(3).map(lambda _: x + tf.random.normal([])))


def in_parallel(x: Any) -> Any:
    numbers = tf.data.Dataset.range(8)
    options = {"num_parallel_calls": tf.data.AUTOTUNE, "deterministic": False}
    noise = numbers.map(lambda _: x + tf.random.normal([]), **options)
    more = noise.interleave(
        lambda y: tf.data.Dataset.from_tensors(y).map(lambda z: z + tf.random.normal([])),
        num_parallel_calls=2,
    )
    return total(more.prefetch(2).take(5))


def shuffled(x: Any) -> Any:
    return x + total(tf.data.Dataset.range(8).shuffle(8).repeat(2))


def shuffled_in_a_queue(x: Any) -> Any:
    queue = tf.queue.RandomShuffleQueue(9, 0, [tf.float32], [()])
    enqueue = queue.enqueue_many((tf.range(9.0),))
    with tf.control_dependencies([enqueue] if enqueue is not None else []):
        return x + queue.dequeue_many(9)[3]


def of_a_generator(x: Any) -> Any:
    generator = tf.random.Generator.from_non_deterministic_state()
    return x + generator.normal([]) - 2 * generator.normal([])


def until_it_fits(x: Any) -> Any:
    def again(_: Any) -> Any:
        return (tf.random.uniform([]),)

    return x + tf.while_loop(lambda drawn: drawn < 0.7, again, [0.0])[0]


@tf.function
def draw() -> Any:
    return tf.random.normal([])


@tf.function(jit_compile=True)
def draw_in_xla() -> Any:
    return tf.random.normal([])


def in_functions(x: Any) -> Any:
    return x + draw() - 2 * draw() + draw_in_xla()


def on_a_condition(x: Any) -> Any:
    return tf.cond(x > 0, lambda: x + tf.random.normal([]), lambda: x - tf.random.uniform([]))


def in_a_variable(x: Any) -> Any:
    return tf.Variable(tf.random.normal([])) + x


def of_other_kinds(x: Any) -> Any:
    mixed = tf.random.shuffle(tf.stack([x, x + 1, x + 2]))[0]
    kind = tf.random.categorical(tf.stack([[1.0, x]]), 1)[0, 0]
    late = tf.cast(tf.timestamp() % 60, tf.float32)
    return mixed + tf.cast(kind, tf.float32) + tf.random.gamma([], 2.0) + late


WAYS = [
    in_a_dataset,
    in_a_variable,
    in_functions,
    in_parallel,
    of_a_generator,
    of_other_kinds,
    on_a_condition,
    shuffled,
    shuffled_in_a_queue,
    until_it_fits,
]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_ways_to_draw(way: Callable[[Any], Any]) -> None:
    """A round that draws at the server, at each client, and at the server again."""
    drawing = section(way, FLOAT)

    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        sent = tff.federated_broadcast(tff.federated_map(drawing, state))
        own = tff.federated_map(add, (tff.federated_map(drawing, data), sent))
        return state, tff.federated_map(drawing, tff.federated_sum(own))

    # A queue that shuffles has a seed of its own.
    assert results_vary(program.node) or way is shuffled_in_a_queue
    for form in FORMS:
        validate(program.node, CASES[:1], default_pipeline(), form)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", [in_functions, of_a_generator])
def test_draws_in_another_order(way: Callable[[Any], Any], form: str) -> None:
    """The form makes the last draw of the server first, and omits one draw."""
    drawing = section(way, FLOAT)

    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        late = tff.federated_map(drawing, state)
        unused = tff.federated_map(drawing, state)  # noqa: F841  # it is unused on purpose
        early = tff.federated_broadcast(tff.federated_map(drawing, state))
        own = tff.federated_map(add, (tff.federated_map(drawing, data), early))
        summed = tff.federated_map(drawing, tff.federated_sum(own))
        mean = tff.federated_mean(tff.federated_map(drawing, data))
        return late, [summed, mean]

    validate(program.node, CASES[:1], default_pipeline(), form)


def results_vary(program: Node) -> bool:
    """Whether the program has a result, and another result if it draws other numbers."""
    results = []
    for seed in range(3):
        argument = CASES[0].argument
        make = lambda clients: Watched(clients, Draws(seed))  # noqa: B023, E731  # each is used in its own turn
        results.append(str(invoke(program, program.type, argument, make)))
    return len(set(results)) > 1


@tff.federated_computation(STATE, DATA)
def noise_on_a_sum(state, data):
    summed = tff.federated_aggregate(data, FLOAT(0), add, add, same)
    return state, tff.federated_map(noisy, summed)


SAMPLE = (FLOAT, np.int32)


def keep_one(x: Any, y: Any, count: Any, seen: Any) -> Any:
    keep = tf.random.uniform([]) * tf.cast(count, tf.float32) < tf.cast(seen, tf.float32)
    return tf.where(keep, x, y), count


@tff.federated_computation(STATE, DATA)
def sample_of_one(state, data):
    """Reservoir sampling."""
    zero = section(lambda: (FLOAT(0), np.int32(0)))
    accumulate = section(lambda s, x: keep_one(s[0], x, s[1] + 1, s[1]), SAMPLE, FLOAT)
    merge = section(lambda s, t: keep_one(s[0], t[0], s[1] + t[1], s[1]), SAMPLE, SAMPLE)
    report = section(lambda s: s[0], SAMPLE)
    return state, tff.federated_aggregate(data, zero(), accumulate, merge, report)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("program", [noise_on_a_sum, sample_of_one], ids=["noise", "sample"])
def test_aggregations(program: Any, form: str) -> None:
    cases = [ArgumentCase((FLOAT(0.1), [FLOAT(x) for x in (0.1, 0.2, 0.3, 0.4, 0.7)]), True)] * 3
    report = validate(program.node, [*cases, *CASES], default_pipeline(), form)
    assert report.warnings == ()


@pytest.mark.parametrize("form", FORMS)
def test_thresholds_of_sums_that_round(form: str) -> None:
    """A sum that is 0 in groups of two clients, and 1 without groups."""
    is_more = section(lambda x: x > 0.1, FLOAT)

    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        weighted = tff.federated_mean(data, weight=data)
        sums = (tff.federated_sum(data), tff.federated_mean(data), weighted)
        return state, [tff.federated_map(is_more, each) for each in sums]

    case = ArgumentCase((FLOAT(0), [FLOAT(x) for x in (1, 1e8, -1e8, 1)]), may_reorder=True)
    assert validate(program.node, [case] * 3, default_pipeline(), form).trials == 3


def test_laws_on_numbers_that_round() -> None:
    """The order of adding 0.1 and 1e8 decides on which side of a threshold the sum is."""
    is_more = section(lambda x: x > 0.05, FLOAT)

    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        return state, tff.federated_aggregate(data, FLOAT(0), add, add, is_more)

    numbers = [FLOAT(1e8), FLOAT(-1e8), FLOAT(0.1)]
    cases = [ArgumentCase((FLOAT(0), numbers), may_reorder=True)] * 3
    assert validate(program.node, cases, default_pipeline(), "mapreduce").warnings == ()


def test_what_is_equal_everywhere() -> None:
    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        return tff.federated_broadcast(tff.federated_map(noisy, state))

    report = validate(program.node, CASES, default_pipeline(), "broadcast")
    assert report.stages[-1] == "the form broadcast"


def test_duplicates_that_are_allowed() -> None:
    """Draws of both prepare and update count as the same."""

    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        drawn = tff.federated_map(noisy, state)
        moved = tff.federated_map(add, (data, tff.federated_broadcast(drawn)))
        return drawn, tff.federated_sum(moved)

    form = "mapreduce"
    validate(program.node, CASES, default_pipeline(), form, allow_impure_duplicates=True)


# Sums in another order.


@tff.federated_computation(STATE, DATA)
def plain_sum(state, data):
    return state, tff.federated_sum(data)


PAIR = (FLOAT, FLOAT)


def in_two_halves(wrong: float) -> Callable[[Node], Node]:
    """A pass that sums every other client separately, and adds `wrong` to the sum."""
    zero = section(lambda: (FLOAT(0), FLOAT(0)))
    accumulate = section(lambda p: (p[0][1], p[0][0] + p[1]), (PAIR, FLOAT))
    merge = section(lambda p: (p[0][0] + p[1][0], p[0][1] + p[1][1]), (PAIR, PAIR))
    report = section(lambda s: s[0] + s[1] + FLOAT(wrong), PAIR)

    def rule(node: Node) -> Node | None:
        match node:
            case Call(Intrinsic(uri="federated_sum"), data) if data is not None:
                parts = (data, Call(zero.node), accumulate.node, merge.node, report.node)
                operands = StructNode(parts)
                type_ = FunctionType(operands.type, node.type)
                return Call(Intrinsic("federated_aggregate", type_), operands)
        return None

    return lambda root: rewrite(root, rule)


@pytest.mark.parametrize("numbers", [(0.1, 0.2, 0.3, 0.4, 0.7), (0.3, 1e8, 0.2, -1e8, 0.1)])
def test_sums_in_another_order(numbers: tuple[float, ...]) -> None:
    case = ArgumentCase((FLOAT(0), [FLOAT(number) for number in numbers]), may_reorder=True)
    right = Pipeline("halves", (PassStep(Pass("halves", in_two_halves(0))),))
    assert validate(plain_sum.node, [case] * 3, right).stages == ("the pass halves, step 1",)


def test_sums_that_are_wrong() -> None:
    case = ArgumentCase((FLOAT(0), [FLOAT(number) for number in (0.1, 0.2, 0.3, 0.4, 0.7)]), True)
    wrong = Pipeline("halves", (PassStep(Pass("halves", in_two_halves(1e-5))),))
    with pytest.raises(ValidationError) as caught:
        validate(plain_sum.node, [case], wrong)
    assert caught.value.code == "E902"


def test_defects_of_what_answers_are_not_failures_of_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*arguments: Any) -> Any:
        raise KeyError("a defect")

    monkeypatch.setattr("tffc.assurance.validation.draws.sample", fail)
    with pytest.raises(KeyError):
        validate(noise_on_a_sum.node, CASES, default_pipeline(), "mapreduce")


def test_sections_that_draw_nothing_run_as_they_are() -> None:
    assert isinstance(add.node, Compiled)
    assert runnable(add.node).section == add.node
    assert runnable(add.node).draws == ()


def test_every_client_draws_its_own() -> None:
    @tff.federated_computation(STATE, DATA)
    def program(state, data):
        return tff.federated_map(noisy, data)

    equal = ArgumentCase((FLOAT(0), [FLOAT(0)] * 5), may_reorder=True)
    drawn = invoke(
        program.node, program.type_signature, equal.argument, lambda n: Watched(n, Draws())
    )
    assert len(set(drawn)) == 5


@pytest.mark.parametrize("pool", [tf.raw_ops.FractionalMaxPool, tf.raw_ops.FractionalAvgPool])
def test_regions_of_fractional_pools_are_draws(pool: Any) -> None:
    def pooled(x: Any) -> Any:
        image = tf.reshape(tf.range(64.0) + x, [1, 8, 8, 1])
        return tf.reduce_sum(pool(value=image, pooling_ratio=[1.0, 1.4, 1.4, 1.0])[0])

    (draw,) = runnable(section(pooled, FLOAT).node).draws
    image = np.arange(64, dtype=np.float32).reshape(1, 8, 8, 1) ** 2
    results = [sample(draw.operation, seed, [image])[0] for seed in (1, 1, 2, 3, 4)]
    assert np.array_equal(results[0], results[1])
    assert not all(np.array_equal(results[0], each) for each in results)
