"""Pipelines: what the strict readers refuse and where they point, the order of passes, and runs."""

from __future__ import annotations

import textwrap

import pytest

from tests.refusals import refusal
from tffc.language import DType, Lambda, Node, Reference, StructNode, TensorType
from tffc.language.invariants import CALL_DOMINANT, NO_SELECT, UNIQUE_NAMES
from tffc.passes import PASSES, Pass, Pipeline, parse_passes, parse_pipeline
from tffc.passes.pipeline import Finished, PassStep, observing
from tffc.passes.pipeline_text import default_text
from tffc.passes.table import default_pipeline
from tffc.support.errors import PassError, PipelineError, VerificationError

INT = TensorType(DType.INT32)
IDENTITY = Lambda("x", INT, Reference("x", INT))


def add_nothing(root: Node, *, level: int = 0, fast: bool = True, name: str = "") -> Node:
    """Return the program as it is."""
    return root


def fail(root: Node) -> Node:
    """Divide by nothing."""
    raise ZeroDivisionError("nothing")


TABLE = {
    **PASSES,
    "add-nothing": Pass("add-nothing", add_nothing),
    "undo": Pass("undo", add_nothing, breaks=(CALL_DOMINANT,)),
    "fail": Pass("fail", fail, package="theirs"),
    "fail-here": Pass("fail-here", fail),
}


def test_columns_in_a_file() -> None:
    with pytest.raises(PipelineError) as caught:
        parse_pipeline("name: x\npasses:\n  - unique-name", "mine.yaml", TABLE)
    span = caught.value.span
    assert span is not None
    assert (span.line, span.column, span.end_column) == (3, 4, 15)


def test_caret_below_the_word() -> None:
    with pytest.raises(PipelineError) as caught:
        parse_passes("unique-names, uniqe-names", TABLE)
    _, text, carets = caught.value.notes[0].split("\n")
    assert text[carets.index("^") :][: carets.count("^")] == "uniqe-names"


def test_text_and_back() -> None:
    text = "unique-names,add-nothing{level=-3,fast=false,name=a-b},call-dominant"
    pipeline = parse_passes(text, TABLE)
    assert str(pipeline) == text
    assert pipeline.steps[1].options == {"level": -3, "fast": False, "name": "a-b"}


def test_requirement_that_nothing_ensures() -> None:
    assert refusal(PipelineError, parse_passes, "share-equal-calls", TABLE) == (
        "in the passes, share-equal-calls requires call-dominant, which no pass before it ensures "
        "[E360]\n"
        "  note: in the text:\n"
        "    share-equal-calls\n"
        "    ^^^^^^^^^^^^^^^^^\n"
        "  help: put a pass that ensures it before; `tffc passes` lists what each ensures"
    )
    parse_passes("call-dominant,share-equal-calls", TABLE)
    parse_passes("share-equal-calls", TABLE, given=(CALL_DOMINANT,))


def test_requirement_that_a_pass_undoes() -> None:
    with pytest.raises(PipelineError) as caught:
        parse_passes("call-dominant,undo,share-equal-calls", TABLE)
    assert caught.value.message == (
        "in the passes, share-equal-calls requires call-dominant, which undo before it may undo"
    )
    parse_passes("call-dominant,undo,call-dominant,share-equal-calls", TABLE)


def test_a_wrong_order_in_a_file_and_in_code() -> None:
    with pytest.raises(PipelineError) as caught:
        parse_pipeline("name: x\npasses:\n  - share-equal-calls", "mine.yaml", TABLE)
    span = caught.value.span
    assert span is not None
    assert (span.line, span.column, span.end_column) == (3, 4, 21)
    with pytest.raises(PipelineError) as caught:
        Pipeline("mine", (PassStep(TABLE["share-equal-calls"]),))
    assert caught.value.message.startswith("in the pipeline 'mine', share-equal-calls requires")


