"""TensorFlow's operations on elements, and their sums and extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tffc.assurance.privacy import bounds
from tffc.assurance.privacy.algebra import Algebra
from tffc.assurance.privacy.quantities import Quantity, Shape
from tffc.assurance.privacy.shapes import common_shape
from tffc.assurance.privacy.table import NodeUse, Outputs, RuleTable, sizes_of

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


ARITHMETIC = RuleTable()
"""The rules of this module."""


# Arithmetic.

ARITHMETIC.plain(Algebra.add, "Add", "AddV2")
ARITHMETIC.plain(Algebra.subtract, "Sub")
ARITHMETIC.plain(Algebra.multiply, "Mul", "MulNoNan")
ARITHMETIC.plain(Algebra.divide, "RealDiv")
ARITHMETIC.plain(Algebra.divide_or_zero, "DivNoNan")
ARITHMETIC.plain(Algebra.negative, "Neg")
ARITHMETIC.plain(Algebra.square, "Square")
ARITHMETIC.plain(Algebra.root, "Sqrt")
ARITHMETIC.plain(Algebra.reciprocal, "Reciprocal", "Inv")
ARITHMETIC.plain(Algebra.absolute, "Abs")
ARITHMETIC.plain(Algebra.sign, "Sign")
ARITHMETIC.plain(Algebra.exponential, "Exp")
ARITHMETIC.plain(Algebra.logarithm, "Log")
ARITHMETIC.plain(Algebra.maximum, "Maximum")
ARITHMETIC.plain(Algebra.minimum, "Minimum")
ARITHMETIC.plain(Algebra.choice, "SelectV2")
ARITHMETIC.plain(Algebra.greater, "Greater", "GreaterEqual")
ARITHMETIC.plain(lambda algebra, first, second: algebra.greater(second, first), "Less", "LessEqual")
ARITHMETIC.plain(Algebra.negation, "LogicalNot")
ARITHMETIC.plain(lambda algebra, value: algebra.reciprocal(algebra.root(value)), "Rsqrt")
ARITHMETIC.plain(lambda algebra, value: algebra.logarithm(value, 1.0), "Log1p")
ARITHMETIC.plain(lambda algebra, value: algebra.maximum(value, algebra.constant(0.0)), "Relu")
ARITHMETIC.plain(
    lambda algebra, value, low, high: algebra.maximum(algebra.minimum(value, high), low),
    "ClipByValue",
)
ARITHMETIC.plain(
    lambda algebra, first, second: algebra.square(algebra.subtract(first, second)),
    "SquaredDifference",
)


@ARITHMETIC.rule("Select")
def _select(use: NodeUse) -> Outputs:
    condition, first, second = use.inputs
    is_vector = condition.shape is None or len(condition.shape) == 1
    if is_vector and condition.shape != first.shape:
        return None  # A vector of conditions is about rows here, and of columns in SelectV2.
    return [use.algebra.choice(condition, first, second)]


@ARITHMETIC.rule("AddN")
def _add_all(use: NodeUse) -> Outputs:
    total = use.inputs[0]
    for value in use.inputs[1:]:
        total = use.algebra.add(total, value)
    return [total]


@ARITHMETIC.rule("Pow")
def _power(use: NodeUse) -> Outputs:
    value, exponent = use.inputs
    if exponent.content is None or exponent.size != 1:
        return None
    number = float(np.ravel(exponent.content)[0])
    if number == 2:
        return [use.algebra.square(value)]
    if number == 0.5:
        return [use.algebra.root(value)]
    if number == 1:
        return [value]
    return None


TRUTHS = ("Equal", "NotEqual", "LogicalAnd", "LogicalOr", "IsFinite", "IsNan", "IsInf")


@ARITHMETIC.rule(*TRUTHS, "All", "Any")
def _truth(use: NodeUse) -> Outputs:
    shape = common_shape(*use.inputs) if use.node.op in TRUTHS else None
    return [
        use.algebra.unknown(
            use.inputs, use.node.op, shape=shape, limits=bounds.between(0.0, 1.0), is_integer=True
        )
    ]


@ARITHMETIC.rule("Sigmoid", "Tanh", "Cos", "Sin", "Erf", "Softsign")
def _within_one(use: NodeUse) -> Outputs:
    low = 0.0 if use.node.op == "Sigmoid" else -1.0
    limits = bounds.between(low, 1.0)
    return [use.algebra.unknown(use.inputs, use.node.op, shape=use.inputs[0].shape, limits=limits)]


# Sums and extremes of elements.


def _axes(value: Quantity, axes: Quantity, algebra: Algebra) -> tuple[int, ...] | None:
    """Return the axes that a reduction takes, if they and the shape are known."""
    listed = sizes_of(axes)
    if value.shape is None or listed is None:
        return None
    rank = len(value.shape)
    return tuple(sorted({axis % rank for axis in listed})) if rank else ()


def _reduced(value: Quantity, axes: tuple[int, ...], keeps: bool) -> Shape:
    assert value.shape is not None
    return tuple(
        1 if axis in axes else length
        for axis, length in enumerate(value.shape)
        if keeps or axis not in axes
    )


def _keeps(node: NodeView) -> bool:
    return "keep_dims" in node.attr and bool(node.attr["keep_dims"].b)


@ARITHMETIC.rule("Sum", "Mean", "Max", "Prod", "Min")
def _reduce(use: NodeUse) -> Outputs:
    value, algebra = use.inputs[0], use.algebra
    is_all = use.inputs[1].term == algebra.term("all axes", value.term)
    axes = _axes(value, use.inputs[1], algebra)
    if is_all and not _keeps(use.node):
        shape: Shape | None = ()
    elif axes is not None:
        shape, is_all = _reduced(value, axes, _keeps(use.node)), len(axes) == len(value.shape or ())
    else:
        return None
    if value.content is not None and axes is not None:
        functions = {"Sum": np.sum, "Mean": np.mean, "Max": np.max, "Min": np.min, "Prod": np.prod}
        folded = functions[use.node.op](value.content, axis=axes, keepdims=_keeps(use.node))
        return [algebra.constant(np.asarray(folded, value.content.dtype))]
    if not is_all or use.node.op in ("Prod", "Min"):
        return [algebra.unknown(use.inputs, use.node.op, _keeps(use.node), shape=shape)]
    if use.node.op == "Max":
        return [algebra.largest(value, shape)]
    total = algebra.total(value, shape)
    if use.node.op == "Mean":
        if not value.size:
            return None
        return [algebra.multiply(total, algebra.constant(1.0 / value.size))]
    return [total]


@ARITHMETIC.rule("L2Loss")
def _half_of_squares(use: NodeUse) -> Outputs:
    return [use.algebra.power_sum(use.inputs[0], 2, 0.5)]
