"""Faults planted in the computation of the first state: the prover calls none of them proved."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tffc as tff
from tests.assurance.proof import edits
from tests.assurance.proof.edits import Draft
from tffc.assurance.proof.prove import Answer, prove_section
from tffc.backends import compile_initialize
from tffc.graphs.proto import NodeDef
from tffc.language import Compiled


@tff.tf_computation
def drawn() -> Any:
    return tf.random.normal([2]), tf.random.uniform([2])


@tff.tf_computation
def counted() -> Any:
    variable = tf.Variable(tf.constant(2))
    with tf.control_dependencies([variable.assign_add(3)]):
        return variable.read_value(), tf.constant([1.0, 2.0]) - 0.5


@tff.federated_computation
def initialize() -> Any:
    return tff.federated_value((1, np.float32(2)), tff.SERVER), tff.federated_eval(
        tff.tf_computation(lambda: (drawn(), counted())), tff.SERVER
    )


PROGRAM = initialize.node


def section() -> Compiled:
    """The compiled computation of the first state."""
    return compile_initialize(PROGRAM)


def changed(edit: Callable[[Any], None]) -> Compiled:
    draft = Draft(section(), random.Random(0))
    edit(draft.graph)
    return draft.finish()


def operation(old: str, new: str) -> Callable[[Any], None]:
    def edit(graph: Any) -> None:
        next(node for node in graph.node if node.op == old).op = new

    return edit


def unneeded(graph: Any) -> None:
    graph.node.append(NodeDef(name="unneeded", op="Nothing"))


def seeded(graph: Any) -> None:
    next(node for node in graph.node if node.op == "RandomUniform").attr["seed"].i = 7


def one_draw(graph: Any) -> None:
    """Readers of one draw read the other."""
    names = [node.name for node in graph.node if node.op.startswith("Random")]
    for node in graph.node:
        node.input[:] = [names[0] if edge == names[1] else edge for edge in node.input]


FAULTS = {
    "another operation": operation("Sub", "AddV2"),
    "another assignment": operation("AssignAddVariableOp", "AssignSubVariableOp"),
    "another distribution": operation("RandomUniform", "RandomStandardNormal"),
    "a seed": seeded,
    "one draw for two": one_draw,
    "an unneeded node that cannot be loaded": unneeded,
}


def test_proved_without_a_fault() -> None:
    assert prove_section(PROGRAM, section()).answer is Answer.PROVED


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_not_proved(name: str) -> None:
    broken = changed(FAULTS[name])
    assert broken != section()
    assert prove_section(PROGRAM, broken).answer is not Answer.PROVED


@pytest.mark.parametrize("place", range(3))
def test_a_constant_that_is_another_is_not_proved(place: int) -> None:
    made = edits.other_constant(Draft(section(), random.Random(place)))
    assert made is not None
    assert prove_section(PROGRAM, made).answer is not Answer.PROVED


def test_swapped_results_are_not_proved() -> None:
    made = edits.swap_results(Draft(section(), random.Random(0)))
    assert made is not None
    assert prove_section(PROGRAM, dataclasses.replace(made)).answer is not Answer.PROVED
