"""Mechanisms whose noise is followed from round to round: what all rounds release together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tffc.assurance.privacy.quantities import bounds, noises
from tffc.assurance.privacy.quantities.quantity import Mechanism
from tffc.assurance.privacy.quantities.streams import largest_change, precision_of, ratio_of
from tffc.assurance.privacy.sensitivity import NotShown


def is_followed(mechanism: Mechanism) -> bool:
    """Tell whether the noise of a mechanism is followed from round to round."""
    return mechanism.noise.stream is not None


class _HiddenRounds(NamedTuple):
    mechanism: Mechanism
    precision: Any


def groups(
    mechanisms: Sequence[Mechanism], participations: int | None
) -> Iterator[list[Mechanism]]:
    """Yield mechanisms whose rounds have noise that is correlated alike, each with independent
    noise that hides all rounds together as its own does.

    With a part of the squared change of each, in a scale of its own, that of all tensors together
    is bounded by Cauchy and Schwarz as it is for one.

    Raises:
      NotShown: noise is in two sums, or does not hide each direction.
    """
    alike: list[list[_HiddenRounds]] = []
    used = np.zeros(0, np.int64)
    for mechanism in mechanisms:
        stream = mechanism.noise.stream
        assert stream is not None
        channel = mechanism.sums[0][0].channel
        drawn = stream.draws[np.abs(stream.weights).max(axis=0) > 0]
        if len(np.intersect1d(used, drawn)):
            reason = "the same noise is added to another sum too"
            raise NotShown(channel, "noise drawn once", reason)
        used = np.union1d(used, drawn)
        precision = precision_of(stream)
        if precision is None:
            reason = "the noise of all rounds is not known to hide every combination of them"
            raise NotShown(channel, "noise", reason)
        for group in alike:
            if ratio_of(precision, group[0].precision) is not None:
                group.append(_HiddenRounds(mechanism, precision))
                break
        else:
            alike.append([_HiddenRounds(mechanism, precision)])
    for group in alike:
        change = largest_change(group[0].precision, participations)
        yield [_as_one(each, group[0].precision, change) for each in group]


def _as_one(followed: _HiddenRounds, precision: Any, change: float) -> Mechanism:
    """Return a mechanism with noise that hides what all rounds release together."""
    ratio = ratio_of(followed.precision, precision)
    assert ratio is not None
    scale = bounds.constant((ratio * change) ** -0.5)
    noise = dataclasses.replace(
        followed.mechanism.noise, distribution=noises.NORMAL, scale=scale, stream=None
    )
    return dataclasses.replace(followed.mechanism, noise=noise)
