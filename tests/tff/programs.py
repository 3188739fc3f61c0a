"""Small programs of TFF's own libraries, which run unchanged over TFF 0.87 and over tffc.

Where one is random in itself, as rotations and dithering are, the leaves of its state and output
that differ from run to run are named in `varying`.  Programs that have no answer of TFF yet are not
compared: `python -m tests.tff.record` with TFF runs them.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import importlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow

# In the tests, tffc has that name.
import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]  # of TFF, or tffc under its name

from tests.tff.linear import linear_model

# Its annotations refuse what it takes.
tf: Any = tensorflow


@dataclasses.dataclass(frozen=True)
class Program:
    """A computation of a round, or of a state and a round, and what it is called with.

    Attributes:
      next: Takes the state, if there is one, and then the arguments of a round.
      rounds: The arguments of each round.
      initialize: Returns the first state; None where there is none.
      varying: Regular expressions for the paths of leaves that differ from run to run.
      tolerance: Relative and absolute, of floats.
      unordered: Paths of tensors whose rows belong together and come in any order.
    """

    next: Any
    rounds: Sequence[tuple[Any, ...]]
    initialize: Any = None
    varying: Sequence[str] = ()
    tolerance: float = 1e-4
    unordered: Sequence[str] = ()


LEARNING: dict[str, Callable[[], Program]] = {}
AGGREGATORS: dict[str, Callable[[], Program]] = {}
ANALYTICS: dict[str, Callable[[], Program]] = {}
KERAS: dict[str, Callable[[], Program]] = {}
"""Programs for which `tf.keras` has to be Keras 2."""


def named(table: dict[str, Callable[[], Program]]) -> Callable[..., Any]:
    """Enter a program into a table under its own name."""

    def enter(build: Callable[[], Program]) -> Callable[[], Program]:
        table[build.__name__] = build
        return build

    return enter


# Learning: a linear model of two features, and three clients with one to five examples.

FEATURES = 2
KERNEL = np.array([[1.5], [-0.5]], np.float32)


def examples(count: int, start: int) -> Mapping[str, np.ndarray]:
    """Examples of a plane, with a deviation that has no randomness in it."""
    positions = np.arange(start, start + count * FEATURES, dtype=np.float32)
    x = np.sin(positions).reshape(count, FEATURES)
    y = x @ KERNEL + 0.25 + 0.1 * np.cos(7 * x[:, :1])
    return collections.OrderedDict(x=x, y=y.astype(np.float32))


def batches(count: int, start: int) -> Any:
    return tf.data.Dataset.from_tensor_slices(examples(count, start)).batch(2)


def clients() -> list[Any]:
    return [batches(count, start) for count, start in ((4, 0), (1, 11), (5, 23))]


SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, FEATURES], tf.float32), y=tf.TensorSpec([None, 1], tf.float32)
)


@functools.cache
def linear() -> Any:
    return linear_model(tff.learning.models, FEATURES)


class PlainModel(tff.learning.models.VariableModel):
    """The same model with variables, written without Keras."""

    def __init__(self) -> None:
        self._kernel = tf.Variable(np.zeros((FEATURES, 1), np.float32), name="kernel")
        self._bias = tf.Variable(np.zeros(1, np.float32), name="bias")
        self._loss = tf.Variable(0.0, name="loss", trainable=False)
        self._count = tf.Variable(0.0, name="count", trainable=False)

    @property
    def trainable_variables(self) -> Any:
        return [self._kernel, self._bias]

    @property
    def non_trainable_variables(self) -> Any:
        return []

    @property
    def local_variables(self) -> Any:
        return [self._loss, self._count]

    @property
    def input_spec(self) -> Any:
        return SPEC

    def predict_on_batch(self, batch_input: Any, training: bool = True) -> Any:
        return tf.matmul(batch_input, self._kernel) + self._bias

    def forward_pass(self, batch_input: Any, training: bool = True) -> Any:
        predictions = self.predict_on_batch(batch_input["x"])
        loss = tf.reduce_mean(tf.square(batch_input["y"] - predictions))
        count = tf.shape(predictions)[0]
        self._loss.assign_add(loss * tf.cast(count, tf.float32))
        self._count.assign_add(tf.cast(count, tf.float32))
        return tff.learning.models.BatchOutput(
            loss=loss, predictions=predictions, num_examples=count
        )

    def report_local_unfinalized_metrics(self) -> Any:
        return collections.OrderedDict(loss=[self._loss, self._count])

    def metric_finalizers(self) -> Any:
        return collections.OrderedDict(loss=lambda parts: parts[0] / parts[1])

    def reset_metrics(self) -> None:
        self._loss.assign(0.0)
        self._count.assign(0.0)


def learned(process: Any, varying: Sequence[str] = (), tolerance: float = 1e-4) -> Program:
    """Three rounds of a learning process."""
    return Program(process.next, [(clients(),)] * 3, process.initialize, varying, tolerance)


def averaged(**options: Any) -> Program:
    """Three rounds of federated averaging with these options."""
    varying = options.pop("varying", ())
    tolerance = options.pop("tolerance", 1e-4)
    chosen: dict[str, Any] = {"model_fn": linear(), "client_optimizer_fn": sgd(0.1)}
    chosen.update(options)
    process = tff.learning.algorithms.build_weighted_fed_avg(**chosen)
    return learned(process, varying, tolerance)


def sgd(rate: float, momentum: float | None = None) -> Any:
    return tff.learning.optimizers.build_sgdm(rate, momentum)


def halved(round_number: Any) -> Any:
    """A rate that is halved from the second round on."""
    return tf.cond(tf.less(round_number, 1), lambda: 0.1, lambda: 0.05)


algorithms = tff.learning.algorithms
optimizers = tff.learning.optimizers

LEARNING |= {
    "fed_avg": averaged,
    "fed_avg_momentum": lambda: averaged(
        client_optimizer_fn=sgd(0.1, 0.5), server_optimizer_fn=sgd(1.0, 0.9)
    ),
    "fed_avg_server_adagrad": lambda: averaged(server_optimizer_fn=optimizers.build_adagrad(0.1)),
    "fed_avg_server_adam": lambda: averaged(server_optimizer_fn=optimizers.build_adam(0.1)),
    "fed_avg_server_adamw": lambda: averaged(server_optimizer_fn=optimizers.build_adamw(0.1)),
    "fed_avg_server_rmsprop": lambda: averaged(server_optimizer_fn=optimizers.build_rmsprop(0.1)),
    "fed_avg_server_yogi": lambda: averaged(server_optimizer_fn=optimizers.build_yogi(0.1)),
    "fed_avg_client_adam": lambda: averaged(client_optimizer_fn=optimizers.build_adam(0.1)),
    "fed_avg_server_schedule": lambda: averaged(
        server_optimizer_fn=optimizers.schedule_learning_rate(sgd(1.0), halved)
    ),
    "fed_avg_uniform": lambda: averaged(
        client_weighting=tff.learning.ClientWeighting.UNIFORM,
    ),
    "fed_avg_iterator": lambda: averaged(
        loop_implementation=tff.learning.LoopImplementation.DATASET_ITERATOR
    ),
    "fed_avg_variables": lambda: averaged(model_fn=PlainModel),
    "fed_avg_robust": lambda: averaged(model_aggregator=tff.learning.robust_aggregator()),
    "fed_avg_robust_debug": lambda: averaged(
        model_aggregator=tff.learning.robust_aggregator(
            zeroing=False, debug_measurements_fn=tff.learning.add_debug_measurements
        )
    ),
    "fed_avg_secure": lambda: averaged(model_aggregator=tff.learning.secure_aggregator()),
    "fed_avg_compression": lambda: averaged(
        model_aggregator=tff.learning.compression_aggregator(step_size=1e-6),
    ),
    "fed_avg_summed_metrics": lambda: averaged(
        metrics_aggregator=tff.learning.metrics.sum_then_finalize
    ),
    "fed_avg_secure_metrics": lambda: averaged(
        model_fn=PlainModel,
        metrics_aggregator=tff.learning.metrics.secure_sum_then_finalize,
    ),
    "fed_avg_sampled_metrics": lambda: averaged(
        metrics_aggregator=tff.learning.metrics.finalize_then_sample,
        # Which client comes first is drawn.
        varying=[r".*(seed|random_values|samples|train)(\..*)?"],
    ),
    "fed_avg_unweighted": lambda: learned(
        algorithms.build_unweighted_fed_avg(linear(), sgd(0.1), sgd(1.0, 0.9))
    ),
    "fed_avg_unweighted_dp": lambda: learned(
        algorithms.build_unweighted_fed_avg(
            linear(), sgd(0.1), model_aggregator=tff.learning.dp_aggregator(0.0, 3)
        )
    ),
    "fed_avg_unweighted_ddp": lambda: learned(
        algorithms.build_unweighted_fed_avg(
            linear(),
            sgd(0.1),
            model_aggregator=tff.learning.ddp_secure_aggregator(1e-3, 3, bits=22),
        ),
        # Noise is drawn, and so is a rotation.
        varying=[r".*"],
    ),
    "fed_avg_schedule": lambda: learned(
        algorithms.build_weighted_fed_avg_with_optimizer_schedule(
            linear(), halved, lambda rate: sgd(rate)
        )
    ),
    "fed_prox": lambda: learned(
        algorithms.build_weighted_fed_prox(linear(), 0.5, sgd(0.1), sgd(1.0, 0.5))
    ),
    "fed_prox_unweighted": lambda: learned(
        algorithms.build_unweighted_fed_prox(linear(), 0.5, sgd(0.1))
    ),
    "fed_sgd": lambda: learned(algorithms.build_fed_sgd(linear(), sgd(0.1))),
    "fed_sgd_variables": lambda: learned(algorithms.build_fed_sgd(PlainModel, sgd(0.1, 0.9))),
    "mime_lite": lambda: learned(algorithms.build_weighted_mime_lite(linear(), sgd(0.1, 0.9))),
    "mime_lite_adagrad": lambda: learned(
        algorithms.build_weighted_mime_lite(linear(), optimizers.build_adagrad(0.1), sgd(1.0, 0.5))
    ),
    "mime_lite_unweighted": lambda: learned(
        algorithms.build_unweighted_mime_lite(linear(), sgd(0.1, 0.9))
    ),
    "mime_lite_schedule": lambda: learned(
        algorithms.build_mime_lite_with_optimizer_schedule(linear(), halved, sgd(0.1, 0.9))
    ),
    "fed_eval": lambda: learned(algorithms.build_fed_eval(linear())),
    "fed_eval_variables": lambda: learned(algorithms.build_fed_eval(PlainModel)),
}


@named(LEARNING)
def fed_eval_trained_weights() -> Program:
    process = algorithms.build_fed_eval(linear())
    weights = tff.learning.models.ModelWeights(
        trainable=(KERNEL, np.array([0.25], np.float32)), non_trainable=()
    )
    state = process.set_model_weights(process.initialize(), weights)
    return Program(process.next, [(state, clients())])


@named(LEARNING)
def fed_avg_weights_taken_and_set() -> Program:
    process = averaged()
    built = algorithms.build_weighted_fed_avg(linear(), sgd(0.1))
    state = built.next(built.initialize(), clients()).state
    moved = built.set_model_weights(built.initialize(), built.get_model_weights(state))
    return Program(process.next, [(moved, clients()), (moved, clients()[:1])])


@named(LEARNING)
def fed_avg_hyperparameters() -> Program:
    built = algorithms.build_weighted_fed_avg(linear(), sgd(0.1), sgd(1.0))
    hyperparameters = built.get_hparams(built.initialize())
    hyperparameters["finalizer"]["learning_rate"] = 0.5
    state = built.set_hparams(built.initialize(), hyperparameters)
    return Program(built.next, [(state, clients())])


@named(LEARNING)
def saved_model() -> Program:
    pair = tff.learning.models.FunctionalModel(
        initial_weights=linear().initial_weights,
        predict_on_batch_fn=linear().predict_on_batch,
        loss_fn=linear().loss,
        input_spec=tuple(SPEC.values()),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model"
        tff.learning.models.save_functional_model(pair, path)
        model = tff.learning.models.load_functional_model(path)

    @tff.tensorflow.computation(SPEC)
    def loss(batch: Any) -> Any:
        weights = ((tf.constant(KERNEL), tf.constant([0.25])), ())
        return model.loss(model.predict_on_batch(weights, batch["x"], False), batch["y"])

    return Program(loss, [(examples(2, 0),), (examples(5, 11),)])


@named(LEARNING)
def composed_process() -> Program:
    templates = tff.learning.templates
    weights = tff.learning.models.weights_type_from_model(PlainModel)

    @tff.tensorflow.computation
    def start() -> Any:
        return tff.learning.models.ModelWeights(
            trainable=[np.zeros((FEATURES, 1), np.float32), np.zeros(1, np.float32)],
            non_trainable=[],
        )

    aggregator = tff.aggregators.clipping_factory(0.1, tff.aggregators.MeanFactory())
    return learned(
        templates.compose_learning_process(
            start,
            templates.build_broadcast_process(weights),
            templates.build_model_delta_client_work(
                PlainModel, sgd(0.1), tff.learning.ClientWeighting.NUM_EXAMPLES
            ),
            aggregator.create(weights.trainable, tff.TensorType(np.float32)),
            templates.build_apply_optimizer_finalizer(sgd(1.0, 0.5), weights),
        )
    )


@named(LEARNING)
def composed_process_of_own_parts() -> Program:
    """Each part but the aggregator is written out: with classes, not with functions that build."""
    weights_type = tff.to_type(
        tff.learning.models.ModelWeights(
            (tff.TensorType(np.float32, [FEATURES, 1]), tff.TensorType(np.float32, [1])), ()
        )
    )
    empty = tff.federated_computation(lambda: tff.federated_value((), tff.SERVER))
    server = functools.partial(tff.FederatedType, placement=tff.SERVER)
    clients_ = functools.partial(tff.FederatedType, placement=tff.CLIENTS)
    nothing = server(tff.to_type(()))
    batches_type = tff.SequenceType(tff.types.tensorflow_to_type(SPEC))

    @tff.tensorflow.computation
    def start() -> Any:
        return tff.learning.models.ModelWeights(
            (np.zeros((FEATURES, 1), np.float32), np.zeros(1, np.float32)), ()
        )

    @tff.federated_computation(nothing, server(weights_type))
    def send(state: Any, value: Any) -> Any:
        return tff.templates.MeasuredProcessOutput(
            state, tff.federated_broadcast(value), tff.federated_value((), tff.SERVER)
        )

    @tff.tensorflow.computation(weights_type.trainable, weights_type.trainable)
    def add(one: Any, other: Any) -> Any:
        return tff.learning.models.ModelWeights(tf.nest.map_structure(tf.add, one, other), ())

    @tff.federated_computation(nothing, server(weights_type), server(weights_type.trainable))
    def finish(state: Any, weights: Any, update: Any) -> Any:
        return tff.templates.MeasuredProcessOutput(
            state,
            tff.federated_map(add, (weights.trainable, update)),
            tff.federated_value((), tff.SERVER),
        )

    @tff.tensorflow.computation(weights_type, batches_type)
    def work(weights: Any, data: Any) -> Any:
        loss, count = data.reduce(
            (0.0, 0.0),
            lambda sums, batch: (
                sums[0] + tf.reduce_sum(batch["y"] - tf.matmul(batch["x"], weights.trainable[0])),
                sums[1] + tf.cast(tf.shape(batch["y"])[0], tf.float32),
            ),
        )
        update = tf.nest.map_structure(lambda part: 0.1 * loss + 0.0 * part, weights.trainable)
        return tff.learning.templates.ClientResult(update=update, update_weight=count)

    @tff.federated_computation(nothing, clients_(weights_type), clients_(batches_type))
    def at_clients(state: Any, weights: Any, data: Any) -> Any:
        results = tff.federated_map(work, (weights, data))
        return tff.templates.MeasuredProcessOutput(
            state, results, tff.federated_value((), tff.SERVER)
        )

    templates = tff.learning.templates
    return learned(
        templates.compose_learning_process(
            start,
            templates.DistributionProcess(empty, send),
            templates.ClientWorkProcess(empty, at_clients),
            a.MeanFactory().create(weights_type.trainable, tff.TensorType(np.float32)),
            templates.FinalizerProcess(empty, finish),
        )
    )


@named(LEARNING)
def composed_process_that_rejects() -> Program:
    """A client's label is not a number, and the second round changes nothing."""
    templates = tff.learning.templates
    weights = tff.to_type(
        tff.learning.models.ModelWeights(
            (tff.TensorType(np.float32, [FEATURES, 1]), tff.TensorType(np.float32, [1])), ()
        )
    )

    @tff.tensorflow.computation
    def start() -> Any:
        return tff.learning.models.ModelWeights(*linear().initial_weights)

    process = templates.compose_learning_process(
        start,
        templates.build_broadcast_process(weights),
        templates.build_functional_model_delta_client_work(
            model=linear(),
            optimizer=sgd(0.1),
            client_weighting=tff.learning.ClientWeighting.NUM_EXAMPLES,
        ),
        a.MeanFactory().create(weights.trainable, tff.TensorType(np.float32)),
        templates.build_apply_optimizer_finalizer(
            sgd(1.0, 0.5), weights, should_reject_update=templates.reject_non_finite_update
        ),
    )
    bad = collections.OrderedDict(
        x=np.ones((2, FEATURES), np.float32), y=np.full((2, 1), np.inf, np.float32)
    )
    broken = [*clients()[:1], tf.data.Dataset.from_tensor_slices(bad).batch(2)]
    return Program(process.next, [(clients(),), (broken,), (clients(),)], process.initialize)


