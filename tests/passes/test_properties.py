"""What every pass keeps: type, soundness, invariants and values; and that once is enough.

Programs are generated, and recorded where there are recordings.  Each pass runs on the program as
it is traced or, where it requires more, after the passes that bring it about.
`--hypothesis-profile=thorough` tries thousands.
"""

from __future__ import annotations

import collections
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus import cases as recorded
from tests.programs import rounds, values
from tffc.assurance.validation.compare import first_difference
from tffc.language import FunctionType, Lambda, Node, StructNode, StructType
from tffc.language.invariants import CALL_DOMINANT, INVARIANTS
from tffc.language.notation import formatted
from tffc.language.traverse import rewrite
from tffc.language.type_parts import local_type
from tffc.language.verify import first_violation, holding
from tffc.passes import Pipeline, parse_passes
from tffc.passes.instruments import verify_step
from tffc.passes.pipeline import Finished
from tffc.passes.table import all_passes
from tffc.runtime.interpreter.interpreter import run

PASSES = all_passes()
STEPS = (*PASSES, "unique-names{stem=v}")
CASES = [case for case in recorded.cases() if not case.folder.name.startswith("negproto")]


def pipeline_of(step: str) -> Pipeline:
    """The step after what it requires."""
    each = parse_passes(step, PASSES, tuple(INVARIANTS)).steps[0].each
    first = f"{CALL_DOMINANT}," if CALL_DOMINANT in each.requires else ""
    return parse_passes(first + step, PASSES)


PIPELINES = {step: pipeline_of(step) for step in STEPS}


def check_step(finished: Finished) -> None:
    """A step keeps the type and what it does not break, brings about what it says, and has nothing
    left to do."""
    verify_step(finished)
    each = finished.step.each
    for invariant in set(holding(finished.before)) - set(each.breaks):
        assert first_violation(finished.after, (invariant,)) is None, (each.name, invariant)
    again = each.function(finished.after, **finished.step.options)
    assert again == finished.after, f"{finished.step} is not idempotent"


@st.composite
def rounds_with_inputs(draw: Any) -> tuple[Node, Any]:
    """A round, and a state for it with the data of up to three clients."""
    program = draw(rounds(secure=True))
    if draw(st.booleans()):
        program = with_containers(program)
    state, data = (local_type(part) for part in parameter_of(program).types)
    return program, (draw(values(state)), draw(st.lists(values(data), max_size=3)))


def parameter_of(program: Node) -> StructType:
    assert isinstance(program, Lambda)
    assert isinstance(program.parameter_type, StructType)
    return program.parameter_type


def with_containers(program: Node) -> Node:
    """The program with every struct in a Python container, as a traced one may be."""

    def contained(node: Node) -> Node | None:
        match node:
            case StructNode(values=values, names=names) if all(names):
                return StructNode(values, names, collections.OrderedDict)
            case StructNode(values=values, names=names) if not any(names):
                return StructNode(values, names, list)
        return None

    return rewrite(program, contained)


@pytest.mark.slow
@given(rounds_with_inputs())
def test_generated_programs(case: tuple[Node, Any]) -> None:
    program, argument = case
    assert isinstance(program.type, FunctionType)
    expected = run(program, argument)
    for step, pipeline in PIPELINES.items():
        after = pipeline.run(program, [check_step])
        difference = first_difference(run(after, argument), expected, program.type.result)
        assert difference is None, (step, difference)


@pytest.mark.slow
@pytest.mark.skipif(not CASES, reason=recorded.MISSING)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_recorded_programs(case: recorded.Case) -> None:
    program = case.program()
    for pipeline in PIPELINES.values():
        pipeline.run(program, [check_step])


@pytest.mark.skipif(not CASES, reason=recorded.MISSING)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_text_says_nothing_of_containers(case: recorded.Case) -> None:
    program = case.program()
    assert formatted(PASSES["strip-containers"].function(program)) == formatted(program)
