"""What a client computes: steps of training over batches, and measurements."""

from __future__ import annotations

import contextlib
import importlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

import tffc
from tffc.algorithms.examples import shape_of
from tffc.algorithms.functions import Arrays, BatchLosses, batch_type, types_of
from tffc.algorithms.jax_models import narrow
from tffc.algorithms.model import Model
from tffc.algorithms.optimizers import Optimizer
from tffc.frontend.torch.draws import draws
from tffc.frontend.torch.releases import load_torch
from tffc.runtime.frameworks.tensorflow.load import load_tensorflow


def memory_type(model: Model, optimizer: Optimizer) -> OrderedDict[str, Any]:
    """Return the type of what an optimizer remembers of the weights that are trained."""
    trained = OrderedDict((name, model.weights[name]) for name in model.trained)
    return OrderedDict((name, trained) for name in optimizer.first_values)


def first_memory(model: Model, optimizer: Optimizer) -> OrderedDict[str, Any]:
    """Return what an optimizer remembers before its first step, as tensors."""
    tf = load_tensorflow()
    return OrderedDict(
        (
            slot,
            OrderedDict(
                (
                    name,
                    tf.fill(
                        model.weights[name].shape, tf.constant(value, model.weights[name].dtype)
                    ),
                )
                for name in model.trained
            ),
        )
        for slot, value in optimizer.first_values.items()
    )


def move(
    framework: Any, optimizer: Optimizer, weights: Arrays, directions: Any, memory: Any
) -> tuple[Arrays, OrderedDict[str, Any]]:
    """Return weights after a step along directions, and what the optimizer remembers then."""
    moved, after = OrderedDict(weights), OrderedDict((slot, OrderedDict()) for slot in memory)
    for name, direction in directions.items():
        slots = {slot: values[name] for slot, values in memory.items()}
        moved[name], slots = optimizer.step(framework, weights[name], direction, slots)
        for slot, value in slots.items():
            after[slot][name] = value
    return moved, after


def totals_type(model: Model) -> OrderedDict[str, Any]:
    """Return the type of sums over examples: their number, losses, metrics."""
    sums = OrderedDict((name, tffc.TensorType(np.float32)) for name in ("loss", *model.metrics))
    return OrderedDict(examples=tffc.TensorType(np.int32), **sums)


def sequence_type(model: Model) -> tffc.SequenceType:
    """Return the type of a client's data."""
    return tffc.SequenceType(model.examples)


def client_weights(model: Model) -> OrderedDict[str, tffc.TensorType]:
    """Return the types of a client's weights: the server's, and those that stay at the client."""
    return OrderedDict({**model.weights, **types_of(model.local)})


def beginning(model: Model) -> Callable[[Any], Any]:
    """Return a function in the language: a client's weights, from those of the server."""
    if not model.local:
        return lambda weights: weights

    def begin(weights: Arrays) -> Arrays:
        tf = load_tensorflow()
        local = ((name, tf.constant(value)) for name, value in model.local.items())
        return OrderedDict({**weights, **OrderedDict(local)})

    return tffc.tf_computation(begin, model.weights)


def batching(
    model: Model, batch_size: int, epochs: int = 1, *, trains: bool = False
) -> Callable[[Any], Any]:
    """Return what cuts a dataset into batches, again in each epoch; `trains` if to train on them.

    Batches for JAX and PyTorch are all of one size: the last example stands for those that are
    missing, and the column `present` is 0 for them.
    """
    tf = load_tensorflow()
    drops = trains and model.drop_remainder

    def padded(columns: Arrays) -> Arrays:
        count = tf.shape(next(iter(columns.values())))[0]
        rows = tf.minimum(tf.range(batch_size), count - 1)
        full = OrderedDict(
            (name, tf.gather(tf.cast(values, _held_in(model, values.dtype.as_numpy_dtype)), rows))
            for name, values in columns.items()
        )
        return OrderedDict(columns=full, present=tf.cast(tf.range(batch_size) < count, tf.float32))

    def batches(examples: Any) -> Any:
        cut = examples.batch(batch_size, drop_remainder=drops)
        if model.framework != "tensorflow":
            cut = cut.map(padded)
        return cut.repeat(epochs) if epochs > 1 else cut

    return batches


def _batch_type(model: Model, batch_size: int) -> Any:
    if model.framework == "tensorflow":
        return batch_type(model.examples)
    columns = OrderedDict(
        (name, tffc.TensorType(_held_in(model, type.dtype), [batch_size, *shape_of(type)]))
        for name, type in model.examples.items()
    )
    return OrderedDict(columns=columns, present=tffc.TensorType(np.float32, [batch_size]))


def _held_in(model: Model, dtype: Any) -> Any:
    """Return the type that the framework of a model has for a type of arrays."""
    return narrow(dtype) if model.framework == "jax" else dtype