@named(LEARNING)
def learning_process_of_own_parts() -> Program:
    """A process that learns a mean, of which the composition knows nothing."""
    templates = tff.learning.templates
    server = functools.partial(tff.FederatedType, placement=tff.SERVER)

    def zero() -> Any:
        return templates.LearningAlgorithmState(np.float32(0), (), (), (), ())

    start = tff.tensorflow.computation(zero)
    state_type = start.type_signature.result

    @tff.tensorflow.computation(state_type, np.float32)
    def move(state: Any, mean: Any) -> Any:
        return templates.LearningAlgorithmState(
            0.5 * (state.global_model_weights + mean), (), (), (), ()
        )

    @tff.federated_computation(server(state_type), tff.FederatedType(NUMBERS, tff.CLIENTS))
    def step(state: Any, data: Any) -> Any:
        mean = tff.federated_mean(tff.federated_map(total_of_numbers, data))
        return templates.LearningProcessOutput(tff.federated_map(move, (state, mean)), mean)

    @tff.tensorflow.computation(state_type)
    def get(state: Any) -> Any:
        return state.global_model_weights

    @tff.tensorflow.computation(state_type, np.float32)
    def put(state: Any, weights: Any) -> Any:
        return templates.LearningAlgorithmState(weights, (), (), (), ())

    initialize = tff.federated_computation(lambda: tff.federated_eval(start, tff.SERVER))
    process = templates.LearningProcess(initialize, step, get, put)
    data = [tf.data.Dataset.from_tensor_slices([1.0, 2.0]), tf.data.Dataset.from_tensors(5.0)]
    return Program(process.next, [(data,)] * 3, process.initialize)


