"""Rounds of TFF's own libraries, compiled to forms, compute as bundles what TFF 0.87 computed."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

import tffc
from tests.compat import record
from tests.compat.rounds import ProgramRound, round_of
from tests.compat.test_programs import ANSWERS, OTHERS, in_order, other_leaves
from tests.compat.wheel import needs_wheel, program
from tffc.backends import compile_form, compile_initialize
from tffc.backends.bundle.bundle import Bundle, write_bundle
from tffc.passes.table import default_pipeline
from tffc.validation import validate
from tffc.validation.arguments import cases
from tffc.values.concrete import to_python

pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,
    needs_wheel,
    # Theirs, and those of what they import.
    pytest.mark.filterwarnings("ignore"),
]

FORMS = ("mapreduce", "distribute-aggregate")


@pytest.mark.parametrize("name", OTHERS)
def test_bundles(name: str, tmp_path: pathlib.Path) -> None:
    round_ = round_of(program(name))
    if round_ is None:
        pytest.skip("nothing in it is at clients")
    node = round_.computation.node
    for form in FORMS:
        trials = cases(node.type.parameter, 1, seed=0)
        assert validate(node, trials, default_pipeline(), form).trials == 1
        path = tmp_path / form
        components = compile_form(node, form).components()
        first = round_.initialize and compile_initialize(round_.initialize.node)
        write_bundle(Bundle(form, node, components, first, {}), path)
        assert differences(run(path, round_), ANSWERS[name]["rounds"], name) == []


def run(path: pathlib.Path, round_: ProgramRound) -> list[dict[str, Any]]:
    """What each round gives on the local engine, by its place in the program's result."""
    process = tffc.load(path)
    state, values = None, []
    for data in round_.data:
        (done,) = tffc.run(process, data, 1, state=state)
        state = done.state
        found = {path: done.output[name] for name, path in round_.outputs.items()}
        if round_.state is not None:
            found[round_.state] = to_python(state.value, process.state_type)
        values.append(found)
    return values


def differences(found: list[dict[str, Any]], expected: list[Any], name: str) -> list[str]:
    """What differs from TFF in tensors; a bundle does not know what Python held them in."""
    said = []
    for index, (one, other) in enumerate(zip(found, expected, strict=True)):
        for place, value in one.items():
            start = f"{place}." if place else ""
            leaves = {f"{start}{path}".rstrip("."): x for path, x in record.leaves(value).items()}
            wanted = {path: leaf for path, leaf in other.items() if f"{path}.".startswith(start)}
            known = program(name)
            said += [
                f"{index}: {each}"
                for each in other_leaves(
                    in_order(tensors(leaves), known.unordered),
                    in_order(tensors(wanted), known.unordered),
                    known.varying,
                    known.tolerance,
                )
            ]
    return said


def tensors(leaves: dict[str, Any]) -> dict[str, Any]:
    return {path: leaf for path, leaf in leaves.items() if isinstance(leaf, list)}
