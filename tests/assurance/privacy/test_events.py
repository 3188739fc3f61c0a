"""What is shown of private programs is what they are by hand."""

from __future__ import annotations

import math

import pytest

import tffc
from tests.assurance.privacy.programs import events
from tffc.assurance.privacy.accounting import Gaussian, Laplacian
from tffc.assurance.privacy.question import Neighbours, PrivacyQuestion


def joined(mechanisms: events.Mechanisms) -> dict[type, float]:
    """The mechanisms of a round, those of a kind as one."""
    normal = sum(number**-2 for kind, number in mechanisms if kind == "gaussian")
    laplace = sum(1 / number for kind, number in mechanisms if kind == "laplace")
    parts: dict[type, float] = {}
    if normal:
        parts[Gaussian] = normal**-0.5
    if laplace:
        parts[Laplacian] = 1 / laplace
    return parts


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", [Neighbours.ADD_OR_REMOVE, Neighbours.REPLACE])
@pytest.mark.parametrize("name", events.EVENTS)
def test_multipliers(name: str, neighbours: Neighbours) -> None:
    release = events.EVENTS[name]
    is_removed = neighbours is Neighbours.ADD_OR_REMOVE
    mechanisms = release.removed if is_removed else release.replaced
    report = tffc.audit(events.program(name), privacy=PrivacyQuestion(neighbours=neighbours))
    assert report.privacy is not None
    derivation = report.privacy.derivation
    assert derivation.is_shown == (mechanisms is not None), derivation.missing
    if mechanisms is not None:
        parts = [part for part in derivation.parts if isinstance(part, Gaussian | Laplacian)]
        assert len(parts) == len(derivation.parts)
        shown = {type(part): part.multiplier for part in parts}
        expected = joined(mechanisms)
        assert shown.keys() == expected.keys()
        for kind, multiplier in expected.items():
            assert math.isclose(shown[kind], multiplier, rel_tol=1e-6)
    assert (report.privacy.spending is not None) == derivation.is_shown
