"""Translated operations give what PyTorch gives, on samples of PyTorch's own tests."""

from __future__ import annotations

import pytest
import torch

from tffc.frontend.torch.decompositions import operations
from tffc.frontend.torch.releases import load_translations

pytest.importorskip("expecttest", reason="PyTorch's own tests need expecttest")
from tests.frontend.torch.operation_samples import compared, operators, samples

SHARES = 12


def faults(share: int, shares: int, most: int) -> list[str]:
    """What is wrong in a share of all operators."""
    load_translations()
    return [
        f"{sample.name}: {comparison.operation}: {comparison.fault}"
        for operator in operators()[share::shares]
        for sample in samples(operator, most)
        for comparison in compared(sample)
        if comparison.fault and comparison.operation in operations()
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_a_share_of_the_operators() -> None:
    torch.manual_seed(0)
    assert faults(5, 8 * SHARES, 1) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.long
@pytest.mark.parametrize("share", range(SHARES))
def test_operators(share: int) -> None:
    torch.manual_seed(share)
    assert faults(share, SHARES, 6) == []
