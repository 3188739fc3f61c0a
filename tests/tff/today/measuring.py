"""Programs of today's TFF that measure: aggregators, analytics, evaluations, and `program`.

Each function of a table returns what a program gave, and what NumPy says that is.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Callable
from typing import Any

import federated_language  # pyright: ignore[reportMissingImports]  # tffc under its name
import numpy as np
import tensorflow
import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # tffc under its name

from tests.tff.today import learning
from tests.tff.today import reference as numpy_of

# Its annotations refuse what it takes.
tf: Any = tensorflow

Results = tuple[Any, Any]
PROGRAMS: dict[str, Callable[[], Results]] = {}


def named(name: str) -> Callable[[Callable[[], Results]], Callable[[], Results]]:
    def enter(program: Callable[[], Results]) -> Callable[[], Results]:
        PROGRAMS[name] = program
        return program

    return enter


VECTORS = np.array([[3.0, 4.0, 0.0], [0.5, -0.5, 0.5], [-20.0, 1.0, 2.0]], np.float32)
WEIGHTS = np.array([1.0, 2.0, 5.0], np.float32)
VECTOR = federated_language.TensorType(np.float32, [3])
WEIGHT = federated_language.TensorType(np.float32)
LENGTHS = np.linalg.norm(VECTORS, axis=1, keepdims=True)
CLIPPED = VECTORS * np.minimum(1, 2 / LENGTHS)
ZEROED = np.where(np.abs(VECTORS).max(axis=1, keepdims=True) > 10, 0, VECTORS)
INTEGERS = np.array([[1, 2], [30, 4], [5, 6]], np.int32)


def aggregated(factory: Any, values: np.ndarray = VECTORS, *, weights: Any = None) -> Any:
    """What a factory's process makes of clients' values in its second round."""
    kind = federated_language.TensorType(values.dtype.type, values.shape[1:])
    process = factory.create(kind) if weights is None else factory.create(kind, WEIGHT)
    arguments = [list(values)] if weights is None else [list(values), list(weights)]
    state = process.next(process.initialize(), *arguments).state
    return process.next(state, *arguments).result


@named("sum")
def _() -> Results:
    return aggregated(tff.aggregators.SumFactory()), VECTORS.sum(axis=0)


@named("mean")
def _() -> Results:
    mean = np.average(VECTORS, axis=0, weights=WEIGHTS)
    return aggregated(tff.aggregators.MeanFactory(), weights=WEIGHTS), mean


@named("unweighted mean")
def _() -> Results:
    return aggregated(tff.aggregators.UnweightedMeanFactory()), VECTORS.mean(axis=0)


@named("unweighted mean, called as a weighted one")
def _() -> Results:
    factory = tff.aggregators.as_weighted_aggregator(tff.aggregators.UnweightedMeanFactory())
    return aggregated(factory, weights=WEIGHTS), VECTORS.mean(axis=0)


@named("clipped sum")
def _() -> Results:
    factory = tff.aggregators.clipping_factory(2.0, tff.aggregators.SumFactory())
    return aggregated(factory), CLIPPED.sum(axis=0)


@named("clipped mean")
def _() -> Results:
    factory = tff.aggregators.clipping_factory(2.0, tff.aggregators.MeanFactory())
    return aggregated(factory, weights=WEIGHTS), np.average(CLIPPED, axis=0, weights=WEIGHTS)


@named("sum with large values zeroed")
def _() -> Results:
    factory = tff.aggregators.zeroing_factory(10.0, tff.aggregators.SumFactory())
    return aggregated(factory), ZEROED.sum(axis=0)


@named("mean of what is zeroed, then clipped")
def _() -> Results:
    clipping = tff.aggregators.clipping_factory(2.0, tff.aggregators.UnweightedMeanFactory())
    clipped = ZEROED * np.minimum(1, 2 / np.maximum(np.linalg.norm(ZEROED, axis=1), 1e-9))[:, None]
    return aggregated(tff.aggregators.zeroing_factory(10.0, clipping)), clipped.mean(axis=0)


@named("concatenated structs")
def _() -> Results:
    factory = tff.aggregators.concat_factory(tff.aggregators.SumFactory())
    parts = [("a", VECTOR), ("b", federated_language.TensorType(np.float32, [2]))]
    kind = federated_language.StructWithPythonType(parts, collections.OrderedDict)
    process = factory.create(kind)
    values = [collections.OrderedDict(a=each, b=each[:2] * 2) for each in VECTORS]
    result = process.next(process.initialize(), values).result
    total = VECTORS.sum(axis=0)
    return [result["a"], result["b"]], [total, 2 * total[:2]]


@named("secure sum of integers")
def _() -> Results:
    return aggregated(tff.aggregators.SecureSumFactory(40, 0), INTEGERS), INTEGERS.sum(axis=0)


@named("secure modular sum")
def _() -> Results:
    factory = tff.aggregators.SecureModularSumFactory(16)
    return aggregated(factory, INTEGERS % 16), INTEGERS.sum(axis=0) % 16


@named("quantile")
def _() -> Results:
    process = tff.aggregators.PrivateQuantileEstimationProcess.no_noise(1.0, 0.5, 0.1)
    state = process.initialize()
    expected = 1.0
    for _ in range(3):
        state = process.next(state, [0.5, 2.0, 3.0])
        below = np.mean(np.array([0.5, 2.0, 3.0]) <= expected)
        expected *= np.exp(-0.1 * (below - 0.5))
    return process.report(state), expected


@named("measured sum")
def _() -> Results:
    def measure(value: Any) -> Any:
        largest = federated_language.federated_max(federated_language.federated_map(norm, value))
        return collections.OrderedDict(largest=largest)

    @tff.tensorflow.computation(VECTOR)
    def norm(value: Any) -> Any:
        return tf.norm(value)

    factory = tff.aggregators.add_measurements(
        tff.aggregators.SumFactory(), client_measurement_fn=measure
    )
    process = factory.create(VECTOR)
    output = process.next(process.initialize(), list(VECTORS))
    return [output.result, output.measurements["largest"]], [VECTORS.sum(axis=0), LENGTHS.max()]


WORDS = [["a", "b", "a"], ["c", "a"], ["b", "b", "b", "c"]]


@named("heavy hitters")
def _() -> Results:
    iblt = tff.analytics.heavy_hitters.iblt
    program = iblt.build_iblt_computation(
        capacity=20, string_max_bytes=4, max_words_per_user=10, repetitions=3, seed=1
    )
    result = program([[np.array([word]) for word in client] for client in WORDS])
    hitters = zip(result.heavy_hitters, result.heavy_hitters_counts, strict=True)
    counted = {word.decode(): int(count) for word, count in hitters}
    return sorted(counted.items()), sorted({"a": 3, "b": 4, "c": 2}.items())


@named("histogram")
def _() -> Results:
    process = tff.analytics.build_hierarchical_histogram_process(
        lower_bound=0.0, upper_bound=4.0, num_bins=4, clip_mechanism="sub-sampling"
    )
    values = [[0.5, 1.5], [1.5, 3.5], [3.5]]
    state, _ = process.next(
        process.initialize(), [[np.float32(x) for x in each] for each in values]
    )
    leaves = state.aggregated_hierarchical_histogram["flat_values"][-4:]
    flat = [x for each in values for x in each]
    counts, _ = np.histogram(flat, bins=4, range=(0, 4))
    return leaves, counts


def _measured(parameters: numpy_of.Parameters) -> dict[str, float]:
    batches = [batch for client in learning.CLIENTS for batch in client]
    sizes = [len(x) for x, _ in batches]
    losses = [numpy_of.loss(parameters, each) for each in batches]
    errors = [np.abs(x @ parameters[0] + parameters[1] - y) for x, y in batches]
    return {
        "mae": float(np.concatenate(errors).mean()),
        "loss": float(np.average(losses, weights=sizes)),
        "num_examples": float(sum(sizes)),
        "num_batches": float(len(batches)),
    }


EVALUATED = [np.array([[1.0], [0.5]]), np.array([0.25])]


def _metrics(process: Any) -> Any:
    weights = tff.learning.models.ModelWeights(
        tuple(each.astype(np.float32) for each in EVALUATED), ()
    )
    state = process.set_model_weights(process.initialize(), weights)
    output = process.next(state, learning.given_to_tff(learning.CLIENTS))
    return output.metrics["client_work"]["eval"]["current_round_metrics"]


@named("evaluation of a Keras model")
def _() -> Results:
    process = tff.learning.algorithms.build_fed_eval(learning.variable_model)
    metrics, expected = _metrics(process), _measured(EVALUATED)
    metrics["mae"] = metrics.pop("mean_absolute_error")
    names = sorted(expected)
    return [metrics[name] for name in names], [expected[name] for name in names]


@named("evaluation of a functional Keras model")
def _() -> Results:
    process = tff.learning.algorithms.build_fed_eval(learning.functional_model())
    return _metrics(process)["mae"], _measured(EVALUATED)["mae"]


@named("evaluation of a model of functions")
def _() -> Results:
    process = tff.learning.algorithms.build_fed_eval(learning.model_of_functions())
    return _metrics(process)["mae"], _measured(EVALUATED)["mae"]


@named("evaluation of two models on the same data")
def _() -> Results:
    build = tff.learning.algorithms.build_fed_multi_model_eval
    process = build([learning.variable_model, learning.variable_model])
    first = [np.zeros((2, 1)), np.zeros(1)]
    weights = {
        name: tff.learning.models.ModelWeights([part.astype(np.float32) for part in each], [])
        for name, each in (("a", first), ("b", EVALUATED))
    }
    state = process.set_model_weights(process.initialize(), collections.OrderedDict(weights))
    metrics = process.next(state, learning.given_to_tff(learning.CLIENTS)).metrics["client_work"]
    losses = [metrics[name]["eval"]["current_round_metrics"]["loss"] for name in ("a", "b")]
    return losses, [_measured(first)["loss"], _measured(EVALUATED)["loss"]]


@named("metrics of a Keras model while it trains")
def _() -> Results:
    process = tff.learning.algorithms.build_weighted_fed_avg(
        learning.variable_model, learning.SGD[1](), learning.ONE[1]()
    )
    # One batch a client, so that what is measured is measured before the first step.
    clients = [each[:1] for each in learning.CLIENTS]
    output = process.next(process.initialize(), learning.given_to_tff(clients))
    metrics = output.metrics["client_work"]["train"]
    batches = [each[0] for each in clients]
    sizes = [len(x) for x, _ in batches]
    losses = [numpy_of.loss(learning.first_parameters(), each) for each in batches]
    names = "loss", "num_examples", "num_non_finite_clients"
    return [metrics[name] for name in names], [np.average(losses, weights=sizes), sum(sizes), 0]


@named("a client without finite changes")
def _() -> Results:
    process = tff.learning.algorithms.build_weighted_fed_avg(
        learning.functional_model(), learning.SGD[1](), learning.ONE[1]()
    )
    x, y = learning.CLIENTS[1][0]
    broken = [(np.full_like(x, np.inf), y)]
    clients = [learning.CLIENTS[0], broken]
    state = process.next(process.initialize(), learning.given_to_tff(clients)).state
    expected = numpy_of.Averaging(learning.SGD[0], learning.ONE[0]).run(
        learning.first_parameters(), [clients[:1]]
    )
    return list(process.get_model_weights(state).trainable), expected


class _Released(federated_language.program.ReleaseManager):
    """Keeps what is released, by its keys."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}

    async def release(self, value: Any, key: Any) -> None:
        self.values[key] = await federated_language.program.materialize_value(value)


