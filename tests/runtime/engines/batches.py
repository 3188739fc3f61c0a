"""Rounds whose clients are computed in batches, beside one client a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.runtime.engines.programs import NONE, process_of
from tests.runtime.engines.sources import Values
from tffc.language.type_parts import leaves
from tffc.language.types import SequenceType, Type
from tffc.language.values.concrete import flatten, to_value
from tffc.runtime.batching.limits import Limits
from tffc.runtime.engines.engine import Batching, Cohort
from tffc.runtime.engines.local import LocalEngine
from tffc.runtime.engines.process import Process

LOOPED = Limits(most_numbers=0)
"""Every batch is a loop over its clients, even of the smallest models."""

BOTH = pytest.mark.parametrize("limits", [Limits(), LOOPED], ids=["vectorised", "looped"])
"""Small models are vectorised over clients, or computed in a loop like larger ones."""

BOTH_SLOWLY = pytest.mark.parametrize(
    "limits",
    [
        pytest.param(Limits(), id="vectorised"),
        pytest.param(LOOPED, id="looped", marks=pytest.mark.slow),
    ],
)
"""The same, with loops in the slow tests."""


def round_of(work: Callable[..., Any], data: Any, form: str = "mapreduce") -> Process:
    """A round that sums what each client makes of its data; or leaves it with the client."""
    section = tff.tf_computation(data)(work)

    @tff.federated_computation(NONE, tff.types.at_clients(data))
    def each_round(state: Any, data: Any) -> Any:
        made = tff.federated_map(section, data)
        return made if form == "broadcast" else (state, tff.federated_sum(made))

    return process_of(each_round, form)


def source_of(process: Process, values: Sequence[Any]) -> Values:
    return Values([to_value(value, process.data_type) for value in values])


SEQUENCES = tff.SequenceType(np.float32)


def descent(data: Any, size: int) -> Any:
    """Floats whose last bits depend on how clients are grouped."""
    weights, steps = data.batch(2).reduce(
        (tf.constant(np.linspace(0.3, 0.7, size, dtype=np.float32)), np.int64(0)),
        lambda state, x: (
            state[0] - 0.1 * tf.reduce_mean(tf.sin(state[0] * tf.reshape(x, [-1, 1])), 0),
            state[1] + tf.size(x, tf.int64),
        ),
    )
    tf.debugging.Assert(steps < 9, ["too many"])
    return weights, steps


def descending(size: int, form: str = "mapreduce") -> Process:
    """Return the process of a round that adds up what `descent` gives."""
    return round_of(lambda data: descent(data, size), SEQUENCES, form)


def numbers_to(most: int, count: int) -> list[np.float32]:
    """Return so many numbers from 0 to one above another."""
    return list(np.linspace(0, most + 1, count, dtype=np.float32))


class Outcome:
    """A round in batches: what it gives, how many clients were in batches, what was decided."""

    def __init__(self, process: Process, source: Any, size: int = 3, **options: Any) -> None:
        batching = Batching(size, limits=options.pop("limits", Limits()))
        engine = LocalEngine(process, options.pop("workers", 2), batching)
        state = options.pop("state", ())
        delivered: dict[str, Any] = {}
        clients = options.pop("clients", source.clients)
        cohort = Cohort(source, clients, deliver=delivered.__setitem__, **options)
        result = engine.run_round(state, cohort)
        self.state = result.state
        self.output = flatten(result.output, process.output_type)
        self.delivered = {client: delivered[client] for client in sorted(delivered)}
        self.skipped = result.skipped
        self.together = engine.stopwatch.clients["computing in batches"]
        self.decisions = engine.planner.decisions


def check_same(process: Process, values: Sequence[Any], **options: Any) -> Outcome:
    """Check that batches change nothing, and that all clients are in some."""
    source = source_of(process, values)
    given = {name: options[name] for name in ("state",) if name in options}
    alone = Outcome(process, source, 1, **given)
    found = Outcome(process, source, **options)
    assert found.together == len(values), found.decisions
    assert_alike(process, found, alone)
    return found


def assert_alike(process: Process, found: Outcome, alone: Outcome, rtol: float = 1e-6) -> None:
    """Check that two rounds gave the same; floats to rounding."""
    assert_same(process.state_type, found.state, alone.state, rtol)
    for leaf, one, other in zip(
        leaves(process.output_type), found.output, alone.output, strict=True
    ):
        assert_same(leaf, one, other, rtol)
    assert list(found.delivered) == list(alone.delivered)
    for client, output in found.delivered.items():
        assert process.client_output_type is not None
        assert_same(process.client_output_type, output, alone.delivered[client], rtol)


def assert_same(type: Type, found: Any, expected: Any, rtol: float) -> None:
    """Check that two values are the same; floats to rounding."""
    parts = zip(leaves(type), flatten(found, type), flatten(expected, type), strict=True)
    for leaf, one, other in parts:
        if isinstance(leaf, SequenceType):
            for a, b in zip(one, other, strict=True):
                assert_same(leaf.element, a, b, rtol)
        else:
            assert_close(one, other, rtol)


def assert_close(one: Any, other: Any, rtol: float) -> None:
    """Check that arrays are equal; floats to rounding."""
    one, other = np.asarray(one), np.asarray(other)
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    if one.dtype.kind in "fc" and rtol:
        np.testing.assert_allclose(one, other, rtol=rtol)
    else:
        np.testing.assert_array_equal(one, other)
