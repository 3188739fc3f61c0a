"""Pipelines: what the strict reader refuses, and the order of passes."""

from __future__ import annotations

import pytest

from tffc.errors import PipelineError
from tffc.ir import DType, Lambda, Node, Reference, TensorType
from tffc.passes import PASSES, Pass, Pipeline, default_pipeline
from tffc.passes.pipeline import Step, parse_pipeline

INT = TensorType(DType.INT32)


def add_nothing(root: Node, *, level: int = 0) -> Node:
    """Return the program as it is."""
    return root


TABLE = {**PASSES, "add-nothing": Pass("add-nothing", add_nothing)}

REFUSED = {
    "passes: [": "E362",
    "name: x": "E363",
    "name: 1\npasses: []": "E364",
    "name: x\npasses: [3]": "E365",
}


@pytest.mark.parametrize(("text", "code"), REFUSED.items())
def test_malformed(text: str, code: str) -> None:
    with pytest.raises(PipelineError) as caught:
        parse_pipeline(text, "mine.yaml", TABLE)
    assert caught.value.code == code
    assert "mine.yaml" in caught.value.message


def test_unknown_pass_suggests_the_nearest() -> None:
    with pytest.raises(PipelineError) as caught:
        parse_pipeline("name: x\npasses: [call-dominants]", "mine.yaml", TABLE)
    assert str(caught.value) == (
        "in mine.yaml, there is no pass 'call-dominants' [E366]\n"
        "  help: did you mean 'call-dominant'?"
    )


def test_unknown_option() -> None:
    with pytest.raises(PipelineError) as caught:
        parse_pipeline("name: x\npasses: [add-nothing: {lewel: 1}]", "mine.yaml", TABLE)
    assert str(caught.value) == (
        "in mine.yaml, the pass add-nothing has no option 'lewel' [E367]\n"
        "  help: did you mean 'level'?"
    )


def test_option_of_wrong_type() -> None:
    with pytest.raises(PipelineError) as caught:
        parse_pipeline("name: x\npasses: [add-nothing: {level: high}]", "mine.yaml", TABLE)
    assert str(caught.value) == (
        "in mine.yaml, the option level of add-nothing has to be int, found 'high' [E368]"
    )


def test_requirement_that_nothing_ensures() -> None:
    needy = Pass("needy", add_nothing, requires=("call-dominant",))
    with pytest.raises(PipelineError) as caught:
        Pipeline("mine", (Step(needy),))
    assert str(caught.value) == (
        "needy requires call-dominant, which no pass before it ensures [E360]\n"
        "  note: in the pipeline 'mine'"
    )
    Pipeline("mine", (Step(PASSES["call-dominant"]), Step(needy)))


def test_unknown_form() -> None:
    with pytest.raises(PipelineError) as caught:
        default_pipeline("mapreduces")
    assert str(caught.value) == (
        "there is no pipeline 'mapreduces' [E361]\n"
        "  note: there are broadcast, distribute-aggregate, mapreduce"
    )


def test_observers_see_every_step() -> None:
    seen: list[str] = []
    pipeline = default_pipeline("mapreduce")
    pipeline.run(
        Lambda("x", INT, Reference("x", INT)), [lambda step, _: seen.append(step.each.name)]
    )
    assert seen == ["drop-identity-maps", "call-dominant"]


def test_table_names_and_summaries() -> None:
    for name, each in PASSES.items():
        assert each.function.__name__ == name.replace("-", "_")
        assert each.summary.endswith(".")
