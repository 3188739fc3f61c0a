"""An operation's outputs depend on what their flow has.

`python -m tests.assurance.audit.operations_trial` tries every operation in every mode, and records
the calls that run; these tests try some.
"""

from __future__ import annotations

import json
import pathlib
import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

import tffc as tff
from tests.assurance.audit.operation_calls import CallOfOperation, Search, tf
from tests.assurance.audit.operation_programs import (
    Part,
    Program,
    as_value,
    changes,
    computed,
    parts_of,
    same,
    state_programs,
    traced,
    trial,
)
from tests.assurance.audit.operations_trial import RECORDED
from tests.assurance.audit.states import STATES
from tffc.assurance.audit.flow import Flow
from tffc.assurance.audit.sections import TABLE, SectionWalk
from tffc.graphs.operations.effects import read_table

CALLS: Mapping[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations such as `SaveV2` write files by the names that they are given."""
    monkeypatch.chdir(tmp_path)


class Recorded(NamedTuple):
    """A recorded call, the parts of its program's parameter, and exchanges of them that change a
    result: the part's position, its other value, and the sources of which one is named then."""

    call: CallOfOperation
    parts: list[Part]
    exchanges: list[tuple[int, Any, int]]


def recorded(name: str) -> Recorded:
    record = CALLS[name]
    drawn = Search(name).call(record["attempt"])
    call = CallOfOperation(
        name, drawn.inputs, drawn.leaves, drawn.attributes, drawn.attempt, tuple(record["readers"])
    )
    parts = parts_of(call, record["is_static"])
    every = list(changes(f"{name}, value", parts, [part.value for part in parts]))
    return Recorded(call, parts, [every[number] for number in record["exchanged"]])


def together(calls: list[Recorded]) -> tuple[Program, list[int]]:
    """Return one program of several calls, and the positions at which their parts begin."""
    starts = [0]
    for each in calls:
        starts.append(starts[-1] + len(each.parts))
    bodies = {
        each.call.operation: lambda *x, each=each, start=start: as_value(
            each.call, x[start : start + len(each.parts)]
        )
        for each, start in zip(calls, starts, strict=False)
    }
    parts = [part for each in calls for part in each.parts]
    return traced("together", parts, bodies), starts


def missed(calls: list[Recorded]) -> Iterator[str]:
    """Yield outputs that differ if the n-th part of every call is exchanged at once, although
    their flow has none of what changed."""
    program, starts = together(calls)
    sources = [Flow(1 << 2 * at, 2 << 2 * at) for at in range(len(program.parts))]
    flows = [f.total() for f in SectionWalk(program.section, lambda _: 0).results(sources)]
    values = [part.value for part in program.parts]
    before = computed(program, values)
    assert before is not None
    for number in range(max(len(each.exchanges) for each in calls)):
        changed = list(values)
        expected: dict[str, int] = {}
        for each, start in zip(calls, starts, strict=False):
            if number < len(each.exchanges):
                at, other, bits = each.exchanges[number]
                changed[start + at] = other
                expected[each.call.operation] = bits << 2 * start
        after = computed(program, changed)
        assert after is not None
        for output, (one, other) in enumerate(zip(before, after, strict=True)):
            mode = program.modes[output]
            if not same(one, other) and not flows[output] & expected.get(mode, 0):
                yield f"{mode}, output {output}, exchange {number}"


@pytest.mark.slow
def test_operations_that_the_table_describes() -> None:
    described = sorted(set(CALLS) & set(read_table(TABLE)))
    assert len(described) > 40
    assert list(missed(list(map(recorded, described)))) == []


def test_function_with_fewer_parameters_than_operands() -> None:
    """TensorFlow calls it with the state and the element, and leaves out what is captured."""

    def body(x: Any, c: Any) -> list[Any]:
        spec = tf.TensorSpec([], tf.float32)
        add = tf.function(lambda s, e: s + e, autograph=False).get_concrete_function(spec, spec)
        add.add_to_graph(tf.compat.v1.get_default_graph())
        return tf.raw_ops.ReduceDataset(
            input_dataset=tf.raw_ops.TensorSliceDataset(components=[x], output_shapes=[[]]),
            initial_state=[tf.constant(0.5)], other_arguments=[c], f=add,
            output_types=[tf.float32], output_shapes=[[]],
        )  # fmt: skip

    parts = [
        Part(tff.TensorType(np.float32, shape), np.ones(shape, np.float32), numbers)
        for shape in ([3], [])
    ]
    assert trial(traced("fewer", parts, {"value": body})).misses == []


def numbers(rng: random.Random, shape: Any) -> Any:
    return np.array(np.full(shape, rng.randrange(9)), np.float32)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_state(state: str) -> None:
    for _, make in state_programs(state):
        assert trial(make()).misses == []
