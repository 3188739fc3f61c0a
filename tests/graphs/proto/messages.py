"""Classes of the messages that only tests make: serialized computations, and parts of graphs.

The compiler reads and writes computations without protobuf; tests hold it against these.
"""

from __future__ import annotations

from tffc.graphs.proto import DataType, FunctionDef, GraphDef, NodeDef, TensorProto, message

__all__ = ["DataType", "FunctionDef", "GraphDef", "NodeDef", "TensorProto"]

Computation = message("tffc.v0.Computation")
Type = message("tffc.v0.Type")
SequenceType = message("tffc.v0.SequenceType")
TensorType = message("tffc.v0.TensorType")
AbstractType = message("tffc.v0.AbstractType")
FederatedType = message("tffc.v0.FederatedType")
PlacementLabel = message("tffc.v0.PlacementLabel")
PlacementSpec = message("tffc.v0.PlacementSpec")
Placement = message("tffc.v0.Placement")
Lambda = message("tffc.v0.Lambda")
Reference = message("tffc.v0.Reference")
Selection = message("tffc.v0.Selection")
Literal = message("tffc.v0.Literal")
Array = message("tffc.v0.Array")
ArrayShape = message("tffc.v0.ArrayShape")
TensorFlow = message("tffc.v0.TensorFlow")
Binding = message("tffc.v0.TensorFlow.Binding")
XlaBinding = message("tffc.v0.Xla.Binding")
Any_ = message("google.protobuf.Any")
NameAttrList = message("tffc.graph.NameAttrList")
AttrValue = message("tffc.graph.AttrValue")
TensorShapeProto = message("tffc.graph.TensorShapeProto")