def training_work(
    model: Model,
    optimizer: Optimizer,
    batch_size: int,
    *,
    proximal: float = 0.0,
    corrects: bool = False,
) -> Callable[..., Any]:
    """Return a function of a client's weights and batches, in the language: its training.

    It gives a struct of the `weights` after it and the `totals` of the batches, each measured
    before the step on it.  With `proximal` μ, the loss has the term μ/2 |w - w₀|² of FedProx.  If
    it `corrects`, the function also takes what is added to the slopes in every step.
    """
    trained = OrderedDict((name, model.weights[name]) for name in model.trained)
    anchored = trained if proximal else OrderedDict[str, Any]()
    corrected = OrderedDict(correction=trained) if corrects else OrderedDict[str, Any]()
    whole = tffc.TensorType(np.int64)
    drawn = OrderedDict(draws=OrderedDict(seed=whole, steps=whole)) if model.draws else {}
    work = OrderedDict(
        weights=client_weights(model),
        anchor=anchored,
        **corrected,
        memory=memory_type(model, optimizer),
        **drawn,
        totals=totals_type(model),
    )

    def start(weights: Arrays, **correction: Arrays) -> Arrays:
        return OrderedDict(
            weights=weights,
            anchor=OrderedDict((name, weights[name]) for name in anchored),
            **correction,
            memory=first_memory(model, optimizer),
            **({"draws": _first_draws()} if model.draws else {}),
            totals=_no_totals(model),
        )

    def step(work: Any, batch: Any, frozen: Arrays) -> Arrays:
        framework, columns, present = _opened(model, batch)
        with _draws_of(work):
            every = OrderedDict({**work["weights"], **frozen})
            slopes, outcome = _slopes(model, every, columns, present)
        weights = OrderedDict(work["weights"])
        directions = OrderedDict()
        for name in model.trained:
            slope = slopes[name]
            if proximal:
                slope = slope + proximal * (weights[name] - work["anchor"][name])
            if corrects:
                slope = slope + work["correction"][name]
            directions[name] = -slope
        weights, memory = move(framework, optimizer, weights, directions, work["memory"])
        weights.update(outcome.changed)
        return OrderedDict(
            weights=weights,
            anchor=work["anchor"],
            **{name: work[name] for name in corrected},
            memory=memory,
            **({"draws": _next_draws(work["draws"])} if model.draws else {}),
            totals=_added(framework, work["totals"], outcome, present),
        )

    def start_plainly(weights: Arrays) -> Arrays:
        return start(weights)

    def start_corrected(weights: Arrays, correction: Arrays) -> Arrays:
        return start(weights, correction=correction)

    begins = start_corrected if corrects else start_plainly
    first = tffc.tf_computation(begins, client_weights(model), *corrected.values())
    steps = _traced_step(model, step, work, _batch_type(model, batch_size))

    def train(weights: Any, batches: Any, *correction: Any) -> Any:
        return tffc.sequence_reduce(batches, first(weights, *correction), steps)

    return train


def measuring_work(model: Model, batch_size: int) -> Callable[[Any, Any], Any]:
    """Return a function of a client's weights and batches, in the language: their totals."""
    work = OrderedDict(weights=client_weights(model), totals=totals_type(model))

    def start(weights: Arrays) -> Arrays:
        return OrderedDict(weights=weights, totals=_no_totals(model))

    def step(work: Any, batch: Any, frozen: Arrays) -> Arrays:
        framework, columns, present = _opened(model, batch)
        every = OrderedDict({**work["weights"], **frozen})
        outcome = model.open().losses(every, columns, False)
        totals = _added(framework, work["totals"], outcome, present)
        return OrderedDict(weights=work["weights"], totals=totals)

    first = tffc.tf_computation(start, client_weights(model))
    steps = _traced_step(model, step, work, _batch_type(model, batch_size))
    return lambda weights, batches: tffc.sequence_reduce(batches, first(weights), steps).totals


