"""Reductions of datasets run as loops, wherever they stand, and give what they gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.execution.loops import loops_for_reductions
from tffc.execution.tensorflow import load_tensorflow

INTS = tff.SequenceType(np.int32)


def reduced(inside: bool) -> Any:
    """A computation with a reduction that has captured values, inside a function or not."""
    tf = load_tensorflow()

    def run(data: Any, by: Any) -> Any:
        return data.reduce((0, tf.constant(1.0)), lambda s, x: (s[0] * by + x, s[1] / 2.0))

    @tff.tf_computation(INTS, np.int32)
    def computed(data: Any, by: Any) -> Any:
        return (tf.function(run) if inside else run)(data, by)

    return computed


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("length", [0, 1, 3])
def test_a_reduction_gives_what_it_gave(inside: bool, length: int) -> None:
    data = list(range(1, length + 1))
    total, half = reduced(inside)(data, 10)
    assert total == int("".join(map(str, data)) or 0)
    assert half == np.float32(0.5**length)


@pytest.mark.parametrize("inside", [False, True])
def test_no_reduction_is_left(inside: bool) -> None:
    tf = load_tensorflow()
    with tf.Graph().as_default() as graph:
        data = tf.data.Dataset.range(3)

        def run() -> Any:
            return data.reduce(tf.constant(0, tf.int64), lambda s, x: s + x)

        tf.function(run)() if inside else run()
    definition = graph.as_graph_def()
    loops_for_reductions(definition)
    bodies = [function.node_def for function in definition.library.function]
    operations = [node.op for nodes in [definition.node, *bodies] for node in nodes]
    assert "ReduceDataset" not in operations
    assert operations.count("While") == 1
