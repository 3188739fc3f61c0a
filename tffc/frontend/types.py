"""What users write as `tff.types`: the types, how they are made, and questions about them."""

from __future__ import annotations

from tffc.errors import (
    TypeNotAssignableError,
    TypesNotEquivalentError,
    TypesNotIdenticalError,
)
from tffc.ir.convert import to_type
from tffc.ir.types import (
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
    contains,
)

__all__ = [
    "AbstractType",
    "FederatedType",
    "FunctionType",
    "PlacementType",
    "SequenceType",
    "StructType",
    "StructWithPythonType",
    "TensorType",
    "Type",
    "TypeNotAssignableError",
    "TypesNotEquivalentError",
    "TypesNotIdenticalError",
    "at_clients",
    "at_server",
    "contains",
    "to_type",
]
