"""SCAFFOLD: federated averaging in which clients correct their own drift."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

import tffc
from tffc.algorithms.functions import Arrays
from tffc.algorithms.model import Model, algorithm
from tffc.algorithms.optimizers import SGD
from tffc.algorithms.settings import check_count, check_number
from tffc.algorithms.work import (
    batching,
    beginning,
    client_weights,
    metrics_of,
    sequence_type,
    totals_type,
    training_work,
)
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow


@algorithm
def scaffold(
    model: Model,
    learning_rate: float,
    clients: int,
    *,
    server_learning_rate: float = 1.0,
    epochs: int = 1,
    batch_size: int = 32,
) -> tffc.templates.IterativeProcess:
    """Return a process that trains a model by SCAFFOLD, where clients keep a state of their own.

    Each of the `clients` that there are in all, of which a sample takes part in a round, keeps a
    control, the mean slope of its own loss.  The server keeps the mean of all controls.  A client
    goes over its examples as in `federated_averaging`, with steps of SGD along its slopes less its
    control plus the mean control.  Its new control is the second option of the article: the old
    one less the mean control, plus how far its weights moved back in each step, divided by the
    learning rate.  The server moves its weights along the mean of the clients' updates, times
    `server_learning_rate`, and clients without examples change nothing.

    Karimireddy, Kale, Mohri, Reddi, Stich and Suresh, "SCAFFOLD: Stochastic Controlled Averaging
    for Federated Learning", ICML 2020.

    The state has the weights in `model`, the mean control in `control`, and the number of `rounds`.
    Weights that are not trained stay as they are.  The output of a round is that of
    `federated_averaging`.

    Raises:
      LanguageTypeError: an argument is of another kind.
      LanguageValueError: a setting has a value that it does not take.
    """
    rate = check_number("learning_rate", learning_rate)
    server_rate = check_number("server_learning_rate", server_learning_rate)
    check_count("clients", clients)
    check_count("epochs", epochs)
    check_count("batch_size", batch_size)
    tf = load_tensorflow()
    trained = OrderedDict((name, model.weights[name]) for name in model.trained)
    state_type = OrderedDict(model=model.weights, control=trained, rounds=tffc.TensorType(np.int32))
    examples, totals = sequence_type(model), totals_type(model)
    cut = tffc.tf_computation(batching(model, batch_size, epochs, trains=True), examples)
    begin = beginning(model)
    train = training_work(model, SGD(rate), batch_size, corrects=True)

    @tffc.tf_computation
    def first_state() -> Arrays:
        first = OrderedDict((name, tf.constant(w)) for name, w in model.first_weights.items())
        control = OrderedDict((name, tf.zeros_like(first[name])) for name in trained)
        return OrderedDict(model=first, control=control, rounds=0)

    @tffc.tf_computation(trained, trained)
    def correction(mean: Arrays, own: Arrays) -> Arrays:
        return OrderedDict((name, mean[name] - own[name]) for name in trained)

    @tffc.tf_computation(model.weights, client_weights(model), trained, trained, totals)
    def leave(before: Arrays, after: Arrays, mean: Arrays, own: Arrays, totals: Arrays) -> Arrays:
        seen = totals["examples"] // epochs
        steps = tf.cast(epochs * ((seen + batch_size - 1) // batch_size), tf.float32)
        update, kept = OrderedDict[str, Any](), OrderedDict[str, Any]()
        for name in trained:
            update[name] = after[name] - before[name]
            scale = tf.cast(1.0 / (tf.maximum(steps, 1.0) * rate), update[name].dtype)
            control = own[name] - mean[name] - update[name] * scale
            kept[name] = tf.where(seen > 0, control, own[name])
        change = OrderedDict((name, kept[name] - own[name]) for name in trained)
        weight = tf.cast(tf.minimum(seen, 1), tf.float32)
        return OrderedDict(update=update, change=change, kept=kept, weight=weight)

    @tffc.federated_computation(state_type, examples, trained)
    def work(state: Any, examples: Any, own: Any) -> Any:
        done = train(begin(state.model), cut(examples), correction(state.control, own))
        left = leave(state.model, done.weights, state.control, own, done.totals)
        return OrderedDict(left=left, totals=done.totals)

    @tffc.tf_computation(state_type, trained, trained, totals)
    def finish(state: Arrays, update: Arrays, change: Arrays, totals: Arrays) -> Arrays:
        weights, control = OrderedDict(state["model"]), OrderedDict[str, Any]()
        for name in trained:
            moved = tf.where(totals["examples"] > 0, update[name], tf.zeros_like(update[name]))
            weights[name] = weights[name] + server_rate * moved
            control[name] = state["control"][name] + change[name] / clients
        return OrderedDict(model=weights, control=control, rounds=state["rounds"] + 1)

    metrics = tffc.tf_computation(metrics_of(model, epochs), totals)

    @tffc.federated_computation
    def initialize() -> Any:
        return tffc.federated_eval(first_state, tffc.SERVER)

    @tffc.federated_computation(
        tffc.types.at_server(state_type),
        tffc.types.at_clients(examples),
        tffc.types.at_clients(trained),
    )
    def train_one_round(state: Any, examples: Any, own: Any) -> Any:
        done = tffc.federated_map(work, (tffc.federated_broadcast(state), examples, own))
        update = tffc.federated_mean(done.left.update, weight=done.left.weight)
        change = tffc.federated_sum(done.left.change)
        totals = tffc.federated_sum(done.totals)
        after = tffc.federated_map(finish, (state, update, change, totals))
        return after, done.left.kept, tffc.federated_map(metrics, totals)

    return tffc.templates.IterativeProcess(initialize_fn=initialize, next_fn=train_one_round)
