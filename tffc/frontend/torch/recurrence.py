"""Recurrent layers of PyTorch, as simpler operations.

PyTorch's own rule for these leaves the dropout between layers out.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Generator, Sequence
from typing import Any
from unittest import mock

from tffc.frontend.torch.releases import load_torch


@contextlib.contextmanager
def recurrence_with_dropout() -> Generator[None]:
    """Let PyTorch decompose recurrent layers with the dropout between them."""
    rules = importlib.import_module("torch._decomp.decompositions")
    with mock.patch.object(rules, "_rnn_helper", _layers):
        yield


def _layers(
    input: Any,
    hidden: Any,
    params: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    layer: Callable[..., tuple[Any, Any]],
) -> tuple[Any, list[Any]]:
    """Return the outputs of the last layer, and the last hidden states of layers and directions."""
    torch = load_torch()
    parts = importlib.import_module("torch._decomp.decompositions").params_hiddens
    outputs = input.transpose(0, 1) if batch_first else input
    last: list[Any] = []
    for number in range(num_layers):
        own, first, own_back, first_back = parts(params, hidden, number, bidirectional)
        directions: Sequence[tuple[Any, Any]] = [layer(outputs, first, own, has_biases)]
        if bidirectional:
            back = layer(outputs, first_back, own_back, has_biases, reverse=True)
            directions = [*directions, back]
        last += [state for _, state in directions]
        outputs = torch.cat([each for each, _ in directions], -1)
        if dropout and train and number < num_layers - 1:
            outputs = torch.dropout(outputs, dropout, train=True)
    return outputs.transpose(0, 1) if batch_first else outputs, last