class Signed(optimizers.Optimizer):
    """An optimizer written by hand: it follows the signs of the gradients."""

    def initialize(self, specs: Any) -> Any:
        return collections.OrderedDict({optimizers.LEARNING_RATE_KEY: tf.constant(0.1)})

    def next(self, state: Any, weights: Any, gradients: Any) -> Any:
        gradients = optimizers.handle_indexed_slices_gradients(gradients)
        optimizers.check_weights_gradients_match(weights, gradients)
        rate = state[optimizers.LEARNING_RATE_KEY]
        moved = tf.nest.map_structure(lambda w, g: w - rate * tf.sign(g), weights, gradients)
        return state, moved

    def get_hparams(self, state: Any) -> Any:
        return state

    def set_hparams(self, state: Any, hparams: Any) -> Any:
        return hparams


@named(LEARNING)
def adafactor() -> Program:
    """Two steps, without a process: the finalizer of TFF refuses this optimizer's state."""
    optimizer = optimizers.build_adafactor(0.1)

    @tff.tensorflow.computation(np.float32, tff.TensorType(np.float32, [FEATURES, 1]))
    def steps(start: Any, gradient: Any) -> Any:
        weights = start + tf.constant(KERNEL)
        state = optimizer.initialize(tf.TensorSpec([FEATURES, 1], tf.float32))
        state, weights = optimizer.next(state, weights, gradient)
        return optimizer.next(state, weights, 2 * gradient)

    return Program(steps, [(0.0, KERNEL), (1.0, 3 * KERNEL)])


LEARNING["fed_avg_own_optimizer"] = lambda: averaged(
    client_optimizer_fn=Signed(), server_optimizer_fn=Signed()
)


@named(LEARNING)
def kmeans() -> Program:
    process = algorithms.build_fed_kmeans(2, (2,), random_seed=(3, 5))
    points = [[[0, 0], [4, 4]], [[0, 1], [5, 4], [1, 0]], [[4, 5]]]
    data = [tf.data.Dataset.from_tensor_slices(np.array(each, np.float32)) for each in points]
    return Program(process.next, [(data,)] * 3, process.initialize)


@named(LEARNING)
def personalization() -> Program:
    @tf.function
    def evaluate(model: Any, dataset: Any) -> Any:
        total = 0.0
        for batch in dataset.batch(2):
            total += model.forward_pass(batch, False).loss
        return collections.OrderedDict(loss=total)

    def personalize() -> Any:
        @tf.function
        def fine_tune(model: Any, train: Any, test: Any, context: Any = None) -> Any:
            for batch in train.batch(2):
                with tf.GradientTape() as tape:
                    loss = model.forward_pass(batch).loss
                gradients = tape.gradient(loss, model.trainable_variables)
                for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
                    variable.assign_sub(0.1 * gradient)
            return evaluate(model, test)

        return fine_tune

    computation = algorithms.build_personalization_eval_computation(
        PlainModel, collections.OrderedDict(tuned=personalize), evaluate, max_num_clients=3
    )
    weights = tff.learning.models.ModelWeights(
        trainable=[KERNEL / 2, np.zeros(1, np.float32)], non_trainable=[]
    )
    data = [
        collections.OrderedDict(train_data=each, test_data=each)
        for each in [batches(2, 0).unbatch(), batches(4, 0).unbatch()][:1]
    ]
    return Program(computation, [(weights, data)])


