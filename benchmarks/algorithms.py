"""`python -m benchmarks.algorithms`: a round of each algorithm as a ratio to federated averaging.

Rounds run in turn, on the same clients, in the local engine.  Where TFF's wheel is installed, its
weighted federated averaging of the same network runs on tffc too; its clients get their examples in
batches, for it has no other.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
from collections.abc import Callable
from typing import Any

import click
import numpy as np

import tffc
from benchmarks.averaging import BATCH, CLASSES, EPOCHS, FEATURES, HIDDEN, RATE, client_data
from benchmarks.clock import seconds
from tffc.tff import releases

algorithms = tffc.algorithms
OPTIONS: dict[str, Any] = {"epochs": EPOCHS, "batch_size": BATCH}


def network(library: Any) -> Any:
    """Return the network of `benchmarks.averaging`, in Keras 3 or tf_keras."""
    layers = [library.layers.Dense(HIDDEN, "relu"), library.layers.Dense(CLASSES)]
    return library.Sequential([library.Input([FEATURES]), *layers])


def model(library: Any) -> algorithms.Model:
    """Return it as a model with a loss."""
    loss = library.losses.SparseCategoricalCrossentropy(from_logits=True)
    columns = {"x": (np.float32, [FEATURES]), "y": np.int32}
    return algorithms.Model.from_keras(network(library), columns, loss=loss)


def model_in_jax() -> algorithms.Model:
    """Return the same network as a function of JAX."""
    import jax
    import jax.numpy as jnp

    random = np.random.default_rng(0)
    sizes = [(FEATURES, HIDDEN), (HIDDEN, CLASSES)]
    first = [(random.normal(0, 0.1, size), np.zeros(size[1])) for size in sizes]

    def loss(weights: Any, example: Any) -> Any:
        (hidden, shift), (scores, offset) = weights
        logits = jax.nn.relu(example["x"] @ hidden + shift) @ scores + offset
        return jax.nn.logsumexp(logits) - jnp.take(logits, example["y"])

    columns = {"x": (np.float32, [FEATURES]), "y": np.int32}
    return algorithms.Model.from_jax(first, loss, columns)


def rounds(clients: int) -> dict[str, Any]:
    """Return the processes and evaluations; the first is federated averaging."""
    import keras

    ours = model(keras)
    averaging = algorithms.federated_averaging(ours, RATE, **OPTIONS)
    programs: dict[str, Any] = {
        "federated averaging": averaging,
        "with momentum": algorithms.SGD(1.0, 0.9),
        "with Adam": algorithms.Adam(0.01),
        "with Yogi": algorithms.Yogi(0.01),
        "with Adagrad": algorithms.Adagrad(0.01),
        "clipped": {"clip_norm": 1.0},
        "median": {"robust": algorithms.Median()},
        "trimmed mean": {"robust": algorithms.TrimmedMean(0.1)},
        "FedProx": algorithms.fedprox(ours, RATE, 0.1, **OPTIONS),
        "evaluation": algorithms.federated_evaluation(ours, averaging, batch_size=BATCH),
        "personalised": algorithms.personalised_evaluation(ours, averaging, RATE, **OPTIONS),
    }
    for name, program in programs.items():
        own: dict[str, Any] | None = program if isinstance(program, dict) else None
        if isinstance(program, algorithms.Optimizer):
            own = {"server_optimizer": program}
        if own is not None:
            programs[name] = algorithms.federated_averaging(ours, RATE, **OPTIONS, **own)
    programs["SCAFFOLD"] = algorithms.scaffold(ours, RATE, clients, **OPTIONS)
    if importlib.util.find_spec("jax") is not None:
        programs["averaging in JAX"] = algorithms.federated_averaging(
            model_in_jax(), RATE, **OPTIONS
        )
    return programs


def of_tff() -> dict[str, Any]:
    """Return federated averaging of tf_keras, of TFF's library and of ours."""
    import tensorflow as tf
    import tf_keras  # pyright: ignore[reportMissingTypeStubs]

    tffc.install_as_tensorflow_federated()
    import tensorflow_federated as tff  # pyright: ignore[reportMissingImports]

    spec = (
        tf.TensorSpec([None, FEATURES], tf.float32),
        tf.TensorSpec([None], tf.int32),
    )

    def theirs() -> Any:
        loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return tff.learning.models.from_keras_model(network(tf_keras), loss, spec)

    optimizer = tff.learning.optimizers.build_sgdm(RATE)
    return {
        "ours of tf_keras": algorithms.federated_averaging(model(tf_keras), RATE, **OPTIONS),
        "tff.learning": tff.learning.algorithms.build_weighted_fed_avg(
            theirs, optimizer, tff.learning.optimizers.build_sgdm(1.0)
        ),
    }


def batched(x: Any, y: Any) -> Any:
    """Return a dataset of the batches of a client's epochs."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH).repeat(EPOCHS)


def round_of(name: str, program: Any, clients: int, state: Any) -> Callable[[], Any]:
    """Return a function that runs a round of a compiled program."""
    pairs = list(client_data(clients))
    data = (
        [batched(x, y) for x, y in pairs]
        if name == "tff.learning"
        else [{"x": x, "y": y} for x, y in pairs]
    )
    bundle = tffc.compile(program)
    starts = hasattr(program, "initialize")
    return lambda: next(tffc.run(bundle, data, 1, **({} if starts else {"state": state})))


@click.command()
@click.option("--clients", default=200, show_default=True, type=click.IntRange(1))
@click.option("--runs", default=5, show_default=True, type=click.IntRange(1))
def main(clients: int, runs: int) -> None:
    """Measure rounds of the algorithms, and print ratios of medians to federated averaging."""
    # TFF's library takes models of the Keras that TensorFlow has.
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    programs = rounds(clients)
    first = next(iter(programs))
    if releases.installed():
        programs |= of_tff()
    state = programs[first].initialize()
    calls = {name: round_of(name, each, clients, state) for name, each in programs.items()}
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(runs):
        for name, call in calls.items():
            times[name].append(seconds(call))
    base = statistics.median(times[first])
    click.echo(f"{clients} clients, medians of {runs} rounds; 1 is {base * 1e3:.0f} ms")
    for name, values in times.items():
        low, middle, high = (f(values) / base for f in (min, statistics.median, max))
        click.echo(f"{name:20} {middle:5.2f}  ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
