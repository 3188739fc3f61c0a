"""What is always true of the elements of a server's state: facts that hold before the first round,
and after a round if they held before it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from tffc.assurance.audit.programs import leaf_paths
from tffc.assurance.privacy.expressions import QuantityEvaluator, flat
from tffc.assurance.privacy.graphs.sections import results_of_graph
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.bounds import SAME
from tffc.assurance.privacy.quantities.quantity import Quantity
from tffc.assurance.privacy.rounds import RoundQuantities, StateFacts, evaluate
from tffc.assurance.privacy.state_seeds import first_seeds, goes_on
from tffc.assurance.privacy.unrolled.rounds import FollowedNoise
from tffc.backends.compiler import compile_initialize
from tffc.backends.forms.stages import StagedRound
from tffc.language.nodes import Node
from tffc.language.type_parts import leaves, local_type
from tffc.language.types import StructType
from tffc.support.trampoline import run

ROUNDING = 5e-7
"""By how much constants of 32 bits may change a ratio that is computed from them."""

MOST_PARTNERS = 8
"""The elements with which the ratio of one is tried."""


@dataclasses.dataclass(frozen=True, slots=True)
class Beginning:
    """What is known of the first state: `values` without running anything, by path.

    The `drawn` elements may depend on draws of noise or on a clock.  The elements `seeds` are read
    from a clock or drawn, and `telling` ones may tell about them, each with the path of the seed.
    """

    values: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    seeds: frozenset[str] = frozenset()
    drawn: frozenset[str] = frozenset()
    telling: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])


def first_state(initialize: Node | None, program: StagedRound, algebra: Algebra) -> Beginning:
    """Return what is known of the first state.

    Raises:
      TffcError: as `compile_initialize` does.
    """
    parameter = program.type.parameter
    assert isinstance(parameter, StructType)
    label = parameter.names[0] or "state"
    if initialize is None:
        return Beginning()
    paths = leaf_paths(local_type(parameter[0]), label)
    # XLA modules that are linked into one graph are not looked into.
    whole = results_of_graph(compile_initialize(initialize), [], algebra)
    evaluator = QuantityEvaluator(algebra)
    by_parts = flat(run(evaluator.apply(evaluator.value(initialize), None)))
    known: dict[str, Any] = {}
    for values in (by_parts, whole):
        if len(paths) == len(values):
            pairs = zip(paths, values, strict=True)
            known.update((path, v.content) for path, v in pairs if v.content is not None)
    if len(paths) != len(by_parts):
        return Beginning(known, drawn=frozenset(paths))
    first = dict(zip(paths, by_parts, strict=True))
    drawn = frozenset(path for path, value in first.items() if value.provenance.draws)
    if not algebra.has_secret_seeds:
        return Beginning(known, drawn=drawn)
    seeds, telling = first_seeds(first, leaves(local_type(parameter[0])), algebra)
    return Beginning(known, seeds, drawn, telling)


def known_state(
    program: StagedRound,
    first: Beginning,
    *,
    has_secret_seeds: bool = False,
    noise: FollowedNoise | None = None,
) -> tuple[StateFacts, RoundQuantities]:
    """Return facts about the state that hold before each round, and the quantities of a round that
    begins with them.

    Facts are supposed as far as the `first` state has them, and those that a round does not keep
    are dropped, until all that are left are kept.
    """
    search = _Search(program, first, has_secret_seeds=has_secret_seeds, noise=noise)
    while True:
        facts = search.facts()
        quantities = evaluate(program, facts)
        if not search.drop(quantities):
            return facts, quantities


class _Search:
    def __init__(
        self,
        program: StagedRound,
        state: Beginning,
        *,
        has_secret_seeds: bool,
        noise: FollowedNoise | None,
    ) -> None:
        first = state.values
        parameter = program.type.parameter
        assert isinstance(parameter, StructType)
        self._label = parameter.names[0] or "state"
        self._first = first
        self._values = dict(first)
        numbers = {path: _number(value) for path, value in first.items()}
        self._nonnegative = {p for p, number in numbers.items() if number is not None}
        self._positive = [path for path, number in numbers.items() if number]
        self._tried: dict[str, int] = {}
        self._rounded: dict[tuple[str, str], float] = {}
        """Ratios after a round that differ from the first ones by the rounding of constants."""
        self._noisy: set[str] = set()
        self._noise = noise
        self._secret = set[str]()
        if noise is not None:
            self._secret.update((state.drawn | noise.secret) - noise.constant)
        self._has_secret_seeds = has_secret_seeds
        self._seeds = set(state.seeds)
        self._repeated: set[str] = set()
        self._hidden = set(state.telling)
        self._exposed = {
            path: f"it may tell about the seed in {seed}" for path, seed in state.telling.items()
        }

    def facts(self) -> StateFacts:
        changing = [p for p in self._nonnegative if p not in self._values]
        return StateFacts(
            self._values,
            frozenset(changing),
            self._ratios(),
            frozenset(self._noisy),
            {**dict.fromkeys(self._secret, "it may tell about the noise"), **self._exposed},
            frozenset(self._seeds),
            frozenset(self._repeated),
            self._has_secret_seeds,
            self._noise,
            frozenset(self._secret),
            self._of_noise(),
        )

    def _ratios(self) -> dict[str, tuple[str, float]]:
        """Return the ratio of each positive element to one before it, of those not yet refuted."""
        ratios: dict[str, tuple[str, float]] = {}
        changing = [
            path
            for path in self._positive
            if path in self._nonnegative and path not in self._values
        ]
        for place, path in enumerate(changing):
            partners = [other for other in changing[:place] if other not in ratios]
            number = self._tried.get(path, 0)
            if number < min(len(partners), MOST_PARTNERS):
                other = partners[number]
                first = float(self._first[path]) / float(self._first[other])
                ratios[path] = other, self._rounded.get((path, other), first)
        return ratios

    def drop(self, quantities: RoundQuantities) -> bool:
        """Drop what a round does not keep, and return whether that was anything."""
        facts = self.facts()
        after = {self._path(path): value for path, value in quantities.state.items()}
        dropped = False
        for path in list(self._values):
            content = after[path].content if path in after else None
            if content is None or not np.array_equal(content, self._values[path]):
                del self._values[path]
                dropped = True
        for path in facts.nonnegative:
            if path not in after or not after[path].bounds.is_nonnegative:
                self._nonnegative.discard(path)
                dropped = True
        for path, (other, ratio) in facts.ratios.items():
            later = _ratio(after.get(path), after.get(other))
            if later is not None and math.isclose(later, ratio, rel_tol=SAME):
                continue
            dropped = True
            is_first = (path, other) not in self._rounded
            if is_first and later and math.isclose(later, ratio, rel_tol=ROUNDING):
                # Kept, if it is the same after one more round.
                self._rounded[path, other] = later
            else:
                self._tried[path] = self._tried.get(path, 0) + 1
        dropped |= self._drop_secrets(after, quantities.algebra)
        for path, value in after.items():
            origin = value.provenance
            if path not in self._noisy and (origin.mechanisms or origin.is_of_earlier):
                self._noisy.add(path)
                dropped = True
            dropped |= self._expose(path, *_exposure(value, quantities, self._of_noise()))
        return dropped

    def _of_noise(self) -> frozenset[str]:
        """Return the elements in which there are only noise and its seeds."""
        return frozenset(self._hidden | (self._secret - self._exposed.keys()))

    def _expose(self, path: str, reason: str, is_noise: bool) -> bool:
        """Note why an element must not be released, and return whether that is new."""
        if not reason or (path in self._exposed and (is_noise or path not in self._hidden)):
            return False
        self._exposed[path] = reason
        self._hidden.discard(path)
        self._hidden.update((path,) if is_noise else ())
        return True

    def _drop_secrets(self, after: Mapping[str, Quantity], algebra: Algebra) -> bool:
        """Drop seeds that may be the same in two rounds, and add what tells about noise."""
        dropped = False
        for path, value in after.items():
            if path not in self._secret and algebra.followed_draws & value.provenance.draws:
                self._secret.add(path)
                dropped = True
        for path in sorted(self._seeds):
            if path not in after or not goes_on(after[path], path, algebra):
                self._seeds.discard(path)
                self._repeated.add(path)
                dropped = True
        return dropped

    def _path(self, path: str) -> str:
        """Return the path in the parameter of an element of the new state."""
        return self._label + path.removeprefix("state")


def _number(value: Any) -> float | None:
    """Return the value of a number that is not negative; None for anything else."""
    return float(value) if np.shape(value) == () and float(value) >= 0 else None


def _ratio(value: Quantity | None, other: Quantity | None) -> float | None:
    """Return the ratio of two numbers, if they are multiples of one positive unknown."""
    one = None if value is None else value.bounds.exact
    two = None if other is None else other.bounds.exact
    if one is None or two is None or one.powers != two.powers or two.coefficient <= 0:
        return None
    return one.coefficient / two.coefficient


def _exposure(value: Quantity, quantities: RoundQuantities, hidden: Set[str]) -> tuple[str, bool]:
    """Return why an element of the new state must not be released, or an empty text; and whether it
    is for noise or a seed alone, as it is with elements that are `hidden`."""
    exposures = sorted(
        value.provenance.exposures, key=lambda e: (e.source in hidden, e.source, e.reason)
    )
    for exposure in exposures:
        text = f"it holds {exposure.source}: {exposure.reason}"
        return text, exposure.source in hidden
    algebra = quantities.algebra
    draws = algebra.single_draws(value.provenance.draws)
    for mechanism in algebra.mechanisms:
        if draws & algebra.single_draws(mechanism.noise.draws):
            return f"it holds the noise of {mechanism.noise.place}", True
    return "", False
