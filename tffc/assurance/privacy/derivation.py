"""The derivation of a round's privacy: what is released, what bounds and hides a client's part in
it, and the mechanisms that follow; or the steps that are missing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tffc.assurance.audit.audit import Audit, Effect
from tffc.assurance.audit.outcomes import SHOWN
from tffc.assurance.audit.places import report_place
from tffc.assurance.privacy.accounting import (
    DiscreteGaussian,
    Gaussian,
    Laplacian,
    Part,
    Skellam,
    excess_of_shares,
)
from tffc.assurance.privacy.correlation import groups, is_followed
from tffc.assurance.privacy.quantities import bounds, noises
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.bounds import ONE, Monomial, Unknown
from tffc.assurance.privacy.quantities.quantity import Mechanism, Quantity
from tffc.assurance.privacy.question import Neighbours
from tffc.assurance.privacy.rounds import CLIENTS, RoundQuantities, StateFacts
from tffc.assurance.privacy.sensitivity import ContributionBound, NotShown, Sensitivity, sensitivity
from tffc.assurance.privacy.state import first_state, known_state
from tffc.assurance.privacy.unrolled.rounds import follow
from tffc.assurance.privacy.unrolled.values import StepsError
from tffc.backends.forms.stages import StagedRound
from tffc.language.nodes import Node
from tffc.support.errors import LanguageValueError, Span
from tffc.support.near import did_you_mean
from tffc.support.printable import counted

REACHING = frozenset({"network", "python", "unknown", "files"})
"""The kinds of effects by which a client's data may reach somebody without a channel."""


ADDED_UP = (noises.NORMAL, noises.SKELLAM, noises.DISCRETE)
"""The distributions of which the sum of independent draws is one again, or nearly so, with their
variances added up."""


SAME_STATE = "no two rounds begin with the same state, in which noise or its seeds are"
"""What is assumed of rounds if something of their noise is in the state."""


@dataclasses.dataclass(frozen=True, slots=True)
class Missing:
    """A step of a derivation that is not shown: what it would have to show of which release or
    channel, the reason, and the place of the channel."""

    subject: str
    step: str
    reason: str
    span: Span | None = None

    @property
    def line(self) -> str:
        """The place as reports have it."""
        return "" if self.span is None else report_place(self.span)


@dataclasses.dataclass(frozen=True, slots=True)
class Disclosure:
    """Something of a round that others see, or that is kept for later rounds: its name, its kind,
    and the mechanisms that it is made of, by number.

    It `is_of_earlier` rounds if it is made of their mechanisms, and `is_exposed` if a sum without
    noise may be in it.
    """

    name: str
    kind: str
    mechanisms: tuple[int, ...]
    is_of_earlier: bool
    is_exposed: bool


@dataclasses.dataclass(frozen=True, slots=True)
class NoisySum:
    """A mechanism: the leaves of channels that are added up, how, the distribution and the scale of
    the noise, where it is drawn and where it is added."""

    leaves: tuple[str, ...]
    combination: str
    distribution: str
    scale: str
    drawn: str
    added: str


