"""Programs and forms that agree, aggregations that break laws, programs that cannot be tried."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import tffc as tff
from tests.corpus import cases as recorded
from tests.refusals import refusal
from tffc.assurance.validation import Report, validate
from tffc.assurance.validation.arguments import cases
from tffc.assurance.validation.sources import Arguments, text_constants
from tffc.language import FunctionType
from tffc.language.notation import parse
from tffc.passes import Pipeline, parse_passes
from tffc.passes.table import all_passes, default_pipeline
from tffc.support.errors import ValidationError

STATE, DATA = tff.types.at_server(np.int32), tff.types.at_clients(np.int32)
NONE = Pipeline("none", ())
CASES = recorded.cases()
EVERY_PASS = (
    "unique-names",
    "strip-containers",
    "drop-identity-maps",
    "drop-unused-bindings",
    "call-dominant",
    "share-equal-calls",
    "normalize-all-equal",
    "desugar-means",
    "lower-select",
)
"""All that ship, in an order in which each finds what it requires."""


@tff.tf_computation(np.int32, np.int32)
def add(x, y):
    return x + y


@tff.tf_computation(np.int32, np.int32)
def subtract(x, y):
    return x - y


@tff.tf_computation(np.int32, np.int32)
def first(x, y):
    return x


@tff.tf_computation(np.int32)
def same(x):
    return x


def aggregation(zero, merge):
    @tff.federated_computation(STATE, DATA)
    def total(state, data):
        return state, tff.federated_aggregate(data, zero, add, merge, same)

    return total


def check(computation, form: str | None = None) -> Report:
    pipeline = default_pipeline() if form else NONE
    arguments = cases(computation.type_signature.parameter, 12, seed=0)
    return validate(computation.node, arguments, pipeline, form)


@pytest.mark.parametrize("form", ["mapreduce", "distribute-aggregate", "mergeable"])
def test_agreement(form: str) -> None:
    report = check(aggregation(0, add), form)
    assert report.stages[-1] == f"the form {form}"
    assert (report.trials, report.warnings) == (12, ())


def test_a_form_of_an_aggregation_that_breaks_laws_is_no_defect() -> None:
    report = check(aggregation(5, add), "mergeable")
    assert {warning.code for warning in report.warnings} == {"E901"}


@pytest.mark.parametrize(
    ("zero", "merge", "laws"),
    [
        (1, add, ["merging two clients is not the same as accumulating both", "zero"]),
        (0, subtract, ["merge is not associative", "merge is not commutative", "merging", "zero"]),
        (0, first, ["merge is not commutative", "merging two clients", "zero"]),
    ],
    ids=["zero", "subtraction", "first"],
)
def test_laws_of_aggregations(zero, merge, laws: list[str]) -> None:
    warnings = check(aggregation(zero, merge)).warnings
    messages = sorted(w.message.removeprefix("in this aggregation, ") for w in warnings)
    assert len(messages) == len(laws)
    assert all(message.startswith(law) for message, law in zip(messages, laws, strict=True))
    for warning in warnings:
        assert warning.code == "E901"
        assert warning.span is not None
        assert pathlib.Path(warning.span.file).name == "test_validate.py"


def test_a_function_as_the_parameter() -> None:
    program = parse("(f: (int32 -> int32) -> f(1))")
    assert isinstance(program.type, FunctionType)
    assert refusal(ValidationError, list, cases(program.type.parameter, 1, seed=0)) == (
        "there are no values to try for a parameter of type `(int32 -> int32)` [E900]\n"
        "  help: verify a program whose parameter holds no functions"
    )


@pytest.mark.long
@pytest.mark.skipif(not CASES, reason=recorded.MISSING)
def test_recordings() -> None:
    """All passes, and all forms of recorded rounds, compute what the rounds do."""
    tried, stages = 0, set()
    pipeline = parse_passes(",".join(EVERY_PASS), all_passes())
    for case in CASES:
        form = "mapreduce" if case.forms.get("mapreduce", {}).get("ok") else None
        if form is None and case.folder.name.startswith("neg"):
            continue
        program = case.program()
        assert isinstance(program.type, FunctionType)
        arguments = Arguments(program.type.parameter, 3, seed=0)
        arguments.constants = text_constants(program)
        report = validate(program, arguments, pipeline, form)
        assert form is None or report.stages[-1] == "the form mapreduce", case
        tried += form is not None
        stages.update(report.stages)
    assert tried > 0
    assert "the pass desugar-means, step 8" in stages


def test_every_pass_is_tried() -> None:
    assert sorted(EVERY_PASS) == sorted(all_passes())
