"""Models of many kinds train in rounds as the same functions do in PyTorch, and as torch.optim
does."""

from __future__ import annotations

import functools

import pytest

from tests.frontend.torch import zoo
from tests.frontend.torch.zoo_training import (
    Trainer,
    batch_of,
    compiled_step,
    difference,
    function_step,
    optimizer_step,
    rounds,
    trainer,
)
from tffc.support.errors import LanguageValueError

BOUND = 1e-6
"""What float32 weights may differ by: rounding, where an order of sums differs."""

ROUNDED = {"resnet_18": 2e-6}
"""Other bounds, of rounds: each way to train the deepest model is up to 7e-7 from it in float64."""

QUICK = ("mlp", "transposed", "attention")
LARGE = ("bert", "resnet_18")

NAMES = [
    pytest.param(
        name,
        marks=()
        if name in QUICK
        else [pytest.mark.slow, *([pytest.mark.long] if place % 2 or name in LARGE else [])],
    )
    for place, name in enumerate((*zoo.MODELS, *zoo.HUGGING_FACE))
]


@functools.cache
def trained(name: str) -> Trainer:
    if name in zoo.HUGGING_FACE:
        pytest.importorskip("transformers")
    if name == "llama":
        pytest.importorskip("peft")
    return trainer({**zoo.MODELS, **zoo.HUGGING_FACE}[name])


@pytest.mark.parametrize("name", NAMES)
def test_a_step(name: str) -> None:
    each = trained(name)
    first, batch = (each.weights.trained, each.weights.averaged), batch_of(each.model, 0, 0)
    compiled, loss = compiled_step(each, first, batch)
    for step in (function_step, optimizer_step):
        state, other = step(each, first, batch)
        assert difference(compiled, state) <= BOUND
        assert loss == pytest.approx(other, rel=BOUND, abs=BOUND)
    assert difference(compiled, first) > 100 * BOUND


@pytest.mark.parametrize("name", NAMES)
def test_rounds(name: str) -> None:
    each = trained(name)
    ours = list(rounds(each, compiled_step))
    for step in (function_step, optimizer_step):
        differences = [difference(*pair) for pair in zip(ours, rounds(each, step), strict=True)]
        assert max(differences) <= ROUNDED.get(name, BOUND)


def test_ctc_is_refused() -> None:
    """PyTorch's own loss reads the lengths of targets, which are tensors."""
    with pytest.raises(LanguageValueError) as caught:
        trainer(zoo.ctc)
    assert caught.value.code == "E582"
