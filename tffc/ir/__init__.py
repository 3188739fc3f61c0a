"""The intermediate representation: types, nodes, walks over them and their printed form."""

from __future__ import annotations

from tffc.ir import nodes as nodes
from tffc.ir.array import Array as Array
from tffc.ir.array import to_array as to_array
from tffc.ir.dtypes import DType as DType
from tffc.ir.nodes import Binding as Binding
from tffc.ir.nodes import Block as Block
from tffc.ir.nodes import Call as Call
from tffc.ir.nodes import Compiled as Compiled
from tffc.ir.nodes import Data as Data
from tffc.ir.nodes import Intrinsic as Intrinsic
from tffc.ir.nodes import Lambda as Lambda
from tffc.ir.nodes import Literal as Literal
from tffc.ir.nodes import Node as Node
from tffc.ir.nodes import PlacementNode as PlacementNode
from tffc.ir.nodes import Reference as Reference
from tffc.ir.nodes import Selection as Selection
from tffc.ir.nodes import StructNode as StructNode
from tffc.ir.types import CLIENTS as CLIENTS
from tffc.ir.types import SERVER as SERVER
from tffc.ir.types import AbstractType as AbstractType
from tffc.ir.types import FederatedType as FederatedType
from tffc.ir.types import FunctionType as FunctionType
from tffc.ir.types import PlacementType as PlacementType
from tffc.ir.types import SequenceType as SequenceType
from tffc.ir.types import StructType as StructType
from tffc.ir.types import StructWithPythonType as StructWithPythonType
from tffc.ir.types import TensorType as TensorType
from tffc.ir.types import Type as Type
from tffc.ir.types import at_clients as at_clients
from tffc.ir.types import at_server as at_server
from tffc.ir.types import to_type as to_type


def __getattr__(name: str) -> type[nodes.NodeBase]:
    """Return a node class by its former name."""
    return nodes.__getattr__(name)
