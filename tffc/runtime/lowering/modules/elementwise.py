"""Operations on each element: arithmetic, comparisons, bits and casts."""

from __future__ import annotations

from tffc.runtime.lowering.modules.definition import OF_TRUTHS, OperationCall, Translation
from tffc.runtime.lowering.operations.definition import Array, lax

SAME = {
    "abs": "abs",
    "add": "add",
    "and": "bitwise_and",
    "atan2": "atan2",
    "cbrt": "cbrt",
    "ceil": "ceil",
    "clamp": "clamp",
    "complex": "complex",
    "cosine": "cos",
    "count_leading_zeros": "clz",
    "divide": "div",
    "exponential": "exp",
    "exponential_minus_one": "expm1",
    "floor": "floor",
    "imag": "imag",
    "is_finite": "is_finite",
    "log": "log",
    "log_plus_one": "log1p",
    "logistic": "logistic",
    "maximum": "max",
    "minimum": "min",
    "multiply": "mul",
    "negate": "neg",
    "not": "bitwise_not",
    "or": "bitwise_or",
    "popcnt": "population_count",
    "power": "pow",
    "real": "real",
    "remainder": "rem",
    "rsqrt": "rsqrt",
    "select": "select",
    "shift_left": "shift_left",
    "shift_right_arithmetic": "shift_right_arithmetic",
    "shift_right_logical": "shift_right_logical",
    "sign": "sign",
    "sine": "sin",
    "sqrt": "sqrt",
    "subtract": "sub",
    "tanh": "tanh",
    "xor": "bitwise_xor",
}
"""Operations that `jax.lax` has too, under these names."""

WHOLE = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh")
"""Functions that JAX writes as composites, which XLA computes by code of its own, with other last
digits than what they are composed of."""


def _same(name: str) -> Translation:
    def translate(call: OperationCall, *inputs: Array) -> Array:
        if call.get("result_accuracy", {"mode": "DEFAULT"})["mode"] != "DEFAULT":
            raise call.refusal("has an accuracy of its own")
        return getattr(lax, OF_TRUTHS.get(name, name) if call.dtype.kind == "b" else name)(*inputs)

    return translate


def _compare(call: OperationCall, one: Array, other: Array) -> Array:
    if call.get("compare_type") == "TOTALORDER":
        raise call.refusal("is in a total order")
    return getattr(lax, call["comparison_direction"].lower())(one, other)


def _convert(call: OperationCall, array: Array) -> Array:
    if array.dtype.kind == "c" != call.dtype.kind:
        raise call.refusal("drops the imaginary parts of numbers")
    return lax.convert_element_type(array, call.dtype)


def _bitcast(call: OperationCall, array: Array) -> Array:
    return lax.bitcast_convert_type(array, call.dtype)


def _round_even(call: OperationCall, array: Array) -> Array:
    return lax.round(array, lax.RoundingMethod.TO_NEAREST_EVEN)


def _round_away(call: OperationCall, array: Array) -> Array:
    return lax.round(array, lax.RoundingMethod.AWAY_FROM_ZERO)


def _reduce_precision(call: OperationCall, array: Array) -> Array:
    return lax.reduce_precision(array, call["exponent_bits"], call["mantissa_bits"])


OPERATIONS: dict[str, Translation] = {
    **{f"chlo.{name}": _same(name) for name in WHOLE},
    **{f"stablehlo.{name}": _same(function) for name, function in SAME.items()},
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.compare": _compare,
    "stablehlo.convert": _convert,
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.round_nearest_afz": _round_away,
    "stablehlo.round_nearest_even": _round_even,
}
