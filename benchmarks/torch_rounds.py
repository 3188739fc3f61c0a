"""A round of the digits in PyTorch against the same network, steps and dropout in JAX.

    python -m benchmarks.torch_rounds [--clients N] [--images N] [--rounds N]

Rounds of the two are run in turn, on the local engine, with clients one by one and in batches.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections import OrderedDict
from typing import Any

import click
import numpy as np

from benchmarks.sides import ROOT


def torch_example() -> Any:
    """Return the module of the example in PyTorch."""
    path = ROOT / "examples" / "torch_digits" / "torch_digits.py"
    spec = importlib.util.spec_from_file_location("torch_digits", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def jax_round(example: Any) -> Any:
    """Return the round of the example with its step in JAX."""
    import jax
    import jax.numpy as jnp

    import tffc as tff

    def loss_of(model: Any, work: Any, image: Any) -> Any:
        kernel, bias, dense, last = model.values()
        pixels = jnp.reshape(image["pixels"] / 16.0, (1, 1, 8, 8)).astype(jnp.float32)
        features = jax.lax.conv(pixels, kernel, (1, 1), "SAME") + bias[None, :, None, None]
        features = jax.nn.relu(features).reshape(1, 8, 4, 2, 4, 2).max((3, 5)).reshape(1, 128)
        key = jax.random.fold_in(jax.random.key(work["seed"]), work["images"].astype(jnp.int32))
        features = jnp.where(jax.random.bernoulli(key, 0.9, features.shape), features / 0.9, 0.0)
        scores = (features @ dense.T + last)[0]
        loss = -jax.nn.log_softmax(scores)[image["label"]]
        return loss, (scores.argmax() == image["label"]).astype(jnp.float32)

    work_type = OrderedDict(example.WORK, seed=np.int32)

    @tff.jax.computation(work_type, example.IMAGE)
    def step(work: Any, image: Any) -> Any:
        grad = jax.value_and_grad(loss_of, has_aux=True)
        (loss, right), slopes = grad(work["model"], work, image)
        model = jax.tree.map(lambda w, slope: w - 0.05 * slope, work["model"], slopes)
        images = work["images"] + 1
        metrics = {"loss": loss, "accuracy": right}
        means = OrderedDict((k, m + (metrics[k] - m) / images) for k, m in work["means"].items())
        return OrderedDict(model=model, seed=work["seed"], images=images, means=means)

    @tff.tf_computation
    def seed() -> Any:
        import tensorflow as tf

        return tf.random.uniform((), 0, tf.int32.max, tf.int32)

    @tff.federated_computation(example.MODEL, example.IMAGES)
    def work_of(model: Any, images: Any) -> Any:
        means = OrderedDict(loss=0.0, accuracy=0.0)
        first = OrderedDict(model=model, seed=seed(), images=0.0, means=means)
        return tff.sequence_reduce(images, first, step)

    @tff.federated_computation(
        tff.types.at_server(example.MODEL), tff.types.at_clients(example.IMAGES)
    )
    def next_model(model: Any, images: Any) -> Any:
        work = tff.federated_map(work_of, (tff.federated_broadcast(model), images))
        parts = (work.model, work.means)
        return tuple(tff.federated_mean(each, weight=work.images) for each in parts)

    return next_model


def clients_data(clients: int, images: int) -> dict[str, Any]:
    """Return random images of so many clients."""
    draw = np.random.default_rng(1)
    return {
        str(client): {
            "pixels": draw.integers(0, 17, (images, 64)).astype(np.uint8),
            "label": draw.integers(0, 10, images).astype(np.int32),
        }
        for client in range(clients)
    }


@click.command()
@click.option("--clients", default=50, show_default=True, help="Clients of a round.")
@click.option("--images", default=100, show_default=True, help="Images of each client.")
@click.option("--rounds", default=5, show_default=True, help="Rounds that are timed.")
def main(clients: int, images: int, rounds: int) -> None:
    """Time rounds of the digits in PyTorch and in JAX."""
    import tffc as tff

    example = torch_example()
    programs = {"torch": example.next_model, "jax": jax_round(example)}
    bundles = {name: tff.compile(each, form="mapreduce") for name, each in programs.items()}
    data = clients_data(clients, images)
    for batching in ("off", 10):
        runs = {
            name: iter(
                tff.run(bundle, data, rounds + 1, state=example.FIRST, batching=batching)  # pyright: ignore
            )
            for name, bundle in bundles.items()
        }
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(rounds + 1):
            for name, run in runs.items():
                start = time.perf_counter()
                next(run)
                seconds[name].append(time.perf_counter() - start)
        medians = {name: statistics.median(each[1:]) for name, each in seconds.items()}
        for name, each in seconds.items():
            click.echo(
                f"batching {batching}, {name}: first {each[0]:.3f} s, then {medians[name]:.4f} s"
            )
        click.echo(f"batching {batching}, torch / jax: {medians['torch'] / medians['jax']:.2f}")


if __name__ == "__main__":
    main()
