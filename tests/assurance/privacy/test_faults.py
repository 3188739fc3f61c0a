"""No planted fault leaves a round private, unless the accounting has it."""

from __future__ import annotations

import math

import pytest

from tests.assurance.privacy.derivations import derivation
from tests.assurance.privacy.planted_faults import Fault, planted
from tests.assurance.privacy.planted_rounds import BASES, Base, Steps, process_of
from tffc.assurance.privacy.accounting import DiscreteGaussian, Part, Skellam
from tffc.assurance.privacy.derivation import Derivation

PAIRS = tuple(dict.fromkeys(planted()))


def multiplier(part: Part) -> float:
    """The scale of the noise over the sensitivity."""
    return 1 / part.l2 if isinstance(part, Skellam | DiscreteGaussian) else part.multiplier


def derived(base: Base, steps: Steps) -> Derivation:
    return derivation(process_of(base, steps), base.neighbours)


@pytest.mark.parametrize("base", BASES, ids=[base.name for base in BASES])
def test_rounds_without_faults(base: Base) -> None:
    result = derived(base, Steps())
    assert result.is_shown
    assert [multiplier(part) for part in result.parts] == pytest.approx([base.multiplier])


def test_number_of_faults() -> None:
    assert len(PAIRS) >= 300
    assert {base.name for base, _ in PAIRS} == {base.name for base in BASES}


def check(base: Base, fault: Fault) -> None:
    """Check that a fault is noticed."""
    result = derived(base, fault.steps)
    if fault.share is not None and result.is_shown:
        whole = math.fsum(multiplier(part) ** -2 for part in result.parts) ** -0.5
        assert whole <= base.multiplier * fault.share * (1 + 1e-6)
        return
    assert not result.is_shown
    assert {step.step for step in result.missing} & fault.missing
    assert all(step.subject and step.reason for step in result.missing)
    places = [step.line or step.subject for step in result.missing]
    assert any(".py:" in place or "state" in place or "server" in place for place in places)


QUICK = PAIRS[::29]


@pytest.mark.parametrize(("base", "fault"), QUICK, ids=[f"{f.name}-{b.name}" for b, f in QUICK])
def test_some_faults(base: Base, fault: Fault) -> None:
    check(base, fault)


@pytest.mark.slow
@pytest.mark.parametrize(("base", "fault"), PAIRS, ids=[f"{f.name}-{b.name}" for b, f in PAIRS])
def test_faults(base: Base, fault: Fault) -> None:
    check(base, fault)
