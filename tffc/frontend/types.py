"""What users write as `tff.types`: the types, how they are made, and questions about them."""

from __future__ import annotations

from tffc.errors import (
    TypeNotAssignableError,
    TypesNotEquivalentError,
    TypesNotIdenticalError,
)
from tffc.frontend.compatibility import (
    is_structure_of_floats,
    is_structure_of_integers,
    is_structure_of_tensors,
)
from tffc.frontend.type_queries import (
    contains,
    contains_only,
    count,
    deserialize_type,
    is_tensorflow_compatible_type,
    serialize_type,
)
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
    to_type,
)

tensorflow_to_type = to_type
"""The name for types written in TensorFlow's terms, which `to_type` reads as well."""

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
    "contains_only",
    "count",
    "deserialize_type",
    "is_structure_of_floats",
    "is_structure_of_integers",
    "is_structure_of_tensors",
    "is_tensorflow_compatible_type",
    "serialize_type",
    "tensorflow_to_type",
    "to_type",
]
