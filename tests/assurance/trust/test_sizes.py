"""What a graph is known to need, whatever a stranger wrote into it."""

from __future__ import annotations

import pytest

from tffc.assurance.trust.sizes import _constant, _tensors
from tffc.graphs import proto


def constant(count: int, *elements: int) -> proto.NodeDef:
    """A constant of integers that gives fewer elements than it has."""
    node = proto.NodeDef(name="dims", op="Const")
    tensor = node.attr["value"].tensor
    tensor.dtype = proto.DataType.Value("DT_INT32")
    tensor.tensor_shape.dim.add().size = count
    tensor.int_val.extend(elements)
    return node


def filled(dims: proto.NodeDef) -> list[int]:
    fill = proto.NodeDef(name="fill", op="Fill", input=["dims", "value"])
    fill.attr["T"].type = proto.DataType.Value("DT_FLOAT")
    return list(_tensors([dims, fill]))


def test_a_shape_that_is_given_by_its_last_element() -> None:
    assert _constant(constant(3, 5)) == [5, 5, 5]
    assert max(filled(constant(2, 10, 100))) == 4000


@pytest.mark.parametrize("count", [10**12, -(10**12), 255])
def test_a_shape_that_no_tensor_has_allocates_nothing(count: int) -> None:
    assert _constant(constant(count, 7)) is None


def test_negative_sizes_count_nothing() -> None:
    assert max(filled(constant(1, -(10**9))), default=0) <= 4
