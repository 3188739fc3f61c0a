"""Activations of neural networks, and the gradients of elementwise operations."""

from __future__ import annotations

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.operations.definition import (
    Array,
    Operation,
    definitions,
    jnp,
    library,
    scalar,
)

OPERATIONS: dict[str, Operation] = {}
operation = definitions(OPERATIONS)

SELU_SCALE = 1.0507009873554804934193349852946
SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


@operation("Relu")
def relu(node: NodeView, x: Array) -> Array:
    return library(x).maximum(x, scalar(0, x))


@operation("Relu6")
def relu6(node: NodeView, x: Array) -> Array:
    lib = library(x)
    return lib.minimum(lib.maximum(x, scalar(0, x)), scalar(6, x))


@operation("Elu")
def elu(node: NodeView, x: Array) -> Array:
    lib = library(x)
    return lib.where(x < scalar(0, x), lib.expm1(x), x)


@operation("Selu")
def selu(node: NodeView, x: Array) -> Array:
    lib = library(x)
    negative = scalar(SELU_SCALE_ALPHA, x) * lib.expm1(x)
    return lib.where(x < scalar(0, x), negative, scalar(SELU_SCALE, x) * x)


@operation("LeakyRelu")
def leaky_relu(node: NodeView, x: Array) -> Array:
    return library(x).where(x > scalar(0, x), x, scalar(_alpha(node), x) * x)


def _alpha(node: NodeView) -> float:
    return float(node.attr["alpha"].f) if "alpha" in node.attr else 0.2


@operation("Softplus")
def softplus(node: NodeView, x: Array) -> Array:
    lib = library(x)
    # Beyond the threshold, exp(x) or 1 does not change the sum of the two.
    threshold = scalar(np.log(float(jnp.finfo(x.dtype).eps)) + 2, x)
    power = lib.exp(x)
    small = lib.where(x < threshold, power, lib.log1p(power))
    return lib.where(x > -threshold, x, small)


@operation("Softsign")
def softsign(node: NodeView, x: Array) -> Array:
    return x / (library(x).abs(x) + scalar(1, x))


@operation("ReluGrad")
def relu_grad(node: NodeView, gradient: Array, x: Array) -> Array:
    lib = library(gradient, x)
    return lib.where(x > scalar(0, x), gradient, scalar(0, gradient))


@operation("Relu6Grad")
def relu6_grad(node: NodeView, gradient: Array, x: Array) -> Array:
    lib = library(gradient, x)
    inside = (x > scalar(0, x)) & (x < scalar(6, x))
    return lib.where(inside, gradient, scalar(0, gradient))


@operation("EluGrad")
def elu_grad(node: NodeView, gradient: Array, y: Array) -> Array:
    lib = library(gradient, y)
    return lib.where(y < scalar(0, y), (y + scalar(1, y)) * gradient, gradient)


@operation("SeluGrad")
def selu_grad(node: NodeView, gradient: Array, y: Array) -> Array:
    lib = library(gradient, y)
    negative = gradient * (y + scalar(SELU_SCALE_ALPHA, y))
    return lib.where(y < scalar(0, y), negative, gradient * scalar(SELU_SCALE, y))


@operation("LeakyReluGrad")
def leaky_relu_grad(node: NodeView, gradient: Array, x: Array) -> Array:
    lib = library(gradient, x)
    return lib.where(x > scalar(0, x), gradient, scalar(_alpha(node), x) * gradient)


@operation("SoftplusGrad")
def softplus_grad(node: NodeView, gradient: Array, x: Array) -> Array:
    return gradient / (library(gradient, x).exp(-x) + scalar(1, x))


@operation("SoftsignGrad")
def softsign_grad(node: NodeView, gradient: Array, x: Array) -> Array:
    lib = library(gradient, x)
    return gradient / lib.square(lib.abs(x) + scalar(1, x))


@operation("SigmoidGrad")
def sigmoid_grad(node: NodeView, y: Array, gradient: Array) -> Array:
    return gradient * y * (scalar(1, y) - y)


@operation("TanhGrad")
def tanh_grad(node: NodeView, y: Array, gradient: Array) -> Array:
    return gradient * (scalar(1, y) - y * y)


@operation("InvGrad", "ReciprocalGrad")
def reciprocal_grad(node: NodeView, y: Array, gradient: Array) -> Array:
    y = library(y, gradient).conj(y)
    return -gradient * y * y


@operation("SqrtGrad")
def sqrt_grad(node: NodeView, y: Array, gradient: Array) -> Array:
    return scalar(0.5, y) * gradient / library(y, gradient).conj(y)


@operation("RsqrtGrad")
def rsqrt_grad(node: NodeView, y: Array, gradient: Array) -> Array:
    y = library(y, gradient).conj(y)
    return scalar(-0.5, y) * gradient * y * y * y