@dataclasses.dataclass(frozen=True, slots=True)
class Derivation:
    """What is shown of the privacy of a round, or the steps that are `missing`.

    `sums` are its mechanisms, and `numbers` those by which disclosures name them.
    `parts` are the mechanisms of one round, joined by kind, as the accountant takes them.
    `assumptions` are what the derivation rests on and does not show.  If it `counts_clients`, it
    holds for rounds of at least the number of clients that was asked about, and else of any.
    `once` are the mechanisms of all rounds together, whose noise `is_followed` from round to round.
    """

    neighbours: Neighbours
    data: tuple[str, ...]
    disclosures: tuple[Disclosure, ...]
    sums: tuple[NoisySum, ...]
    numbers: tuple[int, ...]
    bounds: tuple[ContributionBound, ...]
    parts: tuple[Part, ...]
    missing: tuple[Missing, ...]
    assumptions: tuple[str, ...]
    counts_clients: bool = False
    knows_first_state: bool = False
    once: tuple[Gaussian, ...] = ()
    is_followed: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether no step is missing."""
        return not self.missing


def derive(
    program: StagedRound,
    audit: Audit,
    initialize: Node | None,
    neighbours: Neighbours,
    *,
    least_clients: int = 1,
    withheld: Sequence[str] = (),
    has_secret_seeds: bool = False,
    rounds: int | None = None,
    participations: int | None = None,
) -> Derivation:
    """Return the derivation for a staged round with its audit.

    `least_clients` is a number of clients that every round has at least.  Outputs at or below the
    paths `withheld` are seen by nobody but who runs the rounds.  If it `has_secret_seeds`, those
    that are read from a clock, or begin as one in the state, count as secret and different.
    If a number of `rounds` is given, noise may be correlated between them, and each client takes
    part in at most that number of `participations`.

    Raises:
      LanguageValueError: one of the paths is that of no output.
      GraphError: a section is malformed.
      WireError: its message is malformed.
    """
    algebra = Algebra()
    algebra.has_secret_seeds = has_secret_seeds
    first = first_state(initialize, program, algebra)
    facts, quantities = known_state(program, first, has_secret_seeds=has_secret_seeds)
    quantities.algebra.assumptions.update(algebra.assumptions)
    for path in withheld:
        _check_output(path, quantities.output)
    known = bool(first.values or first.seeds)

    def deriving(quantities: RoundQuantities, facts: StateFacts) -> Derivation:
        return _Deriving(
            quantities,
            facts,
            audit,
            neighbours,
            least_clients,
            known,
            tuple(withheld),
            participations,
        ).derivation()

    result = deriving(quantities, facts)
    if result.is_shown or rounds is None or initialize is None:
        return result
    try:
        noise = follow(program, initialize, rounds, has_secret_seeds=has_secret_seeds)
    except StepsError:
        return result
    if noise is None:
        return result
    facts, quantities = known_state(program, first, has_secret_seeds=has_secret_seeds, noise=noise)
    followed = deriving(quantities, facts)
    return followed if followed.is_followed else result


def _check_output(path: str, outputs: Iterable[str]) -> None:
    """Check that an output is at or below a path.

    Raises:
      LanguageValueError: none is.
    """
    known = list(outputs)
    if not any(_is_below(output, path) for output in known):
        raise LanguageValueError(
            "E706",
            f"{path!r} is not the path of an output",
            help=did_you_mean(path, known) or f"the outputs are {', '.join(known)}",
        )


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith((f"{root}.", f"{root}["))


class _Deriving:
    def __init__(
        self,
        quantities: RoundQuantities,
        facts: StateFacts,
        audit: Audit,
        neighbours: Neighbours,
        least_clients: int,
        knows_first_state: bool,
        withheld: tuple[str, ...],
        participations: int | None = None,
    ) -> None:
        self._quantities = quantities
        self._facts = facts
        self._algebra = quantities.algebra
        self._audit = audit
        self._neighbours = neighbours
        self._values: Mapping[Unknown, float] = {CLIENTS: float(least_clients)}
        self._least_clients = least_clients
        self._knows_first_state = knows_first_state
        self._withheld = withheld
        self._participations = participations
        self._missing: list[Missing] = []
        self._bounds: list[ContributionBound] = []
        self._counts_clients = False

    def derivation(self) -> Derivation:
        used: dict[int, None] = {}
        disclosures: list[Disclosure] = []
        draws: set[int] = set()
        for name, kind, value in self._released():
            disclosures.append(_disclosure(name, kind, value))
            used.update(dict.fromkeys(value.provenance.mechanisms))
            draws |= self._algebra.single_draws(value.provenance.draws)
            self._note_exposures(name, value)
        for path, value in self._quantities.state.items():
            element = _disclosure(path, "kept", value, self._facts.hidden)
            if element.mechanisms or element.is_of_earlier or element.is_exposed:
                disclosures.append(element)
            used.update(dict.fromkeys(value.provenance.mechanisms))
        mechanisms = {number: self._algebra.mechanisms[number] for number in sorted(used)}
        self._note_reuse(mechanisms, draws)
        self._note_effects()
        followed = [each for each in mechanisms.values() if is_followed(each)]
        once = list(self._once(followed))
        parts = list(self._parts([m for m in mechanisms.values() if m not in followed]))
        return Derivation(
            self._neighbours,
            self._audit.data,
            tuple(disclosures),
            tuple(map(self._noisy_sum, mechanisms.values())),
            tuple(mechanisms),
            tuple(self._bounds),
            tuple(parts),
            tuple(dict.fromkeys(self._missing)),
            tuple(self._assumptions(list(mechanisms.values()))),
            self._counts_clients,
            self._knows_first_state,
            tuple(once),
            bool(followed),
        )

    def _released(self) -> Iterator[tuple[str, str, Quantity]]:
        for name, value in self._quantities.broadcasts:
            yield name, "broadcast", value
        if self._quantities.is_output_released:
            for path, value in self._quantities.output.items():
                if not any(_is_below(path, root) for root in self._withheld):
                    yield path, "output", value

    # Missing steps.

    def _note_exposures(self, name: str, value: Quantity) -> None:
        for exposure in value.provenance.exposures:
            span = self._quantities.spans.get(exposure.source)
            reason = exposure.reason
            if value.provenance.seeded:
                reason += f"; {', '.join(sorted(value.provenance.seeded))}, which hides nothing"
            subject = f"{name}, from {exposure.source}"
            self._missing.append(Missing(subject, "noise", reason, span))

    def _note_reuse(self, mechanisms: Mapping[int, Mechanism], released: set[int]) -> None:
        """Note noise that is in more than one place."""
        owner: dict[int, Mechanism] = {}
        for mechanism in mechanisms.values():
            for draw in self._algebra.single_draws(mechanism.noise.draws):
                if draw in owner and not is_followed(mechanism):
                    self._add_missing(
                        mechanism, "noise drawn once", "the same noise is added to another sum too"
                    )
                if draw in released:
                    self._add_missing(
                        mechanism,
                        "noise kept secret",
                        "something that is released depends on the noise in another way too",
                    )
                owner[draw] = mechanism
        for mechanism in mechanisms.values():
            inside = self._algebra.single_draws(d for c, _ in mechanism.sums for d in c.draws)
            for draw in inside - self._algebra.single_draws(mechanism.noise.draws):
                if draw in owner:
                    self._add_missing(
                        owner[draw],
                        "noise drawn once",
                        f"the same noise is in {mechanism.sums[0][0].leaf} in another way too",
                    )

    def _add_missing(self, mechanism: Mechanism, step: str, reason: str) -> None:
        channel = mechanism.sums[0][0].channel
        span = self._quantities.spans.get(channel)
        self._missing.append(Missing(channel, step, reason, span))

    def _note_effects(self) -> None:
        for effect in self._audit.effects:
            if self._may_tell(effect):
                self._missing.append(
                    Missing(
                        f"{effect.operation} at the {effect.side}",
                        "no other release",
                        "what it shows or passes on may depend on clients' data",
                        effect.span,
                    )
                )

    def _may_tell(self, effect: Effect) -> bool:
        """Tell whether an effect may show others something of clients' data or of the noise."""
        is_assertion = effect.operation == "Assert" and effect.kind == SHOWN
        if is_assertion and effect.side == "server" and self._quantities.is_server_silent:
            return False
        depends = effect.depends
        if effect.side == "server":
            exposed = any(path in self._facts.exposed for path in depends.state)
            return bool(depends.channels or depends.draws or exposed)
        tells = depends.elements or depends.counts or depends.shapes or depends.draws
        return effect.kind in REACHING and bool(tells)

    # Mechanisms.

    def _once(self, mechanisms: Sequence[Mechanism]) -> Iterator[Gaussian]:
        """Yield what all rounds release together, with noise that is followed between them."""
        try:
            for alike in groups(mechanisms, self._participations):
                part = self._gaussian(alike)
                if part is not None:
                    yield part
        except NotShown as missing:
            span = self._quantities.spans.get(missing.channel)
            self._missing.append(Missing(missing.channel, missing.step, missing.reason, span))

    def _parts(self, mechanisms: Sequence[Mechanism]) -> Iterator[Part]:
        makers: dict[str, Callable[[Sequence[Mechanism]], Part | None]] = {
            noises.NORMAL: self._gaussian,
            noises.LAPLACE: self._laplacian,
            noises.SKELLAM: self._skellam,
            noises.DISCRETE: self._discrete,
        }
        for mechanism in mechanisms:
            is_of_clients = all(contribution.noise for contribution, _ in mechanism.sums)
            if self._facts.noise is not None and not is_of_clients:
                reason = "other noise is followed from round to round, and this noise is not"
                self._add_missing(mechanism, "noise", reason)
            if mechanism.noise.distribution not in makers:
                reason = f"there is no bound for {mechanism.noise.distribution} noise"
                self._add_missing(mechanism, "noise", reason)
        for distribution, make in makers.items():
            alike = [m for m in mechanisms if m.noise.distribution == distribution]
            if not alike:
                continue
            try:
                part = make(list(map(self._with_shares, alike)))
            except NotShown as missing:
                span = self._quantities.spans.get(missing.channel)
                self._missing.append(Missing(missing.channel, missing.step, missing.reason, span))
            else:
                if part is not None:
                    yield part

    def _with_shares(self, mechanism: Mechanism) -> Mechanism:
        """Return a mechanism with the noise that all clients of a round add together."""
        noise = mechanism.noise
        is_of_clients = any(contribution.noise for contribution, _ in mechanism.sums)
        if not is_of_clients or noise.distribution not in ADDED_UP:
            return mechanism
        self._counts_clients = True
        shares = bounds.constant(math.sqrt(self._least_clients))
        whole = dataclasses.replace(noise, scale=bounds.multiply(noise.scale, shares))
        return dataclasses.replace(mechanism, noise=whole)

    def _gaussian(self, mechanisms: Sequence[Mechanism]) -> Gaussian | None:
        norm = self._norm(mechanisms, 2)
        return Gaussian(1 / norm) if norm else None

    def _laplacian(self, mechanisms: Sequence[Mechanism]) -> Laplacian | None:
        norm = self._norm(mechanisms, 1)
        return Laplacian(1 / norm) if norm else None

    def _discrete(self, mechanisms: Sequence[Mechanism]) -> DiscreteGaussian | None:
        _check_integers(mechanisms)
        excess = 0.0
        for mechanism in mechanisms:
            exact = mechanism.noise.scale.exact
            scale = None if exact is None else exact.with_values(self._values)
            if scale is None or scale.powers:
                channel = mechanism.sums[0][0].channel
                raise NotShown(channel, "scale of the noise", "it is not one known number")
            is_of_clients = any(contribution.noise for contribution, _ in mechanism.sums)
            shares = self._least_clients if is_of_clients else 1
            deviation = scale.coefficient / math.sqrt(shares)
            excess += math.prod(mechanism.shape) * excess_of_shares(deviation, shares)
        norm = self._norm(mechanisms, 2)
        return DiscreteGaussian(norm, excess) if norm else None

    def _skellam(self, mechanisms: Sequence[Mechanism]) -> Skellam | None:
        _check_integers(mechanisms)
        scales = {mechanism.noise.scale.exact for mechanism in mechanisms}
        scale = scales.pop() if len(scales) == 1 else None
        self._counts_clients |= scale is not None and _depends_on_clients(scale)
        if scale is None or scale.with_values(self._values).powers:
            channel = mechanisms[0].sums[0][0].channel
            raise NotShown(channel, "scale of the noise", "it is not one known number")
        l1, l2 = self._norm(mechanisms, 1), self._norm(mechanisms, 2)
        deviation = scale.with_values(self._values).coefficient
        return Skellam(l1, l2, deviation) if l2 else None

    def _norm(self, mechanisms: Sequence[Mechanism], power: int) -> float:
        joint: Sensitivity = sensitivity(mechanisms, power, self._neighbours, self._algebra)
        self._bounds.extend(bound for bound in joint.bounds if bound not in self._bounds)
        number = joint.number(self._values)
        self._counts_clients |= any(map(_depends_on_clients, joint.terms))
        if any(u == CLIENTS and e > 0 for term in joint.terms for u, e in term.powers):
            number = None
        if number is None:
            unknown = sorted({_name(u) for term in joint.terms for u, _ in term.powers})
            advice = "" if self._knows_first_state else "; the first state is not known"
            raise NotShown(
                mechanisms[0].sums[0][0].channel,
                "ratio of the noise to the bound",
                f"it changes with {', '.join(unknown)}{advice}",
            )
        return number

    def _noisy_sum(self, mechanism: Mechanism) -> NoisySum:
        exact = mechanism.noise.scale.exact
        texts = [monomial_text(bound) for bound in mechanism.noise.scale.least_magnitude]
        scale = monomial_text(exact) if exact else f"at least {texts[0]}" if texts else "not known"
        if is_followed(mechanism):
            scale = "other noise in each round"
        at_clients = any(contribution.noise for contribution, _ in mechanism.sums)
        return NoisySum(
            tuple(dict.fromkeys(contribution.leaf for contribution, _ in mechanism.sums)),
            "sum over clients" + (", each with noise of its own" if at_clients else ""),
            mechanism.noise.distribution,
            scale,
            mechanism.noise.place,
            mechanism.place,
        )

    def _assumptions(self, mechanisms: Iterable[Mechanism]) -> Iterator[str]:
        yield "each client takes part at most once in a round"
        yield "no number that a client computes with is infinite or no number"
        yield "no sum of integers, and none with noise, is larger than its type can hold"
        yield (
            "arithmetic is that of real numbers: digits that floating-point numbers have or lose "
            "may tell more, as precision-based attacks do"
        )
        yield "random numbers are independent and cannot be predicted"
        yield from self._algebra.assumptions
        if any(is_followed(each) for each in mechanisms) and self._facts.noise is not None:
            yield from self._facts.noise.assumptions
        if self._participations is not None:
            yield f"each client takes part in at most {counted(self._participations, 'round')}"
        if self._withheld:
            yield f"nobody else sees {', '.join(self._withheld)}"
        if self._audit.may_be_buffered:
            yield "rounds are not buffered"
        if self._knows_first_state:
            yield "the first round begins with the program's first state"
        if self._facts.noise is not None or self._facts.seeds:
            yield SAME_STATE
        if any(c.noise is not None for mechanism in mechanisms for c, _ in mechanism.sums):
            count = self._least_clients
            yield f"at least {count} of a round's clients add the noise that they should"
        elif self._counts_clients:
            yield f"every round has at least {self._least_clients} clients"
        open_channels = self._audit.seen_by_aggregator
        if open_channels:
            yield (
                "whoever carries out the aggregation is trusted with single contributions: "
                + ", ".join(open_channels)
            )


