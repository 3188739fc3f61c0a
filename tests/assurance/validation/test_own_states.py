"""Arguments begin with the program's own states: the first, and those that rounds reach from it."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.validation.parts import required, section
from tffc.assurance.validation import validate
from tffc.assurance.validation.coverage import NothingCompared
from tffc.assurance.validation.real_data import RealData
from tffc.assurance.validation.sources import Arguments, OwnStates, begins_with, text_constants
from tffc.language import Node
from tffc.language.traverse import rewrite
from tffc.passes import Pipeline
from tffc.passes.pipeline import Pass, PassStep
from tffc.passes.table import default_pipeline
from tffc.support.errors import ValidationError

INT = np.int32
DATA = tff.types.at_clients(INT)


class Process:
    """An iterative process: its first state, and the function that computes the next."""

    def __init__(self, first: Callable[[], Any], after: Callable[[Any], Any], state: Any) -> None:
        self.made, self.next = section(first), section(after, state)

        @tff.federated_computation
        def initialize() -> Any:
            return tff.federated_eval(self.made, tff.SERVER)

        @tff.federated_computation(tff.types.at_server(state), DATA)
        def round(state: Any, data: Any) -> Any:
            return tff.federated_map(self.next, state), tff.federated_sum(data)

        self.initialize, self.round = initialize, round

    def arguments(self, count: int = 20, location: str | None = None) -> OwnStates:
        type = self.round.type_signature
        others = (
            Arguments(type.parameter, count, seed=0)
            if location is None
            else RealData(type, location, count, seed=0)
        )
        others.constants = text_constants(self.round.node)
        return OwnStates(self.round.node, self.initialize.node, others)

    def states(self) -> list[Any]:
        return [case.argument[0] for case in self.arguments()]


PROCESSES: dict[str, tuple[Process, list[Any]]] = {
    "a counter": (Process(lambda: 7, lambda x: x + 1, INT), [7, 8, 9]),
    "a number that nobody guesses": (
        Process(lambda: 123456, lambda x: required(tf.equal(x, 123456), x), INT),
        [123456] * 3,
    ),
    "an id": (
        Process(
            lambda: tf.constant("lot:17:b"),
            lambda x: required(tf.strings.regex_full_match(x, "lot:[0-9]{2}:b"), x),
            np.str_,
        ),
        [b"lot:17:b"] * 3,
    ),
    "a table's keys": (
        Process(
            lambda: tf.constant([3, 1, 2]),
            lambda x: required(tf.equal(tf.size(tf.unique(x)[0]), 3), x + 1),
            (INT, [3]),
        ),
        [[3, 1, 2], [4, 2, 3], [5, 3, 4]],
    ),
    "powers of two": (
        Process(lambda: 1, lambda x: required(tf.equal(x & (x - 1), 0) & (x > 0), 2 * x), INT),
        [1, 2, 4],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", PROCESSES)
def test_every_other_argument_has_an_own_state(case: str) -> None:
    process, expected = PROCESSES[case]
    arguments = process.arguments()
    assert arguments.failure is None
    assert [np.asarray(state).tolist() for state in arguments.states] == expected
    own = [np.asarray(case.argument[0]).tolist() for case in arguments][::2]
    assert own == [expected[index % 3] for index in range(10)]
    # The seed determines them all.
    assert [str(one) for one in process.arguments()] == [str(one) for one in arguments]
    coverage = validate(process.round.node, arguments, default_pipeline(), "mapreduce").coverage
    assert coverage.with_data >= 8


@pytest.mark.parametrize("case", ["a number that nobody guesses", "an id"])
def test_made_up_states_alone_show_nothing(case: str) -> None:
    process, _ = PROCESSES[case]
    others = Arguments(process.round.type_signature.parameter, 20, seed=0)
    with pytest.raises(NothingCompared):
        validate(process.round.node, others, default_pipeline(), "mapreduce")


def wrong_after(state: int, process: Process) -> Pipeline:
    """A pass that is wrong for one state only."""
    wrong = section(lambda x: tf.where(tf.equal(x, state), x, x + 1), INT)

    def change(root: Node) -> Node:
        return rewrite(root, lambda node: wrong.node if node == process.next.node else None)

    return Pipeline("planted", (PassStep(Pass("wrong", change)),))


@pytest.mark.parametrize("state", [1007, 1008, 1009])
def test_a_fault_that_only_an_own_state_shows(state: int) -> None:
    process = Process(lambda: 1007, lambda x: x + 1, INT)
    with pytest.raises(ValidationError, match="the pass wrong, step 1 computes something else"):
        validate(process.round.node, process.arguments(), wrong_after(state, process))
    others = Arguments(process.round.type_signature.parameter, 20, seed=0)
    validate(process.round.node, others, wrong_after(state, process))


def test_real_clients_and_own_states(tmp_path: pathlib.Path) -> None:
    for name, value in (("a", 10), ("b", 20), ("c", 30)):
        arrays: dict[str, Any] = {"0": INT(value)}
        np.savez(tmp_path / f"{name}.npz", **arrays)
    process, expected = PROCESSES["an id"]
    arguments = process.arguments(10, str(tmp_path))
    cases = [case.argument for case in arguments]
    assert [state for state, _ in cases][::2] == [expected[0]] * 5
    assert {int(value) for _, values in cases for value in values} == {10, 20, 30}
    coverage = validate(process.round.node, arguments, default_pipeline(), "mapreduce").coverage
    # Where a made-up state fails, an own one is tried.
    assert (coverage.compared, coverage.failed) == (10, 5)


def test_a_first_state_that_fails_is_told() -> None:
    process = Process(lambda: required(False, 7), lambda x: x + 1, INT)
    arguments = process.arguments()
    assert arguments.states == []
    report = validate(process.round.node, arguments, default_pipeline(), "mapreduce")
    (warning,) = report.warnings
    assert warning.code == "E904"
    assert warning.message.startswith("the program's own states could not all be tried: ")


def test_rounds_that_fail_end_the_states() -> None:
    process = Process(lambda: 7, lambda x: required(x < 8, x + 1), INT)
    arguments = process.arguments()
    assert [int(state) for state in arguments.states] == [7, 8]
    assert arguments.failure is not None


def test_draws_of_the_first_state_are_the_same_each_time() -> None:
    process = Process(
        lambda: tf.random.uniform([], 0, 2**30, tf.int32),
        lambda x: x + tf.random.uniform([], 0, 2**10, tf.int32),
        INT,
    )
    assert process.states() == process.states()


def test_what_begins_with_a_state() -> None:
    process, _ = PROCESSES["a counter"]
    other = section(lambda: 1.5)
    assert begins_with(process.round.node, process.initialize.node)
    assert begins_with(process.round.node, process.made.node)
    assert not begins_with(process.round.node, other.node)
    assert not begins_with(process.next.node, process.made.node)


def test_structs_as_states() -> None:
    names = [("total", INT), ("words", tff.types.to_type(np.str_))]
    first = section(lambda: {"total": 1, "words": "one"})
    after = section(lambda x: {"total": x["total"] + 1, "words": x["words"] + "!"}, names)

    @tff.federated_computation
    def initialize() -> Any:
        return tff.federated_eval(first, tff.SERVER)

    @tff.federated_computation(tff.types.at_server(names), DATA)
    def round(state: Any, data: Any) -> Any:
        return tff.federated_map(after, state), tff.federated_sum(data)

    others = Arguments(round.type_signature.parameter, 6, seed=0)
    arguments = OwnStates(round.node, initialize.node, others)
    assert [dict(state) for state in arguments.states] == [
        {"total": 1, "words": b"one"},
        {"total": 2, "words": b"one!"},
        {"total": 3, "words": b"one!!"},
    ]
    validate(round.node, arguments, default_pipeline(), "mapreduce")
