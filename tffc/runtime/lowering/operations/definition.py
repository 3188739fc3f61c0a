"""What an operation is in JAX, and the two libraries that compute it.

An input is an array of NumPy if its values are known while JAX traces, and one of JAX otherwise.
Where shapes are computed, a result of known inputs must be known too.  So most operations are
written once, for the library that `library` returns.

Contractions leave their precision to `jax.default_matmul_precision`, and 64-bit types need
`jax.enable_x64(True)`; both are contexts of the caller.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tffc.graphs.node import NodeView
from tffc.language.dtypes import BY_NUMBER
from tffc.runtime.frameworks.jax.hlo import load_jax
from tffc.runtime.lowering.errors import NotLoweredError

jax: Any = load_jax()
jnp: Any = jax.numpy
lax: Any = jax.lax

Array: TypeAlias = Any
"""An array of NumPy or JAX, or what stands for one while JAX traces."""

Operation: TypeAlias = Callable[[NodeView, Sequence[Array]], Sequence[Array]]
"""A function of a node and all its inputs that returns all its outputs in order."""

FOLDED_ELEMENTS = 1 << 16
"""Results with more elements are computed when the program runs, even from known inputs: as
constants, they would make it large."""


def definitions(table: dict[str, Operation]) -> Callable[..., Callable[..., Any]]:
    """Return a decorator that puts a function into a table under names of operations.

    The function takes a node and then each input; it returns an output, or a list of outputs.
    """

    def named(*names: str) -> Callable[..., Any]:
        def define(function: Callable[..., Any]) -> Callable[..., Any]:
            operation = _operation(function)
            for name in names:
                table[name] = operation
            return function

        return define

    return named


def _operation(function: Callable[..., Any]) -> Operation:
    @functools.wraps(function)
    def operation(node: NodeView, inputs: Sequence[Array]) -> Sequence[Array]:
        # NumPy warns of what TensorFlow computes silently, such as 1 / 0.
        with np.errstate(all="ignore"):
            outputs = function(node, *(_array(value) for value in inputs))
        outputs = outputs if isinstance(outputs, list) else [outputs]
        return [_array(output) for output in outputs]

    return operation


def _array(value: Array) -> Array:
    """Return an array of NumPy for its scalars, which are no arrays."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def is_known(value: Array) -> bool:
    """Tell whether the values of an array are known while JAX traces."""
    return isinstance(value, (np.ndarray, np.generic))


def library(*inputs: Array) -> Any:
    """Return NumPy if it knows all these arrays, and otherwise JAX's version of it."""
    return np if all(is_known(value) for value in inputs) else jnp


def library_for(size: int, *inputs: Array) -> Any:
    """Return the library for a result of so many elements."""
    return library(*inputs) if size <= FOLDED_ELEMENTS else jnp


def known(node: NodeView, value: Array, role: str) -> np.ndarray:
    """Return an input whose values decide about shapes; `role` says what it is.

    Raises:
      NotLoweredError: its values are known only when the program runs.
    """
    if not is_known(value):
        raise NotLoweredError(f"{node.op} of {role} known only when it runs")
    return np.asarray(value)


def numbers(node: NodeView, value: Array, role: str) -> tuple[int, ...]:
    """Return the integers of an input whose values decide about shapes, as `known`."""
    return tuple(int(item) for item in known(node, value, role).reshape(-1))


def number(node: NodeView, value: Array, role: str) -> int:
    """Return the one integer of such an input, as `known`."""
    return int(known(node, value, role).reshape(()))


def check_fit(node: NodeView, fits: bool) -> None:
    """Check that inputs fit together as TensorFlow asks; NumPy and JAX would stretch them.

    Raises:
      NotLoweredError: they do not.
    """
    if not fits:
        raise NotLoweredError(f"{node.op} of inputs whose shapes do not fit")


def type_of(node: NodeView, attribute: str, default: Any = None) -> np.dtype:
    """Return the element type that an attribute of a node names.

    Raises:
      NotLoweredError: it is none that programs have, such as a quantized one.
    """
    if attribute not in node.attr and default is not None:
        return np.dtype(default)
    element = BY_NUMBER.get(node.attr[attribute].type)
    if element is None:
        raise NotLoweredError(f"{node.op} of elements of type {node.attr[attribute].type}")
    return element.dtype


def flag(node: NodeView, attribute: str) -> bool:
    """Return a boolean attribute, which is false where a node does not have it."""
    return attribute in node.attr and bool(node.attr[attribute].b)


def integer(node: NodeView, attribute: str, default: int = 0) -> int:
    """Return an integer attribute."""
    return int(node.attr[attribute].i) if attribute in node.attr else default


def text(node: NodeView, attribute: str, default: str = "") -> str:
    """Return a text attribute."""
    return node.attr[attribute].s.decode() if attribute in node.attr else default


def floating(dtype: Any) -> bool:
    """Tell whether elements are real floating-point numbers, bfloat16 included."""
    return bool(jnp.issubdtype(dtype, jnp.floating))


def inexact(dtype: Any) -> bool:
    """Tell whether elements are floating-point numbers, real or complex."""
    return bool(jnp.issubdtype(dtype, jnp.inexact))


def scalar(value: float, like: Array) -> Array:
    """Return a number as an array of the element type of another, so that it stays that type."""
    return np.asarray(value, like.dtype)
