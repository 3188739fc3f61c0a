"""Operations on each element: arithmetic, comparisons, logic and casts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tffc.graphs.node import NodeView
from tffc.runtime.lowering.operations.definition import (
    Array,
    NotLoweredError,
    Operation,
    check_fit,
    definitions,
    flag,
    floating,
    inexact,
    is_known,
    jax,
    jnp,
    library,
    scalar,
    type_of,
)

OPERATIONS: dict[str, Operation] = {}
operation = definitions(OPERATIONS)

SAME_NAME = {
    "Abs": "abs",
    "Acos": "arccos",
    "Acosh": "arccosh",
    "Asin": "arcsin",
    "Asinh": "arcsinh",
    "Atan": "arctan",
    "Atanh": "arctanh",
    "Cos": "cos",
    "Cosh": "cosh",
    "Exp": "exp",
    "Expm1": "expm1",
    "Invert": "invert",
    "IsFinite": "isfinite",
    "IsInf": "isinf",
    "IsNan": "isnan",
    "Log": "log",
    "Log1p": "log1p",
    "LogicalNot": "logical_not",
    "Neg": "negative",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Sqrt": "sqrt",
    "Square": "square",
    "Tan": "tan",
    "Tanh": "tanh",
    "Add": "add",
    "AddV2": "add",
    "Atan2": "arctan2",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
    "Greater": "greater",
    "GreaterEqual": "greater_equal",
    "Less": "less",
    "LessEqual": "less_equal",
    "LogicalAnd": "logical_and",
    "LogicalOr": "logical_or",
    "Maximum": "maximum",
    "Minimum": "minimum",
    "Mul": "multiply",
    "Pow": "power",
    "RealDiv": "true_divide",
    "Sub": "subtract",
}
"""Operations that NumPy and JAX have too, under these names."""


def _of_library(function: str) -> Any:
    def compute(node: NodeView, *inputs: Array) -> Array:
        return getattr(library(*inputs), function)(*inputs)

    return compute


for _name, _function in SAME_NAME.items():
    operation(_name)(_of_library(_function))


@operation("Ceil")
def ceil(node: NodeView, x: Array) -> Array:
    return library(x).ceil(x)


@operation("Floor")
def floor(node: NodeView, x: Array) -> Array:
    return library(x).floor(x)


@operation("Rint", "Round")
def rint(node: NodeView, x: Array) -> Array:
    if not floating(x.dtype):
        # TensorFlow gives zeros on a CPU, and the integers under XLA.
        raise NotLoweredError(f"{node.op} of integers")
    return library(x).rint(x)


@operation("Inv", "Reciprocal")
def reciprocal(node: NodeView, x: Array) -> Array:
    return library(x).true_divide(scalar(1, x), x)


@operation("Rsqrt")
def rsqrt(node: NodeView, x: Array) -> Array:
    if is_known(x):
        return np.true_divide(scalar(1, x), np.sqrt(x))
    return jax.lax.rsqrt(x)


@operation("Sigmoid")
def sigmoid(node: NodeView, x: Array) -> Array:
    if is_known(x):
        return scalar(1, x) / (scalar(1, x) + np.exp(-x))
    return jax.lax.logistic(x)


@operation("Erf")
def erf(node: NodeView, x: Array) -> Array:
    return jax.lax.erf(jnp.asarray(x))


@operation("Erfc")
def erfc(node: NodeView, x: Array) -> Array:
    return jax.lax.erfc(jnp.asarray(x))


@operation("Lgamma")
def lgamma(node: NodeView, x: Array) -> Array:
    return jax.lax.lgamma(jnp.asarray(x))


@operation("AddN")
def add_n(node: NodeView, *inputs: Array) -> Array:
    check_fit(node, len({value.shape for value in inputs}) == 1)
    total = inputs[0]
    for value in inputs[1:]:
        total = total + value
    return total


@operation("SquaredDifference")
def squared_difference(node: NodeView, x: Array, y: Array) -> Array:
    lib = library(x, y)
    difference = lib.subtract(x, y)
    return lib.multiply(lib.conj(difference), difference)


@operation("ClipByValue")
def clip_by_value(node: NodeView, x: Array, least: Array, most: Array) -> Array:
    lib = library(x, least, most)
    return lib.maximum(lib.minimum(x, most), least)


@operation("FloorDiv")
def floor_div(node: NodeView, x: Array, y: Array) -> Array:
    lib = library(x, y)
    if floating(x.dtype):
        return lib.floor(lib.true_divide(x, y))
    return lib.floor_divide(x, y)


@operation("FloorMod")
def floor_mod(node: NodeView, x: Array, y: Array) -> Array:
    lib = library(x, y)
    if not floating(x.dtype):
        return lib.remainder(x, y)
    remainder = lib.fmod(x, y)
    zero = scalar(0, x)
    wrong = (remainder != zero) & ((remainder < zero) != (y < zero))
    return lib.where(wrong, remainder + y, remainder)


@operation("Mod", "TruncateMod")
def truncate_mod(node: NodeView, x: Array, y: Array) -> Array:
    return library(x, y).fmod(x, y)


@operation("TruncateDiv")
def truncate_div(node: NodeView, x: Array, y: Array) -> Array:
    """Divide integers, and round towards zero."""
    lib = library(x, y)
    zero = scalar(0, x)
    quotient = lib.floor_divide(x, y)
    rounded_down = ((x < zero) != (y < zero)) & (lib.fmod(x, y) != zero)
    return quotient + rounded_down.astype(x.dtype)


@operation("Div")
def div(node: NodeView, x: Array, y: Array) -> Array:
    return library(x, y).true_divide(x, y) if inexact(x.dtype) else truncate_div(node, x, y)


def _zero_where(lib: Any, zeros: Array, values: Array) -> Array:
    return lib.where(zeros, scalar(0, values), values)


@operation("DivNoNan")
def div_no_nan(node: NodeView, x: Array, y: Array) -> Array:
    lib = library(x, y)
    return _zero_where(lib, y == scalar(0, y), lib.true_divide(x, y))


@operation("MulNoNan")
def mul_no_nan(node: NodeView, x: Array, y: Array) -> Array:
    lib = library(x, y)
    return _zero_where(lib, y == scalar(0, y), lib.multiply(x, y))


@operation("Xdivy")
def xdivy(node: NodeView, x: Array, y: Array) -> Array:
    lib = library(x, y)
    return _zero_where(lib, x == scalar(0, x), lib.true_divide(x, y))


@operation("Xlogy")
def xlogy(node: NodeView, x: Array, y: Array) -> Array:
    lib = library(x, y)
    return _zero_where(lib, x == scalar(0, x), lib.multiply(x, lib.log(y)))


def _comparable(node: NodeView, x: Array, y: Array) -> bool:
    """Tell whether shapes fit; a node may ask for a plain answer where they do not."""
    if "incompatible_shape_error" not in node.attr or flag(node, "incompatible_shape_error"):
        return True
    sizes = zip(x.shape[::-1], y.shape[::-1], strict=False)
    return all(1 in pair or pair[0] == pair[1] for pair in sizes)


@operation("Equal")
def equal(node: NodeView, x: Array, y: Array) -> Array:
    return library(x, y).equal(x, y) if _comparable(node, x, y) else np.asarray(False)


@operation("NotEqual")
def not_equal(node: NodeView, x: Array, y: Array) -> Array:
    return library(x, y).not_equal(x, y) if _comparable(node, x, y) else np.asarray(True)


@operation("Select")
def select(node: NodeView, condition: Array, x: Array, y: Array) -> Array:
    """Choose whole rows if the condition is a vector."""
    check_fit(node, x.shape == y.shape and condition.shape in ((), x.shape[:1], x.shape))
    if condition.ndim == 1 and x.ndim > 1:
        condition = condition.reshape((-1,) + (1,) * (x.ndim - 1))
    return library(condition, x, y).where(condition, x, y)


@operation("SelectV2")
def select_v2(node: NodeView, condition: Array, x: Array, y: Array) -> Array:
    return library(condition, x, y).where(condition, x, y)


@operation("Cast")
def cast(node: NodeView, x: Array) -> Array:
    target = type_of(node, "DstT")
    if flag(node, "Truncate"):
        raise NotLoweredError("Cast that cuts digits off instead of rounding")
    if np.dtype(object) in (target, x.dtype):
        raise NotLoweredError("Cast of strings")
    if x.dtype.kind == "c" and target.kind != "c":
        x = library(x).real(x)
    if target == np.dtype(bool):
        return library(x).not_equal(x, scalar(0, x))
    return x.astype(target)