@tff.tensorflow.computation(np.int32, np.int32)
def add(one: Any, other: Any) -> Any:
    return one + other


@federated_language.federated_computation(
    federated_language.FederatedType(np.int32, federated_language.SERVER),
    federated_language.FederatedType(np.int32, federated_language.CLIENTS),
)
def counting(state: Any, values: Any) -> Any:
    """One round of a program: the sum so far, and that of this round."""
    total = federated_language.federated_sum(values)
    return federated_language.federated_map(add, (state, total)), total


@named("a program with a release manager")
def _() -> Results:
    released = _Released()

    async def program() -> None:
        state: Any = 0
        for number in range(3):
            state, total = counting(state, [1, 2, number])
            await released.release(total, number)
        await released.release(state, "all")

    context = federated_language.program.NativeFederatedContext(
        tff.backends.native.create_async_local_cpp_execution_context()
    )
    with federated_language.framework.get_context_stack().install(context):
        asyncio.run(program())
    return [released.values[key] for key in (0, 1, 2, "all")], [3, 4, 5, 12]


@named("a program that groups and filters releases")
def _() -> Results:
    first, second = _Released(), _Released()
    even = federated_language.program.PeriodicReleaseManager(second, periodicity=2)
    group = federated_language.program.GroupingReleaseManager([first, even])

    async def program() -> None:
        for number in range(4):
            await group.release(number * 10, number)

    asyncio.run(program())
    return [sorted(first.values.items()), sorted(second.values.items())], [
        [(0, 0), (1, 10), (2, 20), (3, 30)],
        [(1, 10), (3, 30)],
    ]
