"""Computations that measure a trained model on clients' examples, also after local training."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import tffc
from tffc.algorithms.model import Model, algorithm
from tffc.algorithms.optimizers import Optimizer, optimizer_of
from tffc.algorithms.settings import check_count, check_number
from tffc.algorithms.work import (
    batching,
    beginning,
    measuring_work,
    metrics_of,
    sequence_type,
    totals_type,
    training_work,
)
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import LanguageTypeError


@algorithm
def federated_evaluation(
    model: Model,
    training: tffc.templates.IterativeProcess,
    *,
    batch_size: int = 32,
) -> tffc.Computation:
    """Return a round that measures the model of a state of a training, which stays as it is.

    Its output is the mean `loss` and metrics over the examples of all clients, and how many
    `examples` these are.

    Raises:
      LanguageTypeError: the training is of another model.
      LanguageValueError: a setting has a value that it does not take.
    """
    check_count("batch_size", batch_size)
    state, examples = _state_type(model, training), sequence_type(model)
    cut = tffc.tf_computation(batching(model, batch_size), examples)
    measure, begin = measuring_work(model, batch_size), beginning(model)
    metrics = tffc.tf_computation(metrics_of(model), totals_type(model))

    @tffc.federated_computation(model.weights, examples)
    def work(weights: Any, examples: Any) -> Any:
        return measure(begin(weights), cut(examples))

    @tffc.federated_computation(state, tffc.types.at_clients(examples))
    def evaluation(state: Any, examples: Any) -> Any:
        totals = tffc.federated_map(work, (tffc.federated_broadcast(state.model), examples))
        return state, tffc.federated_map(metrics, tffc.federated_sum(totals))

    return evaluation


@algorithm
def personalised_evaluation(
    model: Model,
    training: tffc.templates.IterativeProcess,
    client_optimizer: Optimizer | float,
    *,
    share: float = 0.5,
    epochs: int = 1,
    batch_size: int = 32,
) -> tffc.Computation:
    """Return a round that measures a model before and after each client trains it for itself.

    A client trains on the first `share` of its examples, rounded down, as in a round of
    `federated_averaging`, and measures on the rest.  The trained weights stay at the client.  The
    output is `before` and `after`, each with the mean `loss` and metrics and the number of
    `examples` measured.  The state stays as it is.

    Raises:
      LanguageTypeError: the training is of another model.
      LanguageValueError: a setting has a value that it does not take.
    """
    optimizer = optimizer_of("client_optimizer", client_optimizer)
    check_count("batch_size", batch_size)
    check_count("epochs", epochs)
    check_number("share", share, high=1.0)
    tf = load_tensorflow()
    state, examples = _state_type(model, training), sequence_type(model)
    train = training_work(model, optimizer, batch_size)
    measure, begin = measuring_work(model, batch_size), beginning(model)
    metrics = tffc.tf_computation(metrics_of(model), totals_type(model))
    tuning_batches = batching(model, batch_size, epochs, trains=True)
    test_batches = batching(model, batch_size)

    def first_ones(examples: Any) -> Any:
        count = examples.reduce(tf.constant(0, tf.int64), lambda count, _: count + 1)
        return tf.cast(tf.floor(tf.cast(count, tf.float64) * share), tf.int64)

    @tffc.tf_computation(examples)
    def tuning(examples: Any) -> Any:
        return tuning_batches(examples.take(first_ones(examples)))

    @tffc.tf_computation(examples)
    def rest(examples: Any) -> Any:
        return test_batches(examples.skip(first_ones(examples)))

    @tffc.federated_computation(model.weights, examples)
    def work(weights: Any, examples: Any) -> Any:
        first = begin(weights)
        own = train(first, tuning(examples)).weights
        return OrderedDict(
            before=measure(first, rest(examples)), after=measure(own, rest(examples))
        )

    @tffc.federated_computation(state, tffc.types.at_clients(examples))
    def evaluation(state: Any, examples: Any) -> Any:
        done = tffc.federated_map(work, (tffc.federated_broadcast(state.model), examples))
        means = OrderedDict(
            before=tffc.federated_map(metrics, tffc.federated_sum(done.before)),
            after=tffc.federated_map(metrics, tffc.federated_sum(done.after)),
        )
        return state, means

    return evaluation


def _state_type(model: Model, training: Any) -> Any:
    """Return the type of the states of a training.

    Raises:
      LanguageTypeError: they have no such model.
    """
    type = getattr(training, "state_type", None)
    state = getattr(type, "member", None)
    weights = tffc.to_type(model.weights)
    if isinstance(state, tffc.StructType) and "model" in dir(state):
        if weights.is_assignable_from(state.model):
            return type
    raise LanguageTypeError(
        "E714",
        "this is no training of that model",
        help="give the process that federated_averaging or fedprox returned for the model",
    )