NUMBERS = tff.SequenceType(np.float32)


@tff.tensorflow.computation(NUMBERS)
def total_of_numbers(numbers: Any) -> Any:
    return numbers.reduce(0.0, tf.add)


# Aggregators: three clients with a vector, or a struct of two.

VECTORS = [np.array(each, np.float32) for each in ([1, 2, -3], [3, 4, 0.5], [8, 0, -1])]
VECTOR = tff.TensorType(np.float32, [3])
VECTOR_SPEC = tf.TensorSpec([3], tf.float32)
INTEGERS = [np.array(each, np.int32) for each in ([1, 2, 3], [3, 4, 0], [7, 0, 5])]
INTEGER = tff.TensorType(np.int32, [3])
STRUCTS = [collections.OrderedDict(b=each, a=-each[:2]) for each in VECTORS]
STRUCT = tff.to_type(collections.OrderedDict(b=(np.float32, [3]), a=(np.float32, [2])))
MIXED = tff.to_type(collections.OrderedDict(a=(np.float32, [3]), b=(np.float64, [3])))
MIXTURES = [collections.OrderedDict(a=each, b=each.astype(np.float64) / 2) for each in VECTORS]
WEIGHTS = [np.float32(1), np.float32(2), np.float32(0.5)]


def unweighted(
    factory: Any, type_: Any = VECTOR, values: Any = None, varying: Sequence[str] = ()
) -> Program:
    """Three rounds, the last with one client less."""
    chosen = VECTORS if values is None else values
    process = factory.create(type_)
    rounds = [(chosen,), (chosen[::-1],), (chosen[:2],)]
    return Program(process.next, rounds, process.initialize, varying)


def weighted(
    factory: Any, type_: Any = VECTOR, values: Any = None, varying: Sequence[str] = ()
) -> Program:
    """Three rounds of values and their weights."""
    chosen = VECTORS if values is None else values
    process = factory.create(type_, tff.TensorType(np.float32))
    rounds = [(chosen, WEIGHTS), (chosen[::-1], WEIGHTS), (chosen[:2], WEIGHTS[:2])]
    return Program(process.next, rounds, process.initialize, varying)


def quantile(**options: Any) -> Any:
    """A running estimate of a norm, without noise."""
    return tff.aggregators.PrivateQuantileEstimationProcess.no_noise(
        initial_estimate=2.0, target_quantile=0.5, learning_rate=1.0, **options
    )


def at_server(function: Callable[[Any], Any]) -> Any:
    computation = tff.tensorflow.computation(function, np.float32)
    return tff.federated_computation(
        lambda value: tff.federated_map(computation, value),
        tff.FederatedType(np.float32, tff.SERVER),
    )


def norm(value: Any) -> Any:
    return tf.linalg.global_norm(tf.nest.flatten(value))


def counted(value: Any) -> Any:
    return {"largest": tff.federated_max(tff.federated_map(largest, value))}


@tff.tensorflow.computation(VECTOR)
def largest(value: Any) -> Any:
    return tf.reduce_max(value)


def inner(name: str) -> Any:
    """A module of the libraries that programs import by its path."""
    return importlib.import_module(f"tensorflow_federated.python.{name}")


a = tff.aggregators
private = tff.aggregators.DifferentiallyPrivateFactory
SEED = ("1", r"state\.1")
"""Where rotations keep theirs, which begins with the time of day."""

