"""Clients that are computed together give what they give one by one, and fail as they do."""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.processes import ENVIRONMENT, run_python
from tests.refusals import refusal
from tests.runtime.engines.batches import (
    BOTH,
    LOOPED,
    NONE,
    Outcome,
    check_same,
    process_of,
    round_of,
    source_of,
)
from tests.runtime.engines.sources import OneIsBad, Values
from tffc.language.values.concrete import to_value
from tffc.runtime.batching import kernels, pjrt_kernels, tensorflow_kernels
from tffc.runtime.batching.choices import PJRT, TENSORFLOW
from tffc.runtime.batching.devices import Devices
from tffc.runtime.batching.limits import Limits
from tffc.runtime.data.location import open_data
from tffc.runtime.data.read_once import ReadOnce
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process
from tffc.runtime.lowering import retrace, sequences
from tffc.support.errors import DataError, ExecutionError, LanguageValueError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiler")]

INTS = tff.SequenceType(np.int64)
PAIRS = tff.SequenceType([("y", tff.TensorType(np.int64, [2])), ("x", np.int64)])


def fold(data: Any) -> Any:
    """Numbers that depend on every element and their order."""
    zero = tf.constant(0, tf.int64)
    return data.reduce(
        (zero, zero),
        lambda s, e: (s[0] * 31 + tf.reduce_sum(e["x"]) * 7 + tf.reduce_sum(e["y"]), s[1] + 1),
    )


def running(data: Any) -> Any:
    zero = tf.constant(0, tf.int64)

    def step(total: Any, element: Any) -> Any:
        total += tf.reduce_sum(element["x"])
        return total, {"x": element["x"] + total, "y": element["y"]}

    return data.scan(zero, step)


ARRANGED: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda data: data,
    "batched": lambda data: data.repeat(2).batch(3).prefetch(1),
    "whole batches": lambda data: data.batch(3, drop_remainder=True),
    "cut batches": lambda data: data.skip(1).repeat(2).batch(2).skip(1).take(4),
    "mapped batches": lambda data: data.batch(4).map(lambda e: {"x": e["x"] * 2, "y": e["y"]}),
    "scanned": lambda data: running(data.batch(3)),
}
LENGTHS = {kernels.Mode.VECTOR: [7] * 4, kernels.Mode.LOOP: [7, 0, 13, 7, 19]}


def pairs(length: int) -> list[Any]:
    numbers = np.arange(1, 2 * length + 1).reshape(length, 2)
    return [{"y": row, "x": np.int64(row[0] + 5)} for row in numbers]


@pytest.fixture(scope="module")
def every_order() -> Process:
    """Reads clients' sequences in every arrangement."""
    return round_of(lambda data: [fold(make(data)) for make in ARRANGED.values()], PAIRS)


@pytest.mark.parametrize("mode", kernels.Mode)
def test_elements_come_in_their_order(every_order: Process, mode: kernels.Mode) -> None:
    limits = LOOPED if mode is kernels.Mode.LOOP else Limits()
    found = check_same(every_order, [pairs(length) for length in LENGTHS[mode]], limits=limits)
    assert all(mode.value in line for line in found.decisions)


@pytest.fixture(scope="module")
def learning() -> Process:
    """Trains variables in batches, in a loop of Python, with an If and a check of its own."""
    data = tff.SequenceType([("x", tff.TensorType(np.float32, [3])), ("y", np.int32)])

    def work(examples: Any) -> Any:
        weights = tf.Variable(tf.random.stateless_uniform([3, 4], (1, 2)))
        steps = tf.Variable(tf.constant(0))

        @tf.function
        def train(batches: Any) -> Any:
            for batch in batches:
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(
                        tf.nn.sparse_softmax_cross_entropy_with_logits(
                            labels=batch["y"], logits=batch["x"] @ weights
                        )
                    )
                gradient: Any = tape.gradient(loss, weights)
                tf.debugging.Assert(loss < 100.0, ["too large"])
                if loss > 1.4:
                    gradient /= 2.0
                    steps.assign_add(10)
                weights.assign_sub(0.5 * gradient)
                steps.assign_add(1)
            return weights.read_value(), steps.read_value()

        return train(examples.repeat(2).batch(4))

    return round_of(work, data)


