"""The intermediate representation: types, nodes, walks over them and their printed form."""

from __future__ import annotations

from tffc.language import nodes as nodes
from tffc.language.array import Array as Array
from tffc.language.array import to_array as to_array
from tffc.language.dtypes import DType as DType
from tffc.language.nodes import Binding as Binding
from tffc.language.nodes import Block as Block
from tffc.language.nodes import Call as Call
from tffc.language.nodes import Compiled as Compiled
from tffc.language.nodes import Data as Data
from tffc.language.nodes import Intrinsic as Intrinsic
from tffc.language.nodes import Lambda as Lambda
from tffc.language.nodes import Literal as Literal
from tffc.language.nodes import Node as Node
from tffc.language.nodes import PlacementNode as PlacementNode
from tffc.language.nodes import Reference as Reference
from tffc.language.nodes import Selection as Selection
from tffc.language.nodes import StructNode as StructNode
from tffc.language.types import CLIENTS as CLIENTS
from tffc.language.types import SERVER as SERVER
from tffc.language.types import AbstractType as AbstractType
from tffc.language.types import FederatedType as FederatedType
from tffc.language.types import FunctionType as FunctionType
from tffc.language.types import PlacementType as PlacementType
from tffc.language.types import SequenceType as SequenceType
from tffc.language.types import StructType as StructType
from tffc.language.types import StructWithPythonType as StructWithPythonType
from tffc.language.types import TensorType as TensorType
from tffc.language.types import Type as Type
from tffc.language.types import at_clients as at_clients
from tffc.language.types import at_server as at_server
from tffc.language.types import to_type as to_type