AGGREGATORS |= {
    "sum": lambda: unweighted(a.SumFactory()),
    "sum_of_structs": lambda: unweighted(a.SumFactory(), STRUCT, STRUCTS),
    "mean": lambda: weighted(a.MeanFactory()),
    "mean_of_structs": lambda: weighted(a.MeanFactory(), STRUCT, STRUCTS),
    "mean_without_nan": lambda: weighted(a.MeanFactory(no_nan_division=True)),
    "mean_of_secure_sums": lambda: weighted(
        a.MeanFactory(a.SecureSumFactory(20.0), a.SecureSumFactory(10.0))
    ),
    "unweighted_mean": lambda: unweighted(a.UnweightedMeanFactory()),
    "as_weighted": lambda: weighted(a.as_weighted_aggregator(a.UnweightedMeanFactory())),
    "clipping": lambda: unweighted(a.clipping_factory(5.0, a.SumFactory())),
    "clipping_weighted": lambda: weighted(a.clipping_factory(5.0, a.MeanFactory())),
    "clipping_adaptive": lambda: unweighted(a.clipping_factory(quantile(), a.SumFactory())),
    "clipping_counted_securely": lambda: unweighted(
        a.clipping_factory(quantile(), a.SumFactory(), a.SecureSumFactory(1, 0))
    ),
    "zeroing": lambda: unweighted(a.zeroing_factory(7.0, a.SumFactory())),
    "zeroing_by_length": lambda: unweighted(a.zeroing_factory(7.0, a.SumFactory(), norm_order=2.0)),
    "zeroing_adaptive": lambda: weighted(a.zeroing_factory(quantile(), a.MeanFactory())),
    "zeroing_of_doubled_estimate": lambda: unweighted(
        a.zeroing_factory(
            quantile().map(at_server(lambda x: 2.0 * x)),
            a.SumFactory(),
        )
    ),
    "concat": lambda: unweighted(a.concat_factory(a.SumFactory()), STRUCT, STRUCTS),
    "concat_weighted": lambda: weighted(a.concat_factory(a.MeanFactory()), STRUCT, STRUCTS),
    "dp_gaussian_fixed": lambda: unweighted(private.gaussian_fixed(0.0, 3, clip=4.0)),
    "dp_gaussian_adaptive": lambda: unweighted(
        private.gaussian_adaptive(0.0, 3, initial_l2_norm_clip=3.0, clipped_count_stddev=0.0)
    ),
    "dp_gaussian_of_structs": lambda: unweighted(
        private.gaussian_fixed(0.0, 3, clip=4.0), STRUCT, STRUCTS
    ),
    "dp_tree": lambda: unweighted(private.tree_aggregation(0.0, 3, 4.0, VECTOR_SPEC, noise_seed=1)),
    "dp_tree_plain": lambda: unweighted(
        private.tree_aggregation(0.0, 3, 4.0, VECTOR_SPEC, noise_seed=1, use_efficient=False)
    ),
    "dp_tree_adaptive": lambda: unweighted(
        private.tree_adaptive(
            0.0, 3, VECTOR_SPEC, 3.0, clipped_count_stddev=0.0, restart_warmup=1, noise_seed=1
        ),
        # That of the count of clipped values begins with the time of day.
        varying=[r".*\.seeds"],
    ),
    "hadamard": lambda: unweighted(a.HadamardTransformFactory(), varying=SEED),
    "hadamard_twice": lambda: unweighted(
        a.HadamardTransformFactory(num_repeats=2), STRUCT, STRUCTS, SEED
    ),
    "fourier": lambda: unweighted(a.DiscreteFourierTransformFactory(), varying=SEED),
    "fourier_of_structs": lambda: unweighted(
        a.DiscreteFourierTransformFactory(a.SumFactory(), 2), STRUCT, STRUCTS, SEED
    ),
    "quantized_sum": lambda: unweighted(
        a.EncodedSumFactory.quantize_above_threshold(quantization_bits=8, threshold=0),
        varying=[r"result"],
    ),
    "quantized_sum_of_small": lambda: unweighted(
        a.EncodedSumFactory.quantize_above_threshold(quantization_bits=8, threshold=100)
    ),
    "secure_sum": lambda: unweighted(a.SecureSumFactory(10.0)),
    "secure_sum_of_integers": lambda: unweighted(a.SecureSumFactory(7, 0), INTEGER, INTEGERS),
    "secure_sum_adaptive": lambda: unweighted(a.SecureSumFactory(quantile())),
    "secure_sum_adaptive_both": lambda: unweighted(
        a.SecureSumFactory(
            quantile().map(at_server(lambda x: 1.0 * x)),
            quantile().map(at_server(lambda x: -1.5 * x)),
        )
    ),
    "secure_modular_sum": lambda: unweighted(a.SecureModularSumFactory(8), INTEGER, INTEGERS),
    "secure_modular_sum_symmetric": lambda: unweighted(
        a.SecureModularSumFactory(8, symmetric_range=True), INTEGER, INTEGERS
    ),
    "measurements": lambda: unweighted(
        a.add_measurements(a.SumFactory(), client_measurement_fn=counted)
    ),
    "measurements_at_server": lambda: weighted(
        a.add_measurements(
            a.MeanFactory(),
            server_measurement_fn=lambda value: {
                "norm": tff.federated_map(tff.tensorflow.computation(norm), value)
            },
        )
    ),
    "debug_measurements": lambda: weighted(tff.learning.add_debug_measurements(a.MeanFactory())),
    "debug_measurements_unweighted": lambda: unweighted(
        tff.learning.add_debug_measurements(a.SumFactory())
    ),
    "debug_measurements_of_two_dtypes": lambda: unweighted(
        tff.learning.add_debug_measurements_with_mixed_dtype(a.SumFactory()), MIXED, MIXTURES
    ),
    "reservoir": lambda: unweighted(
        a.UnweightedReservoirSamplingFactory(5), varying=[r"state.*", r"result.*"]
    ),
    "reservoir_with_metadata": lambda: unweighted(
        a.UnweightedReservoirSamplingFactory(2, return_sampling_metadata=True),
        varying=[r"state.*", r"result.*"],
    ),
    "robust": lambda: weighted(tff.learning.robust_aggregator()),
    "robust_unweighted": lambda: unweighted(
        tff.learning.robust_aggregator(weighted=False), STRUCT, STRUCTS
    ),
    "secure": lambda: weighted(tff.learning.secure_aggregator()),
    "secure_unweighted": lambda: unweighted(
        tff.learning.secure_aggregator(weighted=False, clipping=False), STRUCT, STRUCTS
    ),
    "dp": lambda: unweighted(tff.learning.dp_aggregator(0.0, 3)),
    "distributed_dp": lambda: unweighted(
        tff.learning.ddp_secure_aggregator(1e-3, 3, bits=22), varying=[r".*"]
    ),
    "compression": lambda: weighted(tff.learning.compression_aggregator(step_size=1e-5)),
    "entropy": lambda: weighted(
        tff.learning.compression_aggregator(zeroing=False, clipping=False, step_size=0.5),
    ),
    "discretization": lambda: unweighted(
        inner("aggregators.discretization").DiscretizationFactory(a.SumFactory(), 4.0)
    ),
    "modular_clipping": lambda: unweighted(
        inner("aggregators.modular_clipping").ModularClippingSumFactory(-4, 4, a.SumFactory()),
        INTEGER,
        INTEGERS,
    ),
    "deeply_nested": lambda: weighted(
        a.zeroing_factory(
            quantile(multiplier=2.0, increment=1.0),
            a.clipping_factory(
                quantile(),
                a.MeanFactory(a.concat_factory(a.DiscreteFourierTransformFactory())),
            ),
        ),
        STRUCT,
        STRUCTS,
        [r".*value_sum_process\.1"],
    ),
}


class Doubling(a.UnweightedAggregationFactory):
    """A factory written by hand, with a state: rounds that it has seen."""

    def create(self, value_type: Any) -> Any:
        @tff.federated_computation
        def start() -> Any:
            return tff.federated_value(np.int32(0), tff.SERVER)

        @tff.federated_computation(
            tff.FederatedType(np.int32, tff.SERVER), tff.FederatedType(value_type, tff.CLIENTS)
        )
        def step(state: Any, values: Any) -> Any:
            doubled = tff.federated_map(twice(value_type), tff.federated_sum(values))
            count = tff.federated_map(one_more, state)
            return tff.templates.MeasuredProcessOutput(count, doubled, state)

        return tff.templates.AggregationProcess(start, step)


class HalfWeighted(a.WeightedAggregationFactory):
    """A factory written by hand, of values with weights."""

    def create(self, value_type: Any, weight_type: Any) -> Any:
        inner_process = a.MeanFactory().create(value_type, weight_type)

        @tff.tensorflow.computation(weight_type)
        def half(weight: Any) -> Any:
            return weight / 2 + 1

        @tff.federated_computation(
            inner_process.initialize.type_signature.result,
            tff.FederatedType(value_type, tff.CLIENTS),
            tff.FederatedType(weight_type, tff.CLIENTS),
        )
        def step(state: Any, values: Any, weights: Any) -> Any:
            return inner_process.next(state, values, tff.federated_map(half, weights))

        return tff.templates.AggregationProcess(inner_process.initialize, step)


def twice(type_: Any) -> Any:
    return tff.tensorflow.computation(
        lambda value: tf.nest.map_structure(lambda part: 2 * part, value), type_
    )


@tff.tensorflow.computation(np.int32)
def one_more(count: Any) -> Any:
    return count + 1


AGGREGATORS |= {
    "own_factory": lambda: unweighted(Doubling(), STRUCT, STRUCTS),
    "own_factory_clipped": lambda: unweighted(a.clipping_factory(5.0, Doubling())),
    "own_weighted_factory": lambda: weighted(HalfWeighted()),
    "own_weighted_factory_zeroed": lambda: weighted(a.zeroing_factory(7.0, HalfWeighted())),
    "encoded_sum": lambda: unweighted(a.EncodedSumFactory(whole)),
}


def whole(spec: Any) -> Any:
    """An encoder that leaves a value as it is."""
    encoding = importlib.import_module("tensorflow_model_optimization.python.core.internal")
    encoders = encoding.tensor_encoding.encoders
    return encoders.as_gather_encoder(encoders.identity(), spec)


@named(AGGREGATORS)
def quantile_estimation() -> Program:
    process = quantile()
    return Program(process.next, [([1.0, 2.0, 8.0],), ([3.0],)], process.initialize)


@named(AGGREGATORS)
def quantile_estimation_securely() -> Program:
    process = quantile(secure_estimation=True)

    @tff.federated_computation(process.next.type_signature.parameter)
    def estimate(state: Any, value: Any) -> Any:
        following = process.next(state, value)
        return following, process.report(following)

    return Program(estimate, [([1.0, 2.0, 8.0],), ([3.0],)], process.initialize)


