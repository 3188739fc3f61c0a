"""Comparison of operations in JAX with TensorFlow's own, on one-node graphs."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from tffc.runtime.lowering.operations.table import OPERATIONS

DECIDING = [
    "reduction_indices",
    "dimension",
    "axis",
    "shape",
    "dims",
    "perm",
    "multiples",
    "paddings",
    "begin",
    "end",
    "strides",
    "size",
    "num",
    "depth",
    "split_dim",
    "size_splits",
    "concat_dim",
    "dim",
    "num_segments",
    "limit",
    "delta",
    "s0",
    "s1",
    "input_sizes",
    "filter_sizes",
    "orig_input_shape",
    "alg",
]
"""Inputs whose values decide about shapes, and stay known to JAX."""

RENAMED = {"reduction_indices": "axis", "dim": "axis", "split_dim": "axis"}
"""Inputs that Python's functions call otherwise than the definitions of operations."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """Inputs and attributes of an operation, and how far a float may be from TensorFlow's."""

    inputs: tuple[Any, ...]
    attributes: dict[str, Any]
    tolerance: float = 0.0
    known: frozenset[str] = frozenset()
    traced: frozenset[str] = frozenset()
    outputs: int | None = None
    """How many outputs are compared: what is left is TensorFlow's own affair."""


def sample(
    *inputs: Any,
    tolerance: float = 0.0,
    known: str = "",
    traced: str = "",
    outputs: int | None = None,
    **attributes: Any,
) -> Sample:
    """A sample; an input that is a list of tensors is given as a list."""
    arrays = tuple(
        [np.asarray(item) for item in value] if isinstance(value, list) else np.asarray(value)
        for value in inputs
    )
    names = frozenset(known.split()), frozenset(traced.split())
    return Sample(arrays, attributes, tolerance, *names, outputs)