def examples(length: int, label: int = 3) -> list[Any]:
    random = np.random.RandomState(length)
    rows = random.normal(size=(length, 3)).astype(np.float32)
    return [{"x": row, "y": np.int32(label)} for row in rows]


def test_vectorised_variables_are_too(learning: Process) -> None:
    check_same(learning, [examples(length) for length in (4, 6, 4)])


def test_variables_are_those_of_one_client(learning: Process) -> None:
    found = check_same(learning, [examples(length) for length in (4, 8, 8, 4)], limits=LOOPED)
    assert "a loop over" in found.decisions[0]


def test_the_number_of_workers_changes_nothing(learning: Process) -> None:
    source = source_of(learning, [examples(4)] * 5)
    one, other = (Outcome(learning, source, 2, workers=each).output for each in (1, 3))
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


def test_a_client_that_fails_in_a_batch_is_told_of_alone(learning: Process) -> None:
    values = [examples(4), examples(4, label=4), examples(4)]
    with pytest.raises(ExecutionError) as caught:
        Outcome(learning, source_of(learning, values), workers=1)
    assert caught.value.code == "E722"
    assert caught.value.notes[-1] == "it was at work on the data of client 00001"


@pytest.mark.parametrize(
    "work",
    [
        lambda data: data.reduce(np.int64(0), lambda s, x: s + 12 // x),
        lambda data: data.reduce(np.int64(0), lambda s, x: s + tf.gather(np.array([5, 6, 7]), x)),
        lambda data: data.reduce(np.int64(0), lambda s, x: s + np.int64(2) ** x),
        lambda data: data.batch(2).reduce(
            np.int64(0), lambda s, x: s + tf.reduce_sum(tf.ensure_shape(x, [2]))
        ),
        lambda data: data.batch(2).reduce(
            np.int64(0), lambda s, x: s + tf.reduce_sum(tf.unstack(x, num=2))
        ),
    ],
)
def test_what_fails_alone_fails_in_a_batch(work: Any) -> None:
    bad = [0, 7, -1]

    def whether_it_runs(size: int) -> Any:
        process = round_of(lambda data: tf.cast(work(data), tf.int64), INTS)
        try:
            return Outcome(process, source_of(process, [[1, 2], bad]), size, workers=1).output
        except ExecutionError as error:
            return str(error)

    alone = whether_it_runs(1)
    assert "it was at work on the data of client 00001" in alone
    assert whether_it_runs(2) == alone


def descent(activation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The gradient of an activation."""

    def work(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = activation(x) * [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 5.0, 7.0]
        return tape.gradient(y, x)

    return work


@pytest.mark.parametrize(
    "work",
    [
        lambda x: tf.maximum(x, tf.reverse(x, [0])),
        lambda x: tf.minimum(x, tf.reverse(x, [0])),
        lambda x: tf.stack([tf.reduce_max(x), tf.reduce_min(x)]),
        lambda x: tf.raw_ops.ClipByValue(t=x, clip_value_min=-1.0, clip_value_max=1.0),
        lambda x: tf.nn.softmax(x),
        lambda x: tf.argmax(x),
        descent(tf.nn.relu),
        descent(tf.nn.relu6),
        descent(tf.nn.elu),
        descent(tf.nn.selu),
        descent(tf.sqrt),
        descent(tf.math.rsqrt),
        descent(tf.math.reciprocal),
    ],
)
@BOTH
def test_what_is_not_a_number_stays_so(work: Any, limits: Limits) -> None:
    process = round_of(work, tff.TensorType(np.float32, [8]))
    check_same(process, [np.linspace(1, 3, 8, dtype=np.float32)] * 3, limits=limits)
    value = np.array([1, np.nan, 2, -1, 0, np.nan, np.inf, 7], np.float32)
    source = source_of(process, [value, np.ones(8, np.float32)])
    alone, found = (Outcome(process, source, size, limits=limits).output for size in (1, 2))
    for one, other in zip(found, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@BOTH
def test_an_infinite_logit_leaves_other_classes_alone(limits: Limits) -> None:
    process = round_of(lambda x: tf.nn.softmax(x[None]), tff.TensorType(np.float32, [2]))
    source = source_of(process, [np.array([np.inf, 0], np.float32)] * 3)
    alone, found = (Outcome(process, source, size, limits=limits).output for size in (1, 3))
    np.testing.assert_array_equal(found, alone)
    np.testing.assert_array_equal(found, [[[np.nan, 0]]])


@BOTH
def test_means_of_integers_whose_sum_is_too_large(limits: Limits) -> None:
    process = round_of(lambda x: tf.reduce_mean(x), tff.TensorType(np.int32, [3]))
    source = source_of(
        process, [np.full(3, 2**30, np.int32), np.array([-(2**31), -3, 4], np.int32)]
    )
    alone, found = (Outcome(process, source, size, limits=limits).output for size in (1, 2))
    assert found == alone == [2**30 - 2**31 // 3]


def test_clients_whose_data_is_bad_are_skipped(every_order: Process) -> None:
    values = [to_value(pairs(7), PAIRS) for _ in range(4)]
    found = Outcome(every_order, OneIsBad(values), skip_bad_clients=True)
    assert found.skipped == ("00001",)
    assert found.together == 3
    expected = Outcome(every_order, Values(values[1:])).output
    assert found.output == expected
    with pytest.raises(DataError, match="cannot read it"):
        Outcome(every_order, OneIsBad(values))


def test_secure_sums_are_checked_for_each_client() -> None:
    @tff.federated_computation(NONE, tff.types.at_clients(np.int32))
    def each_round(state: Any, data: Any) -> Any:
        return state, (
            tff.federated_secure_sum_bitwidth(data, 3),
            tff.federated_secure_sum(data, 8),
            tff.federated_sum(data),
        )

    process = process_of(each_round)
    check_same(process, [np.int32(4), np.int32(3), np.int32(7)])
    source = source_of(process, [np.int32(4), np.int32(3), np.int32(9)])
    with pytest.raises(ExecutionError) as caught:
        Outcome(process, source, workers=1)
    assert caught.value.code == "E663"
    assert caught.value.notes[-1] == "it was at work on the data of client 00002"


def drawing(data: Any) -> Any:
    return data.reduce(0.0, lambda s, x: s + tf.random.uniform([]))


def printing(data: Any) -> Any:
    tf.print("hello")
    return data.reduce(np.int64(0), lambda s, x: s + x)


def drawing_by_data(data: Any) -> Any:
    seed = data.reduce(np.int64(0), lambda s, x: s + x)
    return tf.random.stateless_uniform([], tf.stack([seed, seed]))


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (printing, "it has the operation StringFormat"),
        (lambda d: d.shuffle(3).reduce(np.int64(0), lambda s, x: s + x), "ShuffleDataset"),
        (
            lambda d: (
                d.map(lambda x: x + 1)
                .batch(2)
                .reduce(np.int64(0), lambda s, x: s + tf.reduce_sum(x))
            ),
            "a dataset has a function applied to it before BatchDatasetV2",
        ),
        (lambda d: tf.size(tf.unique(tf.range(d.reduce(0, lambda s, x: s + 1)))[0]), "Range"),
    ],
)
def test_what_cannot_be_in_a_batch_is_computed_alone(work: Any, reason: str) -> None:
    process = round_of(work, INTS)
    found = Outcome(process, source_of(process, [[1, 2], [3, 4]]))
    assert found.together == 0
    assert reason in found.decisions[-1]
    assert found.decisions[-1].startswith("one client a call: ")


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (drawing, "it has the operation RandomUniform"),
        (drawing_by_data, "GetKeyCounter, of a seed that is not known"),
    ],
)
def test_tensorflow_draws_for_one_client_a_call(work: Any, reason: str, compiler: str) -> None:
    process = round_of(work, INTS)
    found = Outcome(process, source_of(process, [[1, 2], [3, 4]]))
    if compiler == TENSORFLOW:
        assert (found.together, reason in found.decisions[-1]) == (0, True)
    else:
        assert found.together == 2


def test_strings_are_computed_alone() -> None:
    process = round_of(lambda data: data.reduce(0, lambda s, x: s + 1), tff.SequenceType(np.str_))
    assert Outcome(process, source_of(process, [["a"]])).decisions == [
        "one client a call: clients hold str"
    ]


def test_few_kernels_are_compiled() -> None:
    limits = Limits(most_numbers=0, most_kernels=2, most_rests=0)
    process = round_of(
        lambda data: data.batch(5).reduce(np.int64(0), lambda s, x: s * 3 + tf.reduce_prod(x)), INTS
    )
    values = [list(range(1, length + 1)) for length in (1, 2, 3, 7, 12)]
    found = Outcome(process, source_of(process, values), limits=limits)
    assert found.together == 4
    assert (
        found.decisions[-1]
        == "clients of other sizes are computed one by one: 2 kinds are compiled"
    )
    assert found.output == Outcome(process, source_of(process, values), 1).output


def test_why_nothing_is_decided_yet_is_told(every_order: Process) -> None:
    source = source_of(every_order, [pairs(7)] * 3)
    engine = LocalEngine(every_order, 1, Batching(None))
    engine.planner.measured_alone(3, 0.5)
    told = "clients have taken 0.5 s of the 2 s after which compiling may pay"
    assert engine.explain_speed()[-1] == f"batching: one client a call so far: {told}"
    engine.run_round((), Cohort(source, source.clients))
    assert "one client a call so far" in engine.explain_speed()[-1]


@pytest.mark.parametrize("text", ["0", "-3", "many", ""])
def test_a_batching_that_is_none(text: str) -> None:
    assert refusal(LanguageValueError, Batching.parse, text) == (
        f"clients cannot be computed in batches of {text!r} [E706]\n"
        "  help: give 'auto', 'off', or how many clients there are in a batch"
    )


def one_more(wrapped: Any) -> Any:
    return lambda *given: wrapped(given[0] + 1, *given[1:])


def no_last_batch(wrapped: Any) -> Any:
    return lambda self, length: wrapped(self, length)[:1]


def written_nowhere(wrapped: Any) -> Any:
    return lambda self, handle, value: None


def one_accumulator(wrapped: Any) -> Any:
    return lambda accumulators, is_client, *given: [each[0] for each in accumulators]


def no_client(wrapped: Any) -> Any:
    return lambda accumulators, is_client, *given: wrapped(accumulators, is_client | True, *given)


MERGED = (pjrt_kernels, tensorflow_kernels)

FAULTS: dict[str, tuple[Any, str, Any]] = {
    "places are off by one": (sequences, "places", one_more),
    "the last batch is left out": (sequences.Order, "runs", no_last_batch),
    "variables are not written": (retrace.Retrace, "_write", written_nowhere),
    "accumulators are not merged": (MERGED, "merged_pairwise", one_accumulator),
    "clients that are none count": (MERGED, "merged_pairwise", no_client),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_rewriter_is_seen(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owners, name, wrong = FAULTS[fault]
    for owner in owners if isinstance(owners, tuple) else [owners]:
        monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))

    def work(data: Any) -> Any:
        total = tf.Variable(tf.constant(1, tf.int64))

        @tf.function
        def count(batches: Any) -> Any:
            for batch in batches:
                total.assign_add(tf.reduce_sum(batch["x"]) * total)
            return total.read_value()

        return collections.OrderedDict(a=count(data.repeat(2).batch(3)), b=fold(data.repeat(2)))

    process = round_of(work, PAIRS)
    values = [pairs(5) for _ in range(3)]
    with pytest.raises(AssertionError):
        check_same(process, values, size=2)


ON_DEVICES = """
import numpy as np
import jax
import tensorflow as tf

jax.config.update("jax_num_cpu_devices", 2)
processor = tf.config.list_physical_devices("CPU")[0]
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(processor, two)

from tests.runtime.engines.batches import round_of, source_of
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.local import LocalEngine

tf.debugging.set_log_device_placement(True)
process = round_of(lambda x: tf.reduce_sum(tf.square(x)), np.int64)
source = source_of(process, range(8))
for device in ("cpu:1", "gpu"):
    try:
        engine = LocalEngine(process, 1, Batching.parse(4, device, {compiler!r}))
        print(engine.run_round((), Cohort(source, source.clients)).output)
        print(engine.stopwatch.clients["computing in batches"])
        pieces = engine.planner.pieces(Cohort(source, source.clients), source)
        devices = [getattr(each.piece.tensors[0], "device", None) for each in pieces]
        print({{getattr(device, "id", None) for device in devices}})
    except Exception as error:
        print(error)
"""


@pytest.mark.parametrize("framework", ["TensorFlow", "JAX"])
def test_batches_are_computed_where_they_are_asked_for(framework: str, compiler: str) -> None:
    """A second processor of the framework stands for a GPU."""
    if (framework == "JAX") != (compiler == PJRT):
        pytest.skip("the other compiler's")
    environment = {**ENVIRONMENT, "TF_CPP_MIN_LOG_LEVEL": "0", "TFFC_DEBUG": "1"}
    ran = run_python("-c", ON_DEVICES.format(compiler=compiler), env=environment)
    # Before that is where each operation of a graph is placed.
    assert ran.stdout.endswith(
        f"140\n8\n{{{1 if framework == 'JAX' else None}}}\n"
        f"{framework} has no device GPU:0 [E736]\n"
        "  note: it has CPU:0, CPU:1\n"
        "  help: name one of these, or leave the choice to it\n"
    ), ran.stderr[-3000:]
    if framework == "TensorFlow":
        kernels = [line for line in ran.stderr.splitlines() if "Executing op __inference" in line]
        assert kernels
        assert all(line.endswith("CPU:1") for line in kernels), kernels


ON_PROCESSORS = """
import numpy as np
import tensorflow as tf

{before}
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.cores import share_cores

share_cores(8, 2, Batching(4, compiler="tensorflow"))
from tests.runtime.engines.batches import round_of, source_of
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.frameworks.tensorflow.load import devices_for_calls

print(devices_for_calls(tf))
process = round_of(lambda x: tf.reduce_sum(tf.square(x)), np.int64)
source = source_of(process, range(8))
engine = LocalEngine(process, 2, Batching(4, compiler="tensorflow"))
print(engine.run_round((), Cohort(source, source.clients)).output)
print(engine.stopwatch.clients["computing in batches"])
"""


@pytest.mark.parametrize(
    ("before", "processors"), [("", "'CPU:0', 'CPU:1'"), ("tf.constant(0)", "'CPU:0'")]
)
def test_each_worker_has_a_processor(before: str, processors: str) -> None:
    """Unless the user's module has had TensorFlow compute something, and so look for devices."""
    ran = run_python("-c", ON_PROCESSORS.format(before=before))
    assert ran.stdout == f"[{processors}]\n140\n8\n", ran.stderr[-3000:]


def test_a_call_has_the_first_device_that_is_idle() -> None:
    devices = Devices(["CPU:0", "CPU:1"])
    with devices.least_busy() as one:
        with devices.least_busy() as two, devices.least_busy() as three:
            assert (one, two, three) == ("CPU:0", "CPU:1", "CPU:0")
        with devices.least_busy() as again:
            assert again == "CPU:1"
    with devices.least_busy() as last:
        assert last == "CPU:0"


class Counting(ReadOnce):
    """Counts how often clients are read."""

    def __init__(self, source: Any, type: Any) -> None:
        super().__init__(source, type)
        self.taken: list[str] = []

    def read(self, client: str) -> Any:
        self.taken.append(client)
        return super().read(client)


@pytest.mark.parametrize(("limits", "times"), [(Limits(), 1), (Limits(most_stored=0), 3)])
def test_batches_of_files_are_kept_between_rounds(
    limits: Limits, times: int, tmp_path: pathlib.Path
) -> None:
    for number in range(3):
        np.savez(tmp_path / f"{number}.npz", np.int32(number))
    process = round_of(lambda x: x * 2, np.int32)
    source = Counting(open_data(tmp_path).typed(process.data_type), process.data_type)
    engine = LocalEngine(process, 1, Batching(2, limits=limits))
    cohort = Cohort(source, source.clients)
    assert [engine.run_round((), cohort).output for _ in range(3)] == [6] * 3
    assert sorted(source.taken) == sorted(source.clients * times)
