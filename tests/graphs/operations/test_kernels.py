"""Which kernels keep state from run to run."""

from __future__ import annotations

from typing import Any

import pytest

from tffc.graphs.operations import op_table
from tffc.graphs.operations.effects import Effect, effect_of, read_table
from tffc.graphs.operations.failing import remembers
from tffc.graphs.operations.kernels import STATELESS, keeps_state
from tffc.graphs.proto import NodeDef


def node(op: str, **seeds: int) -> Any:
    message = NodeDef(name="n", op=op)
    for name, seed in seeds.items():
        message.attr[name].i = seed
    return message


def test_the_table_has_operations_that_are_marked_as_stateful_only() -> None:
    known = {op: op_table.find(op) for op in read_table(STATELESS)}
    assert [
        op for op, operation in known.items() if operation is None or not operation.is_stateful
    ] == []


def test_no_operation_of_the_table_makes_state_that_is_named_like_its_node() -> None:
    """But variables, whose handles have the name in an attribute."""
    named = [op for op in read_table(STATELESS) if (f := op_table.find(op)) and f.has_named_state]
    assert named == ["VarHandleOp"]


@pytest.mark.parametrize(
    "kept",
    [
        node("RandomUniform", seed=1),
        node("RandomShuffle", seed2=1),
        node("Multinomial", seed=3, seed2=4),
        node("RandomShuffleQueueV2"),
        node("HashTableV2"),
        node("FIFOQueueV2"),
        node("IteratorV2"),
        node("OneShotIterator"),
        node("NoSuchOperation"),
        node("XlaCallModule"),
    ],
    ids=lambda each: each.op,
)
def test_kernels_that_keep_state(kept: Any) -> None:
    assert keeps_state(kept)


@pytest.mark.parametrize("op", ["RandomUniform", "AddV2", "ReadVariableOp", "If", "ReduceDataset"])
def test_kernels_that_keep_none(op: str) -> None:
    assert not keeps_state(node(op))


def test_a_seed_that_the_caller_of_a_function_gives() -> None:
    drawing = node("RandomUniform")
    drawing.attr["seed"].placeholder = "s"
    assert keeps_state(drawing)


@pytest.mark.parametrize("op", ["FractionalAvgPool", "FractionalMaxPool"])
def test_a_seed_that_a_kernel_chooses_and_keeps(op: str) -> None:
    pool = node(op)
    assert not keeps_state(pool)
    pool.attr["deterministic"].b = True
    assert keeps_state(pool)
    assert effect_of(pool, {}) is Effect.SESSION
    pool.attr["seed2"].i = 3
    assert not keeps_state(pool)
    assert effect_of(pool, {}) is Effect.OWN_STATE


@pytest.mark.parametrize("op", ["FractionalMaxPool", "RandomUniform"])
def test_a_seed_that_a_caller_gives_is_not_known(op: str) -> None:
    drawing = node(op)
    drawing.attr["seed"].placeholder = "s"
    assert effect_of(drawing, {}) is Effect.SESSION
    assert remembers(op, effect_of(drawing, {}))
