"""The instructions of HLO that privacy is shown through.

What is not among them is followed no further.  HLO repeats a number to the shape of an array
before it combines the two; rules take the number itself.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from tffc.assurance.privacy.quantities import bounds
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.bounds import ZERO
from tffc.assurance.privacy.quantities.quantity import Exposure, Quantity, Shape, union
from tffc.assurance.privacy.quantities.shapes import common_shape
from tffc.language.dtypes import DType
from tffc.linking.hlo_modules import HloInstruction, HloShape

OTHER_NOISE = (
    "numbers that JAX or PyTorch makes of a random seed are added to it, and it is not known how "
    "they are distributed: draw normal or Laplace noise of float32 from a Threefry key of 64 "
    "random bits that is used once, or draw it in a tff.tensorflow.computation"
)
"""Why numbers hide nothing that an XLA module makes of a seed, if they are not known as noise."""


class ModuleEvaluation(Protocol):
    """The evaluation of a module, as rules use it."""

    algebra: Algebra

    def repeat(self, number: Quantity, shape: Shape) -> Quantity:
        """Return an array whose elements are all the same number."""
        ...

    def number(self, value: Quantity) -> Quantity | None:
        """Return the number that an array repeats, if it is known to repeat one."""
        ...

    def combination(self, number: int) -> str:
        """Return the opcode of a computation that combines two numbers by one instruction, in any
        order of them, or an empty text."""
        ...


class InstructionUse(NamedTuple):
    """An instruction that is applied to arrays of declared shapes."""

    walk: ModuleEvaluation
    instruction: HloInstruction
    inputs: list[Quantity]
    shapes: list[HloShape]

    @property
    def algebra(self) -> Algebra:
        """The algebra of the walk."""
        return self.walk.algebra

    @property
    def kind(self) -> DType | None:
        """The type of the elements of the result."""
        return self.instruction.shape.element

    def are_real(self) -> bool:
        """Tell whether the result and all operands have real numbers or truth values."""
        kinds = [self.kind, *(shape.element for shape in self.shapes)]
        return all(kind is not None and _is_real(kind) for kind in kinds)

    def are_floating(self) -> bool:
        """Tell whether the result and all operands have floating-point numbers."""
        kinds = [self.kind, *(shape.element for shape in self.shapes)]
        return all(kind is not None and kind.is_floating and _is_real(kind) for kind in kinds)


def _is_real(kind: DType) -> bool:
    """Tell whether numbers of a type are nearly real numbers, integers or truth values."""
    return kind.size >= 4 if kind.is_floating else kind.is_integer or kind is DType.BOOL


Result: TypeAlias = "Quantity | None"
"""The result of an instruction, or None if a rule does not describe it."""

Rule = Callable[[InstructionUse], Result]

INSTRUCTIONS: dict[str, Rule] = {}
"""The rules of instructions, by opcode."""


def _rule(*opcodes: str) -> Callable[[Rule], Rule]:
    """Return a decorator that enters a rule under opcodes."""

    def enter(rule: Rule) -> Rule:
        INSTRUCTIONS.update(dict.fromkeys(opcodes, rule))
        return rule

    return enter


# Operations on each element.


def _each(use: InstructionUse, function: Callable[..., Result], count: int) -> Result:
    """Return a function of each element of so many inputs, with numbers in place of arrays that
    repeat them; the result repeats a number if all inputs do."""
    if len(use.inputs) != count:
        return None
    numbers = [use.walk.number(value) for value in use.inputs]
    pairs = zip(numbers, use.inputs, strict=True)
    result = function(
        use.algebra, *(value if number is None else number for number, value in pairs)
    )
    shape = common_shape(*use.inputs)
    if result is None or not result.is_scalar or not shape:
        return result
    return use.walk.repeat(result, shape)


def _floating(count: int, function: Callable[..., Quantity], *opcodes: str) -> None:
    """Enter instructions that are a function of each element, of floating-point numbers."""

    @_rule(*opcodes)
    def rule(use: InstructionUse) -> Result:
        return _each(use, function, count) if use.are_floating() else None


_floating(2, Algebra.divide, "divide")
_floating(1, Algebra.root, "sqrt")
_floating(1, lambda algebra, value: algebra.reciprocal(algebra.root(value)), "rsqrt")
_floating(1, Algebra.exponential, "exponential")
_floating(1, Algebra.logarithm, "log")
_floating(1, lambda algebra, value: algebra.logarithm(value, 1.0), "log-plus-one")
_floating(1, Algebra.absolute, "abs")
_floating(1, Algebra.sign, "sign")


@_rule("tanh", "logistic", "cosine", "sine", "erf")
def _within_one(use: InstructionUse) -> Result:
    limits = bounds.between(0.0 if use.instruction.opcode == "logistic" else -1.0, 1.0)
    if not use.are_floating() or len(use.inputs) != 1:
        return None
    opcode = use.instruction.opcode
    return use.algebra.unknown(use.inputs, opcode, shape=use.inputs[0].shape, limits=limits)


def _real(count: int, function: Callable[..., Quantity], *opcodes: str) -> None:
    """Enter instructions that are a function of each element, of real numbers of any type."""

    @_rule(*opcodes)
    def rule(use: InstructionUse) -> Result:
        return _each(use, function, count) if use.are_real() else None


_real(2, Algebra.maximum, "maximum")
_real(2, Algebra.minimum, "minimum")
_real(3, Algebra.choice, "select")
_real(
    3,
    lambda algebra, low, value, high: algebra.minimum(algebra.maximum(value, low), high),
    "clamp",
)

ARITHMETIC: dict[str, tuple[int, Callable[..., Quantity]]] = {
    "add": (2, Algebra.add),
    "subtract": (2, Algebra.subtract),
    "multiply": (2, Algebra.multiply),
    "negate": (1, Algebra.negative),
}


@_rule(*ARITHMETIC)
def _arithmetic(use: InstructionUse) -> Result:
    """Arithmetic of real numbers, which is that of integers where these fit their type."""
    if not use.are_real() or use.kind is None or use.kind is DType.BOOL:
        return None
    opcode = use.instruction.opcode
    count, function = ARITHMETIC[opcode]
    other = _sum_with_other_noise(use) if opcode in ("add", "subtract") else None
    result = other or _each(use, function, count)
    if result is None or use.kind.is_floating:
        return result
    limits = np.iinfo(use.kind.dtype)
    return _wrapped(use, result, float(limits.min), float(limits.max))


def _wrapped(use: InstructionUse, value: Quantity, low: float, high: float) -> Quantity:
    """Return integers as a type holds them, which are others if it is too small for them."""
    least, most = value.bounds.interval
    if low <= least and most <= high:
        return value
    if any(each.sums or each.noise or each.signal for each in use.inputs):
        return value  # Sums over clients, and their noise, are assumed to fit.
    limits = bounds.between(low, high)
    key = "wrapped", use.instruction.opcode
    wrapped = use.algebra.unknown(
        use.inputs, *key, shape=value.shape, limits=limits, is_integer=True
    )
    return dataclasses.replace(wrapped, addends=value.addends)


def _sum_with_other_noise(use: InstructionUse) -> Quantity | None:
    """Return a sum over clients with numbers that depend on a random draw and are not known to be
    noise; None for all others."""
    if len(use.inputs) != 2:
        return None
    first, second = (use.walk.number(value) or value for value in use.inputs)
    for sums, other in ((first, second), (second, first)):
        if not sums.sums or other.noise is not None or other.sums:
            continue
        if not other.provenance.draws or other.provenance.is_of_client:
            continue
        channels = {channel for each, _ in sums.sums for channel in each.channels}
        exposures = frozenset(
            Exposure(e.source, OTHER_NOISE) if e.source in channels else e
            for e in sums.provenance.exposures
        )
        origin = dataclasses.replace(sums.provenance, exposures=exposures)
        provenance = union(origin, other.provenance)
        return Quantity(use.algebra.fresh(), provenance, shape=common_shape(sums, other))
    return None


@_rule("power")
def _power(use: InstructionUse) -> Result:
    if not use.are_floating() or len(use.inputs) != 2:
        return None
    exponent = use.walk.number(use.inputs[1]) or use.inputs[1]
    if exponent.content is None or exponent.size != 1:
        return None
    functions: dict[float, Callable[..., Quantity]] = {
        2.0: lambda algebra, value, _: algebra.square(value),
        1.0: lambda algebra, value, _: value,
        0.5: lambda algebra, value, _: algebra.root(value),
        -0.5: lambda algebra, value, _: algebra.reciprocal(algebra.root(value)),
        -1.0: lambda algebra, value, _: algebra.reciprocal(value),
    }
    function = functions.get(float(np.ravel(exponent.content)[0]))
    return None if function is None else _each(use, function, 2)


@_rule("compare")
def _compare(use: InstructionUse) -> Result:
    if not use.are_real() or len(use.inputs) != 2:
        return None
    match use.instruction.direction:
        case "GT" | "GE":
            return _each(use, Algebra.greater, 2)
        case "LT" | "LE":
            return _each(use, lambda algebra, first, second: algebra.greater(second, first), 2)
        case _:
            return _truth(use)


@_rule("not")
def _not(use: InstructionUse) -> Result:
    return _each(use, Algebra.negation, 1) if use.kind is DType.BOOL else None


@_rule("and", "or", "is-finite")
def _truth(use: InstructionUse) -> Result:
    if use.kind is not DType.BOOL:
        return None
    key = use.instruction.opcode, use.instruction.direction

    def truth(algebra: Algebra, *values: Quantity) -> Quantity:
        shape = common_shape(*values)
        limits = bounds.between(0.0, 1.0)
        result = algebra.unknown(values, *key, shape=shape, limits=limits, is_integer=True)
        return dataclasses.replace(result, is_finiteness=key[0] == "is-finite")

    return _each(use, truth, 1 if key[0] == "is-finite" else 2)


@_rule("convert")
def _convert(use: InstructionUse) -> Result:
    if not use.are_real() or len(use.inputs) != 1:
        return None
    kind, source = use.kind, use.shapes[0].element
    if kind is None or source is None:
        return None
    is_wider = source is DType.BOOL or (source.kind == kind.kind and kind.size >= source.size)
    if kind.is_floating:
        return _each(use, lambda algebra, value: _converted(value, kind), 1)
    if kind.is_integer and (source is kind or is_wider):
        return _each(use, lambda algebra, value: _converted(value, kind), 1)
    if kind.is_integer and source.is_floating:
        limits = float(np.iinfo(kind.dtype).min), float(np.iinfo(kind.dtype).max)
        return _each(use, lambda algebra, value: algebra.truncated(value, *limits), 1)
    return use.inputs[0] if kind is source else None


def _converted(value: Quantity, kind: DType) -> Quantity:
    """Return numbers in a type that holds them.

    Digits that a smaller type has lost are missing in a larger one.
    """
    content = None if value.content is None else value.content.astype(kind.dtype)
    return dataclasses.replace(value, is_integer=kind.is_integer, content=content, quotient=None)


# The same elements at other places, and parts of them.


@_rule("reshape", "bitcast")
def _reshape(use: InstructionUse) -> Result:
    shape = use.instruction.shape.sizes
    if shape is None or len(use.inputs) != 1 or use.kind is not use.shapes[0].element:
        return None
    if use.instruction.opcode == "bitcast":
        return _moved(use, shape, "bitcast")
    number = use.walk.number(use.inputs[0])
    if number is not None:
        return use.walk.repeat(number, shape) if shape else number
    return _if_whole(use.algebra.same(use.inputs[0], shape), use.inputs[0])


def _if_whole(result: Quantity, value: Quantity) -> Result:
    """Return a tensor if it has as many elements as another one."""
    return result if result.size == value.size and value.size is not None else None


def _moved(use: InstructionUse, shape: Shape, *key: object) -> Result:
    """Return the elements at other places, even where the shape stays."""
    value = use.inputs[0]
    number = use.walk.number(value)
    if number is not None:
        return use.walk.repeat(number, shape)
    moved = use.algebra.same(value, shape)
    moved = dataclasses.replace(
        moved,
        term=use.algebra.term("moved", value.term, shape, *key),
        elements=value.base,
        parts=(),
        comparison=None,
        negates=None,
        branches=None,
        addends=None,
        content=None,
    )
    return _if_whole(moved, value)


@_rule("transpose", "reverse")
def _transpose(use: InstructionUse) -> Result:
    shape = use.instruction.shape.sizes
    if shape is None or len(use.inputs) != 1:
        return None
    return _moved(use, shape, use.instruction.opcode, use.instruction.dimensions)


@_rule("broadcast")
def _broadcast(use: InstructionUse) -> Result:
    shape = use.instruction.shape.sizes
    if shape is None or len(use.inputs) != 1:
        return None
    value = use.inputs[0]
    number = use.walk.number(value)
    if number is None and value.size == 1:
        number = use.algebra.same(value, ())
    if number is not None:
        return use.walk.repeat(number, shape) if shape else number
    dimensions = use.instruction.dimensions
    if value.size == math.prod(shape):
        return _moved(use, shape, "broadcast", dimensions)
    wide = use.algebra.unknown([value], "broadcast", shape, dimensions, shape=shape)
    return dataclasses.replace(wide, bounds=value.bounds, is_integer=value.is_integer)


@_rule("concatenate")
def _concatenate(use: InstructionUse) -> Result:
    dimensions, shapes = use.instruction.dimensions, [value.shape for value in use.inputs]
    known = [shape for shape in shapes if shape]
    if len(dimensions) != 1 or not known or len(known) != len(shapes):
        return None
    axis = dimensions[0]
    if not all(0 <= axis < len(shape) for shape in known):
        return None
    length = sum(shape[axis] for shape in known)
    shape = (*known[0][:axis], length, *known[0][axis + 1 :])
    stack = use.algebra.stacked(use.inputs, "concatenate", axis, shape=shape)
    return stack if len(shape) == 1 else dataclasses.replace(stack, content=None)


@_rule("slice")
def _slice(use: InstructionUse) -> Result:
    slices = use.instruction.slices
    if len(use.inputs) != 1:
        return None
    value = use.inputs[0]
    if value.shape is None or len(slices) != len(value.shape):
        return None
    for (start, limit, step), length in zip(slices, value.shape, strict=True):
        if not (0 <= start <= limit <= length and step >= 1):
            return None
    shape = tuple(-((start - limit) // step) for start, limit, step in slices)
    if shape == value.shape:
        return value
    number = use.walk.number(value)
    if number is not None:
        return use.walk.repeat(number, shape)
    part = use.algebra.part_of(value, "slice of", slices, shape=shape)
    if value.content is not None:
        return use.algebra.constant(value.content[tuple(slice(*each) for each in slices)])
    if len(slices) == 1 and slices[0][2] == 1:
        part = dataclasses.replace(part, section=(value, slices[0][0], slices[0][1]))
    return part


@_rule("dynamic-slice")
def _dynamic_slice(use: InstructionUse) -> Result:
    if not use.inputs or use.instruction.shape.sizes is None:
        return None
    value, *places = use.inputs
    if value.sums or value.signal or value.noise:
        return None
    key = tuple(place.term for place in places)
    shape = use.instruction.shape.sizes
    part = use.algebra.part_of(value, "dynamic slice", *key, shape=shape)
    chosen = use.algebra.unknown(places)
    return dataclasses.replace(part, provenance=union(part.provenance, chosen.provenance))


@_rule("pad")
def _pad(use: InstructionUse) -> Result:
    shape, padding = use.instruction.shape.sizes, use.instruction.padding
    if len(use.inputs) != 2 or shape is None or any(min(each) < 0 for each in padding):
        return None
    value, number = use.inputs
    if value.size is None or not number.is_scalar or math.prod(shape) < value.size:
        return None
    padded = use.walk.repeat(number, (math.prod(shape) - value.size,))
    stack = use.algebra.stacked([value, padded], "pad", padding, shape=shape)
    return dataclasses.replace(stack, content=None)


@_rule("iota")
def _iota(use: InstructionUse) -> Result:
    shape, dimensions = use.instruction.shape.sizes, use.instruction.dimensions
    if not shape or len(dimensions) != 1 or not 0 <= dimensions[0] < len(shape):
        return None
    limits = bounds.between(0.0, float(shape[dimensions[0]]))
    kind = use.kind
    return use.algebra.unknown(
        [],
        "iota",
        kind,
        dimensions,
        shape,
        shape=shape,
        limits=limits,
        is_integer=kind is not None and kind.is_integer,
    )


# Sums and extremes of elements.


@_rule("reduce")
def _reduce(use: InstructionUse) -> Result:
    called = use.instruction.called
    if len(use.inputs) != 2 or len(called) != 1 or not use.are_real():
        return None
    value, start = use.inputs
    opcode = use.walk.combination(called[0])
    if value.shape is None or not start.is_scalar:
        return None
    axes = set(use.instruction.dimensions)
    if not axes <= set(range(len(value.shape))):
        return None
    shape = tuple(size for axis, size in enumerate(value.shape) if axis not in axes)
    if use.kind is DType.BOOL:
        limits = bounds.between(0.0, 1.0)
        return use.algebra.unknown(use.inputs, shape=shape, limits=limits, is_integer=True)
    if opcode not in ("add", "maximum"):
        return None
    if math.prod(shape) != 1:
        key = "reduce", opcode, tuple(sorted(axes))
        return use.algebra.unknown(use.inputs, *key, shape=shape, is_integer=value.is_integer)
    if opcode == "add":
        return _total(use, value, start, shape)
    largest = use.algebra.largest(value, shape)
    if start.content is not None and start.content == -np.inf:
        return largest
    return use.algebra.maximum(largest, use.algebra.same(start, shape))


def _total(use: InstructionUse, value: Quantity, start: Quantity, shape: Shape) -> Result:
    """Return the sum of all elements, and of a start that has to be zero."""
    if start.bounds.exact != ZERO or value.is_integer:
        return None
    number = use.walk.number(value)
    if number is None:
        return use.algebra.total(value, shape)
    times = use.algebra.constant(float(value.size or 0))
    return use.algebra.same(use.algebra.multiply(number, times), shape)


@_rule("dot")
def _dot(use: InstructionUse) -> Result:
    if len(use.inputs) != 2 or not use.are_floating():
        return None
    first, second = use.inputs
    left, right, *batches = use.instruction.dot
    if first.term != second.term or left != right or any(batches) or first.shape is None:
        return None
    if sorted(left) != list(range(len(first.shape))):
        return None
    return use.algebra.power_sum(first, 2)
