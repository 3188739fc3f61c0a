"""TensorFlow's operations by value."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tffc.assurance.privacy.graphs.constants import DTYPES
from tffc.assurance.privacy.graphs.random_numbers import WIDEST
from tffc.assurance.privacy.quantities import combinations
from tffc.assurance.privacy.quantities.combinations import Combination
from tffc.assurance.privacy.quantities.quantity import Shape
from tffc.assurance.privacy.quantities.seeds import COARSEST, FINEST, LARGEST
from tffc.assurance.privacy.unrolled.values import (
    MOST_ELEMENTS,
    UNKNOWN,
    Listed,
    NormalDraws,
    SeedKey,
    SeedVector,
    Time,
)
from tffc.graphs.body import Body
from tffc.graphs.operations.effects import Effect, effect_of
from tffc.language.dtypes import DType

if TYPE_CHECKING:
    from tffc.graphs.node import NodeView


class ValueUse(NamedTuple):
    """A node that is applied to values."""

    draws: NormalDraws
    node: NodeView
    inputs: list[Any]
    body: Body


Values = list[Any] | None
VALUES: dict[str, Callable[[ValueUse], Values]] = {}
"""The rules by the names of operations; None, or a value that is not known, follows no further."""

Rule = Callable[[ValueUse], Values]


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Return a decorator that enters a rule under the names of its operations."""

    def enter(function: Rule) -> Rule:
        VALUES.update(dict.fromkeys(names, function))
        return function

    return enter


def _are_known(values: list[Any]) -> bool:
    return all(isinstance(value, np.ndarray) for value in values)


def _number(value: Any) -> int:
    """Return an integer without dimensions.

    Raises:
      TypeError: it is not known, or something else.
    """
    if not isinstance(value, np.ndarray) or value.size != 1:
        raise TypeError("no number")
    return int(value.ravel()[0])


def _sizes(value: Any) -> tuple[int, ...]:
    """Return the integers of a vector, or of a number.

    Raises:
      TypeError: they are not known.
    """
    if not isinstance(value, np.ndarray):
        raise TypeError("no sizes")
    return tuple(int(each) for each in value.ravel())


def _check_size(count: int) -> None:
    """Check the number of elements of a result before there is one.

    Raises:
      ValueError: there are too many.
    """
    if not 0 <= count <= MOST_ELEMENTS:
        raise ValueError("too many elements")


# Numbers.

PLAIN: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "AddV2": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "RealDiv": np.divide,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Pow": np.power,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "LogicalNot": np.logical_not,
    "Neg": np.negative,
    "Abs": np.abs,
    "Sqrt": np.sqrt,
    "Square": np.square,
    "Floor": np.floor,
    "LeftShift": np.left_shift,
    "RightShift": np.right_shift,
    "BitwiseAnd": np.bitwise_and,
}


@rule(*PLAIN)
def _plain(use: ValueUse) -> Values:
    op = use.node.op
    if not _are_known(use.inputs):
        return _of_noise(use)
    _check_size(math.prod(np.broadcast_shapes(*(value.shape for value in use.inputs))))
    is_whole = all(value.dtype.kind in "iu" for value in use.inputs)
    if op in ("FloorDiv", "FloorMod") and not (is_whole and use.inputs[1].all()):
        return None
    if op == "Pow" and is_whole:
        return None
    result = np.asarray(PLAIN[op](*use.inputs))
    # Integers that overflow are not followed.
    if result.dtype.kind in "iu" and op in ("Add", "AddV2", "Sub", "Mul", "LeftShift", "Square"):
        wide = PLAIN[op](*(value.astype(object) for value in use.inputs))
        if not np.array_equal(wide, result.astype(object)):
            return None
    return [result]


def _of_noise(use: ValueUse) -> Values:
    """Return arithmetic on noise, seeds and clocks."""
    op = use.node.op
    first, *others = use.inputs
    second = others[0] if others else None
    if isinstance(first, (Time, SeedVector)) or isinstance(second, (Time, SeedVector)):
        return _of_seeds(op, first, second)
    if not all(isinstance(value, (np.ndarray, Combination)) for value in use.inputs):
        return None
    assert op == "Neg" or second is not None
    minus = np.float64(-1.0).reshape(())
    if op == "Neg" and isinstance(first, Combination):
        return [combinations.scaled(first, minus)]
    if op in ("Add", "AddV2"):
        return [combinations.added(first, second)]
    if op == "Sub":
        if isinstance(second, Combination):
            second = combinations.scaled(second, minus)
        return [combinations.added(first, second)]
    if op == "Mul":
        for value, factor in ((first, second), (second, first)):
            if isinstance(value, Combination) and isinstance(factor, np.ndarray):
                return [combinations.scaled(value, factor)]
        return None
    if op == "RealDiv" and isinstance(first, Combination) and isinstance(second, np.ndarray):
        return [combinations.scaled(first, 1.0 / second.astype(float))]
    return None


