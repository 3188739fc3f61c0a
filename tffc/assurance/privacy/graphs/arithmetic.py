"""TensorFlow's operations on elements, and their sums and extremes."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tffc.assurance.privacy.graphs import clocks
from tffc.assurance.privacy.graphs.constants import DTYPES
from tffc.assurance.privacy.graphs.table import NodeUse, Outputs, Rule, RuleTable, sizes_of
from tffc.assurance.privacy.quantities import bounds, lines, residues
from tffc.assurance.privacy.quantities.algebra import TRUTH, Algebra
from tffc.assurance.privacy.quantities.quantity import Quantity, Shape
from tffc.assurance.privacy.quantities.shapes import common_shape
from tffc.assurance.privacy.quantities.tensors import SMALL
from tffc.language.dtypes import DType

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
ARITHMETIC.plain(Algebra.greater, "Greater")
ARITHMETIC.plain(lambda algebra, first, second: algebra.greater(second, first), "Less")
ARITHMETIC.plain(Algebra.at_least, "GreaterEqual")
ARITHMETIC.plain(lambda algebra, first, second: algebra.at_least(second, first), "LessEqual")
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


@ARITHMETIC.rule("FloorMod")
def _remainder(use: NodeUse) -> Outputs:
    value, divisor = use.inputs
    number = lines.number_of(divisor)
    is_whole = value.is_integer and common_shape(value, divisor) == value.shape is not None
    if number is not None and number >= 1 and number == int(number) and is_whole:
        return [use.algebra.remainder(value, int(number), 0)]
    remainder = use.algebra.unknown(
        use.inputs, "remainder", shape=common_shape(value, divisor), is_integer=value.is_integer
    )
    modulus = divisor.bounds.exact
    if modulus is None or not value.is_integer or value.sums or remainder.shape != value.shape:
        return [remainder]
    return [dataclasses.replace(remainder, residue=(value, modulus))]


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
    folded = _certain_truth(use)
    if folded is not None:
        return [use.algebra.constant(folded)]
    truth = use.algebra.unknown(
        use.inputs, use.node.op, shape=shape, limits=bounds.between(0.0, 1.0), is_integer=True
    )
    return [dataclasses.replace(truth, is_finiteness=use.node.op == "IsFinite")]


FOLDED = {
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
}
"""Operations on small constants that are carried out."""


def _certain_truth(use: NodeUse) -> Any:
    """Return the truth values of constants, or None if they are not known."""
    contents = [value.content for value in use.inputs]
    if use.node.op not in FOLDED or any(content is None for content in contents):
        return None
    truth = np.asarray(FOLDED[use.node.op](*contents))
    return truth if truth.size <= SMALL else None


@ARITHMETIC.rule("Sigmoid", "Tanh", "Cos", "Sin", "Erf", "Softsign")
def _within_one(use: NodeUse) -> Outputs:
    low = 0.0 if use.node.op == "Sigmoid" else -1.0
    limits = bounds.between(low, 1.0)
    return [use.algebra.unknown(use.inputs, use.node.op, shape=use.inputs[0].shape, limits=limits)]


STEPS = {
    "Round": (-0.5, 0.5),
    "Rint": (-0.5, 0.5),
    "Floor": (-1.0, 0.0),
    "Ceil": (0.0, 1.0),
}
"""What rounding adds to a number, at least and at most."""


@ARITHMETIC.rule(*STEPS)
def _rounded(use: NodeUse) -> Outputs:
    value = use.inputs[0]
    rounded = use.algebra.unknown([value], use.node.op, shape=value.shape)
    if clocks.is_clock(value):
        is_whole = use.node.op == "Floor" and use.node.attr["T"].type == DType.FLOAT64.number
        seed = clocks.steps(use, value, is_word=False) if is_whole else None
        return [dataclasses.replace(rounded, seed=seed)]
    step = STEPS[use.node.op]
    if use.node.op == "Floor":
        rounded = dataclasses.replace(rounded, quotient=residues.rounded_down(value))
    if value.content is not None:
        functions = {"Floor": np.floor, "Ceil": np.ceil}
        return [use.algebra.constant(functions.get(use.node.op, np.rint)(value.content))]
    if value.sums or value.noise:
        return [rounded]
    signal = value
    if value.signal is not None:
        if value.addends is None:
            return [rounded]
        signal, noise = value.addends
        least, most = noise.bounds.interval
        if not math.isfinite(most - least):
            return [rounded]
        step = step[0] + least, step[1] + most
    limits = bounds.add(signal.bounds, bounds.between(*step))
    line = lines.moved(signal, *step)
    if line is not None:
        most = lines.reach(line)
        within = bounds.between(-most, most)
        limits = bounds.bounded((*limits.above, *within.above), (*limits.below, *within.below))
    return [dataclasses.replace(rounded, line=line, bounds=limits, is_whole=True)]


@ARITHMETIC.rule("OneHot")
def _one_hot(use: NodeUse) -> Outputs:
    index, _, on, off = use.inputs
    one_hot = use.algebra.unknown(use.inputs, "one hot", use.node.attr["axis"].i)
    size = sizes_of(use.inputs[1])
    if index.shape != () or size is None or off.bounds.exact != bounds.ZERO:
        return [one_hot]
    most = on.bounds.exact
    return [
        dataclasses.replace(
            one_hot,
            shape=(int(np.prod(size)),),
            bounds=bounds.either(on.bounds, off.bounds),
            length=most if most is not None and most.coefficient > 0 else None,
            is_integer=on.is_integer and off.is_integer,
        )
    ]


@ARITHMETIC.rule("Softmax")
def _softmax(use: NodeUse) -> Outputs:
    value = use.inputs[0]
    shares = use.algebra.unknown([value], "softmax", shape=value.shape, limits=TRUTH)
    is_one = value.shape is not None and len(value.shape) == 1
    return [dataclasses.replace(shares, length=bounds.ONE if is_one else None)]


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
    if use.node.op == "Sum" and value.shape and axes is not None and shape is not None:
        if all(value.shape[axis] == 1 for axis in axes):
            return [algebra.same(value, shape)]
    if value.sums and use.node.op in ("Min", "Max") and value.size:
        return [algebra.some_element(value, f"{use.node.op} {axes}", shape)]
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


@ARITHMETIC.rule("ArgMax", "ArgMin")
def _place_of_extreme(use: NodeUse) -> Outputs:
    value = use.inputs[0]
    axes = _axes(value, use.inputs[1], use.algebra)
    shape = None if axes is None else _reduced(value, axes, False)
    return [use.algebra.unknown(use.inputs, use.node.op, shape=shape, is_integer=True)]


@ARITHMETIC.rule("L2Loss")
def _half_of_squares(use: NodeUse) -> Outputs:
    return [use.algebra.power_sum(use.inputs[0], 2, 0.5)]


# The types for which the rules hold: what they say of real numbers.

OF_ANY_TYPE = frozenset(
    {"Select", "SelectV2", "Greater", "GreaterEqual", "Less", "LessEqual", *TRUTHS}
)
WITHIN_TYPE = frozenset(
    {"Maximum", "Minimum", "ClipByValue", "Relu", "Max", "Sign", "FloorMod", "OneHot", "ArgMax"}
)
"""Operations whose results are among their operands, or small."""

OF_INTEGERS = frozenset({"Add", "AddV2", "Sub", "Mul", "Neg", "Square", "SquaredDifference"})
OF_INTEGERS |= {"AddN", "Abs", "Sum", "Min", "Prod", "Pow"}
"""Operations on integers that compute what they compute of real numbers, if that fits the type."""


INTEGERS_BY_TYPE = frozenset({"Add", "AddV2", "Sub", "FloorMod"})
"""Operations whose operands are known as integers by their type, whatever computed them."""


def _as_integers(value: Quantity) -> Quantity:
    if value.is_integer or value.quotient is not None:
        return value
    return dataclasses.replace(value, is_integer=True)


def _of_reals(rule: Rule) -> Rule:
    """Return a rule that describes a node only as far as its type holds the real numbers."""

    def checked(use: NodeUse) -> Outputs:
        op = use.node.op
        kind = DTYPES.get(use.node.attr["T"].type) if "T" in use.node.attr else None
        if kind is not None and kind.is_integer and op in INTEGERS_BY_TYPE:
            use = use._replace(inputs=[_as_integers(value) for value in use.inputs])
        if op in OF_ANY_TYPE or "T" not in use.node.attr:
            return rule(use)
        if kind is not None and kind.is_floating and kind.size >= 4:
            return rule(use)
        if kind is None or not kind.is_integer or op not in OF_INTEGERS | WITHIN_TYPE:
            return None
        outputs = rule(use)
        if outputs is None or op in WITHIN_TYPE:
            return outputs
        limits = np.iinfo(kind.dtype)
        low, high = float(limits.min), float(limits.max)
        return [_as_seed(use, _wrapped(use, v, low, high), kind) for v in outputs]

    return checked


SHIFTS = {"Add": 1, "AddV2": 1, "Sub": -1}
"""Operations that make another seed of one, and the sign of what they add."""


def _as_seed(use: NodeUse, value: Quantity, kind: DType) -> Quantity:
    """Return a result on integers as the seed that it is, if it is one."""
    sign = SHIFTS.get(use.node.op)
    if sign is None or kind is not DType.INT64:
        return value
    first, second = use.inputs
    seed = clocks.shifted(first, second, sign)
    if seed is None and sign > 0:
        seed = clocks.shifted(second, first, sign)
    return dataclasses.replace(value, seed=seed) if seed is not None else value


def _wrapped(use: NodeUse, value: Quantity, low: float, high: float) -> Quantity:
    """Return integers as a type holds them, which are others if it is too small for them."""
    least, most = value.bounds.interval
    if (low <= least and most <= high) or any(value is each for each in use.inputs):
        return value
    if any(each.sums or each.noise or each.signal for each in use.inputs):
        return value  # Sums over clients, and their noise, are assumed to fit.
    wrapped = use.algebra.unknown(
        use.inputs,
        "wrapped",
        use.node.op,
        shape=value.shape,
        limits=bounds.ANY if value.within else bounds.between(low, high),
        is_integer=True,
    )
    # The magnitude is not larger.
    return dataclasses.replace(
        wrapped,
        within=value.within,
        addends=value.addends,
        # A remainder fits the type, so its digits are right though those of others were lost.
        quotient=value.quotient,
    )


ARITHMETIC.rules.update({name: _of_reals(rule) for name, rule in ARITHMETIC.rules.items()})
