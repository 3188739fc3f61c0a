"""The tables of TensorFlow's operations against the installed TensorFlow."""

from __future__ import annotations

import pytest

from tests.graphs.operations import write_op_table
from tests.graphs.proto.messages import AttrValue, NodeDef
from tffc.graphs.operations import effects, op_table


@pytest.fixture(scope="module")
def registered() -> dict[str, str]:
    return {op.name: write_op_table.line(op) for op in write_op_table.registered_operations()}


def rows() -> dict[str, str]:
    lines = op_table.TABLE.read_text(encoding="utf-8").splitlines()
    return {line.split("\t")[0]: line for line in lines}


CHANGED = {"XlaSparseDenseMatmulWithCsrInput", "XlaSparseDenseMatmulGradWithCsrInput"}
"""Operations for TPUs whose outputs were always float in TensorFlow 2.19; the table has what came
after, and finds no type in a node from before."""


def test_rows_are_what_tensorflow_registers(registered: dict[str, str]) -> None:
    ours = rows()
    both = (registered.keys() & ours.keys()) - CHANGED
    assert len(both) > 1800
    assert {name: ours[name] for name in both} == {name: registered[name] for name in both}


def test_rows_are_in_alphabetical_order() -> None:
    assert list(rows()) == sorted(rows())


def test_absent_counts_and_lists_are_empty_for_tensorflow_too() -> None:
    """A node may leave out an attribute that has its default; ours is not an output then."""
    exceptions = set()
    for operation in write_op_table.registered_operations():
        defaults = {attr.name: attr.default_value for attr in operation.attr}
        for output in operation.output_arg:
            count = defaults.get(output.number_attr)
            types = defaults.get(output.type_list_attr)
            if (count is not None and count.i) or (types is not None and types.list.type):
                exceptions.add(operation.name)
    assert exceptions <= {"NIntsOutDefault", "NPolymorphicOutDefault", "TypeListTwice"}


def test_an_unknown_operation_is_not_found() -> None:
    assert op_table.find("NoSuchOperation") is None


def test_outputs_and_their_types() -> None:
    split = NodeDef(op="Split")
    split.attr["num_split"].i = 2
    split.attr["T"].type = 3
    operation = op_table.find("Split")
    assert operation is not None
    assert operation.ports(split.attr) == [("output", 0, 3), ("output", 1, 3)]

    following = NodeDef(op="IteratorGetNext")
    following.attr["output_types"].CopyFrom(AttrValue(list=AttrValue.ListValue(type=[1, 7])))
    operation = op_table.find("IteratorGetNext")
    assert operation is not None
    assert operation.ports(following.attr) == [("components", 0, 1), ("components", 1, 7)]

    unique = NodeDef(op="Unique")
    operation = op_table.find("Unique")
    assert operation is not None
    assert operation.ports(unique.attr) == [("y", 0, None), ("idx", 0, None)]


def test_effects_are_of_operations_that_exist_and_stand_once() -> None:
    text = effects.TABLE.read_text(encoding="utf-8").splitlines()
    named = [op for line in text if line and line[0] not in "#[" for op in line.split()]
    assert len(named) == len(set(named))
    assert {*named, *effects.ADDRESSES} <= rows().keys()


def test_own_state_is_only_said_of_operations_that_tensorflow_calls_stateful() -> None:
    stateless = [
        row.split("\t")[0] for row in rows().values() if "S" not in (row + "\t").split("\t")[1]
    ]
    node = NodeDef()
    for name in stateless:
        node.op = name
        if effects.effect_of(node, {}) is effects.Effect.OWN_STATE:
            assert name.startswith(effects.OWN_STATE_FAMILIES)