# Clocks and seeds.


def _of_seeds(op: str, first: Any, second: Any) -> Values:
    if isinstance(first, Time) and op == "Floor":
        return [_steps(first, is_word=False)]
    if op == "Mul":
        if isinstance(second, Time):
            first, second = second, first
        if isinstance(first, Time) and isinstance(second, np.ndarray) and second.shape == ():
            scale = first.scale * float(second)
            fits = 1.0 <= abs(scale) <= FINEST
            return [dataclasses.replace(first, scale=scale)] if fits else None
        return None
    sign = {"Add": 1, "AddV2": 1, "Sub": -1}.get(op)
    if sign == 1 and isinstance(second, SeedVector):
        first, second = second, first
    if sign is None or not isinstance(first, SeedVector) or not isinstance(second, np.ndarray):
        return None
    if not first.is_word or second.dtype != np.int64:
        return None
    if np.broadcast_shapes(first.offsets.shape, second.shape) != first.offsets.shape:
        return None
    offsets = first.offsets + sign * second
    if abs(offsets).max() > LARGEST * LARGEST // 4 or abs(second).max() > LARGEST:
        return None
    return [dataclasses.replace(first, offsets=offsets)]


def _steps(time: Time, *, is_word: bool) -> Any:
    if abs(time.scale) < COARSEST:
        return UNKNOWN
    return SeedVector(time.reading, np.zeros((), np.int64), is_word)


@rule("Timestamp")
def _time(use: ValueUse) -> Values:
    draws = use.draws
    if not draws.has_secret_seeds:
        return None
    text = (
        f"the time that Timestamp reads in {draws.place} cannot be guessed, and is never the same "
        "twice"
    )
    draws.assumptions[text] = None
    return [Time(draws.source(), 1.0)]


@rule("RandomUniformInt")
def _integers(use: ValueUse) -> Values:
    shape, low, high = _sizes(use.inputs[0]), _number(use.inputs[1]), _number(use.inputs[2])
    draws = use.draws
    is_wide = high - low >= WIDEST and len(shape) == 1 and shape[0] >= 2
    is_word = use.node.attr["Tout"].type == DType.INT64.number
    if not (draws.has_secret_seeds and is_wide and is_word):
        return None
    if effect_of(use.node, use.body.nodes) is not Effect.RANDOM:
        return None
    return [SeedVector(draws.source(), np.zeros(shape, np.int64))]


@rule("StatelessRandomGetKeyCounter")
def _key(use: ValueUse) -> Values:
    (seed,) = use.inputs
    if not isinstance(seed, SeedVector) or not seed.is_word or seed.offsets.shape != (2,):
        return None
    return [SeedKey(seed, 0), SeedKey(seed, 1)]


@rule("StatelessRandomNormal", "StatelessRandomNormalV2")
def _normal_of_seed(use: ValueUse) -> Values:
    shape, key, *rest = use.inputs
    method = ""
    if isinstance(key, SeedKey) and len(rest) == 2:
        counter, algorithm = rest
        is_pair = isinstance(counter, SeedKey) and counter.seed is key.seed
        if not is_pair or (key.port, counter.port) != (0, 1):
            return None
        seed, method = key.seed, str(_number(algorithm))
    elif isinstance(key, SeedVector) and not rest:
        seed = key
        if not seed.is_word or seed.offsets.shape != (2,):
            return None
    else:
        return None
    kind = DTYPES[use.node.attr["dtype"].type]
    if not kind.is_floating or kind.size < 4:
        return None
    how = f"{use.node.op} {method} {kind.number}"
    return [use.draws.from_seed(seed, _sizes(shape), how)]


@rule("RandomStandardNormal")
def _normal(use: ValueUse) -> Values:
    kind = DTYPES[use.node.attr["dtype"].type]
    is_drawn = effect_of(use.node, use.body.nodes) is Effect.RANDOM
    if not is_drawn or not kind.is_floating or kind.size < 4:
        return None
    return [use.draws.fresh(_sizes(use.inputs[0]))]


# The same elements, and parts of them.


@rule("Identity", "IdentityN", "StopGradient", "PreventGradient", "Snapshot", "EnsureShape")
def _identity(use: ValueUse) -> Values:
    return use.inputs


