"""Tensors as sequences of their slices."""

from __future__ import annotations

from tffc.ir.types import SequenceType, TensorType
from tffc.linking.attributes import (
    flag_attribute,
    shapes_attribute,
    text_attribute,
    types_attribute,
)
from tffc.linking.builder import GraphBuilder
from tffc.linking.operand import Operand, Tensor


def sequence_of_slices(builder: GraphBuilder, operand: Operand) -> Tensor:
    """Return the sequence of the slices of a tensor along its first dimension, whose rank is
    known."""
    assert isinstance(operand, Tensor)
    whole = operand.type
    assert isinstance(whole, TensorType)
    assert whole.shape
    slice_type = TensorType(whole.element_type, whole.shape[1:])
    attributes = {
        "Toutput_types": types_attribute([slice_type]),
        "output_shapes": shapes_attribute([slice_type]),
        "is_files": flag_attribute(False),
        "metadata": text_attribute(b""),
        "replicate_on_split": flag_attribute(False),
    }
    (made,) = builder.add("TensorSliceDataset", [operand], attributes, [SequenceType(slice_type)])
    return made
