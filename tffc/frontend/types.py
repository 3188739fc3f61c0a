"""The module `tff.types`: types, their constructors, and queries."""

from __future__ import annotations

from tffc.frontend.type_analysis import (
    is_structure_of_floats,
    is_structure_of_integers,
    is_structure_of_tensors,
)
from tffc.frontend.type_conversions import (
    TypeRelation,
    UnexpectedTypeError,
    structure_from_tensor_type_tree,
    type_mismatch_error_message,
    type_to_py_container,
    type_to_tf_tensor_specs,
)
from tffc.frontend.type_queries import (
    contains,
    contains_only,
    count,
    deserialize_type,
    is_tensorflow_compatible_type,
    serialize_type,
)
from tffc.ir.shapes import Shape as ArrayShape
from tffc.ir.shapes import is_shape_fully_defined, num_elements_in_shape
from tffc.ir.type_base import (
    TypeNotAssignableError,
    TypesNotEquivalentError,
    TypesNotIdenticalError,
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
"""The name for `to_type` that suggests types in TensorFlow's terms, which it accepts as well."""

__all__ = [
    "AbstractType",
    "ArrayShape",
    "FederatedType",
    "FunctionType",
    "PlacementType",
    "SequenceType",
    "StructType",
    "StructWithPythonType",
    "TensorType",
    "Type",
    "TypeNotAssignableError",
    "TypeRelation",
    "TypesNotEquivalentError",
    "TypesNotIdenticalError",
    "UnexpectedTypeError",
    "at_clients",
    "at_server",
    "contains",
    "contains_only",
    "count",
    "deserialize_type",
    "is_shape_fully_defined",
    "is_structure_of_floats",
    "is_structure_of_integers",
    "is_structure_of_tensors",
    "is_tensorflow_compatible_type",
    "num_elements_in_shape",
    "serialize_type",
    "structure_from_tensor_type_tree",
    "tensorflow_to_type",
    "to_type",
    "type_mismatch_error_message",
    "type_to_py_container",
    "type_to_tf_tensor_specs",
]
