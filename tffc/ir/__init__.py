"""The intermediate representation: types, nodes, walks over them and their printed form."""

from __future__ import annotations

from tffc.ir import nodes
from tffc.ir.array import Array, to_array
from tffc.ir.dtypes import DType
from tffc.ir.nodes import (
    Binding,
    Block,
    Call,
    Compiled,
    Data,
    Intrinsic,
    Lambda,
    Literal,
    Node,
    PlacementNode,
    Reference,
    Selection,
    StructNode,
)
from tffc.ir.types import (
    CLIENTS,
    SERVER,
    AbstractType,
    FederatedType,
    FunctionType,
    PlacementType,
    SequenceType,
    StructType,
    StructWithPythonType,
    TensorType,
    Type,
    at_clients,
    at_server,
    to_type,
)

__all__ = [
    "CLIENTS",
    "SERVER",
    "AbstractType",
    "Array",
    "Binding",
    "Block",
    "Call",
    "Compiled",
    "DType",
    "Data",
    "FederatedType",
    "FunctionType",
    "Intrinsic",
    "Lambda",
    "Literal",
    "Node",
    "PlacementNode",
    "PlacementType",
    "Reference",
    "Selection",
    "SequenceType",
    "StructNode",
    "StructType",
    "StructWithPythonType",
    "TensorType",
    "Type",
    "at_clients",
    "at_server",
    "to_array",
    "to_type",
]


def __getattr__(name: str) -> type[nodes.NodeBase]:
    """Return a node class under the name that it had once."""
    return nodes.__getattr__(name)