@rule("Cast")
def _cast(use: ValueUse) -> Values:
    (value,) = use.inputs
    source, kind = DTYPES[use.node.attr["SrcT"].type], DTYPES[use.node.attr["DstT"].type]
    if kind is source:
        return [value]
    if isinstance(value, Combination):
        return [value] if kind.is_floating and kind.size >= 4 else None
    is_word = kind is DType.INT64 and source is DType.FLOAT64
    if isinstance(value, Time):
        return [_steps(value, is_word=True)] if is_word else None
    if isinstance(value, SeedVector):
        return [dataclasses.replace(value, is_word=True)] if is_word else None
    if not isinstance(value, np.ndarray):
        return None
    if source.is_floating and kind.is_integer:
        limits = np.iinfo(kind.dtype)
        whole = np.trunc(value)
        if not ((whole >= limits.min) & (whole <= limits.max) & (abs(whole) < 2**53)).all():
            return None
    if (
        source.is_integer
        and kind.is_integer
        and not np.array_equal(value.astype(kind.dtype), value)
    ):
        return None
    return [value.astype(kind.dtype)]


@rule("Shape")
def _shape(use: ValueUse) -> Values:
    shape = _shape_of(use.inputs[0])
    if shape is None:
        return None
    return [np.array(shape, _kind_of_sizes(use))]


def _kind_of_sizes(use: ValueUse) -> Any:
    return DTYPES[use.node.attr["out_type"].type].dtype if "out_type" in use.node.attr else np.int32


@rule("Size")
def _size(use: ValueUse) -> Values:
    shape = _shape_of(use.inputs[0])
    return None if shape is None else [np.array(int(np.prod(shape)), _kind_of_sizes(use))]


@rule("Rank")
def _rank(use: ValueUse) -> Values:
    shape = _shape_of(use.inputs[0])
    return None if shape is None else [np.array(len(shape), np.int32)]


def _shape_of(value: Any) -> Shape | None:
    if isinstance(value, (np.ndarray, Combination)):
        return value.shape
    return value.offsets.shape if isinstance(value, SeedVector) else None


@rule("Reshape")
def _reshape(use: ValueUse) -> Values:
    value, target = use.inputs[0], list(_sizes(use.inputs[1]))
    shape = _shape_of(value)
    if shape is None or isinstance(value, SeedVector):
        return None
    if -1 in target:
        rest = int(np.prod([length for length in target if length >= 0]))
        target[target.index(-1)] = int(np.prod(shape)) // rest
    if isinstance(value, Combination):
        return [combinations.reshaped(value, tuple(target))]
    return [value.reshape(target)]


@rule("ExpandDims")
def _expand(use: ValueUse) -> Values:
    value, axis = use.inputs[0], _number(use.inputs[1])
    if isinstance(value, Combination):
        return [combinations.reshaped(value, (1, *value.shape))] if axis == 0 else None
    return [np.expand_dims(value, axis)] if isinstance(value, np.ndarray) else None


@rule("Squeeze")
def _squeeze(use: ValueUse) -> Values:
    (value,) = use.inputs
    axes = tuple(use.node.attr["squeeze_dims"].list.i)
    if isinstance(value, Combination):
        is_first = axes == (0,) and value.outer[:1] == (1,)
        return [combinations.reshaped(value, value.shape[1:])] if is_first else None
    return [np.squeeze(value, axes or None)] if isinstance(value, np.ndarray) else None


MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@rule("StridedSlice")
def _slice(use: ValueUse) -> Values:
    value, *limits = use.inputs
    begin, end, ellipsis, new, shrink = (
        use.node.attr[name].i if name in use.node.attr else 0 for name in MASKS
    )
    if ellipsis or new:
        return None
    index: list[Any] = []
    for axis, (low, high, step) in enumerate(zip(*map(_sizes, limits), strict=True)):
        bit = 1 << axis
        if shrink & bit:
            index.append(low)
            continue
        bounds = (None if begin & bit else low), (None if end & bit else high)
        index.append(slice(*bounds, None if step == 1 else step))
    if isinstance(value, Combination):
        return [combinations.part(value, index)]
    return [np.asarray(value[tuple(index)])] if isinstance(value, np.ndarray) else None


@rule("Pack")
def _pack(use: ValueUse) -> Values:
    axis = use.node.attr["axis"].i if "axis" in use.node.attr else 0
    seeds = [value for value in use.inputs if isinstance(value, SeedVector)]
    if seeds and axis == 0:
        first = seeds[0]
        is_plain = first.offsets.shape == () and not first.offsets.any()
        return [use.draws.pack(first, len(use.inputs))] if is_plain else None
    return _joined(use.inputs, axis, np.stack)


