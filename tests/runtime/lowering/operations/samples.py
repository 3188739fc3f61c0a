"""Comparison of operations in JAX with TensorFlow's own, on one-node graphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from tffc.runtime.lowering.operations.table import OPERATIONS

DECIDING = frozenset(
    ["reduction_indices", "dimension", "axis", "shape", "dims", "perm", "multiples", "paddings", "begin", "end", "strides", "size", "num", "depth", "split_dim", "size_splits", "concat_dim", "dim", "num_segments", "limit", "delta", "s0", "s1", "input_sizes", "filter_sizes", "orig_input_shape", "alg"]
)
"""Inputs whose values decide about shapes, and stay known to JAX."""

RENAMED = {"reduction_indices": "axis", "dim": "axis", "split_dim": "axis", "t": "x", "e": "y"}
"""Inputs that Python's functions call otherwise than the definitions of operations."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """Inputs and attributes of an operation, and how far a float may be from TensorFlow's."""

    inputs: tuple[Any, ...]
    attributes: dict[str, Any]
    tolerance: float = 0.0
    known: frozenset[str] = frozenset()


def sample(*inputs: Any, tolerance: float = 0.0, known: str = "", **attributes: Any) -> Sample:
    """A sample; an input that is a list of tensors is given as a list."""
    arrays = tuple(
        [np.asarray(item) for item in value] if isinstance(value, list) else np.asarray(value)
        for value in inputs
    )
    return Sample(arrays, attributes, tolerance, frozenset(known.split()))


class Trial:
    """A one-node graph of TensorFlow and the arrays that go in."""

    def __init__(self, op: str, sample: Sample) -> None:
        self.op = op
        self.sample = sample
        names = [arg.name for arg in op_def_registry.get(op).input_arg]
        self.graph = tf.Graph()
        arguments: dict[str, Any] = {}
        self.arrays: list[np.ndarray] = []
        self.varies: list[bool] = []
        self.placeholders: list[Any] = []
        with self.graph.as_default():
            for name, value in zip(names, sample.inputs, strict=True):
                items = value if isinstance(value, list) else [value]
                tensors = [self._placeholder(name, item) for item in items]
                renamed = RENAMED.get(name, name) if op != "ClipByValue" else name
                arguments[renamed] = tensors if isinstance(value, list) else tensors[0]
            result = getattr(tf.raw_ops, op)(**arguments, **sample.attributes)
        first = next(iter(tf.nest.flatten(result)))
        self.node = first.op.node_def
        self.outputs = [*first.op.outputs]

    def _placeholder(self, name: str, array: np.ndarray) -> Any:
        fixed = {*DECIDING, *self.sample.known}
        if self.op in ("Range", "DynamicStitch"):
            fixed |= {"start", "indices"}
        self.arrays.append(array)
        self.varies.append(name not in fixed and array.dtype != object)
        self.placeholders.append(tf.compat.v1.placeholder(array.dtype, array.shape))
        return self.placeholders[-1]

    def expected(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What TensorFlow computes."""
        with tf.compat.v1.Session(graph=self.graph) as session:
            return session.run(self.outputs, dict(zip(self.placeholders, arrays, strict=True)))

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

    def traced(self, varying: Sequence[Any]) -> Sequence[Any]:
        """What is computed from these and from what is known."""
        rest = iter(varying)
        return self.computed(
            [
                next(rest) if varies else array
                for array, varies in zip(self.arrays, self.varies, strict=True)
            ]
        )


def compare(op: str, samples: Sequence[Sample]) -> None:
    """Compare the operation with TensorFlow's: folded, compiled, and for two clients at once."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        trials = [Trial(op, sample) for sample in samples]
        expected = [trial.expected(trial.arrays) for trial in trials]
        for trial, values in zip(trials, expected, strict=True):
            check(trial, "folded", values, trial.computed(trial.arrays))
        pairs = [[trial.varying(trial.arrays), trial.varying(trial.shifted())] for trial in trials]
        ones, many = jax.jit(lambda pairs: all_of(trials, pairs))(pairs)
        for place, trial in enumerate(trials):
            check(trial, "compiled", expected[place], ones[place])
            if any(trial.varies):
                values = trial.expected(trial.shifted())
                check(trial, "client 1", expected[place], [output[0] for output in many[place]])
                check(trial, "client 2", values, [output[1] for output in many[place]])


def all_of(trials: list[Trial], pairs: list[Any]) -> tuple[list[Any], list[Any]]:
    """What all trials give, with their first inputs alone and with both inputs at once."""
    ones: list[Any] = []
    many: list[Any] = []
    for trial, (first, second) in zip(trials, pairs, strict=True):
        ones.append(trial.traced(first))
        if first:
            stacked = [jax.numpy.stack(pair) for pair in zip(first, second, strict=True)]
            many.append(jax.vmap(trial.traced)(stacked))
        else:
            many.append([])
    return ones, many


def check(trial: Trial, how: str, expected: Sequence[Any], computed: Sequence[Any]) -> None:
    """Check values, types and shapes of all outputs."""
    shapes = [f"{array.dtype}{[*array.shape]}" for array in trial.arrays]
    place = f"{trial.op} {how} of {shapes} with {trial.sample.attributes}"
    assert len(computed) == len(expected), place
    for wanted, value in zip(expected, computed, strict=True):
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


def each_type(make: Any, dtypes: Sequence[Any], **options: Any) -> Iterator[Sample]:
    """A sample with inputs of each type."""
    for dtype in dtypes:
        yield sample(*make(dtype), **options)
