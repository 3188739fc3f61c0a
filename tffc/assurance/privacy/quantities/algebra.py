"""Arithmetic on what is known of tensors, whatever framework's operations ask for it.

Each operation is conservative: what it does not follow becomes a tensor of which only the
provenance is known, and sums over clients that it takes count as exposed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tffc.assurance.privacy.quantities import (
    bounds,
    choices,
    lines,
    noises,
    norms,
    pending,
    residues,
)
from tffc.assurance.privacy.quantities.arrangements import enclosing
from tffc.assurance.privacy.quantities.bounds import ONE, ZERO, Bounds, Monomial, Unknown, exactly
from tffc.assurance.privacy.quantities.quantity import (
    Exposure,
    Noise,
    Provenance,
    Quantity,
    union,
)
from tffc.assurance.privacy.quantities.reductions import Reductions
from tffc.assurance.privacy.quantities.shapes import common_shape
from tffc.assurance.privacy.quantities.tensors import SMALL

TRUTH = bounds.between(0.0, 1.0)


class Algebra(Reductions):
    """Operations on quantities in one round; equal operations on equal operands are equal."""

    # Arithmetic.

    def add(self, first: Quantity, second: Quantity) -> Quantity:
        followed = pending.added(self, first, second)
        if followed is not None:
            return followed
        first, second = pending.settled(self, first), pending.settled(self, second)
        modular = self._modular(first, second)
        if modular is not None:
            return modular
        for sums, noise in ((first, second), (second, first)):
            if noise.noise is not None and not noise.provenance.is_of_client:
                if sums.sums:
                    return self._mechanism(sums, noise)
                if sums.provenance.is_of_client and not sums.signal:
                    return self._signal(sums, noise)
        if first.sums or second.sums:
            return self._sum_of_sums(first, second)
        total = self._elementwise("add", bounds.add, first, second)
        total = dataclasses.replace(total, addends=(first, second))
        for value, number in ((first, second), (second, first)):
            line = lines.shifted(value, number, total)
            if line is not None:
                is_whole = value.is_whole and number.is_whole
                total = dataclasses.replace(total, line=line, is_whole=is_whole)
        joint = norms.add(first.bounds, second.bounds) if first.is_scalar else total.bounds
        total = dataclasses.replace(total, bounds=joint) if second.is_scalar else total
        if first.noise is not None and second.noise is not None:
            noise = self._combined(first.noise, second.noise)
            whole = noise and _if_same_shape(noise, total, first, second)
            return dataclasses.replace(total, noise=whole)
        for noise, other in ((first, second), (second, first)):
            is_clock = noise.noise is not None and noise.noise.distribution == noises.CLOCK
            if noise.noise is not None and other.provenance.is_public and not is_clock:
                is_shifted = noise.noise.is_shifted or other.bounds.exact != ZERO
                whole = dataclasses.replace(noise.noise, is_shifted=is_shifted)
                whole = _if_same_shape(whole, total, noise)
                return dataclasses.replace(total, noise=whole)
        return total

    def _modular(self, first: Quantity, second: Quantity) -> Quantity | None:
        """Return a sum that is a remainder, or one that stays one; None for any other."""
        for value, other in ((first, second), (second, first)):
            quotient = residues.reduction(value, other)
            if quotient is not None:
                return self.remainder(value, quotient.divisor, -quotient.shift)
            if value.residue is not None and lines.number_of(other) == 0:
                if common_shape(first, second) == value.shape is not None:
                    return value
        return None

    def remainder(self, value: Quantity, modulus: int, low: int) -> Quantity:
        """Return the integers from a `low` one that are equal to those of a tensor modulo a number.

        Of a tensor that is equal to another one modulo that number, they are a function of the
        other one alone.
        """
        limits = bounds.between(low, low + modulus - 1)
        whole = value.residue[0] if residues.is_known(value, modulus) and value.residue else value
        rest = self.unknown(
            [whole],
            *("remainder", modulus, low),
            shape=value.shape,
            limits=limits,
            is_integer=True,
        )
        if whole.sums:
            return rest
        return dataclasses.replace(rest, residue=(whole, Monomial(float(modulus))))

    def negative(self, value: Quantity) -> Quantity:
        return self.multiply(self.constant(-1 if value.is_integer else -1.0), value)

    def subtract(self, first: Quantity, second: Quantity) -> Quantity:
        if first.term == second.term and first.provenance.is_public:
            return self.constant(np.zeros(first.shape)) if first.shape is not None else first
        if first.term == second.term and not (first.sums or first.signal):
            zero = self.unknown([first], "zero", shape=first.shape)
            return dataclasses.replace(zero, bounds=exactly(ZERO))
        return self.add(first, self.negative(second))

    def multiply(self, first: Quantity, second: Quantity) -> Quantity:
        if first.content is not None and second.content is not None:
            folded = self._folded(np.multiply, first, second)
            if folded is not None:
                return folded
        if first.term == second.term:
            return self.square(first)
        for value, factor in ((first, second), (second, first)):
            followed = pending.scaled(self, value, factor)
            if followed is not None:
                return followed
        first, second = pending.settled(self, first), pending.settled(self, second)
        for value, factor in ((first, second), (second, first)):
            if factor.bounds.exact == ONE and factor.is_scalar:
                return value
            scaled = self._scaled(value, factor)
            if scaled is not None:
                return scaled
        product = self._elementwise("multiply", bounds.multiply, first, second)
        if first.noise is not None and second.noise is not None:
            noise = noises.product(first.noise, second.noise)
            whole = noise and _if_same_shape(noise, product, first, second)
            return dataclasses.replace(product, noise=whole)
        for value, mask in ((first, second), (second, first)):
            if value.provenance.is_of_client and not value.signal and not mask.signal:
                low, high = mask.bounds.interval
                if low >= -1.0 and high <= 1.0 and product.shape == value.shape is not None:
                    product = dataclasses.replace(product, within=(*product.within, value))
        return product

    def reciprocal(self, value: Quantity) -> Quantity:
        return self.elementwise("reciprocal", bounds.reciprocal, value)

    def divide(self, first: Quantity, second: Quantity) -> Quantity:
        if second.content is not None and np.all(second.content != 0):
            folded = self._folded(np.divide, first, second)
            if folded is not None and not (first.is_integer or second.is_integer):
                return folded
        return self.multiply(first, self.reciprocal(second))

    def divide_or_zero(self, first: Quantity, second: Quantity) -> Quantity:
        """Return the quotient, and zero where the divisor is zero."""
        if second.content is not None and np.all(second.content != 0):
            return self.divide(first, second)
        inverse = self.reciprocal(second)
        or_zero = bounds.either(inverse.bounds, exactly(ZERO))
        term = self.term("reciprocal or zero", second.term)
        inverse = dataclasses.replace(inverse, term=term, bounds=or_zero, branches=None)
        return self.multiply(first, inverse)

    def square(self, value: Quantity) -> Quantity:
        if value.power_of is not None and value.power_of[1] == 1 and not value.elements:
            return self.square(value.power_of[0])
        squared = self.elementwise("square", bounds.square, value)
        squared = dataclasses.replace(squared, power_of=(value, 2))
        return self._as_norm(squared)

    def absolute(self, value: Quantity) -> Quantity:
        magnitude = self.elementwise("absolute", bounds.absolute, value)
        noise = noises.of_symmetric(value, noises.UNIFORM)
        magnitude = dataclasses.replace(
            magnitude,
            power_of=(value, 1),
            within=enclosing(value),
            noise=noise,
            is_integer=value.is_integer,
        )
        return self._as_norm(magnitude)

    def _as_norm(self, value: Quantity) -> Quantity:
        """Return a power of a single number of which nothing is known as a norm of it."""
        assert value.power_of is not None
        number, power = value.power_of
        if number.size != 1 or number.bounds.magnitude or number.noise is not None:
            return value
        limits = norms.power_sum(number, power)
        return dataclasses.replace(value, bounds=limits, branches=None)

    def sign(self, value: Quantity) -> Quantity:
        sign = self.unknown([value], "sign", shape=value.shape, limits=bounds.between(-1.0, 1.0))
        return dataclasses.replace(sign, noise=noises.of_symmetric(value, noises.SIGN))

    def root(self, value: Quantity) -> Quantity:
        if value.content is not None and np.all(value.content >= 0) and not value.is_integer:
            return self.constant(np.sqrt(value.content))
        return self.elementwise("root", lambda b: bounds.power(b, Fraction(1, 2)), value)

    def logarithm(self, value: Quantity, shift: float = 0.0) -> Quantity:
        """Return the logarithm of `shift` plus a tensor."""
        if value.content is not None and np.all(value.content + shift > 0) and not value.is_integer:
            return self.constant(np.log(value.content + shift))
        result = self.unknown([value], "logarithm", shift, shape=value.shape)
        return dataclasses.replace(result, noise=noises.logarithm(value, shift))

    def exponential(self, value: Quantity) -> Quantity:
        return self.positive("exponential", value)

    def positive(self, name: str, *operands: Quantity) -> Quantity:
        """Return a number that is not negative and that is a function of others."""
        result = self.unknown(operands, name, shape=common_shape(*operands))
        limits = Bounds(below=(ZERO,))
        if result.provenance.is_public and result.is_scalar:
            number = Unknown("released", (result.term,))
            limits = exactly(Monomial(1.0, ((number, Fraction(1)),)))
        return dataclasses.replace(result, bounds=limits)

    def maximum(self, first: Quantity, second: Quantity) -> Quantity:
        return self._extreme("maximum", bounds.maximum, first, second)

    def minimum(self, first: Quantity, second: Quantity) -> Quantity:
        return self._extreme("minimum", bounds.minimum, first, second)

    def _extreme(
        self, name: str, rule: Callable[[Bounds, Bounds], Bounds], first: Quantity, second: Quantity
    ) -> Quantity:
        result = self._elementwise(name, rule, first, second)
        within: list[Quantity] = []
        line = None
        for value, limit in ((first, second), (second, first)):
            number = lines.number_of(limit)
            if number is not None and value.shape == result.shape is not None:
                interval = (-math.inf, number) if name == "minimum" else (number, math.inf)
                if lines.is_inside(value.bounds, *interval):
                    return value
                line = lines.clipped(value, *interval)
            is_toward_zero = (
                limit.bounds.is_nonnegative if name == "minimum" else limit.bounds.is_nonpositive
            )
            if is_toward_zero and value.shape == result.shape is not None:
                within.extend(enclosing(value))
        return dataclasses.replace(result, within=tuple(within), line=line)

    # Comparisons and choices.

    def greater(self, first: Quantity, second: Quantity) -> Quantity:
        """Return whether the first is greater than the second."""
        if first.is_integer and second.is_integer:
            folded = self._folded(np.greater, first, second)
            if folded is not None:
                return folded
        return self._comparison(first, second)

    def _comparison(self, first: Quantity, second: Quantity) -> Quantity:
        """Return whether the first is greater than, or at least, the second."""
        result = self.unknown(
            [first, second],
            "greater",
            shape=common_shape(first, second),
            limits=TRUTH,
            is_integer=True,
        )
        return dataclasses.replace(result, comparison=(first, second))

    def at_least(self, first: Quantity, second: Quantity) -> Quantity:
        """Return whether the first is at least the second; integers of which that is known are."""
        if first.is_integer and second.is_integer and first.shape == second.shape == ():
            if bounds.is_at_least(first.bounds, second.bounds):
                return self.constant(np.bool_(True))
        return self._comparison(first, second)

    def negation(self, value: Quantity) -> Quantity:
        result = self.unknown([value], "not", shape=value.shape, limits=TRUTH, is_integer=True)
        return dataclasses.replace(result, negates=value)

    def choice(self, condition: Quantity, first: Quantity, second: Quantity) -> Quantity:
        """Return the first where the condition holds, else the second."""
        shape = common_shape(condition, first, second)
        chosen = choices.certain(condition, first, second)
        if chosen is not None and chosen.shape == shape is not None:
            return chosen
        result = self.unknown([condition, first, second], "choice", shape=shape)
        true, false = choices.where(condition, first, True), choices.where(condition, second, False)
        result = dataclasses.replace(
            result,
            bounds=choices.either(condition, true, false),
            branches=(condition.term, true, false),
            is_integer=first.is_integer and second.is_integer,
        )
        if any(each.sums or each.noise or each.signal for each in (first, second)):
            return dataclasses.replace(result, branches=None)
        for value, zero in ((first, second), (second, first)):
            if zero.bounds.exact == ZERO and value.shape == shape is not None:
                result = dataclasses.replace(result, within=enclosing(value))
        return self._chosen_factor(condition, first, second, result)

    def branch(self, condition: Quantity, first: Quantity, second: Quantity) -> Quantity:
        """Return the result of the first of two functions if the condition holds, else that of the
        second; it has the shape of either."""
        chosen = choices.certain(condition, first, second)
        if chosen is not None:
            return chosen
        if condition.is_scalar and first.shape == second.shape:
            return self.choice(condition, first, second)
        result = self.choice(condition, first, second)
        return self.unknown([result], limits=result.bounds)

    def _chosen_factor(
        self, condition: Quantity, first: Quantity, second: Quantity, result: Quantity
    ) -> Quantity:
        """Return a choice between multiples of one tensor as a multiple of it."""
        if (not condition.is_scalar and condition.size != 1) or result.shape is None:
            return result
        multiples = [value for value in (first, second) if value.bounds.exact != ZERO]
        if any(v.parts or v.shape != result.shape for v in multiples):
            return result
        if any(v.is_scalar and v.bounds.magnitude for v in multiples):
            return result  # Numbers of which something is known are factors themselves.
        bases = {value.base for value in multiples}
        one, zero = self.constant(1.0), self.constant(0.0)
        factors = [(v.factor or one) if v in multiples else zero for v in (first, second)]
        if len(bases) != 1 or factors[0].term == factors[1].term:
            return result
        factor = self.choice(condition, *factors)
        return dataclasses.replace(result, elements=bases.pop(), factor=factor)

    # What the operations above have in common.

    def elementwise(self, name: str, rule: Callable[[Bounds], Bounds], value: Quantity) -> Quantity:
        """Return a function of each element; `rule` gives its bounds."""
        result = self.unknown([value], name, shape=value.shape, limits=rule(value.bounds))
        if value.branches is None:
            return result
        term, true, false = value.branches
        return dataclasses.replace(result, branches=(term, rule(true), rule(false)))

    def _elementwise(
        self, name: str, rule: Callable[[Bounds, Bounds], Bounds], first: Quantity, second: Quantity
    ) -> Quantity:
        folds = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}
        if name in folds:
            folded = self._folded(folds[name], first, second)
            if folded is not None:
                return folded
        operands = sorted((first, second), key=lambda value: value.term)
        result = self.unknown(operands, name, shape=common_shape(first, second))
        return dataclasses.replace(
            result,
            bounds=rule(first.bounds, second.bounds),
            is_integer=first.is_integer and second.is_integer,
        )

    def _folded(self, function: Any, first: Quantity, second: Quantity) -> Quantity | None:
        """Return a function of two small constants."""
        if first.content is None or second.content is None:
            return None
        with np.errstate(all="ignore"):
            value = function(first.content, second.content)
        return self.constant(value) if value.size <= SMALL else None

    def _scaled(self, value: Quantity, factor: Quantity) -> Quantity | None:
        """Return a tensor times a number, if it stays of its kind."""
        shape = common_shape(value, factor)
        if value.sums:
            if not factor.provenance.is_public or shape != value.shape or shape is None:
                return None
            if factor.bounds.exact == ZERO:
                return self.constant(np.zeros(shape, np.int64 if value.is_integer else np.float64))
            scales = [(c, bounds.multiply(scale, factor.bounds)) for c, scale in value.sums]
            product = self._product(value, factor, value.provenance)
            return dataclasses.replace(product, sums=tuple(scales))
        if value.noise is not None:
            if not factor.provenance.is_public or shape != value.shape or shape is None:
                return None
            product = self._product(value, factor, union(value.provenance, factor.provenance))
            return dataclasses.replace(product, noise=noises.scaled(value.noise, factor.bounds))
        if value.signal is not None:
            if not factor.provenance.is_public or shape != value.shape or shape is None:
                return None
            signal, noise = value.signal
            noise = noises.scaled(noise, factor.bounds)
            product = self._product(value, factor, union(value.provenance, factor.provenance))
            if noise is None:
                return dataclasses.replace(product, product=(value, factor))
            pair = self.multiply(signal, factor), noise
            return dataclasses.replace(product, signal=pair)
        if factor.size != 1 or factor.sums or factor.noise or factor.signal:
            return None
        if value.size == 1 and (value.bounds.magnitude or not factor.bounds.magnitude):
            return None  # Of two numbers, the one of which something is known is the factor.
        if value.shape is not None and shape != value.shape:
            return None
        product = self._product(value, factor, union(value.provenance, factor.provenance))
        whole = factor if value.factor is None else self.multiply(value.factor, factor)
        parts = tuple(self.multiply(part, factor) for part in value.parts)
        line = lines.scaled(value, factor, product)
        return dataclasses.replace(
            product,
            elements=value.base,
            factor=whole,
            product=(value, factor),
            parts=parts,
            line=line,
            quotient=residues.multiple(value, factor),
            image=lines.scaled_image(value, factor),
        )

    def _product(self, value: Quantity, factor: Quantity, provenance: Provenance) -> Quantity:
        term = self.term("multiply", *sorted((value.term, factor.term)))
        return Quantity(
            term,
            union(provenance, factor.provenance),
            bounds.multiply(value.bounds, factor.bounds),
            value.shape,
            is_integer=value.is_integer and factor.is_integer,
        )

    def _sum_of_sums(self, first: Quantity, second: Quantity) -> Quantity:
        """Return the sum of sums over clients, or of one and a public tensor."""
        for sums, count in ((first, second), (second, first)):
            counted = self._counted(sums, count)
            if counted is not None:
                return counted
        shape = common_shape(first, second)
        is_followed = all(
            (each.shape == shape if each.sums else each.provenance.is_public)
            for each in (first, second)
        )
        if shape is None or not is_followed:
            return self.unknown([first, second], shape=shape)
        return Quantity(
            self.term("add", *sorted((first.term, second.term))),
            union(first.provenance, second.provenance),
            shape=shape,
            sums=(*first.sums, *second.sums),
            is_integer=first.is_integer and second.is_integer,
        )

    def _combined(self, first: Noise, second: Noise) -> Noise | None:
        """Return the sum of two draws, if they are independent and its distribution is known."""
        if self.have_common_draws(first.draws, second.draws):
            return None
        return noises.combined(first, second)

    def _counted(self, sums: Quantity, count: Quantity) -> Quantity | None:
        """Return a sum over clients and a multiple of their number as one sum, to which each client
        adds what it adds to both; None if the second is no such number."""
        if len(sums.sums) != 1 or len(count.sums) != 1 or sums.shape is None:
            return None
        (values, scale), (ones, factor) = sums.sums[0], count.sums[0]
        number, times, each = lines.number_of(ones.value), factor.exact, scale.exact
        if number is None or times is None or each is None or times.powers or each.powers:
            return None
        if ones.noise or values.noise or ones.draws or not ones.value.provenance.is_public:
            return None
        if not values.value.provenance.is_of_client or values.value.shape != sums.shape:
            return None
        if count.shape not in ((), sums.shape):
            return None
        share, weight = number * times.coefficient, each.coefficient
        is_integer = sums.is_integer and count.is_integer
        if is_integer:
            share, weight = int(share), int(weight)
        value = self.multiply(values.value, self.constant(weight))
        value = self.add(value, self.constant(share))
        beside = values.beside | ones.channels
        whole = dataclasses.replace(values, value=value, beside=beside)
        return Quantity(
            self.term("add", *sorted((sums.term, count.term))),
            union(sums.provenance, count.provenance),
            shape=sums.shape,
            sums=((whole, exactly(ONE)),),
            is_integer=is_integer,
        )

    def _signal(self, value: Quantity, noise: Quantity) -> Quantity:
        """Return a client's value with noise of its own."""
        total = self._elementwise("add", bounds.add, value, noise)
        assert noise.noise is not None
        is_used = self.have_common_draws(value.provenance.draws, noise.noise.draws)
        if is_used or _if_same_shape(noise.noise, total, value, noise) is None:
            return total
        return dataclasses.replace(total, signal=(value, noise.noise), addends=(value, noise))

    def _mechanism(self, sums: Quantity, noise: Quantity) -> Quantity:
        """Return sums with noise, which is a release if the noise is what it has to be."""
        assert noise.noise is not None
        whole = noise.noise
        if sums.half is not None:
            whole = self._combined(sums.half, noise.noise) or noise.noise
        why = self.flaw(sums, noise, whole)
        if why:
            exposures = frozenset(Exposure(e.source, why) for e in sums.provenance.exposures)
            origin = dataclasses.replace(sums.provenance, exposures=exposures)
            shape = common_shape(sums, noise)
            return Quantity(self.fresh(), union(origin, noise.provenance), shape=shape)
        if whole.distribution in noises.HALVES:
            origin = union(sums.provenance, noise.provenance)
            return Quantity(self.fresh(), origin, shape=sums.shape, sums=sums.sums, half=whole)
        return self.released(sums.sums, whole, sums.shape or (), sums.provenance, noise)


def _if_same_shape(noise: Noise | None, result: Quantity, *operands: Quantity) -> Noise | None:
    """Return noise if each element of the result has its own element of each operand."""
    if result.shape is None or any(operand.shape != result.shape for operand in operands):
        return None
    return noise