@named(AGGREGATORS)
def sampling() -> Program:
    @tff.federated_computation(tff.FederatedType(VECTOR, tff.CLIENTS))
    def sample(values: Any) -> Any:
        return a.federated_sample(values, max_num_samples=2)

    # A sample as large as what is sampled is all of it.
    return Program(sample, [(VECTORS[:1],), (VECTORS[:2],)], varying=[r".*"])


@named(AGGREGATORS)
def secure_quantized_sum() -> Program:
    @tff.federated_computation(tff.FederatedType(VECTOR, tff.CLIENTS))
    def total(values: Any) -> Any:
        return a.secure_quantized_sum(values, np.float32(-5), np.float32(5))

    return Program(total, [(VECTORS,), (VECTORS[:2],)])


@named(AGGREGATORS)
def metrics_summed() -> Program:
    metrics = tff.learning.metrics
    finish = collections.OrderedDict(loss=lambda parts: parts[0] / parts[1], count=lambda n: n)
    local = tff.to_type(collections.OrderedDict(loss=[np.float32, np.float32], count=np.int32))
    values = [collections.OrderedDict(loss=[n * 1.5, n + 1.0], count=n) for n in range(3)]
    return unweighted(metrics.SumThenFinalizeFactory(finish), local, values)


@named(AGGREGATORS)
def metrics_summed_securely() -> Program:
    local = tff.to_type(collections.OrderedDict(loss=[np.float32, np.float32], count=np.int32))
    values = [collections.OrderedDict(loss=[n * 1.5, n + 1.0], count=n) for n in range(3)]
    return unweighted(tff.learning.metrics.SecureSumFactory(), local, values)


@named(AGGREGATORS)
def metrics_summed_securely_in_ranges() -> Program:
    """With ranges that are the default for the types, none of them tuned."""
    metrics = tff.learning.metrics
    local = tff.to_type(collections.OrderedDict(loss=[np.float32, np.float32], count=np.int32))
    ranges = metrics.create_default_secure_sum_quantization_ranges(local, 0, 100, False)
    values = [collections.OrderedDict(loss=[n * 1.5, n + 1.0], count=n) for n in range(3)]
    return unweighted(metrics.SecureSumFactory(ranges), local, values)


@named(AGGREGATORS)
def metrics_sampled() -> Program:
    finish = collections.OrderedDict(loss=lambda parts: parts[0] / parts[1])
    local = tff.to_type(collections.OrderedDict(loss=[np.float32, np.float32]))
    values = [collections.OrderedDict(loss=[n * 1.5, n + 1.0]) for n in range(3)]
    process = tff.learning.metrics.FinalizeThenSampleFactory(5).create(finish, local)
    return Program(
        process.next, [(values[:1],)], process.initialize, [r".*(seed|random_values)(\..*)?"]
    )


@named(AGGREGATORS)
def chained_processes() -> Program:
    doubled = doubling_process()
    chained = tff.templates.chain_measured_processes(
        collections.OrderedDict(first=doubled, second=doubled)
    )
    return Program(chained.next, [(1.0,), (2.0,), (3.0,)], chained.initialize)


@named(AGGREGATORS)
def concatenated_processes() -> Program:
    doubled = doubling_process()
    both = tff.templates.concatenate_measured_processes(
        collections.OrderedDict(first=doubled, second=doubled)
    )
    values = collections.OrderedDict(first=1.0, second=2.0)
    return Program(both.next, [(values,), (values,)], both.initialize)


def doubling_process() -> Any:
    """A process that counts its rounds and doubles what it is given."""

    @tff.federated_computation
    def start() -> Any:
        return tff.federated_value(np.int32(0), tff.SERVER)

    @tff.tensorflow.computation(np.float32)
    def double(value: Any) -> Any:
        return 2.0 * value

    server = functools.partial(tff.FederatedType, placement=tff.SERVER)

    @tff.federated_computation(server(np.int32), server(np.float32))
    def step(state: Any, value: Any) -> Any:
        result = tff.federated_map(double, value)
        return tff.templates.MeasuredProcessOutput(
            tff.federated_map(one_more, state),
            result,
            tff.federated_zip(collections.OrderedDict(given=value)),
        )

    return tff.templates.MeasuredProcess(start, step)


# Analytics: words that clients have, and numbers.

WORDS = [["hello", "hey", "hello"], ["hey", "you"], ["hello", "a", "ö"]]


ENCODED = [np.array([word.encode() for word in each], object) for each in WORDS]
TEXTS = tff.SequenceType(tff.TensorType(np.str_, [None]))


def words(batch: int = 1) -> list[Any]:
    return [tf.data.Dataset.from_tensor_slices(each).batch(batch) for each in WORDS]


def heavy_hitters(**options: Any) -> Program:
    chosen: dict[str, Any] = {"capacity": 10, "string_max_bytes": 10, "repetitions": 3, "seed": 7}
    chosen.update(options)
    batch = chosen.get("batch_size", 1)
    computation = tff.analytics.heavy_hitters.iblt.build_iblt_computation(**chosen)
    found = ("heavy_hitters", "heavy_hitters_counts", "heavy_hitters_unique_counts")
    return Program(computation, [(words(batch),)], varying=[r"round_timestamp"], unordered=found)


def histogram(**options: Any) -> Program:
    chosen: dict[str, Any] = {"lower_bound": 0.0, "upper_bound": 8.0, "num_bins": 4}
    chosen.update(options)
    process = tff.analytics.build_hierarchical_histogram_process(**chosen)
    numbers = [[0.5, 1.0, 7.0], [3.0], [5.0, 5.5]]
    data = [tf.data.Dataset.from_tensor_slices(np.array(n, np.float32)) for n in numbers]
    varying = [r".*round_timestamp", *options.get("varying", ())]
    return Program(process.next, [(data,)] * 3, process.initialize, varying)


def tensors(factory: Any) -> Program:
    """Words and the numbers that belong to them."""
    type_ = tff.SequenceType(
        collections.OrderedDict(key=np.str_, value=tff.TensorType(np.int64, [2]))
    )
    data = [
        tf.data.Dataset.from_tensor_slices(
            collections.OrderedDict(
                key=each, value=np.arange(2 * len(each), dtype=np.int64).reshape(-1, 2)
            )
        )
        for each in WORDS
    ]
    process = factory.create(type_)
    return Program(process.next, [(data,)] * 3, process.initialize, unordered=DECODED)


DECODED = ("result.output_strings", "result.string_values")
"""Words come out of a table as they are peeled, and in another order each time."""

ANALYTICS |= {
    "heavy_hitters": heavy_hitters,
    "heavy_hitters_capped": lambda: heavy_hitters(max_words_per_user=1),
    "heavy_hitters_anonymous": lambda: heavy_hitters(k_anonymity=2),
    "heavy_hitters_few": lambda: heavy_hitters(max_heavy_hitters=2),
    "heavy_hitters_once_a_client": lambda: heavy_hitters(multi_contribution=False),
    "heavy_hitters_secure": lambda: heavy_hitters(secure_sum_bitwidth=32),
    "heavy_hitters_batched": lambda: heavy_hitters(batch_size=2),
    "heavy_hitters_processed": lambda: heavy_hitters(string_postprocessor=tf.strings.upper),
    "histogram": lambda: histogram(clip_mechanism="distinct"),
    "histogram_of_three": lambda: histogram(arity=3, num_bins=5, clip_mechanism="distinct"),
    "histogram_central_dp": lambda: histogram(
        clip_mechanism="distinct", dp_mechanism="central-gaussian", enable_secure_sum=False
    ),
    "histogram_distributed_dp": lambda: histogram(
        clip_mechanism="distinct", dp_mechanism="distributed-discrete-gaussian"
    ),
    "iblt": lambda: tensors(
        tff.analytics.IbltFactory(capacity=10, string_max_bytes=10, repetitions=3, seed=7)
    ),
}