class Trial:
    """A one-node graph of TensorFlow and the arrays that go in."""

    def __init__(self, op: str, sample: Sample) -> None:
        self.op = op
        self.sample = sample
        definition: Any = op_def_registry.get(op)
        names = [arg.name for arg in definition.input_arg]
        self.arrays: list[np.ndarray] = []
        self.varies: list[bool] = []
        self.lengths: dict[str, int | None] = {}
        for name, value in zip(names, sample.inputs, strict=True):
            self.lengths[self._argument(name)] = len(value) if isinstance(value, list) else None
            for array in value if isinstance(value, list) else [value]:
                self._add(name, array)
        with tf.Graph().as_default():
            tensors = [tf.compat.v1.placeholder(array.dtype, array.shape) for array in self.arrays]
            first = self._outputs(tensors)[0]
            self.node = first.op.node_def

    def _argument(self, name: str) -> str:
        """What Python's function calls an input."""
        return (RENAMED | {"t": "x", "e": "y"} if self.op == "Select" else RENAMED).get(name, name)

    def _add(self, name: str, array: np.ndarray) -> None:
        fixed = {*DECIDING, *self.sample.known} - self.sample.traced
        if self.op in ("Range", "DynamicStitch"):
            fixed |= {"start", "indices"}
        self.arrays.append(array)
        self.varies.append(name not in fixed)

    def _outputs(self, tensors: Sequence[Any]) -> list[Any]:
        rest = iter(tensors)
        arguments: dict[str, Any] = {}
        for name, length in self.lengths.items():
            arguments[name] = next(rest) if length is None else [*islice(rest, length)]
        return tf.nest.flatten(getattr(tf.raw_ops, self.op)(**arguments, **self.sample.attributes))

    def expected(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What TensorFlow computes."""
        return [output.numpy() for output in self._outputs([*map(tf.constant, arrays)])]

    def shifted(self) -> list[np.ndarray]:
        """Inputs of a second client: the same rows in another order."""
        return [
            np.roll(array, 1, 0) if varies and array.ndim else array
            for array, varies in zip(self.arrays, self.varies, strict=True)
        ]

    def computed(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """What the operation in JAX computes."""
        return OPERATIONS[self.op](self.node, arrays)

    def varying(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The inputs that JAX traces."""
        return [array for array, varies in zip(arrays, self.varies, strict=True) if varies]

    def all_of(self, varying: Sequence[Any]) -> list[Any]:
        """All inputs, of those that JAX traces."""
        rest = iter(varying)
        return [
            next(rest) if varies else array
            for array, varies in zip(self.arrays, self.varies, strict=True)
        ]

    def traced(self, varying: Sequence[Any]) -> Sequence[Any]:
        """What is computed from these and from what is known."""
        return self.computed(self.all_of(varying))


COMPILED = 1
"""How many samples of each operation quick tests compile."""


def compare(op: str, samples: Sequence[Sample], folds: bool = True) -> None:
    """Compare the operation with TensorFlow's, folded, and compiled for two clients at once.

    Operations that JAX computes even from known inputs would be compiled piece by piece.
    """
    with computing():
        for sample in samples if folds else ():
            trial = Trial(op, sample)
            check(trial, "folded", trial.expected(trial.arrays), trial.computed(trial.arrays))
        compare_clients(op, samples[:COMPILED])


def compare_all(op: str, samples: Sequence[Sample]) -> None:
    """Compare all samples compiled, for one client and for two at once."""
    with computing():
        trials = [Trial(op, sample) for sample in samples]
        arrays = [trial.varying(trial.arrays) for trial in trials]
        results = compiled(lambda arrays: [*map(Trial.traced, trials, arrays)], arrays)
        for trial, values in zip(trials, results, strict=True):
            check(trial, "compiled", trial.expected(trial.arrays), values)
        compare_clients(op, samples[COMPILED:])


@contextlib.contextmanager
def computing() -> Iterator[None]:
    """Compute as rounds do: with 64 bits, and floats in full."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


def compiled(function: Any, *arguments: Any) -> Any:
    """What a function gives, compiled, without the optimizations that take XLA longest."""
    lowered = jax.jit(function).lower(*arguments)
    options: Any = {"xla_backend_optimization_level": 0}
    return lowered.compile(compiler_options=options)(*arguments)


def compare_clients(op: str, samples: Sequence[Sample]) -> None:
    """Compare what is computed for two clients at once."""
    trials = [Trial(op, sample) for sample in samples]
    trials = [trial for trial in trials if any(trial.varies)]
    clients = [[trial.arrays, trial.shifted()] for trial in trials]
    stacked = [
        [np.stack(pair) for pair in zip(*map(trial.varying, arrays), strict=True)]
        for trial, arrays in zip(trials, clients, strict=True)
    ]
    results = compiled(
        lambda stacked: [
            jax.vmap(trial.traced)(inputs) for trial, inputs in zip(trials, stacked, strict=True)
        ],
        stacked,
    )
    for trial, arrays, outputs in zip(trials, clients, results, strict=True):
        for client, values in enumerate(arrays):
            check(
                trial,
                f"for client {client}",
                trial.expected(values),
                [output[client] for output in outputs],
            )


def check(trial: Trial, how: str, expected: Sequence[Any], computed: Sequence[Any]) -> None:
    """Check values, types and shapes of all outputs."""
    shapes = [f"{array.dtype}{[*array.shape]}" for array in trial.arrays]
    place = f"{trial.op} {how} of {shapes} with {trial.sample.attributes}"
    assert len(computed) == len(expected), place
    compared = slice(trial.sample.outputs)
    for wanted, value in zip(expected[compared], computed[compared], strict=True):
        wanted, value = np.asarray(wanted), np.asarray(value)
        assert value.dtype == wanted.dtype, place
        assert value.shape == wanted.shape, place
        close(value, wanted, trial.sample.tolerance, place)


def close(value: np.ndarray, wanted: np.ndarray, tolerance: float, place: str) -> None:
    """Check that floats are within a few units in the last place, and all else is equal."""
    if jax.numpy.issubdtype(wanted.dtype, jax.numpy.inexact):
        last = 128 if wanted.dtype.itemsize == 8 else 8
        near = tolerance or last * float(jax.numpy.finfo(wanted.dtype).eps)
        kind = np.complex128 if wanted.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            value.astype(kind), wanted.astype(kind), rtol=near, atol=near, err_msg=place
        )
    else:
        np.testing.assert_array_equal(value, wanted, err_msg=place)


def floats(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def integers(
    *shape: int, seed: int = 0, least: int = -9, end: int = 10, dtype: Any = np.int32
) -> Any:
    """Integers from a range."""
    return np.random.default_rng(seed).integers(least, end, shape).astype(dtype)


def ints(*values: int, dtype: Any = np.int32) -> np.ndarray:
    """A vector of integers."""
    return np.array(values, dtype)


def positive(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Numbers above 0."""
    return (np.abs(floats(*shape, seed=seed, dtype=np.float64)) + 0.1).astype(dtype)
