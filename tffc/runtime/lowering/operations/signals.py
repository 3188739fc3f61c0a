"""Complex numbers, Fourier transforms, shifts of bits, and the largest elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.operations.definition import (
    Array,
    Operation,
    definitions,
    jnp,
    lax,
    library,
    number,
    numbers,
    type_of,
)

OPERATIONS: dict[str, Operation] = {}
operation = definitions(OPERATIONS)


@operation("Complex")
def complex_of(node: NodeView, real: Array, imaginary: Array) -> Array:
    dtype = type_of(node, "Tout", np.complex64)
    return (real + library(real, imaginary).asarray(1j, dtype) * imaginary).astype(dtype)


@operation("Real")
def real(node: NodeView, x: Array) -> Array:
    return library(x).real(x)


@operation("Imag")
def imaginary(node: NodeView, x: Array) -> Array:
    return library(x).imag(x)


@operation("Conj")
def conjugate(node: NodeView, x: Array) -> Array:
    return library(x).conjugate(x)


@operation("ComplexAbs")
def magnitude(node: NodeView, x: Array) -> Array:
    return library(x).abs(x)


def _transform(name: str, axes: int) -> None:
    @operation(name)
    def transform(node: NodeView, x: Array) -> Array:
        function = jnp.fft.ifftn if name.startswith("I") else jnp.fft.fftn
        return function(x, axes=tuple(range(-axes, 0))).astype(x.dtype)


for _name, _axes in (("FFT", 1), ("IFFT", 1), ("FFT2D", 2), ("IFFT2D", 2)):
    _transform(_name, _axes)


@operation("RFFT")
def real_transform(node: NodeView, x: Array, length: Array) -> Array:
    (count,) = numbers(node, length, "a length")
    return jnp.fft.rfft(x, count).astype(type_of(node, "Tcomplex", np.complex64))


@operation("IRFFT")
def inverse_real_transform(node: NodeView, x: Array, length: Array) -> Array:
    (count,) = numbers(node, length, "a length")
    return jnp.fft.irfft(x, count).astype(type_of(node, "Treal", np.float32))


def _shifted(x: Array, by: Array, shift: Any) -> Array:
    """Return bits shifted by at least nothing, and at most all but one."""
    most = np.asarray(8 * x.dtype.itemsize - 1, by.dtype)
    return shift(x, library(x, by).clip(by, np.asarray(0, by.dtype), most))


@operation("LeftShift")
def left(node: NodeView, x: Array, y: Array) -> Array:
    return _shifted(x, y, library(x, y).left_shift)


@operation("RightShift")
def right(node: NodeView, x: Array, y: Array) -> Array:
    return _shifted(x, y, library(x, y).right_shift)


@operation("TopKV2")
def top(node: NodeView, x: Array, k: Array) -> list[Array]:
    values, indices = lax.top_k(jnp.asarray(x), number(node, k, "a number"))
    return [values, indices.astype(type_of(node, "index_type", np.int32))]
