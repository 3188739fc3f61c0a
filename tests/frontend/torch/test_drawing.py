"""Every way to draw is refused without a key, and keyed it is as in PyTorch itself, or refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch

import tffc as tff
from tests.frontend.torch.drawing import KEYED, WIDTH, WITHOUT_KEYS, Drawing, bert
from tffc.support.errors import TffcError

X = torch.sin(torch.arange(4.0 * WIDTH)).reshape(4, WIDTH)

REFUSED = {
    "rrelu": "E581",
    "RReLU": "E581",
    "multinomial": "E581",
    "random_": "E581",
    "geometric_": "E581",
    "log_normal_": "E581",
    "cauchy_": "E581",
    "poisson": "E581",
    "binomial": "E581",
    "a categorical distribution": "E581",
    "a gamma distribution": "E581",
    "a beta distribution": "E581",
    "fractional_max_pool2d": "E581",
}
"""What draws in ways that keys have no rules for, and its code."""

MODULES = {
    "Dropout": "Dropout",
    "Dropout2d": "Dropout2d",
    "AlphaDropout": "AlphaDropout",
    "FeatureAlphaDropout": "FeatureAlphaDropout",
    "MultiheadAttention": "MultiheadAttention",
    "LSTM between layers": "LSTM",
    "GRU between layers": "GRU",
    "TransformerEncoderLayer": "MultiheadAttention",
    "RReLU": "RReLU",
    "BERT": "Dropout",
}
"""The modules that messages name."""

EVERY = [
    pytest.param(name, marks=[pytest.mark.slow, *([pytest.mark.long] if place % 2 else [])])
    for place, name in enumerate((*KEYED, "BERT"))
]
"""Every other one takes its turn at night."""

OWN_ERROR = "checkpoint under a gradient"
"""What PyTorch itself cannot do."""


@functools.cache
def drawing(name: str) -> Drawing:
    if name == "BERT":
        pytest.importorskip("transformers")
        return bert()
    return {**KEYED, **WITHOUT_KEYS}[name]


def unkeyed(name: str) -> Any:
    return tff.torch.computation(drawing(name), tff.TensorType(np.float32, X.shape))


def keyed_function(name: str) -> Any:
    function = drawing(name)  # Making the model draws, which is refused within a trace.

    def keyed(x: Any, seed: Any, step: Any) -> Any:
        with tff.torch.draws(seed, step):
            return function(x)

    return keyed


def keyed(name: str) -> tff.Computation:
    kind = tff.TensorType(np.float32, X.shape)
    return tff.torch.computation(keyed_function(name), kind, np.int64, np.int64)


@pytest.mark.parametrize("name", [each for each in EVERY if each.values[0] != OWN_ERROR])
def test_without_a_key(name: str) -> None:
    with pytest.raises(TffcError) as caught:
        unkeyed(name)
    error = caught.value
    assert error.code == "E580"
    assert error.help is not None
    assert error.span is not None
    assert error.span.file.endswith("drawing.py")
    where = f"the module {MODULES[name]} " if name in MODULES else ""
    assert where in str(error)


@pytest.mark.parametrize("name", [each for each in EVERY if each.values[0] != OWN_ERROR])
def test_with_a_key(name: str) -> None:
    if name in REFUSED:
        with pytest.raises(TffcError) as caught:
            keyed(name)
        assert caught.value.code == REFUSED[name]
        assert caught.value.help is not None
        assert caught.value.span is not None
        return
    computation = keyed(name)
    first = computation(X.numpy(), 7, 1)
    again = keyed_function(name)(X.clone(), 7, 1).detach().numpy()
    np.testing.assert_allclose(first, again, rtol=1e-6, atol=1e-6)
    assert np.array_equal(computation(X.numpy(), 7, 1), first)
    assert not np.array_equal(computation(X.numpy(), 8, 1), first)
    assert not np.array_equal(computation(X.numpy(), 7, 2), first)


@pytest.mark.parametrize("name", WITHOUT_KEYS)
def test_other_generators(name: str) -> None:
    for trace in (unkeyed, keyed):
        with pytest.raises(TffcError) as caught:
            trace(name)
        assert caught.value.code == ("E588" if name == "NumPy's generator" else "E580")
        assert caught.value.help is not None
        assert caught.value.span is not None


def test_what_pytorch_cannot_do() -> None:
    for trace in (unkeyed, keyed):
        with pytest.raises(RuntimeError, match="saved tensor hooks"):
            trace(OWN_ERROR)


@pytest.mark.parametrize("name", ["Dropout", "LSTM between layers", "randint"])
def test_quickly(name: str) -> None:
    test_with_a_key(name)


def test_scopes_of_keys() -> None:
    """The innermost scope gives the key, and draws after it go on with those of the outer one."""

    def nested(x: Any) -> Any:
        with tff.torch.draws(1):
            a = torch.rand(3)
            with tff.torch.draws(2):
                b = torch.rand(3)
            return a, b, torch.rand(3) + 0 * x

    def apart(seed: int) -> Any:
        with tff.torch.draws(seed):
            return torch.rand(3), torch.rand(3)

    drawn = tff.torch.computation(nested, tff.TensorType(np.float32, [3]))(np.zeros(3, np.float32))
    expected = apart(1)[0], apart(2)[0], apart(1)[1]
    for one, other in zip(drawn, expected, strict=True):
        np.testing.assert_array_equal(one, other.numpy())