@rule("ConcatV2")
def _concatenate(use: ValueUse) -> Values:
    *values, axis = use.inputs
    return _joined(values, _number(axis), np.concatenate)


def _joined(values: list[Any], axis: int, join: Any) -> Values:
    shapes = [shape for value in values if (shape := _shape_of(value)) is not None]
    _check_size(sum(map(math.prod, shapes)))
    if _are_known(values):
        return [join(values, axis=axis)]
    is_followed = all(isinstance(value, (np.ndarray, Combination)) for value in values)
    return [combinations.stacked(values, join)] if is_followed and axis == 0 else None


@rule("Sum")
def _sum(use: ValueUse) -> Values:
    value, axes = use.inputs[0], _sizes(use.inputs[1])
    keeps = "keep_dims" in use.node.attr and bool(use.node.attr["keep_dims"].b)
    if isinstance(value, Combination):
        return [combinations.summed(value, axes, keeps=keeps)]
    if not isinstance(value, np.ndarray):
        return None
    return [np.asarray(np.sum(value, axis=axes, keepdims=keeps), value.dtype)]


@rule("Select", "SelectV2")
def _select(use: ValueUse) -> Values:
    condition, first, second = use.inputs
    if not isinstance(condition, np.ndarray) or condition.shape != ():
        return None
    shapes = _shape_of(first), _shape_of(second)
    if shapes[0] is None or shapes[0] != shapes[1]:
        return None
    return [first if condition else second]


@rule("ZerosLike")
def _zeros(use: ValueUse) -> Values:
    shape, kind = _shape_of(use.inputs[0]), DTYPES[use.node.attr["T"].type]
    if shape is None:
        return None
    _check_size(math.prod(shape))
    return [np.zeros(shape, kind.dtype)]


@rule("Fill")
def _fill(use: ValueUse) -> Values:
    shape, value = _sizes(use.inputs[0]), use.inputs[1]
    _check_size(math.prod(shape))
    return [np.full(shape, value)] if isinstance(value, np.ndarray) else None


@rule("Range")
def _range(use: ValueUse) -> Values:
    if not _are_known(use.inputs) or any(value.dtype.kind not in "iu" for value in use.inputs):
        return None
    start, limit, step = map(_number, use.inputs)
    _check_size(len(range(start, limit, step)))
    return [np.arange(start, limit, step, dtype=use.inputs[0].dtype)]


# Lists.


@rule("TensorListReserve", "EmptyTensorList")
def _reserve(use: ValueUse) -> Values:
    count = _number(use.inputs[1]) if use.node.op == "TensorListReserve" else 0
    return [Listed((None,) * count)] if 0 <= count <= MOST_ITEMS else None


MOST_ITEMS = 1_000
"""The longest list that is followed."""


@rule("TensorListSetItem")
def _set_item(use: ValueUse) -> Values:
    items, place, value = use.inputs
    index = _number(place)
    if not isinstance(items, Listed) or not 0 <= index <= MOST_ITEMS:
        return None
    listed = list(items.items)
    if index >= len(listed):
        resizes = "resize_if_index_out_of_bounds"
        if resizes not in use.node.attr or not use.node.attr[resizes].b:
            return None
        listed += [None] * (index + 1 - len(listed))
    listed[index] = value
    return [Listed(tuple(listed))]


@rule("TensorListPushBack")
def _push(use: ValueUse) -> Values:
    items, value = use.inputs
    if not isinstance(items, Listed) or len(items.items) >= MOST_ITEMS:
        return None
    return [Listed((*items.items, value))]


@rule("TensorListGetItem")
def _get_item(use: ValueUse) -> Values:
    items, place = use.inputs[0], _number(use.inputs[1])
    if not isinstance(items, Listed) or not 0 <= place < len(items.items):
        return None
    return [UNKNOWN if items.items[place] is None else items.items[place]]


@rule("TensorListLength")
def _length(use: ValueUse) -> Values:
    (items,) = use.inputs
    return [np.array(len(items.items), np.int32)] if isinstance(items, Listed) else None


@rule("TensorListFromTensor")
def _from_tensor(use: ValueUse) -> Values:
    value = use.inputs[0]
    if isinstance(value, Combination) and value.outer:
        rows = [combinations.part(value, [row]) for row in range(value.outer[0])]
        return [Listed(tuple(rows))]
    if isinstance(value, np.ndarray) and value.ndim:
        return [Listed(tuple(map(np.asarray, value)))]
    return None


@rule("TensorListStack")
def _stack(use: ValueUse) -> Values:
    items = use.inputs[0]
    if not isinstance(items, Listed) or not items.items or any(i is None for i in items.items):
        return None
    return _joined(list(items.items), 0, np.stack)