def _check_integers(mechanisms: Sequence[Mechanism]) -> None:
    """Check that all that is added up are integers.

    Raises:
      NotShown: something else is.
    """
    for mechanism in mechanisms:
        if all(c.value.is_integer and scale.exact == ONE for c, scale in mechanism.sums):
            continue
        channel = mechanism.sums[0][0].channel
        reason = f"{mechanism.noise.distribution} noise hides sums of integers only"
        raise NotShown(channel, "integers", reason)


def _depends_on_clients(monomial: Monomial) -> bool:
    return any(unknown == CLIENTS for unknown, _ in monomial.powers)


def _disclosure(
    name: str, kind: str, value: Quantity, hidden: frozenset[str] = frozenset()
) -> Disclosure:
    origin = value.provenance
    numbers = tuple(sorted(origin.mechanisms))
    is_exposed = any(exposure.source not in hidden for exposure in origin.exposures)
    return Disclosure(name, kind, numbers, origin.is_of_earlier, is_exposed)


def monomial_text(monomial: Monomial) -> str:
    """Return a monomial as text."""
    factors = [f"{monomial.coefficient:.7g}"]
    for unknown, exponent in monomial.powers:
        factors.append(_name(unknown) + ("" if exponent == 1 else f"^{exponent}"))
    if len(factors) > 1 and monomial.coefficient == 1:
        factors = factors[1:]
    return " · ".join(factors)


def _name(unknown: Unknown) -> str:
    if unknown.kind == "state":
        return str(unknown.key[0])
    return {"clients": "the number of clients", "released": "a released number"}.get(
        unknown.kind, "clients' data"
    )
