"""What XLA modules do besides computing."""

from __future__ import annotations

from tffc.assurance.proof.terms import DRAWN, IMPURE, PURE
from tffc.graphs.operations import hlo
from tffc.graphs.operations.effects import Effect, effect_of_module


def taint_of_module(content: bytes, stablehlo: bytes) -> int:
    """Return the taint of a module with this HLO and, unless it is empty, this StableHLO."""
    effects = [hlo.effect_of(*instruction) for instruction in hlo.instructions(content)]
    if stablehlo:
        effects.append(effect_of_module(stablehlo))
    return max(map(_taint_of, effects), default=PURE)


def _taint_of(effect: Effect | None) -> int:
    if effect in (None, Effect.OWN_STATE):
        return PURE
    return DRAWN if effect is Effect.RANDOM else IMPURE
