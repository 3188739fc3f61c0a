"""What a round computes, as far as privacy can be shown of it: its sums, releases and state."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tffc.assurance.audit.contents import Contents
from tffc.assurance.audit.effects import AT_CLIENTS
from tffc.assurance.audit.names import call_names
from tffc.assurance.audit.places import report_place
from tffc.assurance.audit.programs import leaf_paths, results_of
from tffc.assurance.privacy.expressions import QuantityEvaluator, flat
from tffc.assurance.privacy.graphs.sections import NO_NOISE, Place, shape_of
from tffc.assurance.privacy.quantities import noises
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.bounds import (
    ANY,
    ONE,
    ZERO,
    Bounds,
    Monomial,
    Unknown,
    exactly,
    multiply,
)
from tffc.assurance.privacy.quantities.pending import settled
from tffc.assurance.privacy.quantities.quantity import (
    Contribution,
    Exposure,
    Provenance,
    Quantity,
    union,
)
from tffc.assurance.privacy.quantities.streams import Stream
from tffc.assurance.privacy.state_seeds import seed_of_state
from tffc.assurance.privacy.unrolled.rounds import Application, FollowedNoise
from tffc.backends.forms.stages import Stage, StagedCall, StagedRound
from tffc.language.calls import operands, uri_of
from tffc.language.nodes import Compiled, Node
from tffc.language.traverse import postorder
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import StructType, TensorType, Type
from tffc.linking.operand import from_leaves, rebuild
from tffc.support.errors import Span
from tffc.support.trampoline import run

SUMS = frozenset(
    {
        "federated_sum",
        "federated_secure_sum",
        "federated_secure_sum_bitwidth",
    }
)
"""The operators that add up what the clients have."""

ASSERTION = b"Assert"
"""What the message of a section has in it that asserts anything."""

MODULAR = "federated_secure_modular_sum"
MEAN = "federated_mean"
CLIENTS = Unknown("clients", ())
"""The number of clients of a round."""

ACCUMULATOR = Exposure("", "the accumulator")
"""Marks what an aggregation has added up so far."""


@dataclasses.dataclass(frozen=True, slots=True)
class StateFacts:
    """What is known of the elements of the server's state before each round, by their paths.

    `values` never change, `nonnegative` ones are never below zero, `ratios` are those to other
    elements, `noisy` ones hold noisy sums, and `exposed` ones what no noise hides, each with the
    reason.  `seeds` are integers that nobody can guess, and to which each round adds others;
    `repeated` ones began so, but may be the same in two rounds.  Of `noise` that is followed from
    round to round, the `secret` elements may tell something.  In the exposed ones that are
    `hidden` are only noise and its seeds.
    """

    values: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    nonnegative: frozenset[str] = frozenset()
    ratios: Mapping[str, tuple[str, float]] = dataclasses.field(
        default_factory=dict[str, tuple[str, float]]
    )
    noisy: frozenset[str] = frozenset()
    exposed: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    seeds: frozenset[str] = frozenset()
    repeated: frozenset[str] = frozenset()
    has_secret_seeds: bool = False
    noise: FollowedNoise | None = None
    secret: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class RoundQuantities:
    """The quantities of a round: broadcasts by name, and the leaves of its results by their
    paths; `spans` are the places of its channels."""

    algebra: Algebra
    broadcasts: tuple[tuple[str, Quantity], ...]
    state: Mapping[str, Quantity]
    output: Mapping[str, Quantity]
    is_output_released: bool
    spans: Mapping[str, Span | None]
    is_server_silent: bool = False
    """Whether no assertion at the server can fail, and so show what it is given."""


def evaluate(program: StagedRound, facts: StateFacts) -> RoundQuantities:
    """Return the quantities of a round that begins with a state of which facts are known.

    Raises:
      GraphError: a section is malformed.
      WireError: its message is malformed.
    """
    return _RoundEvaluation(program, facts).quantities()


class _RoundEvaluation(QuantityEvaluator):
    def __init__(self, program: StagedRound, facts: StateFacts) -> None:
        super().__init__(Algebra())
        self.algebra.has_secret_seeds = facts.has_secret_seeds
        self.algebra.follows_noise = facts.noise is not None
        self._round = program
        self._facts = facts
        self._application: Application = "", 0
        self._names = call_names(program, Contents(program))

    def quantities(self) -> RoundQuantities:
        parameter = self._round.type.parameter
        assert isinstance(parameter, StructType)
        state = parameter.names[0]
        self.values[self._round.parameter] = (
            self._state(parameter[0], state or "state"),
            rebuild(local_type(parameter[1]), self._of_client),
        )
        broadcasts: list[tuple[str, Quantity]] = []
        for staged in self._round.calls.values():
            self.algebra.place = self._place(staged)
            self._application = staged.name, 0
            value = self._staged(staged)
            self.values[staged.name] = value
            if staged.stage is Stage.BROADCAST:
                name = self._names.get(staged.name, staged.name)
                paths = leaf_paths(local_type(staged.call.type), name)
                broadcasts.extend(zip(paths, flat(value), strict=True))
        results = results_of(self._round)
        self._application = "", 0
        return RoundQuantities(
            self.algebra,
            tuple(broadcasts),
            self._leaves(results, "state"),
            self._leaves(results, "output"),
            # In a round without a new state, the output stays with its client.
            "state" in results,
            {self._names[s.name]: s.binding.span for s in self._round.aggregations()},
            all(map(self._is_silent, self._round.calls.values())),
        )

    def _is_silent(self, staged: StagedCall) -> bool:
        """Tell whether no assertion of a call can fail, unless clients may run it."""
        if staged.stage in AT_CLIENTS:
            return True
        sections = [n for n in postorder(staged.call) if isinstance(n, Compiled)]
        return all(
            self.algebra.assertions.get(id(section), ASSERTION not in section.payload)
            for section in sections
        )

    def _leaves(self, results: Mapping[str, Node], label: str) -> dict[str, Quantity]:
        if label not in results:
            return {}
        node = results[label]
        paths = leaf_paths(local_type(node.type), label)
        values = [settled(self.algebra, value) for value in flat(self.value(node))]
        return dict(zip(paths, values, strict=True))

    def noise_of_section(self) -> Mapping[Place, Stream]:
        """Return the noise that is followed from round to round in the section that is next."""
        application = self._application
        self._application = application[0], application[1] + 1
        if self._facts.noise is None:
            return NO_NOISE
        return self._facts.noise.streams.get(application, NO_NOISE)

    def _place(self, staged: StagedCall) -> str:
        span = staged.binding.span
        name = self._names.get(staged.name, "")
        return name if span is None else report_place(span)

    # The parameter.

    def _state(self, type: Type, label: str) -> Any:
        local = local_type(type)
        paths = iter(leaf_paths(local, label))
        return rebuild(local, lambda leaf: self._of_state(leaf, next(paths)))

    def _of_state(self, leaf: Type, path: str) -> Quantity:
        algebra, facts = self.algebra, self._facts
        if path in facts.values:
            return algebra.constant(facts.values[path])
        if path in facts.seeds and facts.noise is None:
            return seed_of_state(algebra, path)
        limits = ANY
        shape = shape_of(leaf)
        if path in facts.nonnegative and shape == ():
            other, ratio = facts.ratios.get(path, (path, 1.0))
            limits = exactly(Monomial(ratio, ((Unknown("state", (other,)), Fraction(1)),)))
        exposures: frozenset[Exposure] = frozenset()
        if path in facts.exposed:
            exposures = frozenset((Exposure(path, facts.exposed[path]),))
        texts = {f"the seed in {path} may be the same in two rounds"}
        seeded = frozenset(texts if path in facts.repeated else ())
        is_of_earlier = path in facts.noisy
        draws = frozenset((algebra.noise_number(),) if path in facts.secret else ())
        provenance = Provenance(
            exposures=exposures, draws=draws, seeded=seeded, is_of_earlier=is_of_earlier
        )
        is_integer = isinstance(leaf, TensorType) and leaf.element_type.is_integer
        return Quantity(
            algebra.term("state", path), provenance, limits, shape, is_integer=is_integer
        )

    def _of_client(self, leaf: Type) -> Quantity:
        is_integer = isinstance(leaf, TensorType) and leaf.element_type.is_integer
        return Quantity(
            self.algebra.fresh(),
            Provenance(is_of_client=True),
            shape=shape_of(leaf),
            is_integer=is_integer,
        )

    # Calls of the round.

    def _staged(self, staged: StagedCall) -> Any:
        if staged.stage is Stage.AGGREGATE:
            return self._aggregate(staged)
        if staged.stage is Stage.BROADCAST:
            values = tuple(
                rebuild(self.value(node), lambda leaf: settled(self.algebra, leaf))
                for node in operands(staged.call)
            )
            if len(values) == 1:
                return values[0]
            return self.filled(staged.call.type, flat(values))
        value = self.value(staged.call)
        if staged.stage is Stage.ANYWHERE:
            # Whether it runs once or wherever it is needed is not said.
            return rebuild(
                value, lambda q: dataclasses.replace(q, noise=None, signal=None, seed=None)
            )
        return value

    def _aggregate(self, staged: StagedCall) -> Any:
        channel, uri = self._names[staged.name], uri_of(staged.call)
        value, *rest = operands(staged.call)
        if uri == "federated_aggregate":
            return self._aggregated_by_program(staged, channel, self.value(value), rest)
        if uri in SUMS:
            return self._sums(channel, value.type, self.value(value), exactly(ONE))
        if uri == MEAN:
            inverse = exactly(Monomial(1.0, ((CLIENTS, Fraction(-1)),)))
            return self._sums(channel, value.type, self.value(value), inverse)
        if uri == MODULAR:
            moduli = flat(self.value(rest[0]))
            return self._modular_sums(channel, value.type, self.value(value), moduli)
        reason = f"{uri} is not a sum"
        parts = [leaf for node in (value, *rest) for leaf in flat(self.value(node))]
        exposed = Provenance(exposures=frozenset((Exposure(channel, reason),)))
        total = dataclasses.replace(union(*(leaf.provenance for leaf in parts)), is_of_client=False)
        return rebuild(
            local_type(staged.call.type),
            lambda leaf: Quantity(
                self.algebra.fresh(), union(exposed, total), shape=shape_of(leaf)
            ),
        )

    def _modular_sums(self, channel: str, type: Type, value: Any, moduli: list[Quantity]) -> Any:
        """Return sums modulo a number: a function of the sums of what they are remainders of.

        That hides what its noise hides, which clients have to add before.
        """
        limits = moduli * len(flat(value)) if len(moduli) == 1 else moduli
        wholes = iter(_whole(leaf, limit) for leaf, limit in zip(flat(value), limits, strict=True))
        result = self._sums(channel, type, rebuild(value, lambda _: next(wholes)), exactly(ONE))
        reason = "the sum is taken modulo a number before noise is added to it"
        return rebuild(result, lambda leaf: self._exposed(leaf, channel, reason))

    def _exposed(self, leaf: Quantity, channel: str, reason: str) -> Quantity:
        if not leaf.sums:
            return leaf
        exposures = frozenset((Exposure(channel, reason),))
        return Quantity(self.algebra.fresh(), Provenance(exposures=exposures), shape=leaf.shape)

    def _sums(self, channel: str, type: Type, value: Any, scale: Bounds) -> Any:
        """Return the sum of each leaf over the clients, times a number."""
        paths = leaf_paths(local_type(type), channel)
        types = leaves(local_type(type))
        results = [
            self._sum(channel, path, shape_of(leaf), quantity, scale)
            for path, leaf, quantity in zip(paths, types, flat(value), strict=True)
        ]
        return from_leaves(local_type(type), results)

    def _range(self, value: Quantity, scale: Bounds) -> Bounds:
        """Return the bounds of a sum of integers over the clients."""
        if not value.is_integer:
            return ANY
        return multiply(
            multiply(value.bounds, exactly(Monomial(1.0, ((CLIENTS, Fraction(1)),)))), scale
        )

    def _sum(self, channel: str, path: str, shape: Any, value: Quantity, scale: Bounds) -> Quantity:
        algebra = self.algebra
        if value.residue is not None and scale.exact == ONE:
            hidden = self._sum(channel, path, shape, value.residue[0], scale)
            if not hidden.sums:
                reason = "its noise hides it only modulo a number"
                origin = Provenance(exposures=frozenset((Exposure(channel, reason),)))
                rest = Quantity(algebra.fresh(), origin, shape=shape, is_integer=True)
                return dataclasses.replace(rest, residue=(hidden, value.residue[1]))
        signal, noise = value.signal or (value, None)
        if noise is None and value.noise is not None:
            zero = Quantity(algebra.fresh(), bounds=exactly(ZERO), shape=value.shape)
            signal, noise = zero, value.noise
        if noise is not None and noise.distribution not in noises.PRIVATE:
            signal, noise = value, None
        draws = algebra.single_draws(value.provenance.draws)
        contribution = Contribution(channel, path, signal, noise, draws)
        exposures = frozenset((Exposure(channel, "no noise is added to the sum"),))
        provenance = Provenance(exposures=exposures, seeded=value.provenance.seeded)
        sums = ((contribution, scale),)
        if noise is not None and shape is not None:
            noise = dataclasses.replace(noise, scale=multiply(noise.scale, scale))
            return algebra.released(sums, noise, shape, provenance)
        return Quantity(
            algebra.fresh(),
            provenance,
            self._range(value, scale),
            shape,
            sums=sums,
            is_integer=value.is_integer,
        )

    def _aggregated_by_program(
        self, staged: StagedCall, channel: str, value: Any, rest: list[Node]
    ) -> Any:
        """Return the result of an aggregation by functions of the program, which may be a sum."""
        zero, accumulate, merge, report = map(self.value, rest)
        begin = self._marked(zero)
        added = run(self.apply(accumulate, (begin, value)))
        first, second = self._marked(zero), self._marked(zero)
        merged = run(self.apply(merge, (first, second)))
        steps = [
            self._addends(total, [start])
            for total, start in zip(flat(added), flat(begin), strict=True)
        ]
        merges = [
            self._addends(total, [one, other])
            for total, one, other in zip(flat(merged), flat(first), flat(second), strict=True)
        ]
        is_sum = (
            all(step is not None for step in steps)
            and all(rest is not None and not rest for rest in merges)
            and all(leaf.bounds.exact == ZERO for leaf in flat(zero))
        )
        type = local_type(rest[0].type)
        if not is_sum:
            reason = "its functions do more than to add up what clients have"
            exposed = Provenance(exposures=frozenset((Exposure(channel, reason),)))
            leaf_quantities = [
                Quantity(self.algebra.fresh(), exposed, shape=shape_of(leaf))
                for leaf in leaves(type)
            ]
            return run(self.apply(report, from_leaves(type, leaf_quantities)))
        paths = leaf_paths(type, channel)
        totals: list[Quantity] = []
        for path, leaf, step in zip(paths, leaves(type), steps, strict=True):
            total: Quantity | None = None
            for addend in step or []:
                part = self._sum(channel, path, shape_of(leaf), addend, exactly(ONE))
                total = part if total is None else self.algebra.add(total, part)
            empty = Quantity(self.algebra.fresh(), bounds=exactly(ZERO), shape=shape_of(leaf))
            totals.append(total or empty)
        return run(self.apply(report, from_leaves(type, totals)))

    def _marked(self, zero: Any) -> Any:
        """Return what an accumulator may hold."""
        marks = Provenance(exposures=frozenset((ACCUMULATOR,)))
        return rebuild(
            zero,
            lambda leaf: Quantity(
                self.algebra.fresh(), marks, shape=leaf.shape, is_integer=leaf.is_integer
            ),
        )

    def _addends(self, total: Quantity, starts: list[Quantity]) -> list[Quantity] | None:
        """Return what is added to some accumulators, or None if anything else is done to them."""
        left = [start.term for start in starts]
        rest: list[Quantity] = []
        stack = [total]
        while stack:
            value = stack.pop()
            if value.term in left:
                left.remove(value.term)
            elif ACCUMULATOR not in value.provenance.exposures:
                rest.append(value)
            elif value.addends is not None:
                stack.extend(value.addends)
            else:
                return None
        shapes = {value.shape for value in (*rest, *starts)}
        return None if left or len(shapes) > 1 or None in shapes else rest


def _whole(value: Quantity, modulus: Quantity) -> Quantity:
    """Return what a value is the remainder of by a modulus, or else the value itself.

    If that is a remainder by another modulus, the sum modulo this one is not equal to it.
    """
    if value.residue is not None and modulus.bounds.exact == value.residue[1]:
        value = value.residue[0]
    return dataclasses.replace(value, residue=None)
