"""What is derived for the private examples of the repository, against the numbers by hand."""

from __future__ import annotations

import math

import pytest

from tests.assurance.privacy.derivations import derivation
from tests.processes import ROOT
from tffc.assurance.privacy.accounting import Gaussian
from tffc.runtime.user_code.modules import import_source

MULTIPLIERS = {
    ("private_averaging", "training"): 1 / math.hypot(1.0, 1 / 4.0),
    ("private_quantiles", "search"): 2.0 / (0.9 * math.sqrt(3)),
    ("private_heavy_hitters", "discovery"): 8.0 / 2.0,
}


@pytest.mark.parametrize(("module", "name"), MULTIPLIERS)
def test_rounds_have_the_noise_multiplier_by_hand(module: str, name: str) -> None:
    example = import_source(str(ROOT / "examples" / module / f"{module}.py"))
    shown = derivation(getattr(example, name))
    assert shown.missing == ()
    (part,) = shown.parts
    assert isinstance(part, Gaussian)
    assert part.multiplier == pytest.approx(MULTIPLIERS[module, name], rel=1e-6)


@pytest.mark.parametrize(("module", "name"), MULTIPLIERS)
def test_evaluations_are_not_private(module: str, name: str) -> None:
    example = import_source(str(ROOT / "examples" / module / f"{module}.py"))
    assert {missing.step for missing in derivation(example.evaluation).missing} == {"noise"}
