"""A module that is stored as HLO and as StableHLO means its StableHLO, to all that runs it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tffc as tff
from tffc.assurance.proof.prove import Answer, prove
from tffc.backends import compile_form
from tffc.language.nodes import Compiled, Node
from tffc.language.traverse import rewrite
from tffc.language.wire import read_xla, write_xla
from tffc.runtime.frameworks.sections import run_section

pytest.importorskip("jax", reason="needs tffc[jax]")

FORMS = ("mapreduce", "distribute-aggregate")


def scaled_by(factor: float) -> Any:
    return tff.jax_computation(lambda x: x * np.float32(factor), np.float32)


def round_of(factor: float) -> Node:
    section = scaled_by(factor)

    @tff.federated_computation(tff.types.at_server(()), tff.types.at_clients(np.float32))
    def total(state: Any, data: Any) -> Any:
        return state, tff.federated_sum(tff.federated_map(section, data))

    return total.node


def with_parts(node: Node, **parts: bytes) -> Any:
    """A program or section with other representations in its XLA sections."""

    def changed(each: Any) -> Any:
        if not isinstance(each, Compiled) or each.kind != "xla":
            return None
        content = read_xla(each.payload)._replace(**parts)
        return dataclasses.replace(each, payload=write_xla(content))

    return rewrite(node, changed)


def parts_of(factor: float) -> tuple[bytes, bytes]:
    content = read_xla(scaled_by(factor).node.payload)
    return content.hlo_module, content.stablehlo


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_proved_from_its_messages_alone(form: str) -> None:
    program = round_of(2.0)
    components = compile_form(program, form).components()
    assert prove(program, form, components).answer is Answer.PROVED


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("part", ["hlo_module", "stablehlo"])
def test_a_form_of_another_module_is_not_proved(form: str, part: str) -> None:
    program = round_of(2.0)
    hlo_module, stablehlo = parts_of(3.0)
    other = {"hlo_module": hlo_module} if part == "hlo_module" else {"stablehlo": stablehlo}
    components = compile_form(with_parts(program, **other), form).components()
    proof = prove(program, form, components)
    # Graphs have no HLO, so another one in the program that they are made from changes none.
    same = form == "mapreduce" and part == "hlo_module"
    assert (proof.answer is Answer.PROVED) == same


@pytest.mark.parametrize("form", FORMS)
def test_a_program_with_two_modules_means_its_stablehlo(form: str) -> None:
    program = with_parts(round_of(2.0), hlo_module=parts_of(3.0)[0])
    section = with_parts(scaled_by(2.0).node, hlo_module=parts_of(3.0)[0])
    assert run_section(section, np.float32(5.0)) == 10.0
    components = compile_form(program, form).components()
    assert prove(program, form, components).answer is Answer.PROVED
    if form == "mapreduce":
        work = components["work"]
        assert isinstance(work, Compiled)
        assert run_section(work, (np.float32(5.0), ()))[0][0] == 10.0
