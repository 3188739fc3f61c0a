"""What XLA modules compute, as far as privacy can be shown of it: sections of JAX and PyTorch.

A module is read as HLO.  Where a section has StableHLO too, that is what runs, and that both
compute the same is an assumption of what is shown.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from tffc.assurance.privacy.graphs.sections import DEEPEST, MOST_STEPS, shaped
from tffc.assurance.privacy.modules.instructions import INSTRUCTIONS, InstructionUse
from tffc.assurance.privacy.modules.noise import ModuleNoise, is_seed
from tffc.assurance.privacy.modules.word_symbols import PublicArray
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.quantity import Provenance, Quantity, Shape, union
from tffc.graphs.node import reached
from tffc.graphs.operations import hlo
from tffc.language.dtypes import DType
from tffc.language.nodes import Compiled
from tffc.language.types import FunctionType
from tffc.language.wire import read_xla
from tffc.linking.hlo_modules import HloInstruction, HloModule, HloShape, read_hlo
from tffc.linking.operand import leaf_types
from tffc.linking.xla import bound_places, in_order

Value: TypeAlias = "Quantity | tuple[Value, ...]"
"""What an instruction computes: an array, or a tuple; an array stands for a tuple of which nothing
is known but where it comes from."""

CALLS = frozenset({"call", "fusion"})
DRAWS = frozenset({"rng", "rng-get-and-update-state"})
"""The instructions that draw from a generator outside of the module, whose seed is not told."""

MOST_ITERATIONS = 64
"""The iterations of a loop that are followed, if it does nothing but arithmetic on words."""

SAME_MODULES = "the HLO and the StableHLO of each JAX or PyTorch computation compute the same"
"""What is assumed of sections that have both: the HLO is looked at, and the StableHLO runs."""


def results_of_module(
    section: Compiled, arguments: Sequence[Quantity], algebra: Algebra
) -> list[Quantity]:
    """Return what is known of the leaves of a section's result, given those of its parameter.

    Raises:
      ExecutionError: the section is bound otherwise than its type says.
      WireError: it is malformed.
    """
    type = section.type
    assert isinstance(type, FunctionType)
    content = read_xla(section.payload)
    module = read_hlo(content.hlo_module)
    if content.stablehlo:
        algebra.assumptions[SAME_MODULES] = None
    inputs = in_order(bound_places(content.parameter, type.parameter), list(arguments))
    walk = ModuleWalk(algebra, module, inputs)
    whole = walk.results()
    places = bound_places(content.result, type.result)
    results = [walk.element(whole, place) for place in places]
    return [
        shaped(_single(result, algebra), leaf, algebra)
        for result, leaf in zip(results, leaf_types(type.result), strict=True)
    ]


def _single(value: Value, algebra: Algebra) -> Quantity:
    return value if isinstance(value, Quantity) else algebra.unknown(arrays([value]))


def arrays(values: Iterable[Value]) -> list[Quantity]:
    """Return the arrays in some values."""
    flat: list[Quantity] = []
    stack = list(values)[::-1]
    while stack:
        value = stack.pop()
        if isinstance(value, Quantity):
            flat.append(value)
        else:
            stack.extend(reversed(value))
    return flat


class ModuleWalk:
    """The evaluation of one module; `arguments` are all that it is given."""

    def __init__(self, algebra: Algebra, module: HloModule, arguments: Sequence[Quantity]) -> None:
        self.algebra = algebra
        self._module = module
        self._arguments = list(arguments)
        self._call = algebra.place
        self._outside = union(*(algebra.exposed(a, "is kept").provenance for a in arguments))
        """What a function outside of the module may know."""
        self._repeated: dict[int, tuple[Quantity, Provenance]] = {}
        self._inside: dict[tuple[int, ...], list[HloInstruction]] = {}
        self._noise = ModuleNoise(algebra) if any(map(is_seed, arguments)) else None
        self._steps = 0

    def results(self) -> Value:
        """Return what the module computes."""
        results = self._run(self._module.entry, list(self._arguments), 0)
        self.algebra.place = self._call
        return self._released(results)

    def _released(self, results: Value) -> Value:
        """Return results, with the noise and the seeds among them as such."""
        noise, root = self._noise, self._root(self._module.entry)
        if noise is None or root is None:
            return results
        if isinstance(results, Quantity):
            return noise.released(results, root.shape)
        shapes = dict(enumerate(root.shape.elements))
        return tuple(
            noise.released(each, shapes[number])
            if isinstance(each, Quantity) and number in shapes
            else each
            for number, each in enumerate(results)
        )

    def element(self, value: Value, index: int) -> Value:
        """Return an element of a tuple."""
        if isinstance(value, Quantity):
            return self.algebra.unknown([value], "element", index)
        return value[index] if 0 <= index < len(value) else self.anything(arrays([value]))

    # Numbers in place of arrays that repeat them.

    def repeat(self, number: Quantity, shape: Shape) -> Quantity:
        """Return an array whose elements are all the same number."""
        wide = self.algebra.unknown(
            [number],
            "repeated",
            shape,
            shape=shape,
            limits=number.bounds,
            is_integer=number.is_integer,
        )
        self._repeated[wide.term] = number, wide.provenance
        return wide

    def number(self, value: Quantity) -> Quantity | None:
        """Return the number that an array repeats, if it is known to repeat one."""
        if value.term not in self._repeated:
            return None
        number, provenance = self._repeated[value.term]
        if value.provenance == provenance:
            return number
        return dataclasses.replace(number, provenance=union(number.provenance, value.provenance))

    # Computations.

    def anything(self, values: Iterable[Quantity]) -> Quantity:
        """Return what may be any function of some values, and of all that the module is given."""
        value = self.algebra.unknown(values)
        everything = union(value.provenance, self._outside)
        return dataclasses.replace(value, provenance=everything)

    def combination(self, number: int) -> str:
        """Return the opcode of a computation that combines two numbers by one instruction, in any
        order of them, or an empty text."""
        root = self._root(number)
        if root is None:
            return ""
        by_number = {each.number: each for each in self._instructions(number)}
        operands = [by_number.get(each) for each in root.operands]
        places = [each.parameter for each in operands if each and each.opcode == "parameter"]
        return root.opcode if len(operands) == 2 and sorted(places) == [0, 1] else ""

    def _run(self, number: int, arguments: Sequence[Value], depth: int) -> Value:
        """Return what a computation gives for arguments."""
        computation = self._module.computations.get(number)
        if computation is None or depth >= DEEPEST or self._steps > MOST_STEPS:
            return self.anything(arrays(arguments))
        values: dict[int, Value] = {}
        known = {each.number: each for each in computation.instructions}
        for each in computation.instructions:
            self._steps += 1
            inputs = [
                values[operand] if operand in values else self.anything(arrays(arguments))
                for operand in each.operands
            ]
            place = f"{each.opcode} in {self._call}" if self._call else each.opcode
            self.algebra.place = place
            if each.opcode == "parameter" and 0 <= each.parameter < len(arguments):
                value = arguments[each.parameter]
            elif each.opcode == "parameter":
                value = self.anything(arrays(arguments))
            else:
                shapes = [known[o].shape if o in known else HloShape() for o in each.operands]
                value = self._value(each, inputs, shapes, depth)
            values[each.number] = self._declared(value, each.shape)
        root = values.get(computation.root)
        return self.anything(arrays(arguments)) if root is None else root

    def _declared(self, value: Value, shape: HloShape) -> Value:
        """Return a value with the shape that its instruction declares."""
        if isinstance(value, tuple):
            if len(value) != len(shape.elements):
                return value if shape.is_tuple else self.algebra.unknown(arrays([value]))
            pairs = zip(value, shape.elements, strict=True)
            return tuple(self._declared(each, inner) for each, inner in pairs)
        if shape.is_tuple or (value.shape == shape.sizes and shape.sizes is not None):
            return value
        if value.shape is None and shape.sizes is not None and value.noise is None:
            return dataclasses.replace(value, shape=shape.sizes)
        return self.algebra.unknown([value], shape=shape.sizes)

    def _value(
        self,
        instruction: HloInstruction,
        inputs: list[Value],
        shapes: list[HloShape],
        depth: int,
    ) -> Value:
        match instruction.opcode:
            case "tuple":
                return tuple(inputs)
            case "get-tuple-element" if len(inputs) == 1:
                return self.element(inputs[0], instruction.tuple_index)
            case "copy" | "opt-barrier" if len(inputs) == 1:
                return inputs[0]
            case opcode if opcode in CALLS and len(instruction.called) == 1:
                return self._run(instruction.called[0], inputs, depth + 1)
            case "conditional":
                return self._conditional(instruction, inputs, shapes, depth)
            case "while":
                followed = self._followed_loop(instruction, inputs, depth)
                return self._loop(instruction, inputs) if followed is None else followed
            case _ if any(map(_is_tuple, inputs)):
                return self._unknown(instruction, inputs)
            case _:
                return self._array(instruction, arrays(inputs), shapes)

    def _array(
        self, instruction: HloInstruction, inputs: list[Quantity], shapes: list[HloShape]
    ) -> Value:
        """Return what an instruction computes of arrays."""
        noise, opcode = self._noise, instruction.opcode
        symbol = None if noise is None else noise.result(instruction, inputs, shapes)
        if noise is not None and symbol is None:
            inputs = list(map(noise.drawn, inputs, shapes))
        result: Value | None = None
        if opcode == "constant":
            result = self.algebra.constant(instruction.literal)
        elif opcode in INSTRUCTIONS and (symbol is None or isinstance(symbol, PublicArray)):
            result = INSTRUCTIONS[opcode](InstructionUse(self, instruction, inputs, shapes))
        if result is None:
            result = self._unknown(instruction, inputs)
        if noise is not None and symbol is not None and isinstance(result, Quantity):
            noise.enter(result, symbol)
        return result

    def _unknown(self, instruction: HloInstruction, inputs: Sequence[Value]) -> Value:
        """Return what an instruction that is not described computes."""
        shape = instruction.shape
        if shape.is_tuple:
            return tuple(
                self._unknown_of([instruction], inputs, each.sizes) for each in shape.elements
            )
        return self._unknown_of([instruction], inputs, shape.sizes)

    def _unknown_of(
        self,
        instructions: Iterable[HloInstruction],
        inputs: Sequence[Value],
        shape: Shape | None,
    ) -> Quantity:
        """Return any function of inputs, and of what instructions and all that they call draw.

        XLA may draw the same numbers in each round, so they hide nothing.
        """
        instructions = list(instructions)
        called = tuple(number for each in instructions for number in each.called)
        touched = [*instructions, *self._reached(called)]
        values = arrays(inputs)
        if any(map(_reaches_outside, touched)):
            return dataclasses.replace(self.anything(values), shape=shape)
        value = self.algebra.unknown(values, shape=shape)
        if all(each.opcode not in DRAWS for each in touched):
            return value
        text = f"{self.algebra.place} draws from a seed of XLA's"
        seeded = Provenance(seeded=frozenset((text,)))
        return dataclasses.replace(value, provenance=union(value.provenance, seeded))

    def _reached(self, called: tuple[int, ...]) -> list[HloInstruction]:
        """Return the instructions of computations, and of all that these call."""
        if called not in self._inside:
            self._inside[called] = [
                each
                for number in reached(called, self._called_by)
                for each in self._instructions(number)
            ]
        return self._inside[called]

    def _instructions(self, number: int) -> tuple[HloInstruction, ...]:
        computation = self._module.computations.get(number)
        return computation.instructions if computation else ()

    def _called_by(self, number: int) -> list[int]:
        return [other for each in self._instructions(number) for other in each.called]

    # Branches and loops.

    def _conditional(
        self,
        instruction: HloInstruction,
        inputs: list[Value],
        shapes: list[HloShape],
        depth: int,
    ) -> Value:
        """Return what one of two branches computes: the first if a truth value holds, or if an
        index is 0."""
        if len(inputs) != 3 or len(instruction.called) != 2:
            return self._unknown(instruction, inputs)
        condition, *taken = inputs
        first, second = (
            self._run(number, [value], depth + 1)
            for number, value in zip(instruction.called, taken, strict=True)
        )
        if not isinstance(condition, Quantity) or not condition.is_scalar:
            return self._unknown(instruction, [*inputs, first, second])
        if shapes[0].element is not DType.BOOL:
            first, second = second, first
        return self._choice(condition, first, second)

    def _choice(self, condition: Quantity, first: Value, second: Value) -> Value:
        if isinstance(first, Quantity) and isinstance(second, Quantity):
            return self.algebra.branch(condition, first, second)
        if isinstance(first, Quantity) or isinstance(second, Quantity):
            return self.algebra.unknown([condition, *arrays([first, second])])
        if len(first) != len(second):
            return self.algebra.unknown([condition, *arrays([first, second])])
        pairs = zip(first, second, strict=True)
        return tuple(self._choice(condition, one, other) for one, other in pairs)

    def _followed_loop(
        self, instruction: HloInstruction, inputs: list[Value], depth: int
    ) -> Value | None:
        """Return the results of a short loop that does nothing but arithmetic on secret words and
        public arrays; None for any other."""
        noise = self._noise
        if noise is None or len(inputs) != 1 or len(instruction.called) != 2:
            return None
        body, condition = instruction.called
        value = inputs[0]
        for _ in range(MOST_ITERATIONS):
            if not all(map(noise.has_symbol, arrays([value]))):
                return None
            truth = self._run(condition, [value], depth + 1)
            goes_on = noise.truth(truth) if isinstance(truth, Quantity) else None
            if not goes_on:
                return value if goes_on is False else None
            value = self._run(body, [value], depth + 1)
        return None

    def _loop(self, instruction: HloInstruction, inputs: list[Value]) -> Value:
        """Return the results of a loop: what no iteration changes, and what is not known.

        Everything that is changed may be any function of all that the loop is given, and of all
        that it draws.
        """
        if len(inputs) != 1 or isinstance(inputs[0], Quantity):
            return self._unknown(instruction, inputs)
        same = self._unchanged(instruction)
        everything = self._unknown_of([instruction], inputs, None)
        shapes = instruction.shape.elements
        return tuple(
            value
            if position in same
            else dataclasses.replace(
                everything,
                term=self.algebra.fresh(),
                shape=shapes[position].sizes if position < len(shapes) else None,
            )
            for position, value in enumerate(inputs[0])
        )

    def _unchanged(self, instruction: HloInstruction) -> set[int]:
        """Return the positions in the tuple of a loop that its body passes on."""
        roots = [(number, self._root(number)) for number in instruction.called]
        bodies = [(number, root) for number, root in roots if root and root.opcode == "tuple"]
        if len(bodies) != 1:
            return set()
        (number, root) = bodies[0]
        by_number = {each.number: each for each in self._instructions(number)}
        return {
            position
            for position, operand in enumerate(root.operands)
            if _is_element_of_parameter(by_number, operand, position)
        }

    def _root(self, number: int) -> HloInstruction | None:
        computation = self._module.computations.get(number)
        if computation is None:
            return None
        return next((i for i in computation.instructions if i.number == computation.root), None)


def _is_element_of_parameter(
    by_number: Mapping[int, HloInstruction], number: int, position: int
) -> bool:
    """Tell whether an instruction takes the element at a position of the tuple that its computation
    is given."""
    taken = by_number.get(number)
    if taken is None or taken.opcode != "get-tuple-element" or taken.tuple_index != position:
        return False
    sources = [by_number.get(operand) for operand in taken.operands]
    return len(sources) == 1 and sources[0] is not None and sources[0].opcode == "parameter"


def _is_tuple(value: Value) -> bool:
    return not isinstance(value, Quantity)


def _reaches_outside(instruction: HloInstruction) -> bool:
    """Tell whether an instruction may know more than its operands."""
    if instruction.opcode in DRAWS:
        return False
    return hlo.effect_of(instruction.opcode, instruction.target) is not None
