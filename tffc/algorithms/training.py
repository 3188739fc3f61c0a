"""Processes whose rounds train a model: federated averaging and FedProx."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any, Literal

import numpy as np

import tffc
from tffc.algorithms.averages import Median, RobustAverage, TrimmedMean, robust_average
from tffc.algorithms.functions import Arrays
from tffc.algorithms.model import Model, algorithm
from tffc.algorithms.optimizers import Optimizer, optimizer_of
from tffc.algorithms.settings import check_choice, check_count, check_number
from tffc.algorithms.work import (
    batching,
    beginning,
    client_weights,
    first_memory,
    memory_type,
    metrics_of,
    move,
    sequence_type,
    totals_type,
    training_work,
)
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow
from tffc.support.errors import LanguageTypeError


@algorithm
def federated_averaging(
    model: Model,
    client_optimizer: Optimizer | float,
    *,
    server_optimizer: Optimizer | float = 1.0,
    epochs: int = 1,
    batch_size: int = 32,
    weighting: Literal["examples", "uniform"] = "examples",
    robust: RobustAverage | None = None,
    clip_norm: float | None = None,
) -> tffc.templates.IterativeProcess:
    """Return a process that trains a model by federated averaging.

    In a round, each client begins with the server's weights and goes over its examples, in their
    order and `epochs` times, with a step of `client_optimizer` for each `batch_size` of them.  Its
    update is how far its weights moved.  The server moves its weights along the mean of the
    updates with `server_optimizer`.  A number stands for the learning rate of SGD, so the default
    server takes the mean of the clients' weights, as in McMahan, Moore, Ramage, Hampson and
    Agüera y Arcas 2017.  Adam, Yogi and Adagrad at the server are those of Reddi et al. 2021.

    Updates are weighted by the clients' `examples`, or are `uniform`; clients without examples do
    not count.  `robust` takes another average instead, for which clients count alike.  An update
    longer than `clip_norm` over all weights is shortened to it.

    Weights that training changes otherwise, such as moving averages, get the mean of the clients'
    if they are floats.  Others stay as they are, and no client sends them.

    The state has the weights in `model`, what the server's optimizer remembers in `optimizer`, and
    the number of `rounds`.  The output of a round is the mean `loss` and metrics over all steps,
    for each batch before the step on it, and the number of `examples` of all clients.

    Raises:
      LanguageTypeError: an argument is of another kind.
      LanguageValueError: a setting has a value that it does not take.
    """
    settings = _Settings(client_optimizer, server_optimizer, epochs, batch_size)
    return _process(settings.with_average(weighting, robust, clip_norm), model)


@algorithm
def fedprox(
    model: Model,
    client_optimizer: Optimizer | float,
    mu: float,
    *,
    server_optimizer: Optimizer | float = 1.0,
    epochs: int = 1,
    batch_size: int = 32,
    weighting: Literal["examples", "uniform"] = "examples",
    robust: RobustAverage | None = None,
    clip_norm: float | None = None,
) -> tffc.templates.IterativeProcess:
    """Return a process that trains a model by FedProx.

    This is `federated_averaging` in which a client's loss has the term `mu`/2 |w - w₀|², the
    square of the distance from the server's weights.  The loss in the output is without it.

    Li, Sahu, Zaheer, Sanjabi, Talwalkar and Smith, "Federated Optimization in Heterogeneous
    Networks", MLSys 2020.

    Raises:
      LanguageTypeError: an argument is of another kind.
      LanguageValueError: a setting has a value that it does not take.
    """
    settings = _Settings(client_optimizer, server_optimizer, epochs, batch_size)
    settings = settings.with_average(weighting, robust, clip_norm)
    return _process(dataclasses.replace(settings, proximal=check_number("mu", mu)), model)


@dataclasses.dataclass(frozen=True)
class _Settings:
    """How a round trains."""

    client: Optimizer | float
    server: Optimizer | float
    epochs: int
    batch_size: int
    weighting: str = "examples"
    robust: RobustAverage | None = None
    clip_norm: float | None = None
    proximal: float = 0.0

    def with_average(self, weighting: str, robust: Any, clip_norm: float | None) -> _Settings:
        """Return the settings after a check, with those of the average of updates."""
        if robust is not None and not isinstance(robust, Median | TrimmedMean):
            raise LanguageTypeError(
                "E714",
                f"robust is {type(robust).__name__!r} and no average of tffc.algorithms",
                help="give tffc.algorithms.Median() or TrimmedMean(share)",
            )
        return dataclasses.replace(
            self,
            client=optimizer_of("client_optimizer", self.client),
            server=optimizer_of("server_optimizer", self.server),
            epochs=check_count("epochs", self.epochs),
            batch_size=check_count("batch_size", self.batch_size),
            weighting=check_choice("weighting", weighting, ("examples", "uniform")),
            robust=robust,
            clip_norm=None if clip_norm is None else check_number("clip_norm", clip_norm),
        )


def _process(settings: _Settings, model: Model) -> tffc.templates.IterativeProcess:
    server = optimizer_of("server_optimizer", settings.server)
    state_type = _state_type(model, server)
    first = tffc.tf_computation(lambda: _first_state(model, server))
    examples = sequence_type(model)
    work = _client_work(settings, model)
    finish = tffc.tf_computation(
        lambda state, update, totals: _next_state(model, server, state, update, totals),
        state_type,
        _averaged(model),
        totals_type(model),
    )
    metrics = tffc.tf_computation(metrics_of(model, settings.epochs), totals_type(model))

    @tffc.federated_computation
    def initialize() -> Any:
        return tffc.federated_eval(first, tffc.SERVER)

    @tffc.federated_computation(tffc.types.at_server(state_type), tffc.types.at_clients(examples))
    def train(state: Any, examples: Any) -> Any:
        done = tffc.federated_map(work, (tffc.federated_broadcast(state.model), examples))
        if settings.robust is None:
            update = tffc.federated_mean(done.update, weight=done.weight)
        else:
            pairs = tffc.federated_zip(OrderedDict(update=done.update, weight=done.weight))
            update = robust_average(settings.robust, _averaged(model), pairs)
        totals = tffc.federated_sum(done.totals)
        after = tffc.federated_map(finish, (state, update, totals))
        return after, tffc.federated_map(metrics, totals)

    return tffc.templates.IterativeProcess(initialize_fn=initialize, next_fn=train)


def _state_type(model: Model, server: Optimizer) -> OrderedDict[str, Any]:
    return OrderedDict(
        model=model.weights,
        optimizer=memory_type(model, server),
        rounds=tffc.TensorType(np.int32),
    )


def _first_state(model: Model, server: Optimizer) -> Arrays:
    tf = load_tensorflow()
    weights = OrderedDict((name, tf.constant(value)) for name, value in model.first_weights.items())
    return OrderedDict(model=weights, optimizer=first_memory(model, server), rounds=0)


def _averaged(model: Model) -> OrderedDict[str, Any]:
    """Return the types of the weights of which clients send updates: floats that training moves."""
    return OrderedDict(
        (name, type)
        for name, type in model.weights.items()
        if name in {*model.trained, *model.changed} and np.issubdtype(type.dtype, np.floating)
    )


def _client_work(settings: _Settings, model: Model) -> Any:
    """Return what a client computes of the server's weights and its examples."""
    tf = load_tensorflow()
    examples = sequence_type(model)
    client = optimizer_of("client_optimizer", settings.client)
    batches = batching(model, settings.batch_size, settings.epochs, trains=True)
    cut = tffc.tf_computation(batches, examples)
    begin = beginning(model)
    train = training_work(model, client, settings.batch_size, proximal=settings.proximal)

    @tffc.tf_computation(model.weights, client_weights(model), totals_type(model))
    def send(before: Arrays, after: Arrays, totals: Arrays) -> Arrays:
        update = OrderedDict((name, after[name] - before[name]) for name in _averaged(model))
        if settings.clip_norm is not None:
            clipped, _ = tf.clip_by_global_norm(list(update.values()), settings.clip_norm)
            update = OrderedDict(zip(update, clipped, strict=True))
        count = totals["examples"] // settings.epochs
        weight = count if settings.weighting == "examples" else tf.minimum(count, 1)
        return OrderedDict(update=update, weight=tf.cast(weight, tf.float32), totals=totals)

    @tffc.federated_computation(model.weights, examples)
    def work(weights: Any, examples: Any) -> Any:
        done = train(begin(weights), cut(examples))
        return send(weights, done.weights, done.totals)

    return work


def _next_state(model: Model, server: Optimizer, state: Any, update: Any, totals: Any) -> Arrays:
    """Return the state after a round; without any examples, the weights stay."""
    tf = load_tensorflow()
    seen = totals["examples"] > 0
    update = OrderedDict(
        (name, tf.where(seen, value, tf.zeros_like(value))) for name, value in update.items()
    )
    directions = OrderedDict((name, update[name]) for name in model.trained)
    weights, memory = move(tf, server, state["model"], directions, state["optimizer"])
    for name in update:
        if name not in directions:
            weights[name] = weights[name] + update[name]
    return OrderedDict(model=weights, optimizer=memory, rounds=state["rounds"] + 1)