def test_the_default_pipeline_is_the_one_that_is_shown() -> None:
    assert parse_pipeline(default_text(), "default.yaml", PASSES) == default_pipeline()


def test_the_default_pipeline_leads_to_what_forms_need() -> None:
    pipeline = default_pipeline()
    assert pipeline.name == "default"
    assert pipeline.ensures(CALL_DOMINANT)
    assert pipeline.ensures(NO_SELECT)


def test_observers_are_told_of_every_step() -> None:
    seen: list[Finished] = []
    shadowing = Lambda("x", INT, IDENTITY)
    parse_passes("unique-names,call-dominant", TABLE).run(shadowing, [seen.append])
    first, second = seen
    assert [str(each.step) for each in seen] == ["unique-names", "call-dominant"]
    assert first.before == shadowing
    assert str(first.after) == "(x -> (x_1 -> x_1))"
    assert first.after is second.before
    assert (first.position, second.position) == (1, 2)
    assert UNIQUE_NAMES in first.holds
    assert CALL_DOMINANT not in first.holds
    assert CALL_DOMINANT in second.holds
    assert first.seconds >= 0


def test_parts() -> None:
    whole = parse_passes("unique-names,call-dominant,share-equal-calls,unique-names", TABLE)
    part = whole.part("share-equal-calls", "unique-names")
    assert str(part) == "share-equal-calls,unique-names"
    assert CALL_DOMINANT in part.given
    assert str(whole.part(stop_after="unique-names")) == "unique-names"
    assert str(whole.part()) == str(whole)


def test_parts_that_are_not_there() -> None:
    whole = parse_passes("unique-names,call-dominant", TABLE)
    assert refusal(PipelineError, whole.part, stop_after="call-dominat") == (
        "the pipeline 'the passes' has no step 'call-dominat' [E361]\n"
        "  help: did you mean 'call-dominant'?"
    )
    with pytest.raises(PipelineError) as caught:
        whole.part("call-dominant", "unique-names")
    assert caught.value.message == (
        "the pipeline 'the passes' has no step 'unique-names' from call-dominant on"
    )


@pytest.mark.unverified
def test_refusals_name_the_pass() -> None:
    free = Lambda("x", INT, StructNode((Reference("y", INT),)))
    with pytest.raises(VerificationError) as caught:
        parse_passes("unique-names,call-dominant", TABLE).run(free)
    assert caught.value.notes == ("in the pass call-dominant, step 2 of the pipeline 'the passes'",)


def test_observers_of_all_pipelines_are_told_last() -> None:
    told: list[str] = []
    pipeline = parse_passes("unique-names", TABLE)
    with observing(lambda finished: told.append(f"all {finished.position}")):
        pipeline.run(IDENTITY, (lambda finished: told.append(f"one {finished.position}"),))
    pipeline.run(IDENTITY)
    assert told == ["one 1", "all 1"]


def test_failures_of_another_package_are_named() -> None:
    with pytest.raises(PassError) as caught:
        Pipeline("mine", (PassStep(TABLE["fail"]),)).run(IDENTITY)
    assert str(caught.value) == (
        "the pass fail of theirs failed with ZeroDivisionError: nothing [E376]\n"
        "  note: in the pass fail, step 1 of the pipeline 'mine'"
    )
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_failures_of_our_own_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        Pipeline("mine", (PassStep(TABLE["fail-here"]),)).run(IDENTITY)
    assert caught.value.__notes__ == ["in the pass fail-here, step 1 of the pipeline 'mine'"]


def test_table() -> None:
    for name, each in PASSES.items():
        assert each.function.__name__ == name.replace("-", "_")
        assert each.summary.endswith(".")
        assert each.name == name


def test_file_and_text_say_the_same() -> None:
    file = """\
        name: mine
        passes:
          - unique-names: {stem: v}
          - call-dominant
        """
    pipeline = parse_pipeline(textwrap.dedent(file), "mine.yaml", PASSES)
    assert str(pipeline) == "unique-names{stem=v},call-dominant"
