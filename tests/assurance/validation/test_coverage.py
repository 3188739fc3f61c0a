"""Verification says how many arguments had results, and that none had is no success."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.validation.parts import required, section
from tffc.assurance.validation import Report, validate
from tffc.assurance.validation.arguments import cases
from tffc.assurance.validation.coverage import Coverage, NothingCompared, Outcome, has_data
from tffc.assurance.validation.sources import Arguments, text_constants
from tffc.passes import Pipeline
from tffc.passes.table import default_pipeline
from tffc.support.errors import ValidationError

INT, FLOAT = np.int32, np.float32
NONE = Pipeline("none", ())
SEQUENCE = tff.SequenceType(INT)


def at_each_client(function: Callable[[Any], Any], data: Any, state: Any = INT) -> Any:
    each = section(function, data)

    @tff.federated_computation(tff.types.at_server(state), tff.types.at_clients(data))
    def round(state: Any, values: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(each, values))

    return round


def at_the_server(function: Callable[[Any], Any], state: Any, data: Any = INT) -> Any:
    each = section(function, state)

    @tff.federated_computation(tff.types.at_server(state), tff.types.at_clients(data))
    def round(state: Any, values: Any) -> Any:
        return tff.federated_map(each, state), tff.federated_sum(values)

    return round


def check(computation: Any, form: str | None = "mapreduce", count: int = 20) -> Report:
    program = computation.node
    arguments = Arguments(computation.type_signature.parameter, count, seed=0)
    arguments.constants = text_constants(program)
    return validate(program, arguments, default_pipeline() if form else NONE, form)


def refused(computation: Any, form: str | None = "mapreduce") -> NothingCompared:
    with pytest.raises(NothingCompared) as caught:
        check(computation, form)
    assert (caught.value.code, caught.value.exit_code) == ("E904", 3)
    return caught.value


# Nothing to compare.


def test_a_server_that_always_fails() -> None:
    error = refused(at_the_server(lambda x: required(False, x), INT))
    coverage = error.coverage
    assert (coverage.tried, coverage.compared, coverage.failed, coverage.unknown) == (20, 0, 20, 0)
    assert error.message == (
        "no argument had a result on both sides, so nothing was compared: 0 of 20 compared, "
        "20 failed on both sides"
    )
    ((text, count),) = coverage.failures
    assert count == 20
    assert "assertion failed: [not so]" in text
    assert error.notes == (f"failed on both sides, 20 times: {text}",)


def test_clients_that_always_fail() -> None:
    error = refused(at_each_client(lambda x: required(False, x), INT))
    # A sum over no clients is one.
    assert error.message.startswith("only arguments without data had results")
    assert error.coverage.compared > error.coverage.with_data == 0


def test_elements_that_always_fail() -> None:
    def total(x: Any) -> Any:
        return x.reduce(np.int32(0), lambda one, other: required(False, one + other))

    assert refused(at_each_client(total, SEQUENCE)).coverage.with_data == 0


def test_slices_that_always_fail() -> None:
    wanted = section(lambda x: required(tf.equal(tf.size(x), 0), tf.size(x)), (INT, [None]))
    assert refused(wanted, None).coverage.with_data == 0


def test_a_program_without_arguments_that_fails() -> None:
    assert refused(section(lambda: required(False, 1)), None).coverage.tried == 1


def test_python_is_not_compared() -> None:
    error = refused(at_each_client(lambda x: shaped(tf.numpy_function(lambda y: y, [x], INT)), INT))
    coverage = error.coverage
    # Without clients nothing calls Python.
    assert coverage.with_data == coverage.failed == 0
    assert coverage.unknown == coverage.tried - coverage.compared > 10
    assert error.message.endswith(f"{coverage.unknown} with results that differ in each run")


def shaped(x: Any) -> Any:
    return tf.ensure_shape(x, [])


def test_a_merge_that_always_fails() -> None:
    add = section(lambda x, y: x + y, INT, INT)
    wrong = section(lambda x, y: required(False, x + y), INT, INT)
    same = section(lambda x: tf.identity(x), INT)

    @tff.federated_computation(tff.types.at_server(INT), tff.types.at_clients(INT))
    def round(state: Any, data: Any) -> Any:
        return state, tff.federated_aggregate(data, INT(0), add, wrong, same)

    assert check(round).coverage.failed > 0


# Little to compare.


@pytest.mark.parametrize(
    ("function", "state"),
    [
        (lambda x: required(x > 100, x), INT),
        (lambda x: required(tf.equal(x, 0), x), INT),
        (lambda x: required(~tf.math.is_finite(x), x), FLOAT),
        (lambda x: required(x < -2.5, x), FLOAT),
        (lambda x: required(tf.equal(x, b"\x00\xff"), x), np.str_),
    ],
    ids=["large", "zero", "not finite", "negative", "bytes"],
)
def test_few_results_are_a_warning(function: Any, state: Any) -> None:
    report = check(at_the_server(function, state), count=40)
    coverage = report.coverage
    assert 0 < coverage.compared < coverage.tried / 2
    assert coverage.compared + coverage.failed == coverage.tried
    (warning,) = report.warnings
    assert (warning.code, warning.message) == (
        "E904",
        f"few arguments had results to compare: {coverage.compared} of {coverage.tried} compared, "
        f"{coverage.failed} failed on both sides",
    )
    assert len(warning.notes) == 1


def test_no_data_is_a_warning_where_nothing_fails() -> None:
    computation = at_each_client(lambda x: x + 1, INT)
    empty = list(cases(computation.type_signature.parameter, 3, seed=0))[2:]
    report = validate(computation.node, empty, default_pipeline(), "mapreduce")
    (warning,) = report.warnings
    assert (warning.code, warning.message) == (
        "E904",
        "no argument had data: a client, or an element of a sequence",
    )


def test_failures_that_differ_in_numbers_count_as_one() -> None:
    texts = ["-1 out of range: 3 4 -1", "7 out of range: 7", "-2.5 out of range: -2.5", "else"]
    outcomes = [Outcome(text, is_loose=False, has_data=True) for text in texts]
    assert Coverage.of(outcomes).failures == (("-1 out of range: 3 4 -1", 3), ("else", 1))


def test_a_program_that_never_fails_has_no_warning() -> None:
    report = check(at_each_client(lambda x: x + 1, INT))
    coverage = report.coverage
    assert (coverage.tried, coverage.compared, coverage.failures) == (20, 20, ())
    assert report.warnings == ()


# Plainer values.

SPLIT: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "ids with a colon": (
        lambda x: tf.strings.to_number(tf.strings.split(x, ":")[1], tf.int32),
        np.str_,
    ),
    "ids with two dashes": (
        lambda x: tf.strings.length(tf.strings.split(x, "--")[2]),
        np.str_,
    ),
    "ids of a pattern": (
        lambda x: tf.strings.length(required(tf.strings.regex_full_match(x, "[a-z]+@[0-9]+"), x)),
        np.str_,
    ),
    "pairs of numbers": (
        lambda x: tf.reduce_sum(tf.strings.to_number(tf.strings.split(x, ","), tf.int32)[:2]),
        np.str_,
    ),
    "numerals": (lambda x: tf.strings.to_number(x, tf.int32), np.str_),
    "one of the known words": (
        lambda x: required(tf.reduce_any(tf.equal(x, ["red", "green"])), tf.strings.length(x)),
        np.str_,
    ),
    "words": (
        lambda x: required(tf.strings.regex_full_match(x, "[a-z]+"), tf.strings.length(x)),
        np.str_,
    ),
    "positive": (lambda x: required(x > 0, x), INT),
    "between zero and one": (lambda x: required((x > 0) & (x <= 1), x), FLOAT),
    "a sequence that is not empty": (
        lambda x: required(x.reduce(0, lambda n, _: n + 1) > 2, 1),
        SEQUENCE,
    ),
    "features and labels": (
        lambda x: tf.reduce_sum(x["features"] * tf.cast(x["labels"], tf.int32)[:, 0]),
        [("features", (INT, [None])), ("labels", (np.int64, [None, 1]))],
    ),
    "a filled tensor": (lambda x: tf.reduce_sum(required(tf.size(x) > 2, x)), (INT, [None])),
}


def keys_of_a_table(x: Any) -> Any:
    table = tf.lookup.experimental.DenseHashTable(
        tf.int32, tf.int32, default_value=-1, empty_key=-1, deleted_key=-2
    )
    unique, _ = tf.unique(x)
    checked = required((tf.size(unique) == tf.size(x)) & (tf.size(x) > 2), x)
    with tf.control_dependencies([table.insert(checked, tf.range(tf.size(x)))]):
        return tf.reduce_sum(table.lookup(x))


SPLIT["keys of a table that differ"] = (keys_of_a_table, (INT, [None]))


QUICK = ("ids with a colon", "features and labels", "words")


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in SPLIT],
)
def test_plainer_values_where_the_program_fails(case: str) -> None:
    function, data = SPLIT[case]
    computation = at_each_client(function, data)
    # On the usual arguments there is little to see.
    usual = [*cases(computation.type_signature.parameter, 20, seed=0)]
    try:
        before = validate(computation.node, usual, default_pipeline(), "mapreduce").coverage
        seen = before.with_data
    except NothingCompared:
        seen = 0
    coverage = check(computation).coverage
    assert coverage.with_data >= max(seen + 3, 8)
    assert coverage == check(computation).coverage


# What counts as data.


@pytest.mark.parametrize(
    ("argument", "type", "expected"),
    [
        (None, None, True),
        (3, tff.to_type(INT), True),
        ([], tff.types.at_clients(INT), False),
        ([1], tff.types.at_clients(INT), True),
        ([[], []], tff.types.at_clients(SEQUENCE), False),
        ([[], [4]], tff.types.at_clients(SEQUENCE), True),
        (([], 3), tff.to_type([SEQUENCE, INT]), False),
        (np.zeros([0], INT), tff.to_type((INT, [None])), False),
        (np.zeros([2], INT), tff.to_type((INT, [None])), True),
        ((3, []), tff.to_type([tff.types.at_server(INT), tff.types.at_clients(INT)]), False),
    ],
)
def test_data(argument: Any, type: Any, expected: bool) -> None:
    assert has_data(argument, type) is expected


def test_a_difference_is_still_an_error() -> None:
    from tffc.passes.pipeline import Pass, PassStep

    right = section(lambda x: required(x > 0, x), INT)
    wrong = section(lambda x: required(x > 0, x + 1), INT)
    pipeline = Pipeline("planted", (PassStep(Pass("wrong", lambda _: wrong.node)),))
    with pytest.raises(ValidationError) as caught:
        validate(right.node, Arguments(right.type_signature.parameter, 1, 0), pipeline)
    assert caught.value.code == "E902"
