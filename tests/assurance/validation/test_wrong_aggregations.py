"""Faults in the aggregations that forms and engines share, one operator at a time: the interpreter
has other aggregations, and verification finds each fault in every form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tffc.assurance.validation import validate
from tffc.assurance.validation.arguments import ArgumentCase
from tffc.linking.aggregations import (
    Aggregate,
    Aggregation,
    Maximum,
    Mean,
    Minimum,
    Sum,
    WeightedMean,
)
from tffc.passes.table import default_pipeline
from tffc.runtime.engines.arithmetic import ValueArithmetic
from tffc.runtime.engines.secure_sums import SecureSum
from tffc.support.errors import ValidationError

pytestmark = pytest.mark.slow

FLOAT = np.float32
MEMBER = [("x", FLOAT), ("n", np.int32)]
STATE, DATA = tff.types.at_server(FLOAT), tff.types.at_clients(MEMBER)
VALUES = [{"x": FLOAT(x), "n": np.int32(n)} for x, n in ((0.5, 7), (-2, 3), (4, 5), (1.5, 2))]
CASES = [ArgumentCase((FLOAT(1), VALUES), may_reorder=True)]
FORMS = ("mapreduce", "distribute-aggregate")


def section(function: Callable[..., Any], *types: Any) -> Any:
    return tff.tf_computation(*types)(function)


counted = section(lambda total, x: total + 2 * x, FLOAT, FLOAT)
merged = section(lambda one, other: one + other, FLOAT, FLOAT)
shown = section(lambda total: tf.sqrt(tf.abs(total)), FLOAT)


@tff.federated_computation(STATE, DATA)
def program(state: Any, data: Any) -> Any:
    return state, (
        tff.federated_sum(data),
        tff.federated_mean(data.x),
        tff.federated_mean(data.x, weight=data.n),
        tff.federated_min(data.n),
        tff.federated_max(data.n),
        tff.federated_aggregate(data.x, FLOAT(3), counted, merged, shown),
        tff.federated_secure_sum(data.n, 100),
        tff.federated_secure_sum_bitwidth(data.n, 5),
    )


def check(form: str) -> None:
    validate(program.node, CASES, default_pipeline(), form)


@pytest.mark.parametrize("form", FORMS)
def test_aggregations_agree(form: str) -> None:
    check(form)


FAULTS: dict[str, tuple[type[Aggregation], str, Callable[..., Any]]] = {
    "a sum from ones": (Sum, "zero", lambda self, by: by.ones(by.zeros(self.update), self.update)),
    "a sum of the last": (Sum, "accumulate", lambda self, by, total, update: update),
    "a mean of values": (Mean, "weigh", lambda self, by, value, weight: value),
    "a mean that is a sum": (Mean, "conclude", lambda self, by, report: report[0]),
    "weights that are added": (
        WeightedMean,
        "weigh",
        lambda self, by, x, w: by.plus(x, w),
    ),
    "a minimum from below": (Minimum, "zero", Maximum.zero),
    "a minimum that is a maximum": (Minimum, "accumulate", Maximum.accumulate),
    "a maximum from above": (Maximum, "zero", Minimum.zero),
    "the user's functions for each other": (Aggregate, "merge", Aggregate.accumulate),
    "no report": (Aggregate, "report", Aggregation.report),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_aggregation_is_seen(
    fault: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, wrong = FAULTS[fault]
    monkeypatch.setattr(owner, name, wrong)
    with pytest.raises(ValidationError, match=f"the form {form} computes something else"):
        check(form)


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_secure_sum_is_seen(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SecureSum, "merge", lambda self, first, second: first)
    with pytest.raises(ValidationError, match=f"the form {form} computes something else"):
        check(form)


@pytest.mark.parametrize("operation", ["plus", "multiply", "divide", "minimum", "maximum"])
def test_wrong_arithmetic_of_engines_is_seen(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ValueArithmetic, operation, lambda self, first, second: first)
    with pytest.raises(ValidationError, match="the form distribute-aggregate computes something"):
        check("distribute-aggregate")