@named(ANALYTICS)
def iblt_of_words() -> Program:
    iblt = tff.analytics.heavy_hitters.iblt

    @tff.tensorflow.computation(tff.TensorType(np.str_, [None]))
    def there_and_back(texts: Any) -> Any:
        encoder = iblt.IbltEncoder(capacity=10, string_max_bytes=10, seed=3)
        sketch = encoder.compute_iblt(texts)
        return iblt.decode_iblt_tf(sketch, capacity=10, string_max_bytes=10, seed=3)

    return Program(there_and_back, [(each,) for each in ENCODED], unordered=("0", "1"))


@named(ANALYTICS)
def iblt_of_words_peeled() -> Program:
    """With the classes: the decoder gives the words and how often each is there."""
    iblt = tff.analytics.heavy_hitters.iblt

    @tff.tensorflow.computation(tff.TensorType(np.str_, [None]))
    def there_and_back(texts: Any) -> Any:
        options = {"capacity": 10, "string_max_bytes": 10, "seed": 3}
        encoder = iblt.IbltEncoder(drop_strings_above_max_length=True, **options)
        decoder = iblt.IbltDecoder(encoder.compute_iblt(texts), **options)
        return decoder.get_freq_estimates_tf()

    return Program(there_and_back, [(each,) for each in ENCODED], unordered=("0", "1"))


def peeled(*sketch: Any, **options: Any) -> Any:
    decoder = tff.analytics.heavy_hitters.iblt.IbltTensorDecoder(*sketch, **options)
    return decoder.get_freq_estimates_tf()


def tensors_there_and_back(decode: Callable[..., Any]) -> Program:
    """Words with two numbers each, in a table and out of it."""
    iblt = tff.analytics.heavy_hitters.iblt
    options = {"capacity": 10, "string_max_bytes": 10, "seed": 3}

    @tff.tensorflow.computation(
        tff.TensorType(np.str_, [None]), tff.TensorType(np.int64, [None, 2])
    )
    def there_and_back(texts: Any, numbers: Any) -> Any:
        encoder = iblt.IbltTensorEncoder((2,), **options)
        return decode(*encoder.compute_iblt(texts, numbers), value_shape=(2,), **options)

    rounds = [(each, np.arange(2 * len(each), dtype=np.int64).reshape(-1, 2)) for each in ENCODED]
    return Program(there_and_back, rounds, unordered=("0", "1", "2"))


ANALYTICS |= {
    "iblt_of_tensors": lambda: tensors_there_and_back(
        lambda *sketch, **options: tff.analytics.heavy_hitters.iblt.decode_iblt_tensor_tf(
            *sketch, **options
        )
    ),
    "iblt_of_tensors_peeled": lambda: tensors_there_and_back(peeled),
}


def hashed(make: Callable[[Any], Any]) -> Program:
    """Where a table of one of the kinds has words."""
    iblt = tff.analytics.heavy_hitters.iblt

    @tff.tensorflow.computation(tff.TensorType(np.str_, [None]))
    def places(texts: Any) -> Any:
        return make(iblt).get_hash_indices_tf(texts)

    return Program(places, [(each,) for each in ENCODED])


ANALYTICS |= {
    "hashes": lambda: hashed(
        lambda iblt: iblt.RandomHyperEdgeHasher(3, 30, iblt.DEFAULT_REPETITIONS)
    ),
    "hashes_coupled": lambda: hashed(
        lambda iblt: iblt.CoupledHyperEdgeHasher(3, 60, iblt.DEFAULT_REPETITIONS, 5.0)
    ),
}


@named(ANALYTICS)
def chunks() -> Program:
    """Words as numbers, and back."""
    iblt = tff.analytics.heavy_hitters.iblt

    @tff.tensorflow.computation(tff.TensorType(np.str_, [None]))
    def there_and_back(texts: Any) -> Any:
        result = []
        for encoding in (iblt.CharacterEncoding.UTF8, iblt.CharacterEncoding.UNKNOWN):
            chunker = iblt.create_chunker(string_max_bytes=8, encoding=encoding)
            encoded, trimmed = chunker.encode_tensorflow(texts)
            result.append((encoded, trimmed, chunker.decode_tensorflow(encoded)))
        return result

    return Program(there_and_back, [(each,) for each in ENCODED])


@named(ANALYTICS)
def histogram_decoded() -> Program:
    """What a decoder says of the tree that a round has put out."""
    counted = histogram(clip_mechanism="distinct")
    output, _ = counted.next(counted.initialize(), *counted.rounds[0])
    counts = output.aggregated_hierarchical_histogram
    tree = tf.RaggedTensor.from_nested_row_splits(
        counts["flat_values"], list(counts["nested_row_splits"])
    )
    answers = []
    for use_efficient in (False, True):
        decoder = tff.analytics.HierarchicalHistogramDecoder(tree, 0.0, 8.0, use_efficient)
        answers += [decoder.node_query(1, 0), decoder.range_query(1, 2)]
        answers += decoder.quantile_query(0.5)

    @tff.tensorflow.computation
    def said() -> Any:
        return [tf.constant(each, tf.float32) for each in answers]

    return Program(said, [()])


@named(ANALYTICS)
def iblt_clipping() -> Program:
    iblt = tff.analytics.heavy_hitters.iblt
    inner_factory = tff.analytics.IbltFactory(
        capacity=10, string_max_bytes=10, repetitions=3, seed=7
    )
    process = iblt.ClippingIbltFactory(
        inner_factory, max_words_per_user=2, unique_counts=True
    ).create(TEXTS)
    return Program(process.next, [(words(1),)] * 2, process.initialize, unordered=DECODED)


@named(ANALYTICS)
def count_distinct() -> Program:
    module = inner("analytics.count_distinct")
    computation = module.create_federated_hyperloglog_computation()
    return Program(computation, [([tf.data.Dataset.from_tensor_slices(w) for w in WORDS],)])


@named(ANALYTICS)
def count_distinct_securely() -> Program:
    module = inner("analytics.count_distinct")
    computation = module.create_federated_hyperloglog_computation(use_secagg=True)
    return Program(computation, [([tf.data.Dataset.from_tensor_slices(w) for w in WORDS],)])


def of_words(function: Callable[[Any], Any]) -> Program:
    computation = tff.tensorflow.computation(function, TEXTS)
    return Program(computation, [(each,) for each in words(2)])


def processing() -> Any:
    return inner("analytics.data_processing")


ANALYTICS |= {
    "all_words": lambda: of_words(lambda ds: processing().get_all_elements(ds)),
    "first_words_counted": lambda: of_words(
        lambda ds: processing().get_capped_elements_with_counts(ds, 2)
    ),
    "top_words_repeated": lambda: of_words(lambda ds: processing().get_top_multi_elements(ds, 1)),
    "unique_words": lambda: of_words(lambda ds: processing().get_unique_elements(ds)),
    "unique_words_counted": lambda: of_words(
        lambda ds: processing().get_unique_elements_with_counts(ds)
    ),
    "first_words": lambda: of_words(lambda ds: processing().get_capped_elements(ds, 2)),
    "top_words": lambda: of_words(lambda ds: processing().get_top_elements(ds, 1)),
    "top_words_counted": lambda: of_words(
        lambda ds: processing().get_top_elements_with_counts(ds, 1)
    ),
}


