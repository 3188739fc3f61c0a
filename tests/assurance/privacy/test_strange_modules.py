"""HLO modules that no compiler wrote: what is known of them is true, or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tffc as tff
from tests.assurance.privacy.hlo_messages import (
    INT,
    computation,
    instruction,
    module,
    shape,
    tuple_of,
    with_hlo,
)
from tests.assurance.privacy.programs.rounds import SIZE, VECTOR
from tffc.assurance.privacy.modules import walk as modules
from tffc.assurance.privacy.modules.walk import results_of_module
from tffc.assurance.privacy.quantities.algebra import Algebra
from tffc.assurance.privacy.quantities.quantity import Provenance, Quantity
from tffc.language.nodes import Compiled
from tffc.support.errors import WireError

pytest.importorskip("jax", reason="needs tffc[jax]")

V = shape([SIZE])


def known(*computations: bytes, entry: int = 1, arguments: Any = None) -> list[Quantity]:
    """What is known of the result of a computation of two vectors, with a client's vector and one
    of the server's by default."""
    section = tff.jax.computation(lambda x, y: x + y, VECTOR, VECTOR).node
    assert isinstance(section, Compiled)
    algebra = Algebra()
    client = Quantity(algebra.fresh(), Provenance(is_of_client=True), shape=(SIZE,))
    public = algebra.constant(np.ones(SIZE, np.float32))
    changed = with_hlo(section, module(entry, *computations))
    return results_of_module(changed, arguments or [client, public], algebra)


def entry_of(*instructions: bytes, root: int = 9, of: bytes = V) -> bytes:
    """An entry computation of two vectors that returns the instruction 3."""
    parameters = [instruction(n + 1, "parameter", V, parameter=n) for n in range(2)]
    whole = instruction(9, "tuple", tuple_of(of), [3])
    return computation(1, root, *parameters, *instructions, whole)


def test_a_client_may_be_in_whatever_is_not_described() -> None:
    (result,) = known(entry_of(instruction(3, "sort", V, [2, 1])))
    assert result.provenance.is_of_client
    assert result.shape == (SIZE,)


def test_a_public_value_stays_public() -> None:
    (result,) = known(entry_of(instruction(3, "sort", V, [2, 2])))
    assert result.provenance.is_public


@pytest.mark.parametrize("opcode", ["custom-call", "infeed", "send", "an-instruction-to-come"])
def test_what_reaches_outside_may_know_all_arguments(opcode: str) -> None:
    (result,) = known(entry_of(instruction(3, opcode, V, [2])))
    assert result.provenance.is_of_client


def test_an_operand_that_comes_later_may_be_anything() -> None:
    later = instruction(3, "add", V, [4, 4]), instruction(4, "negate", V, [1])
    (result,) = known(entry_of(*later))
    assert result.provenance.is_of_client
    apart = instruction(3, "subtract", V, [4, 4]), instruction(4, "negate", V, [1])
    (result,) = known(entry_of(*apart))
    assert not result.bounds.above


def test_the_index_of_an_element_tells_of_its_client() -> None:
    at = instruction(4, "sort", shape(element=INT), [1])
    chosen = instruction(3, "dynamic-slice", shape([1]), [2, 4])
    wide = instruction(5, "broadcast", V, [3], dimension=0)
    whole = instruction(9, "tuple", tuple_of(V), [5])
    parameters = [instruction(n + 1, "parameter", V, parameter=n) for n in range(2)]
    (result,) = known(computation(1, 9, *parameters, at, chosen, wide, whole))
    assert result.provenance.is_of_client


def test_a_call_without_end_is_not_followed() -> None:
    (result,) = known(entry_of(instruction(3, "call", V, [1, 1], [1])))
    assert result.provenance.is_of_client


def test_calls_that_double_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each computation calls the next one twice."""
    monkeypatch.setattr(modules, "MOST_STEPS", 1000)
    doubled = [
        computation(
            number,
            3,
            instruction(1, "parameter", V),
            instruction(2, "call", V, [1], [number + 1]),
            instruction(3, "call", V, [2], [number + 1]),
        )
        for number in range(2, 50)
    ]
    (result,) = known(entry_of(instruction(3, "call", V, [1], [2])), *doubled)
    assert result.provenance.is_of_client


def test_a_loop_keeps_what_it_passes_on() -> None:
    pair = tuple_of(V, V)

    def element(number: int, index: int) -> bytes:
        return instruction(number, "get-tuple-element", V, [1], index=index)

    body = computation(
        2,
        4,
        instruction(1, "parameter", pair),
        element(2, 0),
        element(3, 1),
        instruction(5, "add", V, [2, 3]),
        instruction(4, "tuple", pair, [5, 3]),
    )
    crossed = computation(
        2,
        4,
        instruction(1, "parameter", pair),
        element(2, 0),
        element(3, 1),
        instruction(4, "tuple", pair, [3, 2]),
    )
    condition = computation(3, 1, instruction(1, "parameter", pair))
    start = instruction(4, "tuple", pair, [1, 2]), instruction(5, "while", pair, [4], [2, 3])
    for index, loop, is_of_client in ((0, body, True), (1, body, False), (1, crossed, True)):
        taken = instruction(3, "get-tuple-element", V, [5], index=index)
        (result,) = known(entry_of(*start, taken), loop, condition)
        assert result.provenance.is_of_client is is_of_client


def test_numbers_of_a_generator_of_xla_hide_nothing() -> None:
    (result,) = known(entry_of(instruction(3, "rng", V, [2, 2])))
    assert result.noise is None
    assert not result.provenance.draws
    assert result.provenance.seeded


@pytest.mark.parametrize(
    "opcode", ["add", "negate", "select", "clamp", "convert", "reshape", "slice", "pad", "reduce"]
)
@pytest.mark.parametrize("operands", [[], [1], [1, 1], [1, 1, 1], [1, 1, 1, 1]])
def test_instructions_of_other_operands(opcode: str, operands: list[int]) -> None:
    for called in ([], [1], [7]):
        (result,) = known(entry_of(instruction(3, opcode, V, operands, called)))
        assert result.shape == (SIZE,)


def test_a_shape_that_does_not_follow_is_not_believed() -> None:
    (whole,) = known(entry_of(instruction(3, "concatenate", V, [1], dimension=0)))
    assert len(whole.parts) == 1
    (result,) = known(entry_of(instruction(3, "concatenate", V, [1, 1], dimension=0)))
    assert result.shape == (SIZE,)
    assert not result.parts


def test_a_root_that_is_missing() -> None:
    (result,) = known(entry_of(root=77))
    assert result.provenance.is_of_client
    (result,) = known(entry_of(), entry=77)
    assert result.provenance.is_of_client


def test_elements_without_numbers_are_not_followed() -> None:
    complex_numbers = shape([SIZE], 15)
    (result,) = known(entry_of(instruction(3, "add", complex_numbers, [1, 2])))
    assert result.shape == (SIZE,)
    assert result.addends is None


def test_two_instructions_of_one_number() -> None:
    twice = instruction(3, "negate", V, [1]), instruction(3, "negate", V, [2])
    with pytest.raises(WireError, match="two instructions have the number 3") as caught:
        known(entry_of(*twice))
    assert caught.value.code == "E203"
    with pytest.raises(WireError, match="two computations have the number 1"):
        known(entry_of(), entry_of())