def metrics_of(model: Model, epochs: int = 1) -> Callable[[Arrays], Arrays]:
    """Return what makes means of totals, and the number of examples of those of all epochs."""

    def metrics(totals: Arrays) -> Arrays:
        tf = load_tensorflow()
        count = tf.cast(totals["examples"], tf.float32)
        means = OrderedDict((name, totals[name] / count) for name in ("loss", *model.metrics))
        return OrderedDict(**means, examples=totals["examples"] // epochs)

    return metrics


def _traced_step(
    model: Model, step: Callable[[Any, Any, Arrays], Arrays], work: Any, batch: Any
) -> Any:
    """Return a step as a computation of work and a batch, to which frozen weights are given as a
    resource."""
    decorate = _decorator(model)
    if not model.frozen:

        def plain_step(work: Any, batch: Any) -> Arrays:
            return step(work, batch, OrderedDict())

        return decorate(plain_step, work, batch)
    frozen = tffc.resource(model.frozen)

    def frozen_step(frozen: Arrays, work: Any, batch: Any) -> Arrays:
        return step(work, batch, frozen)

    traced = decorate(frozen_step, frozen.type_signature.result, work, batch)

    @tffc.federated_computation(work, batch)
    def with_frozen(work: Any, batch: Any) -> Any:
        return traced(frozen(), work, batch)

    return with_frozen


def _decorator(model: Model) -> Any:
    return {
        "tensorflow": tffc.tf_computation,
        "jax": tffc.jax_computation,
        "torch": tffc.torch_computation,
    }[model.framework]


def _opened(model: Model, batch: Any) -> tuple[Any, Arrays, Any]:
    """Return the module for arrays, the columns of a batch, and which of its rows are examples."""
    if model.framework == "tensorflow":
        return load_tensorflow(), batch, None
    framework = load_torch() if model.framework == "torch" else importlib.import_module("jax.numpy")
    return framework, batch["columns"], batch["present"]


def _first_draws() -> Arrays:
    """Return a new seed, and the number of the step that draws from it."""
    tf = load_tensorflow()
    seed = tf.random.uniform((), tf.int64.min, tf.int64.max, tf.int64)
    return OrderedDict(seed=seed, steps=tf.constant(0, tf.int64))


def _next_draws(draws: Arrays) -> Arrays:
    return OrderedDict(seed=draws["seed"], steps=draws["steps"] + 1)


def _draws_of(work: Arrays) -> contextlib.AbstractContextManager[None]:
    """Return what lets a step draw, if its model does."""
    if "draws" not in work:
        return contextlib.nullcontext()
    return draws(work["draws"]["seed"], work["draws"]["steps"])


def _slopes(model: Model, weights: Arrays, batch: Arrays, present: Any) -> tuple[Any, BatchLosses]:
    """Return the gradients of the mean loss of a batch, and what the model says of it."""
    open = model.open()
    if open.slopes is not None:
        slopes, outcome = open.slopes(weights, batch)
        return _dense(slopes), outcome
    trained = OrderedDict((name, weights[name]) for name in model.trained)

    def mean(trained: Arrays) -> tuple[Any, BatchLosses]:
        outcome = open.losses(OrderedDict({**weights, **trained}), batch, True)
        return (outcome.losses * present).sum() / present.sum(), outcome

    if model.framework == "jax":
        return importlib.import_module("jax").grad(mean, has_aux=True)(trained)
    if model.framework == "torch":
        return _torch_slopes(mean, trained)
    tf = load_tensorflow()
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(trained)
        outcome = open.losses(weights, batch, True)
        loss = tf.reduce_mean(outcome.losses) + outcome.penalty
    slopes = tape.gradient(loss, trained, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return _dense(slopes), outcome


def _torch_slopes(
    mean: Callable[[Arrays], tuple[Any, BatchLosses]], trained: Arrays
) -> tuple[Any, BatchLosses]:
    """Return the gradients of a mean loss by PyTorch, which passes mappings of tensors only."""

    def tensors(trained: Arrays) -> tuple[Any, Any]:
        value, outcome = mean(trained)
        return value, {
            "losses": outcome.losses,
            "metrics": dict(outcome.metrics),
            "changed": dict(outcome.changed),
        }

    slopes, outcome = load_torch().func.grad(tensors, has_aux=True)(trained)
    metrics = OrderedDict(outcome["metrics"])
    return slopes, BatchLosses(outcome["losses"], metrics, changed=outcome["changed"])


def _dense(slopes: Arrays) -> Arrays:
    """Return slopes as tensors: those of embeddings are sparse."""
    tf = load_tensorflow()
    return OrderedDict((name, tf.convert_to_tensor(slope)) for name, slope in slopes.items())


def _no_totals(model: Model) -> Arrays:
    tf = load_tensorflow()
    sums = OrderedDict((name, tf.constant(0.0)) for name in ("loss", *model.metrics))
    return OrderedDict(examples=tf.constant(0), **sums)


def _added(framework: Any, totals: Any, outcome: BatchLosses, present: Any) -> Arrays:
    """Return totals with those of another batch."""
    values = OrderedDict(loss=outcome.losses, **outcome.metrics)
    if present is None:
        count = framework.size(outcome.losses)
        sums = {name: framework.reduce_sum(each) for name, each in values.items()}
    else:
        count = framework.asarray(present.sum(), dtype=framework.int32)
        sums = {
            name: framework.asarray((each * present).sum(), dtype=framework.float32)
            for name, each in values.items()
        }
    return OrderedDict(
        (name, total + (count if name == "examples" else sums[name]))
        for name, total in totals.items()
    )
