"""Every path by which engines compute rounds gives what the interpreter gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.test_equivalence import (
    assert_same,
    assert_same_at_clients,
    compiled,
    result_of,
    with_inputs,
)
from tests.corpus.cases import MISSING, Case, cases
from tests.programs import broadcast_rounds, rounds
from tests.runtime.engines.paths import PATHS, RefusedError, Rounds, differences
from tffc.backends.bundle.bundle import Bundle
from tffc.backends.forms.kinds import FORMS
from tffc.language import Node
from tffc.language.values.concrete import to_python, to_value
from tffc.runtime.engines.process import Process
from tffc.runtime.interpreter.interpreter import run
from tffc.support.errors import FormError

AGGREGATING = ("mapreduce", "distribute-aggregate", "mergeable")

GENERATED = st.one_of(
    st.tuples(
        with_inputs(
            st.one_of(
                rounds(secure=True, keyed=True),
                *[rounds(secure=True, numbers=True, keyed=True)] * 3,
            )
        ),
        st.sampled_from(AGGREGATING),
    ),
    st.tuples(with_inputs(broadcast_rounds(numbers=True, keyed=True)), st.just("broadcast")),
)


def check_generated(case: tuple[Node, Any, list[Any]], form: str) -> None:
    """Check that each path that computes a round gives what the interpreter gives."""
    program, state, clients = case
    process = Process(Bundle(form, program, compiled(program, form).components(), None, {}))
    expected = run(program, (state, clients))
    placed = to_value(state, process.state_type)
    held = [to_value(value, process.data_type) for value in clients]
    for path in PATHS:
        try:
            result = Rounds(path, process).run(placed, held)
        except RefusedError:
            continue
        if form == "broadcast":
            assert_same_at_clients(program, result, expected)
        else:
            assert_same(result_of(program), to_python(result, result_of(program)), expected)


@settings(max_examples=3)
@given(GENERATED)
def test_generated(case: Any) -> None:
    check_generated(*case)


@pytest.mark.slow
@settings(max_examples=15)
@given(GENERATED)
def test_more_generated(case: Any) -> None:
    check_generated(*case)


@pytest.mark.long
@settings(max_examples=500)
@given(GENERATED)
def test_many_generated(case: Any) -> None:
    check_generated(*case)


FEW = ("agg_sum", "custom_aggregate", "tf_stateless_random", "two_sequences_per_client")


@pytest.mark.skipif(not cases(), reason=MISSING)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=str(case), marks=pytest.mark.slow if str(case) in FEW else pytest.mark.long
        )
        for case in cases()
        if case.has("io.json")
    ],
)
def test_recorded(case: Case) -> None:
    """Each path that computes a recorded round gives what the interpreter gives; one client a call
    computes all of them."""
    for form in FORMS:
        for path in PATHS:
            try:
                assert differences(case, form, path) == [], (form, path)
            except FormError:
                break
            except RefusedError:
                assert path != "alone"
