"""Types, constants and nodes as protobuf messages, built the plain way through protobuf."""

from __future__ import annotations

import struct
from typing import Any

from tests.graphs.proto import messages as proto
from tffc import language as ir

CODES = {
    1: {"bool": "?", "int": "b", "uint": "B"},
    2: {"int": "h", "uint": "H", "float": "H"},
    4: {"int": "i", "uint": "I", "float": "f"},
    8: {"int": "q", "uint": "Q", "float": "d", "complex": "f"},
    16: {"complex": "d"},
}
"""How `struct` names the numbers of each size and kind, halves by their bits."""


def type_message(type_: ir.Type) -> Any:
    made = proto.Type()
    match type_:
        case ir.TensorType(element_type=dtype, shape=shape):
            made.tensor.dtype = dtype.number
            made.tensor.unknown_rank = shape is None
            made.tensor.dims.extend(-1 if size is None else size for size in shape or ())
        case ir.StructType():
            made.struct.SetInParent()
            for name, value in type_.items():
                made.struct.element.add(name=name or "", value=type_message(value))
        case ir.SequenceType():
            made.sequence.element.CopyFrom(type_message(type_.element))
        case ir.FunctionType():
            if type_.parameter is not None:
                made.function.parameter.CopyFrom(type_message(type_.parameter))
            made.function.result.CopyFrom(type_message(type_.result))
        case ir.FederatedType():
            made.federated.placement.value.uri = type_.placement.uri
            made.federated.all_equal = type_.all_equal
            made.federated.member.CopyFrom(type_message(type_.member))
        case _:
            made.placement.SetInParent()
    return made


def array_message(array: ir.Array) -> Any:
    made = proto.Array(dtype=array.dtype.number, shape=proto.ArrayShape(dim=array.shape))
    made.shape.SetInParent()
    name = "string" if array.dtype is ir.DType.STRING else array.dtype.label
    values = getattr(made, f"{name}_list")
    values.SetInParent()
    if isinstance(array.content, tuple):
        values.value.extend(array.content)
    else:
        code = CODES[array.dtype.size][array.dtype.kind]
        count = len(array.content) // struct.calcsize(f"<{code}")
        values.value.extend(struct.unpack(f"<{count}{code}", array.content))
    return made


def node_message(node: ir.Node) -> Any:
    made = proto.Computation(type=type_message(node.type))
    match node:
        case ir.Selection():
            made.selection.source.CopyFrom(node_message(node.source))
            made.selection.index = node.index
        case ir.StructNode():
            made.struct.SetInParent()
            for name, value in node.items():
                made.struct.element.add(name=name or "", value=node_message(value))
        case ir.Call():
            made.call.function.CopyFrom(node_message(node.function))
            if node.argument is not None:
                made.call.argument.CopyFrom(node_message(node.argument))
        case ir.Lambda():
            inner = getattr(made, "lambda")
            inner.parameter_name = node.parameter_name or ""
            inner.result.CopyFrom(node_message(node.result))
        case ir.Block():
            for binding in node.locals:
                made.block.local.add(name=binding.name, value=node_message(binding.value))
            made.block.result.CopyFrom(node_message(node.result))
        case _:
            _fill_leaf(made, node)
    return made


def _fill_leaf(made: Any, node: ir.Node) -> None:
    match node:
        case ir.Reference():
            made.reference.name = node.name
        case ir.Intrinsic():
            made.intrinsic.uri = node.uri
        case ir.Data():
            made.data.content.type_url = node.type_url
            made.data.content.value = node.value
            made.data.content.SetInParent()
        case ir.Compiled():
            getattr(made, node.kind).MergeFromString(node.payload)
        case ir.PlacementNode():
            made.placement.uri = node.literal.uri
        case ir.Literal():
            made.literal.value.CopyFrom(array_message(node.array))
