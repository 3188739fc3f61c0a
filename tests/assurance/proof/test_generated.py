"""Generated rounds: every form that compiles is proved.

`--hypothesis-profile=thorough` tries thousands.
"""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.programs import broadcast_rounds, rounds
from tffc.assurance.proof.prove import Answer, prove
from tffc.backends import compile_form
from tffc.language import Node
from tffc.language.wire import from_bytes, to_bytes
from tffc.support.errors import FormError

pytestmark = pytest.mark.slow


def assert_proved(program: Node, form: str) -> None:
    """A form read back from its messages, as from a bundle, is proved."""
    try:
        compiled = compile_form(program, form)
    except FormError:
        return  # which `tests/backends` is about
    components = {name: from_bytes(to_bytes(part)) for name, part in compiled.components().items()}
    proof = prove(from_bytes(to_bytes(program)), form, components)
    assert proof.answer is Answer.PROVED, proof


@given(rounds(secure=True))
def test_map_reduce_form(program: Node) -> None:
    assert_proved(program, "mapreduce")


@given(rounds(secure=True))
def test_distribute_aggregate_form(program: Node) -> None:
    assert_proved(program, "distribute-aggregate")


@given(rounds(secure=True))
def test_mergeable_form(program: Node) -> None:
    assert_proved(program, "mergeable")


@given(rounds(noisy=True))
def test_noisy_rounds(program: Node) -> None:
    assert_proved(program, "mapreduce")
    assert_proved(program, "distribute-aggregate")


@given(broadcast_rounds(noisy=True))
def test_broadcast_form(program: Node) -> None:
    assert_proved(program, "broadcast")
