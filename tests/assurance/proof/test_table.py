"""All available programs, in every form: proved, or undecided for a known reason.

`pytest -m long` tries every program recorded from TensorFlow Federated; otherwise some are tried.
"""

from __future__ import annotations

import pytest

from tests.assurance.proof.table import entries, proofs
from tests.corpus.cases import MISSING, ROOT
from tffc.assurance.proof.prove import Answer, prove, refusal
from tffc.language.notation import parse

UNDECIDED = {
    ("negproto_garbage_graph", "distribute-aggregate"): "a malformed graph",
    ("negproto_missing_result_tensor", "distribute-aggregate"): "a malformed graph",
    ("negproto_garbage_graph", "mergeable"): "a malformed graph",
    ("negproto_missing_result_tensor", "mergeable"): "a malformed graph",
}
"""What is not decided, and what is met in it."""

ENTRIES = entries()
ALWAYS = 12
"""Of how many programs one is tried always."""


def check(kind: str, name: str) -> int:
    """How many forms there are, each of which must be proved."""
    count = 0
    for form, proof in proofs(ENTRIES[kind][name]):
        reason = UNDECIDED.get((name, form), "")
        assert proof.construct == reason, proof
        assert proof.answer is (Answer.UNDECIDED if reason else Answer.PROVED), proof
        count += 1
    return count


@pytest.mark.skipif(ROOT is None, reason=MISSING)
@pytest.mark.parametrize("name", ENTRIES["computations"])
def test_recorded_computation(name: str) -> None:
    check("computations", name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES["examples"])
def test_example(name: str) -> None:
    assert check("examples", name)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if number % ALWAYS == 0 else pytest.mark.long)
        for number, name in enumerate(ENTRIES["programs"])
    ],
)
def test_program(name: str) -> None:
    check("programs", name)


def test_most_programs_are_rounds() -> None:
    names = list(ENTRIES["programs"])[:: 4 * ALWAYS]
    assert sum(bool(list(proofs(ENTRIES["programs"][name]))) for name in names) > len(names) / 4


def test_a_form_that_the_prover_has_no_rules_for_is_not_decided() -> None:
    round_ = parse("(p: <int32@SERVER,{int32}@CLIENTS> -> p[0])")
    proof = prove(round_, "of-tomorrow", {})
    assert (proof.answer, proof.construct) == (Answer.UNDECIDED, "a form of this name")
    assert str(refusal(proof, "of-tomorrow")) == (
        "it is not decided whether the of-tomorrow computes what the program does: no rule is "
        "about a form of this name [E961]\n"
        "  note: found: of-tomorrow\n"
        "  help: tffc verify tries it on arguments"
    )
