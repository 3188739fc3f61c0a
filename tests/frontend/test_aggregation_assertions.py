"""Assertions that a computation aggregates securely, or does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.refusals import refusal
from tffc.support.errors import LanguageTypeError

INTS, FLOATS, NOTHING = map(tff.types.at_clients, (np.int32, np.float32, []))
fc: Any = tff.federated_computation

PLAIN = [
    fc(tff.federated_sum, INTS),
    fc(lambda x: tff.federated_mean(x), FLOATS),
    fc(tff.federated_max, INTS),
    fc(lambda x: (tff.federated_sum(x), 1)[1], INTS),
]
SECURE = [
    fc(lambda x: tff.federated_secure_sum_bitwidth(x, 4), INTS),
    fc(lambda x: tff.federated_secure_sum(x, 4), INTS),
    fc(lambda x: tff.backends.mapreduce.federated_secure_modular_sum(x, 4), INTS),
]
NEITHER = [
    fc(tff.federated_broadcast, tff.types.at_server(np.int32)),
    fc(tff.federated_sum, NOTHING),
    fc(lambda x: tff.federated_secure_sum_bitwidth(x, []), NOTHING),
    fc(lambda x: x, INTS),
]
BOTH = fc(lambda x: (PLAIN[0](x), SECURE[0](x)), INTS)


def holds(check: Callable[[Any], None], comp: Any) -> bool:
    try:
        check(comp)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize(
    ("comp", "plain", "secure"),
    [
        *((each, True, False) for each in PLAIN),
        *((each, False, True) for each in SECURE),
        *((each, False, False) for each in NEITHER),
        (BOTH, True, True),
    ],
)
def test_aggregations_are_found(comp: Any, plain: bool, secure: bool) -> None:
    test = tff.test
    assert holds(test.assert_contains_secure_aggregation, comp) is secure
    assert holds(test.assert_not_contains_secure_aggregation, comp) is not secure
    assert holds(test.assert_contains_unsecure_aggregation, comp) is plain
    assert holds(test.assert_not_contains_unsecure_aggregation, comp) is not plain


def test_an_assertion_says_what_it_found() -> None:
    with pytest.raises(AssertionError) as caught:
        tff.test.assert_not_contains_unsecure_aggregation(BOTH)
    assert str(caught.value) == (
        "Expected no unsecure aggregations, found 1:\n\tfederated_sum(federated_sum_arg)"
    )
    with pytest.raises(AssertionError) as caught:
        tff.test.assert_contains_secure_aggregation(NEITHER[-1])
    assert str(caught.value) == (
        "Expected secure aggregation, but none were found in: (<lambda>_arg -> <lambda>_arg)"
    )


def test_only_computations_are_looked_into() -> None:
    assert refusal(LanguageTypeError, tff.test.assert_contains_secure_aggregation, 5) == (
        "expected a computation, found an object of class 'int' [E173]\n"
        "  help: decorate the function with tff.federated_computation and the types of its "
        "parameters"
    )
