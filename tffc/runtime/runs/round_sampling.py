"""How the clients of finished rounds were drawn, as accounting for privacy needs to know it."""

from __future__ import annotations

import dataclasses
import pathlib

from tffc.runtime.engines.sampling import SamplingKind
from tffc.runtime.runs.kept_states import FEDERATIONS
from tffc.runtime.runs.metrics import MetricsRow
from tffc.runtime.runs.report import read_report
from tffc.runtime.runs.run_identity import RunIdentity

ASKED_OF_ALL = "1"
"""The fraction of the connected nodes that a round of a federation asks, if these are all."""


@dataclasses.dataclass(frozen=True, slots=True)
class RoundSampling:
    """How the clients of a finished round were drawn, and how many there were.

    By its kind, each of the `population` took part with the probability `rate`, independently of
    the others ("poisson"); `size` of them were drawn without replacement ("fixed"); all took part
    ("all"); or the first contributions took part that arrived, `size` of them, which is no random
    sample ("buffered").  What a kind does not have is None, and so is a population that is not
    known.

    Of those that were drawn, `took_part` did so, and `left_out` were left out of the round.  Unless
    the seed is secret, others can compute who was drawn, and to be drawn seldom protects nobody.
    """

    number: int
    kind: SamplingKind
    rate: float | None
    size: int | None
    population: int | None
    took_part: int
    left_out: int
    seed_is_secret: bool

    @classmethod
    def of(cls, identity: RunIdentity, row: MetricsRow) -> RoundSampling:
        """Return the sampling of a round of a run with this identity."""
        sampling, source = identity.sampling, identity.source
        kind, size = sampling.kind, sampling.clients
        population: int | None = len(source.clients)
        timing = identity.timing
        if timing is not None and timing.buffering is not None:
            kind, size = "buffered", timing.buffering.size
            population = None if source.kind in FEDERATIONS else population
        elif source.kind in FEDERATIONS:
            asked = row.clients + row.skipped
            is_whole = source.options.get("fraction") == ASKED_OF_ALL
            kind, size, population = ("all", None, asked) if is_whole else ("fixed", asked, None)
        return cls(
            row.round,
            kind,
            sampling.rate,
            size,
            population,
            row.clients,
            row.skipped,
            sampling.seed_is_secret,
        )


def read_round_samplings(folder: pathlib.Path) -> tuple[RoundSampling, ...]:
    """Return how the clients of each finished round of a run were drawn, from its folder.

    Rounds before the first state of the run, which its record names as its origin, are not in it.

    Raises:
      DataError: there is no run, or its files were changed or cannot be read.
    """
    report = read_report(folder)
    return tuple(RoundSampling.of(report.record.identity, row) for row in report.rows)
