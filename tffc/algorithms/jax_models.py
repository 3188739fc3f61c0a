"""Models in JAX."""

from __future__ import annotations

import importlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tffc.algorithms.examples import columns_of
from tffc.algorithms.functions import (
    Arrays,
    BatchLosses,
    M,
    OpenModel,
    check_metrics,
    check_numbers,
    outcome_of,
    types_of,
)
from tffc.runtime.user_code.source import call_theirs
from tffc.support.errors import LanguageTypeError

NARROW = {"int64": np.int32, "uint64": np.uint32, "float64": np.float32}
"""The types of JAX for those of 64 bits, which it does not have by default."""


def jax_model(cls: type[M], first_weights: Any, loss: Callable[..., Any], examples: Any) -> M:
    """Return the model of a loss in JAX; see `Model.from_jax`."""
    tree = importlib.import_module("jax.tree_util")
    jax = importlib.import_module("jax")
    source = call_theirs(first_weights) if callable(first_weights) else first_weights
    leaves, shape = tree.tree_flatten_with_path(source)
    if not leaves:
        raise LanguageTypeError(
            "E714",
            f"first_weights is {type(source).__name__!r}, which has no arrays",
            help="give a tree of arrays, or a function that returns one",
        )
    paths = ["_".join(map(_step, path)) or "weights" for path, _ in leaves]
    if len(set(paths)) < len(paths):
        paths = [f"{path}_{number}" for number, path in enumerate(paths)]
    first = OrderedDict(
        (name, np.asarray(value, dtype=narrow(np.asarray(value).dtype)))
        for name, (_, value) in zip(paths, leaves, strict=True)
    )
    columns = columns_of(examples)

    def restore(weights: Arrays) -> Any:
        return tree.tree_unflatten(shape, list(weights.values()))

    def one(weights: Any, example: Mapping[str, Any]) -> tuple[Any, Arrays]:
        outcome = outcome_of(call_theirs(loss, weights, example))
        return outcome.losses, outcome.metrics

    def losses(weights: Arrays, batch: Arrays, training: bool) -> BatchLosses:
        values, metrics = jax.vmap(one, in_axes=(None, 0))(restore(weights), dict(batch))
        check_numbers("loss", values, (None,))
        for name, each in metrics.items():
            check_numbers(name, each, (None,))
        return BatchLosses(values, metrics)

    def trial(weights: Arrays, batch: Arrays) -> Any:
        return losses(weights, batch, False).metrics

    shapes = {name: jax.ShapeDtypeStruct(a.shape, a.dtype) for name, a in first.items()}
    batch = {
        name: jax.ShapeDtypeStruct((1, *type.shape), narrow(type.dtype))
        for name, type in columns.items()
    }
    metrics = tuple(jax.eval_shape(trial, OrderedDict((n, shapes[n]) for n in first), batch))
    check_metrics(metrics)
    return cls(
        columns,
        types_of(first),
        tuple(first),
        (),
        metrics,
        "jax",
        first,
        lambda: OpenModel(losses),
        restore,
    )


def narrow(dtype: Any) -> Any:
    """Return the type that JAX has for a type of arrays."""
    kind = np.dtype(dtype)
    return NARROW.get(kind.name, kind.type)


def _step(key: Any) -> str:
    """Return the name of one step from a tree to a leaf of it."""
    for attribute in ("key", "name", "idx"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)