@named(ANALYTICS)
def stacked_numbers() -> Program:
    computation = tff.tensorflow.computation(
        lambda ds: processing().to_stacked_tensor(ds), tff.SequenceType((np.int32, [2]))
    )
    numbers = tf.data.Dataset.from_tensor_slices(np.arange(6, dtype=np.int32).reshape(3, 2))
    return Program(computation, [(numbers,)])


# Keras 2.


def keras_network() -> Any:
    return tf.keras.Sequential(
        [
            tf.keras.layers.InputLayer(input_shape=(FEATURES,)),
            tf.keras.layers.Dense(3, activation="tanh", kernel_initializer=pattern()),
            tf.keras.layers.Dense(1, kernel_initializer=pattern()),
        ]
    )


def pattern() -> Any:
    """Weights that are different and not random."""
    return lambda shape, dtype=None: tf.reshape(
        tf.sin(tf.range(int(np.prod(shape)), dtype=tf.float32)), shape
    )


def keras_model() -> Any:
    return tff.learning.models.from_keras_model(
        keras_network(),
        loss=tf.keras.losses.MeanSquaredError(),
        input_spec=SPEC,
        metrics=[
            tf.keras.metrics.MeanAbsoluteError(),
            tff.learning.metrics.NumExamplesCounter(),
            tff.learning.metrics.NumBatchesCounter(),
        ],
    )


def normalizing_model() -> Any:
    network = tf.keras.Sequential(
        [
            tf.keras.layers.InputLayer(input_shape=(FEATURES,)),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dense(1, kernel_initializer=pattern()),
        ]
    )
    return tff.learning.models.from_keras_model(
        network, loss=tf.keras.losses.MeanSquaredError(), input_spec=SPEC
    )


def functional_keras_model() -> Any:
    return tff.learning.models.functional_model_from_keras(
        keras_network,
        tf.keras.losses.MeanSquaredError(),
        SPEC,
        lambda: collections.OrderedDict(mae=tf.keras.metrics.MeanAbsoluteError()),
    )


def model_with_functional_metrics() -> Any:
    """The functional model, with Keras' metrics as functions of their state."""
    model = linear()
    return tff.learning.models.FunctionalModel(
        initial_weights=model.initial_weights,
        predict_on_batch_fn=model.predict_on_batch,
        loss_fn=model.loss,
        metrics_fns=tff.learning.metrics.create_functional_metric_fns(
            lambda: collections.OrderedDict(
                mae=tf.keras.metrics.MeanAbsoluteError(), mse=tf.keras.metrics.MeanSquaredError()
            )
        ),
        input_spec=SPEC,
    )


@named(KERAS)
def keras_metrics_finished() -> Program:
    """A metric's variables of each client, summed and then finished by the metric."""
    finish = collections.OrderedDict(
        mae=tff.learning.metrics.create_keras_metric_finalizer(tf.keras.metrics.MeanAbsoluteError)
    )
    local = tff.to_type(collections.OrderedDict(mae=[np.float32, np.float32]))
    values = [collections.OrderedDict(mae=[n * 1.5, n + 1.0]) for n in range(3)]
    return unweighted(tff.learning.metrics.SumThenFinalizeFactory(finish), local, values)


@named(KERAS)
def keras_saved_model() -> Program:
    """The losses of a model that was saved and loaded, and the metrics that it reports then."""
    with tempfile.TemporaryDirectory() as folder:
        tff.learning.models.save(keras_model(), f"{folder}/model")
        model = tff.learning.models.load(f"{folder}/model")
    losses = [model.forward_pass(batch).loss.numpy() for batch in batches(4, 0)]
    parts = {
        name: [variable.numpy() for variable in variables]
        for name, variables in sorted(model.report_local_unfinalized_metrics().items())
    }

    @tff.tensorflow.computation
    def said() -> Any:
        return losses, parts

    return Program(said, [()])


def reconstructed_model() -> Any:
    """The bias is each client's own."""
    inputs = tf.keras.layers.Input((FEATURES,))
    shared = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer=pattern())
    own = BiasLayer()
    network = tf.keras.Model(inputs, own(shared(inputs)))
    return tff.learning.models.ReconstructionModel.from_keras_model_and_layers(
        network, global_layers=[shared], local_layers=[own], input_spec=SPEC
    )


class BiasLayer(tf.keras.layers.Layer):
    def build(self, input_shape: Any) -> None:
        self.bias = self.add_weight(name="bias", shape=input_shape[1:], initializer="zeros")

    def call(self, inputs: Any) -> Any:
        return inputs + self.bias


def reconstruction(build: Callable[..., Any], **options: Any) -> Program:
    return learned(
        build(
            reconstructed_model,
            loss_fn=tf.keras.losses.MeanSquaredError,
            metrics_fn=lambda: [tf.keras.metrics.MeanAbsoluteError()],
            reconstruction_optimizer_fn=sgd(0.1),
            **options,
        )
    )


KERAS |= {
    "keras_fed_avg": lambda: averaged(model_fn=keras_model),
    "keras_fed_avg_functional": lambda: averaged(model_fn=functional_keras_model()),
    "keras_fed_avg_functional_metrics": lambda: averaged(model_fn=model_with_functional_metrics()),
    "keras_fed_avg_normalizing": lambda: averaged(model_fn=normalizing_model),
    "keras_fed_prox": lambda: learned(
        algorithms.build_weighted_fed_prox(keras_model, 0.1, sgd(0.1))
    ),
    "keras_fed_sgd": lambda: learned(algorithms.build_fed_sgd(keras_model, sgd(0.1))),
    "keras_mime_lite": lambda: learned(
        algorithms.build_weighted_mime_lite(keras_model, sgd(0.1, 0.9))
    ),
    "keras_fed_eval": lambda: learned(algorithms.build_fed_eval(keras_model)),
    "keras_fed_eval_functional": lambda: learned(
        algorithms.build_fed_eval(functional_keras_model())
    ),
    "keras_model_from_functional": lambda: averaged(
        model_fn=lambda: tff.learning.models.model_from_functional(
            linear(), [tf.keras.metrics.MeanAbsoluteError]
        )
    ),
    "keras_recon": lambda: reconstruction(
        algorithms.build_fed_recon, client_optimizer_fn=sgd(0.1), server_optimizer_fn=sgd(1.0)
    ),
    "keras_recon_split": lambda: reconstruction(
        algorithms.build_fed_recon,
        client_optimizer_fn=sgd(0.1),
        server_optimizer_fn=sgd(1.0, 0.5),
        dataset_split_fn=tff.learning.models.ReconstructionModel.build_dataset_split_fn(
            split_dataset=True
        ),
    ),
    "keras_recon_eval": lambda: reconstruction(algorithms.build_fed_recon_eval),
    "keras_secure_metrics": lambda: averaged(
        model_fn=keras_model, metrics_aggregator=tff.learning.metrics.secure_sum_then_finalize
    ),
}


def all_programs() -> dict[str, Callable[[], Program]]:
    """Every program, by its theme and name."""
    themes = {
        "learning": LEARNING,
        "aggregators": AGGREGATORS,
        "analytics": ANALYTICS,
        "keras": KERAS,
    }
    return {
        f"{theme}: {name}": build
        for theme, table in themes.items()
        for name, build in table.items()
    }
