"""Tensors as an evaluation begins with them: constants, draws, functions that are not followed;
and the noisy sums that it ends with."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tffc.assurance.privacy.quantities import bounds, noises, pending
from tffc.assurance.privacy.quantities.bounds import ANY, Bounds
from tffc.assurance.privacy.quantities.quantity import (
    Contribution,
    Exposure,
    Mechanism,
    Noise,
    Provenance,
    Quantity,
    Shape,
    union,
)
from tffc.assurance.privacy.quantities.registry import Registry
from tffc.assurance.privacy.quantities.shapes import shape_text
from tffc.assurance.privacy.quantities.streams import Stream

SMALL = 4096
"""Constants of at most this many elements are followed by value."""


class Tensors(Registry):
    """Makes tensors of a round, and records its mechanisms."""

    def __init__(self) -> None:
        super().__init__()
        self.mechanisms: list[Mechanism] = []
        self.cores: dict[int, Quantity] = {}
        """Sums with noise that is followed from round to round, by their terms."""
        self.settlements: dict[int, Quantity] = {}
        """The results of mechanisms that are such sums, by the terms of these."""

        self.columns: dict[int, Quantity] = {}
        """Columns of tables of random numbers, by their draws."""

    def constant(self, value: Any) -> Quantity:
        """Return a constant; None stands for one that is not known."""
        array = None if value is None else np.asarray(value)
        if array is None or array.dtype.kind not in "biuf":
            return Quantity(self.fresh(), shape=None if array is None else array.shape)
        term = self.term("constant", array.dtype.str, array.shape, array.tobytes())
        limits = ANY
        if array.size:
            low, high = float(array.min()), float(array.max())
            limits = bounds.constant(low) if low == high else bounds.between(low, high)
        return Quantity(
            term,
            bounds=limits,
            shape=array.shape,
            content=array if array.size <= SMALL else None,
            is_integer=array.dtype.kind in "biu",
        )

    def drawn(self, distribution: str, shape: Shape | None, limits: Bounds = ANY) -> Quantity:
        """Return a new draw of independent random numbers in their standard form."""
        number = len(self.draws)
        self.draws.append(self.place)
        scale = bounds.constant(1.0)
        noise = Noise(distribution, scale, frozenset((number,)), self.place)
        draws = noise.draws | self.followed_draws
        return Quantity(self.fresh(), Provenance(draws=draws), limits, shape, noise=noise)

    def noise_of(self, stream: Stream, *key: Any) -> Quantity:
        """Return noise that is followed from round to round."""
        draws = frozenset((self.noise_number(),))
        noise = Noise(noises.STREAM, ANY, draws, self.place, stream)
        term = self.term("noise", *key)
        return Quantity(term, Provenance(draws=draws), shape=stream.inner, noise=noise)

    def drawn_from(
        self,
        distribution: str,
        seeds: Sequence[Quantity],
        shape: Shape | None,
        limits: Bounds = ANY,
        how: tuple[Any, ...] = (),
    ) -> Quantity:
        """Return random numbers that follow from seeds, of which the first says most.

        Numbers of the same seeds are the same only if `how` they are drawn is.

        They are noise only if nobody but the program knows that seed, because it has drawn it.
        All that is drawn from one seed counts as one draw, since it is the same numbers.
        """
        key = (distribution, shape, *how)
        value = self.unknown(seeds, *key, shape=shape, limits=limits)
        origin = value.provenance
        if origin.is_of_client or origin.exposures:
            return value
        secret = seeds[0].seed
        if secret is not None and all(each.seed == secret for each in seeds):
            self.assumptions[secret.assumption] = None
            draws = frozenset((self.draw_from(secret),))
            noise = Noise(distribution, bounds.constant(1.0), draws, self.place)
            origin = dataclasses.replace(origin, draws=draws | self.followed_draws)
            return dataclasses.replace(value, provenance=origin, noise=noise)
        seed = seeds[0].noise
        if seed is None or seed.distribution not in noises.SEEDS:
            kind = "that is easily tried out" if origin.draws else "that is given"
            text = f"{self.place} draws from a seed {kind}"
            seeded = dataclasses.replace(origin, seeded=origin.seeded | {text})
            return dataclasses.replace(value, provenance=seeded)
        scale = bounds.constant(1.0)
        draws = self.single_draws(origin.draws)
        return dataclasses.replace(value, noise=Noise(distribution, scale, draws, self.place))

    def unknown(
        self,
        operands: Iterable[Quantity],
        *key: Any,
        shape: Shape | None = None,
        limits: Bounds = ANY,
        is_integer: bool = False,
    ) -> Quantity:
        """Return a tensor that may be any function of its operands.

        With a `key`, it is always the same function of them.
        """
        operands = list(operands)
        term = self.term(*key, *(each.term for each in operands)) if key else self.fresh()
        provenance = union(*(self.exposed(each, "is used").provenance for each in operands))
        return Quantity(term, provenance, limits, shape, is_integer=is_integer)

    def exposed(self, value: Quantity, verb: str) -> Quantity:
        """Return a tensor whose sums are followed no further, because of what `place` does."""
        value = pending.settled(self, value)
        if not value.sums:
            return value
        sources = {channel for each, _ in value.sums for channel in each.channels}
        reason = f"the sum {verb} by {self.place or 'an operation'} before noise is added to it"
        exposures = frozenset(
            Exposure(e.source, reason) if e.source in sources else e
            for e in value.provenance.exposures
        )
        provenance = dataclasses.replace(value.provenance, exposures=exposures)
        return dataclasses.replace(value, provenance=provenance, sums=())

    # Noisy sums.

    def flaw(self, sums: Quantity, noise: Quantity, whole: Noise) -> str:
        """Return why noise hides nothing of sums, or an empty text."""
        assert noise.noise is not None
        if whole.distribution not in (*noises.PRIVATE, *noises.HALVES):
            return f"{whole.distribution} noise, for which there is no bound, is added to it"
        if sums.shape is None or noise.shape != sums.shape:
            shapes = shape_text(noise.shape), shape_text(sums.shape)
            return (
                f"the noise has the shape {shapes[0]}, and the sum {shapes[1]}: it is not known "
                "that each element has noise of its own"
            )
        if self.have_common_draws(sums.provenance.draws, noise.noise.draws):
            return "its noise is in the sum already"
        return ""

    def released(
        self,
        sums: tuple[tuple[Contribution, Bounds], ...],
        noise: Noise,
        shape: Shape,
        provenance: Provenance,
        *operands: Quantity,
    ) -> Quantity:
        """Record a mechanism, and return its result, which is public."""
        number = len(self.mechanisms)
        self.mechanisms.append(Mechanism(sums, noise, shape, self.place))
        channels = {channel for each, _ in sums for channel in each.channels}
        rest = union(provenance, *(operand.provenance for operand in operands))
        left = {e for e in provenance.exposures if e.source not in channels}
        left.update(*(operand.provenance.exposures for operand in operands))
        return Quantity(
            self.fresh(),
            dataclasses.replace(
                rest,
                is_of_client=False,
                exposures=frozenset(left),
                draws=rest.draws - noise.draws,
                mechanisms=rest.mechanisms | {number},
            ),
            shape=shape,
            is_integer=False,
        )
